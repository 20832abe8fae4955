"""Seven stars that attract each other in a plane: the Pleiades problem, computed beside printed.

E. Hairer, S. P. Norsett and G. Wanner, "Solving Ordinary Differential Equations I", 1993, II.10;
F. Mazzia and C. Magherini, "Test Set for Initial Value Problem Solvers", 2008. Star i has the mass
i, the constant of gravitation is 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ...forces import Conservative, Path, as_path, attach
from ...integrators import DormandPrince54
from ...io.results import Results
from ...simulate import simulate
from ...system import Body, Translation, tree
from ...view.figures import figure, label
from ...view.report import Cell, Checked, Section, Table
from ..papers import Agreement, Computed, Progress, each, printed

MASSES = np.arange(1.0, 8.0)
POSITIONS = (3, 3, -1, -3, 2, -2, 2), (3, -3, 2, 0, 0, -4, 4), (0,) * 7
VELOCITIES = (0, 0, 0, 0, 0, 1.75, -1.5), (0, 0, 0, -1.25, 1, 0, 0), (0,) * 7


class Gravitation(Conservative):
    """The attraction between the bodies of a path, which have these masses."""

    path: Path = eqx.field(converter=as_path)

    def energy(self, frames: Any) -> Any:
        x, (i, j) = frames.translation.to_array(), np.triu_indices(len(MASSES), 1)
        return -jnp.sum(MASSES[i] * MASSES[j] / jnp.linalg.norm(x[i] - x[j], axis=-1))


@dataclass(frozen=True, kw_only=True)
class Coordinate(Results):
    """A coordinate of a star, or its rate, at t = 3."""

    star: int
    quantity: str
    computed: float
    printed: float


@dataclass(frozen=True, kw_only=True)
class PleiadesResults(Results):
    """The coordinates of all stars, and their rates."""

    name: str = "pleiades"
    rows: list[Coordinate]


def compute(progress: Progress) -> Computed:
    """The stars at t = 3, by steps of order 5 that keep a tolerance of 1e-12."""
    stars = [Body(name=f"star {mass:g}", joint=Translation(), mass=mass) for mass in MASSES]
    gravitation = Gravitation([(star.name, (0, 0, 0)) for star in stars])
    system = attach(tree(stars, name="Pleiades", gravity=(0, 0, 0)), gravitation)
    start = [jnp.array(a, float).T.ravel() for a in (POSITIONS, VELOCITIES)]
    how = {"steps": 200, "method": DormandPrince54(rtol=1e-12, atol=1e-12, substeps=512)}
    (motion,) = each(progress, "motion", lambda dt: simulate(system, *start, dt=dt, **how), [0.015])
    x, rate = (np.reshape(a, (-1, 7, 3)) for a in (motion.q, motion.v))
    end = (*x[-1].T[:2], *rate[-1].T[:2])
    rows = [
        Coordinate(star=k + 1, quantity=name, computed=float(values[k]), printed=known[k])
        for (name, known), values in zip(printed(__file__).items(), end, strict=True)
        for k in range(7)
    ]
    return PleiadesResults(rows=rows), lambda: {"pleiades": paths(x)}


def paths(x: np.ndarray) -> Any:
    """The ways (m, 7, 3) of the stars."""
    canvas, axes = figure(size=(6.5, 5.0))
    for k, star in enumerate(np.moveaxis(x, 1, 0), 1):
        axes[0, 0].plot(*star.T[:2], label=f"star {k}", linewidth=1.3)
    label(axes[0, 0], "x", "y", "The paths of the stars until t = 3")
    return canvas


def agreements(results: PleiadesResults) -> list[Agreement]:
    """The numbers that have all printed decimals."""
    equal = [_decimals(r.computed) == _decimals(r.printed) for r in results.rows]
    return [Agreement("Places and rates at t = 3", sum(equal), len(equal), "in nine decimals")]


def _decimals(value: float) -> str:
    return f"{value:.9f}"


def sections(results: PleiadesResults) -> list[Section]:
    """Every number above the printed one."""
    lines: list[list[Cell]] = [[str(k + 1)] for k in range(7)]
    for r in results.rows:
        computed, known = _decimals(r.computed), _decimals(r.printed)
        lines[r.star - 1].append(Checked(computed, known, computed == known))
    table = Table(("star", "x", "y", "dx/dt", "dy/dt"), lines)
    return [Section("Seven stars at t = 3", [table])]

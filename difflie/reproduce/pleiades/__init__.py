"""Seven stars that attract each other in a plane: the Pleiades problem, computed beside printed.

E. Hairer, S. P. Norsett and G. Wanner, "Solving Ordinary Differential Equations I", 1993, II.10;
F. Mazzia and C. Magherini, "Test Set for Initial Value Problem Solvers", 2008. Star i has the mass
i, the constant of gravitation is 1.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from rich.console import Console

from ...forces import Conservative, Path, as_path, attach
from ...integrators import DormandPrince54
from ...simulate import simulate
from ...system import Body, Translation, tree
from ...view.figures import figure, label
from ..runs import Computed, Progress, each
from ..tables import Agreement, beside, printed, show_table

MASSES = np.arange(1.0, 8.0)
POSITIONS = (3, 3, -1, -3, 2, -2, 2), (3, -3, 2, 0, 0, -4, 4), (0,) * 7
VELOCITIES = (0, 0, 0, 0, 0, 1.75, -1.5), (0, 0, 0, -1.25, 1, 0, 0), (0,) * 7


class Gravitation(Conservative):
    """The attraction between the bodies of a path, which have these masses."""

    path: Path = eqx.field(converter=as_path)

    def energy(self, frames: Any) -> Any:
        x, (i, j) = frames.translation.to_array(), np.triu_indices(len(MASSES), 1)
        return -jnp.sum(MASSES[i] * MASSES[j] / jnp.linalg.norm(x[i] - x[j], axis=-1))


def compute(progress: Progress) -> Computed:
    """The stars at t = 3, by steps of order 5 that keep a tolerance of 1e-12.

    The dictionary has "rows" with "star", "quantity", "computed" and "printed".
    """
    stars = [Body(name=f"star {mass:g}", joint=Translation(), mass=mass) for mass in MASSES]
    gravitation = Gravitation([(star.name, (0, 0, 0)) for star in stars])
    system = attach(tree(stars, name="Pleiades", gravity=(0, 0, 0)), gravitation)
    start = [jnp.array(a, float).T.ravel() for a in (POSITIONS, VELOCITIES)]
    how = {"steps": 200, "method": DormandPrince54(rtol=1e-12, atol=1e-12, substeps=512)}
    (motion,) = each(progress, "motion", lambda dt: simulate(system, *start, dt=dt, **how), [0.015])
    x, rate = (np.reshape(a, (-1, 7, 3)) for a in (motion.q, motion.v))
    end = (*x[-1].T[:2], *rate[-1].T[:2])
    rows = [
        {"star": k + 1, "quantity": name, "computed": float(values[k]), "printed": known[k]}
        for (name, known), values in zip(printed(__file__).items(), end, strict=True)
        for k in range(7)
    ]
    return {"rows": rows}, lambda: {"pleiades": paths(x)}


def paths(x: np.ndarray) -> Any:
    """The ways (m, 7, 3) of the stars."""
    canvas, axes = figure(size=(6.5, 5.0))
    for k, star in enumerate(np.moveaxis(x, 1, 0), 1):
        axes[0, 0].plot(*star.T[:2], label=f"star {k}", linewidth=1.3)
    label(axes[0, 0], "x", "y", "The paths of the stars until t = 3")
    return canvas


def agreements(results: dict[str, Any]) -> list[Agreement]:
    """The numbers that have all printed decimals."""
    equal = [_decimals(r["computed"]) == _decimals(r["printed"]) for r in results["rows"]]
    return [Agreement("Places and rates at t = 3", sum(equal), len(equal), "in nine decimals")]


def _decimals(value: float) -> str:
    return f"{value:.9f}"


def show(results: dict[str, Any], console: Console) -> None:
    """Prints every number above the printed one."""
    lines = [[str(k + 1)] for k in range(7)]
    for r in results["rows"]:
        computed, known = (_decimals(r[key]) for key in ("computed", "printed"))
        lines[r["star"] - 1].append(beside(computed, known, computed == known))
    show_table(console, "Seven stars at t = 3", ("star", "x", "y", "dx/dt", "dy/dt"), lines)

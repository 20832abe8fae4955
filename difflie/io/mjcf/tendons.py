"""MuJoCo's spatial tendons through sites, as springs and dampers between bodies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...forces import Coupling, Damper, Path, Rope, Spring

SITE = 3  # what a tendon is led through: MuJoCo's mjWRAPSITE


def tendon_couplings(model: Any, bodies: Sequence[str]) -> Iterator[Coupling]:
    """The springs and dampers of a MuJoCo model's tendons that pass through sites only.

    bodies: the names of its bodies but the world. A single springlength is a `Spring`; a range from
    0 to a length, in which the tendon is slack, is a `Rope`.
    """
    for tendon in range(model.ntendon):
        sites = _sites(model, tendon)
        if sites is None:
            continue
        owners = [int(b) for b in model.site_bodyid[sites]]
        path = Path(
            jnp.asarray(model.site_pos[sites]),
            tuple(bodies[b - 1] if b else None for b in owners),
        )
        stiffness, damping = model.tendon_stiffness[tendon], model.tendon_damping[tendon]
        spring = _spring(model, tendon)
        if stiffness and spring is not None:
            yield spring(path, stiffness, model.tendon_lengthspring[tendon, 1])
        if damping:
            yield Damper(path, damping)


def unused_tendons(model: Any) -> Iterator[tuple[str, str, list[int]]]:
    """The features of tendons that `tendon_couplings` ignores, "tendon", and which have them."""
    led = [t for t in range(model.ntendon) if _sites(model, t) is not None]
    others = [t for t in range(model.ntendon) if t not in led]
    yield "tendons but those through sites", "tendon", others
    ranged = [t for t in led if _spring(model, t) is None and model.tendon_stiffness[t]]
    yield "springs of tendons with a range of lengths at rest", "tendon", ranged
    for field, what in (
        ("limited", "limits of tendons"),
        ("frictionloss", "friction of tendons"),
        ("armature", "armature of tendons"),
        # MuJoCo 4 only.
        ("stiffnesspoly", "nonlinear springs of tendons"),
        ("springyield", "yield of the springs of tendons"),
        ("dampingpoly", "nonlinear damping of tendons"),
    ):
        values = getattr(model, f"tendon_{field}", np.zeros(model.ntendon))
        yield what, "tendon", [t for t in led if np.any(values[t])]


def _sites(model: Any, tendon: int) -> np.ndarray | None:
    """The sites a tendon passes through; None where it also wraps something else."""
    parts = slice(model.tendon_adr[tendon], model.tendon_adr[tendon] + model.tendon_num[tendon])
    if np.all(model.wrap_type[parts] == SITE):
        return model.wrap_objid[parts]
    return None


def _spring(model: Any, tendon: int) -> type[Spring] | type[Rope] | None:
    """The class of a tendon's spring, by its range of lengths at rest."""
    shortest, longest = model.tendon_lengthspring[tendon]
    if shortest == longest:
        return Spring
    return Rope if shortest == 0 else None

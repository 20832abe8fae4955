"""Constraints put on a system, and what is checked before."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..system.system import System
from ..system.validation import ModelError, format_value, nearest
from .constraint import Constraint, CoordinateConstraint, FrameConstraint


def constrain(system: System, *constraints: Constraint) -> System:
    """The system with constraints appended to those it has.

    Their numbers take on the system's precision and are leaves like all others:
    `system.constraints[0].first.position` is (3,), in m. To remove them:
    `dataclasses.replace(system, constraints=())`. `simulate` and the functions of constrained
    motion take them into account; `forward_dynamics` and the other functions of the tree do not.
    Raises `ModelError` for an unknown body or joint (with the nearest known one), a joint of
    several degrees of freedom in a constraint between coordinates, two frames of a constraint on
    one body, and a number that is not finite or out of its range.
    """
    for k, constraint in enumerate(constraints, start=len(system.constraints)):
        if not isinstance(constraint, FrameConstraint | CoordinateConstraint):
            raise ModelError(
                f"{system.name}: {format_value(constraint)} is no FrameConstraint and no "
                "CoordinateConstraint; give those of difflie.constraints"
            )
        _check(system, constraint, f"{system.name}: constraint {k}, {constraint}")
    added = jax.tree.map(lambda a: jnp.asarray(a, system.dtype), constraints)
    return replace(system, constraints=(*system.constraints, *added))


def _check(system: System, constraint: Constraint, where: str) -> None:
    if isinstance(constraint, FrameConstraint):
        bodies = [frame.body for frame in constraint.frames]
        for name in bodies:
            if name is not None and name not in system.body_names:
                raise ModelError(
                    f"{where}: no body is named {name!r}{nearest(name, system.body_names)}"
                )
        for group in constraint.apart:
            if len({frame.body for frame in group}) < len(group):
                raise ModelError(f"{where}: two of its frames are on one body; take another body")
    if isinstance(constraint, CoordinateConstraint):
        t = system.topology
        for name in constraint.joints:
            if name not in t.joints:
                raise ModelError(f"{where}: no joint is named {name!r}{nearest(name, t.joints)}")
            b = t.joints.index(name)
            if len(t.kinds[b]) != 1:
                raise ModelError(
                    f"{where}: the joint {name!r} has {len(t.kinds[b])} degrees of freedom; "
                    "joints with one have a coordinate to constrain"
                )
    for fault in constraint.problems():
        raise ModelError(f"{where}: {fault}")
    for value in jax.tree.leaves(constraint):
        if not isinstance(value, Tracer) and not np.all(np.isfinite(value)):
            raise ModelError(f"{where}: {np.asarray(value).tolist()} must be finite")

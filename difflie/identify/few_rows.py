"""Fits of torques that are linear in all that a fit moves, in as few rows as it has numbers.

With squares as the loss, the torque errors of any number of samples have the sum of squares of a
triangle (`LinearTorques`), however the numbers of bodies and joints depend on what is free. A step
of a fit then takes milliseconds.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..parameters import Parameters
from .inverse_dynamics import InverseDynamics
from .jacobian import triangle
from .problem import Problem
from .torque_rows import JOINTS, LinearTorques, torque_rows

# With fewer free numbers the columns take longer to compile than they save.
_MANY = 30
_BODIES = "mass", "com", "inertia"


def in_few_rows(parameters: Any, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """The problems, with errors of torques as triangles where that is possible and worth it."""
    torques = any(isinstance(p, InverseDynamics) for p in problems)
    if not (isinstance(parameters, Parameters) and torques) or parameters.start.size < _MANY:
        return problems
    joints = _joints_moved(parameters)
    if joints is None:
        return problems
    system = parameters.system_at(parameters.start)
    return tuple(_few(p, system, joints) if isinstance(p, InverseDynamics) else p for p in problems)


def _few(problem: InverseDynamics, system: Any, joints: tuple[str, ...]) -> LinearTorques:
    w, y = (np.asarray(x) for x in torque_rows(problem, system, joints))
    r = triangle(np.column_stack((w.reshape(y.size, -1), y.ravel())))
    there = jnp.ones(len(r), bool)
    return LinearTorques(jnp.asarray(r[:, :-1]), jnp.asarray(r[:, -1]), there, joints)


def _joints_moved(parameters: Parameters) -> tuple[str, ...] | None:
    """Which of the joints' linear numbers a fit moves; None where it moves others as well.

    Found by moving all free numbers: what then stays does not depend on them.
    """
    start = parameters.start
    elsewhere = start + 0.1 + 0.05 * jnp.cos(jnp.arange(start.size))
    before, after = (
        jax.tree_util.tree_flatten_with_path(parameters.system_at(x))[0] for x in (start, elsewhere)
    )
    linear = {f".bodies.{leaf}" for leaf in _BODIES} | {f".joints.{leaf}" for leaf in JOINTS}
    moved = {
        jax.tree_util.keystr(path)
        for (path, one), (_, other) in zip(before, after, strict=True)
        if not np.array_equal(np.asarray(one), np.asarray(other), equal_nan=True)
    }
    if not moved <= linear:
        return None
    return tuple(leaf for leaf in JOINTS if f".joints.{leaf}" in moved)

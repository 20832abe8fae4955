"""Bounds of problems: on states and controls, points that are reached, distances that are kept."""

from __future__ import annotations

from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from numpy.typing import ArrayLike

from .. import quantities as dq
from ..quantities.bounded import Bounded
from ..quantities.deviation import as_pose
from ..quantities.quantity import as_quantity
from ..system.fields import number
from ..system.frame import Frame, FrameLike
from ..system.kinematic_tree import Tree
from ..system.system import System
from .inputs import Commands, Input


def _bound(unit: str) -> Any:
    return eqx.field(
        converter=number(unit=unit, shape=None, finite=False, optional=True), default=None
    )


class Limits(eqx.Module):
    """Bounds; None bounds nothing, as do infinite entries.

    q_lower, q_upper (n_dofs,): of the degrees of freedom with plain coordinates, in rad or m, mimic
    joints included. v (nv,): of the size of the velocities, in rad/s or m/s. u_lower, u_upper
    (nu,): of the controls, in their units; None for the bounds of the inputs themselves.
    """

    q_lower: jax.Array | None = _bound("rad or m")
    q_upper: jax.Array | None = _bound("rad or m")
    v: jax.Array | None = _bound("rad/s or m/s")
    u_lower: jax.Array | None = _bound("")
    u_upper: jax.Array | None = _bound("")

    @staticmethod
    def of(system: System, inputs: Input = Commands()) -> Limits:
        """The limits in the robot's file: of positions, velocities, and what the inputs deliver."""
        joints, t = system.joints, system.topology
        lower, upper = inputs.limits(system)
        own = np.flatnonzero(np.isin(np.arange(t.n_dofs), t.mimic_dofs, invert=True))
        v = jnp.full(t.nv, jnp.inf, system.dtype)
        v = v.at[t.dof_velocity[own]].set(joints.max_velocity[own])
        return Limits(joints.lower, joints.upper, v, lower, upper)

    def of_states(self, system: System) -> tuple[Bounded, ...]:
        """Those of the states as constraints, without those known to be infinite."""
        constraints = []
        if self.q_lower is not None or self.q_upper is not None:
            n = system.topology.n_dofs
            both = _pair(self.q_lower, self.q_upper, n, system.dtype)
            plain = np.flatnonzero(system.topology.dof_coordinate >= 0)
            constraints += _some(_Positions, *both, plain)
        if self.v is not None:
            both = _pair(-self.v, self.v, system.nv, system.dtype)
            constraints += _some(_Velocities, *both, np.arange(system.nv))
        return tuple(constraints)

    def of_controls(self, system: System, inputs: Input) -> tuple[jax.Array, jax.Array]:
        """The bounds (nu,) of the controls."""
        lower, upper = inputs.bounds(system)
        lower = lower if self.u_lower is None else jnp.broadcast_to(self.u_lower, lower.shape)
        upper = upper if self.u_upper is None else jnp.broadcast_to(self.u_upper, upper.shape)
        return lower.astype(system.dtype), upper.astype(system.dtype)


class _Positions(dq.Quantity):
    """The coordinates (n,) of some degrees of freedom, in rad or m."""

    dofs: tuple[int, ...] = eqx.field(static=True)

    @property
    def name(self) -> str:
        return "position"

    def labels(self, system: System) -> dq.Labels:
        all_of_them = dq.LimitMargin().labels(system)
        return tuple(all_of_them[i] for i in self.dofs)

    def __call__(self, system: System, q: Any, v: Any, u: Any, t: Any) -> jax.Array:
        return Tree.of(system).coordinates(q)[np.array(self.dofs)]


class _Velocities(dq.Quantity):
    """Some of the velocities (n,), in rad/s or m/s."""

    dofs: tuple[int, ...] = eqx.field(static=True)

    @property
    def name(self) -> str:
        return "velocity"

    def labels(self, system: System) -> dq.Labels:
        return tuple(system.topology.velocity_labels[i] for i in self.dofs)

    def __call__(self, system: System, q: Any, v: Any, u: Any, t: Any) -> jax.Array:
        return v[np.array(self.dofs)]


def _pair(lower: Any, upper: Any, n: int, dtype: Any) -> tuple[jax.Array, jax.Array]:
    lower = jnp.full(n, -jnp.inf) if lower is None else jnp.broadcast_to(lower, (n,))
    upper = jnp.full(n, jnp.inf) if upper is None else jnp.broadcast_to(upper, (n,))
    return lower.astype(dtype), upper.astype(dtype)


def _some(kind: Any, lower: jax.Array, upper: jax.Array, dofs: np.ndarray) -> list[Bounded]:
    """The bounds of those of the dofs that are not known to have none."""
    if not (isinstance(lower, Tracer) or isinstance(upper, Tracer)):
        finite = np.isfinite(np.asarray(lower)) | np.isfinite(np.asarray(upper))
        dofs = dofs[finite[dofs]]
    if not dofs.size:
        return []
    return [Bounded(kind(tuple(dofs.tolist())), lower[dofs], upper[dofs])]


class Equal(Bounded):
    """quantity = goal, for every entry of a quantity (n,); goal () or (n,), in its unit."""

    is_equality = True

    def __init__(self, quantity: Any, goal: Any = None) -> None:
        quantity = as_quantity(quantity)
        quantity = quantity if goal is None else dq.Deviation(quantity, goal)
        super().__init__(quantity, 0.0, 0.0)


class Reach(Equal):
    """A frame reaches a pose (4, 4) or `Frame`, or its origin a point (3,), in the world.

    frame: a `Frame`, or the name of a body for its own frame. goal: the pose (4, 4), the `Frame`,
    or the point (3,) in m.
    """

    def __init__(self, frame: FrameLike, goal: ArrayLike | Frame) -> None:
        goal = as_pose(goal)
        if np.shape(goal) == (4, 4):
            super().__init__(dq.PoseDeviation(frame, goal))
        else:
            super().__init__(dq.Origin(frame), goal)


class ReachState(Equal):
    """The state is q (nq,) in rad or m, v (nv,) in rad/s or m/s; v None for rest."""

    def __init__(self, q: ArrayLike, v: ArrayLike | None = None) -> None:
        super().__init__(dq.StateDeviation(q, v))


class MinDistance(Bounded):
    """The origins of two frames keep a distance of at least so many m: two spheres at them.

    first, second: a `Frame`, or the name of a body for its own frame; a Frame on None is fixed in
    the world. least: for spheres the sum of their radii.
    """

    def __init__(
        self,
        first: FrameLike,
        second: FrameLike,
        least: Annotated[ArrayLike, number(unit="m", positive=True)],
    ) -> None:
        super().__init__(dq.Distance(first, second), lower=least)

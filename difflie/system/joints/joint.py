"""The joint protocol: how a body moves on its parent. A user-defined type is one class.

T(q) is the pose of the body in the joint frame. V = S(q) v is the twist of the body relative to
its parent and A = S(q) a + bias(q, v) its rate of change, both in the body frame:

    @dataclass(frozen=True, kw_only=True)
    class Wheel(dl.Joint):
        radius: float = eqx.field(default=0.1, converter=dl.number(unit="m", positive=True))

        @property
        def manifold(self): ...  # of q, with the tangents v: Euclidean(1)
        def transform(self, q): ...  # (4, 4)
        def motion_subspace(self, q): ...  # (6, 1); default: derivative of the transform
        def bias(self, q, v): ...  # (6,); default: that of the subspace

The methods get traced arrays, such as `self.radius`, of one joint. They are evaluated for all
joints of a type at once, before any recursion.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...groups import FlatManifold, se3

Axis = Sequence[float] | NDArray

# Rounding errors of subspaces in double precision.
_SAME = 1e-12

# The unit of a coordinate, by the kind of its degree of freedom, and that of the torque or force
# along it, by the unit of the coordinate. Numbers whose unit depends on this are declared as of
# "N m or N", from which `parameters` takes the one that holds.
UNITS = {"revolute": "rad", "helical": "rad", "prismatic": "m", "angle": "rad", "length": "m"}
FORCE_UNITS = {"rad": "N m", "m": "N"}


@dataclass(frozen=True)
class Dof:
    """One degree of freedom.

    kind: "revolute", "prismatic" or "helical" for a screw of that kind about an axis through the
    origin of the joint frame, with axis (3,) of a length from 1e-9 to 1e9 and pitch in m/rad;
    "angle" or "length", by the unit of its coordinate, for any other column of the motion subspace.
    """

    kind: str
    axis: Axis = (0.0, 0.0, 1.0)
    pitch: float = 0.0

    @property
    def axial(self) -> bool:
        """Whether it is a screw about a fixed axis."""
        return self.kind in ("revolute", "prismatic", "helical")

    @property
    def screw(self) -> np.ndarray:
        """The unit screw (6,) about the axis, angular part first."""
        axis = np.asarray(self.axis, float) / np.linalg.norm(self.axis)
        turn, along = {
            "revolute": (1.0, 0.0),
            "prismatic": (0.0, 1.0),
            "helical": (1.0, self.pitch),
        }[self.kind]
        return np.concatenate((turn * axis, along * axis))


@dataclass(frozen=True)
class Mimic:
    """The coordinate of a joint is multiplier * coordinate of another joint + offset.

    joint: the name of the other one. multiplier (rad or m of this joint per rad or m of the other)
    and offset (rad or m) are scalars.
    """

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Joint:
    """What all joints have in common: numbers, each a scalar, or (n,) for n degrees of freedom.

    name: by default that of the body. armature: rotor inertia reflected to the joint (kg m^2 or
    kg). damping: viscous (N m s/rad or N s/m). friction: Coulomb (N m or N), which rises smoothly
    over friction_velocity (rad/s or m/s). stiffness: of a linear spring (N m/rad or N/m) without
    force at the coordinate spring_reference (rad or m); only for joints whose coordinates are plain
    numbers. lower, upper: limits of the coordinate (rad or m). max_velocity (rad/s or m/s): the
    limit of its absolute value. max_effort, min_effort (N m or N): limits of the effort; where
    min_effort is infinite, the lower one is -max_effort. mimic: only for joints with one degree of
    freedom. source: where the joint was read, for messages. An axis (3,) or normal (3,) is a
    direction in the joint frame, of a length from 1e-9 to 1e9.

    A user-defined type has a `manifold` and a `transform`, and numbers of its own in fields
    declared with `difflie.number`. Neither `manifold` nor `dofs` may depend on these; all other
    fields must be hashable. See the head of this file.
    """

    name: str | None = None
    armature: ArrayLike = 0.0
    damping: ArrayLike = 0.0
    friction: ArrayLike = 0.0
    friction_velocity: ArrayLike = 1e-2
    stiffness: ArrayLike = 0.0
    spring_reference: ArrayLike = 0.0
    lower: ArrayLike = -np.inf
    upper: ArrayLike = np.inf
    max_velocity: ArrayLike = np.inf
    max_effort: ArrayLike = np.inf
    min_effort: ArrayLike = -np.inf
    mimic: Mimic | None = None
    source: str | None = None

    # Whether the degrees of freedom are screws in series, each moved by those before it; see
    # `Series`.
    in_series: ClassVar[bool] = False

    @property
    def manifold(self) -> FlatManifold:
        """The manifold of the coordinates q; its tangents are the velocities v."""
        raise NotImplementedError

    def transform(self, q: jax.Array) -> jax.Array:
        """T(q) (4, 4): the pose of the body in the joint frame; any pose at a neutral q."""
        raise NotImplementedError

    def motion_subspace(self, q: jax.Array) -> jax.Array:
        """S(q) (6, n), body-fixed, angular part first: T^-1 dT/dt = hat(S v)."""
        zero = jnp.zeros(self.manifold.tangent_size, q.dtype)
        rates = jax.jacfwd(lambda xi: self.transform(self.manifold.retract(q, xi)))(zero)
        inverse = se3.inverse(self.transform(q))
        return jax.vmap(lambda rate: se3.vee(inverse @ rate), 2, 1)(rates)

    def bias(self, q: jax.Array, v: jax.Array) -> jax.Array:
        """The joint bias acceleration (dS/dt) v (6,), in the body frame."""

        def twist(time: jax.Array) -> jax.Array:
            return self.motion_subspace(self.manifold.retract(q, time * v)) @ v

        zero = jnp.zeros((), q.dtype)
        return jax.jvp(twist, (zero,), (jnp.ones_like(zero),))[1]

    def dofs(self) -> tuple[Dof, ...]:
        """The degrees of freedom, one for each column of the motion subspace.

        If all have an axis, the subspace is constant and these are its columns. By default this is
        detected for types without numbers of their own.
        """
        fixed = () if self.numbers() else _axial(self.without_numbers())
        return fixed or (Dof("angle"),) * self.manifold.tangent_size

    # Used by the builders only.

    @classmethod
    def type_name(cls) -> str:
        """The name of the type in messages and paths."""
        return cls.__name__.lower()

    @classmethod
    def numbers(cls) -> tuple[str, ...]:
        """The names of its own numeric fields."""
        return tuple(f.name for f in dataclasses.fields(cls) if "converter" in f.metadata)

    def without_numbers(self) -> Self:
        """The joint without its numbers, as a hashable part of a topology."""
        common = {f.name: f.default for f in dataclasses.fields(Joint)}
        return self.with_numbers(common | dict.fromkeys(self.numbers()))

    def with_numbers(self, numbers: Mapping[str, Any]) -> Self:
        """A copy with other numbers, which may be traced."""
        joint = copy.copy(self)
        for name, value in numbers.items():
            object.__setattr__(joint, name, value)
        return joint

    def about(self, axes: np.ndarray, pitch: np.ndarray) -> Self:
        """The same joint about other axes (n, 3) with other pitches (n,), as a system holds them.

        Raises ValueError for axes that it cannot have. Nothing changes where the type fixes them.
        """
        return self


@functools.lru_cache
def _axial(joint: Joint) -> tuple[Dof, ...]:
    """The columns of a constant motion subspace, if all are screws about axes; otherwise none.

    An analytic function that is equal at three random points is constant.
    """
    space = joint.manifold
    xis = np.random.default_rng(1).uniform(-1, 1, (3, space.tangent_size))
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        start = jnp.asarray(space.identity(), float)
        at = jax.jit(jax.vmap(lambda xi: joint.motion_subspace(space.retract(start, xi))))
        subspaces = np.asarray(at(xis))
    columns = subspaces[0]
    if not np.all(np.abs(subspaces - columns) < _SAME):
        return ()
    columns = np.where(np.abs(columns) < _SAME, 0.0, columns)
    dofs = tuple(map(_screw, columns.T))
    return tuple(dof for dof in dofs if dof) if all(dofs) else ()


def _screw(column: np.ndarray) -> Dof | None:
    """The unit screw (6,) about an axis through the origin; None for any other twist."""
    turn, along = column[:3], column[3:]
    kind = "revolute" if not np.any(along) else "helical" if np.any(turn) else "prismatic"
    axis = along if kind == "prismatic" else turn
    pitch = float(along @ axis)
    dof = Dof(kind, tuple(axis.tolist()), pitch if kind == "helical" else 0.0)
    return dof if np.any(axis) and np.all(np.abs(dof.screw - column) < _SAME) else None


# The fields of `Joint` with one number for each degree of freedom.
ROW_FIELDS = (
    *("armature", "damping", "friction", "friction_velocity", "stiffness", "spring_reference"),
    *("lower", "upper", "max_velocity", "max_effort", "min_effort"),
)

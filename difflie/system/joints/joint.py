"""The protocol of a joint: how one body moves on another. A type of one's own is one class.

With T(q) the pose of the body on the joint in the joint frame, V = S(q) v the body's twist against
its parent, and A = S(q) a + bias(q, v) the rate of change of V, all in the body frame:

    @dataclass(frozen=True, kw_only=True)
    class Wheel(dl.Joint):
        radius: float = eqx.field(default=0.1, converter=dl.number(unit="m", positive=True))

        @property
        def manifold(self): ...  # of q, with the tangents v: Euclidean(1)
        def transform(self, q): ...  # (4, 4)
        def motion_subspace(self, q): ...  # (6, 1); left out, the derivative of the transform
        def bias(self, q, v): ...  # (6,); left out, that of the subspace

Methods see traced arrays, `self.radius` among them, for one joint; they are evaluated for all
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

# Rounding, of subspaces in double precision.
_SAME = 1e-12

# What the coordinate of a degree of freedom counts, by its kind.
UNITS = {"revolute": "rad", "helical": "rad", "prismatic": "m", "angle": "rad", "length": "m"}


@dataclass(frozen=True)
class Dof:
    """One degree of freedom.

    kind: "revolute", "prismatic" or "helical" for a screw of that kind about an axis through the
    origin of the joint frame, axis (3,) of a length from 1e-9 to 1e9, pitch in m/rad; "angle" or
    "length" for any other column of the motion subspace, after the unit of its coordinate.
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
        """(6,) the unit screw about the axis, angular part first."""
        axis = np.asarray(self.axis, float) / np.linalg.norm(self.axis)
        turn, along = {
            "revolute": (1.0, 0.0),
            "prismatic": (0.0, 1.0),
            "helical": (1.0, self.pitch),
        }[self.kind]
        return np.concatenate((turn * axis, along * axis))


@dataclass(frozen=True)
class Mimic:
    """The coordinate of a joint as multiplier * coordinate of another joint + offset.

    multiplier, in rad or m of this joint for one of the other, and offset, in rad or m, are
    scalars.
    """

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Joint:
    """What all joints have in common; values are scalars, or (n,) for n degrees of freedom.

    armature: rotor inertia seen at the joint (kg m^2 or kg). damping: viscous (N m s/rad or N s/m).
    friction: Coulomb (N m or N), rising smoothly over friction_velocity (rad/s or m/s). stiffness:
    of a spring (N m/rad or N/m) that is at rest where the coordinate is `spring_reference` (rad or
    m); only joints whose coordinates are plain numbers have one. lower, upper: limits of the
    coordinate (rad or m). max_velocity (rad/s or m/s) and max_effort (N m or N): limits of their
    absolute values. mimic: only for joints with one degree of freedom. source: where it was read,
    for messages. An axis (3,) or normal (3,) is a direction in the joint frame, of a length from
    1e-9 to 1e9.

    A type of one's own has a `manifold` and a `transform`, and its own numbers in fields declared
    with `difflie.number`, on which neither `manifold` nor `dofs` may depend; its other fields must
    be hashable. See the head of this file.
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
    mimic: Mimic | None = None
    source: str | None = None

    # Whether the degrees of freedom are screws one after the other, each about an axis that the
    # ones before it move; see `Series`.
    in_series: ClassVar[bool] = False

    @property
    def manifold(self) -> FlatManifold:
        """The manifold of the coordinates q; its tangents are the velocities v."""
        raise NotImplementedError

    def transform(self, q: jax.Array) -> jax.Array:
        """T(q) (4, 4): the pose of the body in the joint frame; at a neutral q any pose will do."""
        raise NotImplementedError

    def motion_subspace(self, q: jax.Array) -> jax.Array:
        """S(q) (6, n), body-fixed, angular part first: T^-1 dT/dt = hat(S v)."""
        zero = jnp.zeros(self.manifold.tangent_size, q.dtype)
        rates = jax.jacfwd(lambda xi: self.transform(self.manifold.retract(q, xi)))(zero)
        inverse = se3.inverse(self.transform(q))
        return jax.vmap(lambda rate: se3.vee(inverse @ rate), 2, 1)(rates)

    def bias(self, q: jax.Array, v: jax.Array) -> jax.Array:
        """(dS/dt) v (6,), in the body frame."""

        def twist(time: jax.Array) -> jax.Array:
            return self.motion_subspace(self.manifold.retract(q, time * v)) @ v

        zero = jnp.zeros((), q.dtype)
        return jax.jvp(twist, (zero,), (jnp.ones_like(zero),))[1]

    def dofs(self) -> tuple[Dof, ...]:
        """The degrees of freedom, one for each column of the motion subspace.

        Where all have an axis, the subspace is constant and these are its columns. Left out, that
        is found out for a type without numbers of its own.
        """
        fixed = () if self.numbers() else _axial(self.without_numbers())
        return fixed or (Dof("angle"),) * self.manifold.tangent_size

    # What follows is for the builders.

    @classmethod
    def type_name(cls) -> str:
        """The name of the type in messages and paths."""
        return cls.__name__.lower()

    @classmethod
    def numbers(cls) -> tuple[str, ...]:
        """The names of the fields of its own that are numbers."""
        return tuple(f.name for f in dataclasses.fields(cls) if "converter" in f.metadata)

    def without_numbers(self) -> Self:
        """What is fixed by the type, as a hashable part of a topology."""
        common = {f.name: f.default for f in dataclasses.fields(Joint)}
        return self.with_numbers(common | dict.fromkeys(self.numbers()))

    def with_numbers(self, numbers: Mapping[str, Any]) -> Self:
        """A copy with other numbers, traced ones too."""
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
    """The columns of a constant motion subspace, where all are screws about axes; or else none.

    An analytic function that is the same at three points at random is constant.
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
    *("lower", "upper", "max_velocity", "max_effort"),
)

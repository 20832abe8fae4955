"""The joint types. To add one, add a class here.

A joint is described by the degrees of freedom it consists of. Most are screws in series, each
about its own axis; their coordinates are plain numbers and their velocities the derivatives of the
coordinates. Spherical and free joints move on a group instead: all their degrees of freedom belong
to one motion with a body-fixed velocity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..groups import Euclidean, Pose, UnitQuaternion

Axis = Sequence[float] | NDArray


@dataclass(frozen=True)
class Dof:
    """One degree of freedom: a screw of the given kind about an axis of the joint frame.

    kind: "revolute", "prismatic" or "helical"; axis (3,), of a length from 1e-9 to 1e9; pitch in
    m/rad.
    """

    kind: str
    axis: Axis
    pitch: float = 0.0


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

    armature: rotor inertia seen at the joint (kg m^2 or kg). damping: viscous (N m s/rad or
    N s/m). friction: Coulomb (N m or N), rising smoothly over friction_velocity (rad/s or m/s).
    stiffness: of a spring (N m/rad or N/m) that is at rest where the coordinate is `rest` (rad or
    m); spherical and free joints have none. lower, upper: limits of the coordinate (rad or m).
    max_velocity (rad/s or m/s) and max_effort (N m or N): limits of their absolute values.
    mimic: only for joints with one degree of freedom. source: where it was read, for messages. An
    axis (3,) or normal (3,) is a direction in the joint frame, of a length from 1e-9 to 1e9.
    """

    name: str | None = None
    armature: ArrayLike = 0.0
    damping: ArrayLike = 0.0
    friction: ArrayLike = 0.0
    friction_velocity: ArrayLike = 1e-2
    stiffness: ArrayLike = 0.0
    rest: ArrayLike = 0.0
    lower: ArrayLike = -np.inf
    upper: ArrayLike = np.inf
    max_velocity: ArrayLike = np.inf
    max_effort: ArrayLike = np.inf
    mimic: Mimic | None = None
    source: str | None = None

    group: ClassVar[UnitQuaternion | Pose | None] = None

    def dofs(self) -> tuple[Dof, ...]:
        """The degrees of freedom, from the parent to the child."""
        raise NotImplementedError

    @property
    def manifold(self) -> Euclidean | UnitQuaternion | Pose:
        """The manifold of the joint's coordinates."""
        return self.group if self.group is not None else Euclidean(len(self.dofs()))


# The fields of `Joint` with one number for each degree of freedom.
ROW_FIELDS = (
    *("armature", "damping", "friction", "friction_velocity", "stiffness", "rest"),
    *("lower", "upper", "max_velocity", "max_effort"),
)


@dataclass(frozen=True, kw_only=True)
class Fixed(Joint):
    """No motion."""

    def dofs(self) -> tuple[Dof, ...]:
        return ()


@dataclass(frozen=True, kw_only=True)
class Revolute(Joint):
    """Rotation about an axis: one angle (rad)."""

    axis: Axis = (0.0, 0.0, 1.0)

    def dofs(self) -> tuple[Dof, ...]:
        return (Dof("revolute", self.axis),)


@dataclass(frozen=True, kw_only=True)
class Continuous(Revolute):
    """Unbounded rotation about an axis: one angle (rad), not wrapped."""


@dataclass(frozen=True, kw_only=True)
class Prismatic(Joint):
    """Translation along an axis: one length (m)."""

    axis: Axis = (0.0, 0.0, 1.0)

    def dofs(self) -> tuple[Dof, ...]:
        return (Dof("prismatic", self.axis),)


@dataclass(frozen=True, kw_only=True)
class Helical(Joint):
    """A screw: one angle (rad), advancing `pitch` m/rad along the axis."""

    axis: Axis = (0.0, 0.0, 1.0)
    pitch: float = 0.0

    def dofs(self) -> tuple[Dof, ...]:
        return (Dof("helical", self.axis, self.pitch),)


@dataclass(frozen=True, kw_only=True)
class Universal(Joint):
    """Two rotations in series: about `axis`, then about `second_axis` (rad, rad)."""

    axis: Axis = (1.0, 0.0, 0.0)
    second_axis: Axis = (0.0, 1.0, 0.0)

    def dofs(self) -> tuple[Dof, ...]:
        return (Dof("revolute", self.axis), Dof("revolute", self.second_axis))


@dataclass(frozen=True, kw_only=True)
class Planar(Joint):
    """Motion in the plane normal to `normal`: x, y (m) in the joint frame, then the angle (rad).

    Velocities are the derivatives of these coordinates. For the normal (0, 0, 1) the plane's x and
    y are those of the joint frame; for another they are turned with it by the least rotation.
    """

    normal: Axis = (0.0, 0.0, 1.0)

    def dofs(self) -> tuple[Dof, ...]:
        x, y = plane(np.asarray(self.normal, float))
        return (Dof("prismatic", x), Dof("prismatic", y), Dof("revolute", self.normal))


@dataclass(frozen=True, kw_only=True)
class Translation(Joint):
    """Motion without turning: x, y, z (m) along the axes of the joint frame."""

    def dofs(self) -> tuple[Dof, ...]:
        return tuple(Dof("prismatic", e) for e in np.eye(3).tolist())


@dataclass(frozen=True, kw_only=True)
class Spherical(Joint):
    """A ball joint: unit quaternion (4,), body-fixed angular velocity (3,) in rad/s."""

    group: ClassVar = UnitQuaternion()

    def dofs(self) -> tuple[Dof, ...]:
        return tuple(Dof("revolute", e) for e in np.eye(3).tolist())


@dataclass(frozen=True, kw_only=True)
class Free(Joint):
    """Free motion: quaternion and position (7,), body-fixed twist (angular, linear) (6,)."""

    group: ClassVar = Pose()

    def dofs(self) -> tuple[Dof, ...]:
        axes = np.eye(3).tolist()
        return tuple(Dof(kind, e) for kind in ("revolute", "prismatic") for e in axes)


TYPES: dict[str, type[Joint]] = {
    cls.__name__.lower(): cls
    for cls in (
        *(Fixed, Revolute, Continuous, Prismatic, Helical),
        *(Universal, Planar, Translation, Spherical, Free),
    )
}


def plane(normal: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The images of x and y under the least rotation that takes z to the normal (3,).

    For the normal -z, which many least rotations reach, the one about x.
    """
    length = np.linalg.norm(normal)
    x, y, z = (float(c) for c in normal / (length if length > 0 else 1.0))
    across = x * x + y * y
    if z < 0 and across == 0:
        return (1.0, 0.0, 0.0), (0.0, -1.0, 0.0)
    a = 1 / (1 + z) if z >= 0 else (1 - z) / across
    return (1 - x * x * a, -x * y * a, -x), (-x * y * a, 1 - y * y * a, -y)

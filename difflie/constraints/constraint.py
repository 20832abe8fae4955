"""The constraint protocol, between frames or joint coordinates, and constraints put on a system."""

from __future__ import annotations

import abc
import dataclasses
from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool

from ..deprecated import renamed
from ..groups.components import Matrix, Scalar
from ..spatial import Motion, Transform
from ..system.fields import number_faults
from ..system.frame import Frame
from ..system.named_frames import on_bodies
from ..system.system import System
from ..system.validation import ModelError, described, nearest


@renamed(faults="problems")
class Constraint(eqx.Module):
    """Equations that the motion of a system satisfies.

    equations: a short name for each of them, for messages; as many as there are.
    """

    equations: ClassVar[tuple[str, ...]]

    @abc.abstractmethod
    def residual(self, *given: Any) -> list[Scalar]:
        """The residuals g () of the position constraints, at the frames or joint coordinates.

        As many as `positions`.
        """

    @property
    def holonomic(self) -> bool:
        """Whether all equations restrict positions; otherwise some restrict velocities only."""
        return True

    @property
    def positions(self) -> int:
        """How many of the equations restrict positions; they come first."""
        return self.size if self.holonomic else 0

    @property
    def size(self) -> int:
        """The number of equations."""
        return len(self.equations)

    def problems(self) -> list[str]:
        """The faults of its numbers, each with the fix; a subclass may add to it."""
        return number_faults(self)


class FrameConstraint(Constraint):
    """Equations between frames on bodies."""

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames, in the order in which the equations take them: those among its fields."""
        values = (getattr(self, field.name) for field in dataclasses.fields(self))
        return tuple(value for value in values if isinstance(value, Frame))

    @property
    def apart(self) -> tuple[tuple[Frame, ...], ...]:
        """Groups of frames; those of a group must be on different bodies."""
        return (self.frames,)

    @abc.abstractmethod
    def residual(self, *frames: Any) -> list[Scalar]:
        """The residuals g () at these poses of the frames in the world.

        Lengths in m, directions without unit. They are differentiated, and so must be valid for all
        poses, also those that violate the constraint.
        """

    def rate(self, frames: tuple[Transform, ...], twists: tuple[Motion, ...]) -> list[Scalar]:
        """dg/dt, linear in the twists of the frames, each in its own frame's coordinates."""
        rates = tuple(moved_along(f, t) for f, t in zip(frames, twists, strict=True))
        return jax.jvp(self.residual, frames, rates)[1]

    def misassembled(self, *frames: Any) -> Bool[Array, ""] | None:
        """Whether g = 0 holds in a wrong branch, a boolean (); None if there is no other branch."""
        return None

    def __str__(self) -> str:
        return f"{type(self).__name__} ({' - '.join(str(f) for f in self.frames)})"


class JointConstraint(FrameConstraint):
    """A joint between the frames of two bodies.

    first, second: a `Frame` on each; one of them may be fixed in the world.
    """

    first: Frame
    second: Frame


class VelocityConstraint(FrameConstraint):
    """Equations between velocities of frames, some of them nonholonomic."""

    @property
    def holonomic(self) -> bool:
        return False

    def residual(self, *frames: Any) -> list[Scalar]:
        return []

    @abc.abstractmethod
    def rate(self, frames: tuple[Transform, ...], twists: tuple[Motion, ...]) -> list[Scalar]:
        """The velocity residuals (), linear in the twists of the frames, each in its own frame.

        Those of the position constraints come first, if there are any.
        """


class CoordinateConstraint(Constraint):
    """Equations between the coordinates of joints."""

    @property
    @abc.abstractmethod
    def joints(self) -> tuple[str, ...]:
        """The names of the joints, each with one degree of freedom."""

    @abc.abstractmethod
    def residual(self, *coordinates: Any) -> list[Scalar]:
        """The residuals g () at the coordinates () of the joints, in rad or m."""

    def __str__(self) -> str:
        return f"{type(self).__name__} ({', '.join(map(repr, self.joints))})"


class MixedConstraint(FrameConstraint):
    """Equations between frames on bodies and the coordinates of joints."""

    @property
    @abc.abstractmethod
    def joints(self) -> tuple[str, ...]:
        """The names of the joints, each with one degree of freedom."""

    @abc.abstractmethod
    def residual(self, *given: Any) -> list[Scalar]:
        """The residuals g () at the frames' poses in the world, then the joints' coordinates ()."""

    def rate(self, frames: tuple[Any, ...], twists: tuple[Any, ...]) -> list[Scalar]:
        """dg/dt, of frames and coordinates, linear in the twists of these and the rates of those.

        frames, twists: the frames and their twists first, then coordinates and rates ().
        """
        count = len(self.frames)
        pairs = zip(frames[:count], twists[:count], strict=True)
        rates = *(moved_along(f, t) for f, t in pairs), *twists[count:]
        return jax.jvp(self.residual, frames, rates)[1]


def moved_along(frame: Transform, twist: Motion) -> Transform:
    """The derivative T hat(V) of a pose T that moves with the body-fixed twist V."""
    r = frame.rotation
    return Transform(r @ Matrix.skew(twist.angular), r @ twist.linear)


def constrain(system: System, *constraints: Constraint) -> System:
    """The system with constraints appended to those it has.

    Their numbers take on the system's precision and are leaves like all others:
    `system.constraints[0].first.position` is (3,), in m. To remove them:
    `dataclasses.replace(system, constraints=())`. `simulate` and the functions of constrained
    motion take them into account; `forward_dynamics` and the other functions of the tree do not.
    A `Frame` on a named frame of the system is put on that frame's body.
    Raises `ModelError` for an unknown body or joint (with the nearest known one), a joint of
    several degrees of freedom in a constraint between coordinates, two frames of a constraint on
    one body, and a number that is not finite or out of its range.

    >>> ball = dl.chain([dl.Body(name="ball", joint=dl.Translation(), mass=1.0)])
    >>> rod = dl.constraints.Distance(dl.Frame(), dl.Frame("ball"), length=2.0)
    >>> dl.mobility(dl.constrain(ball, rod), [0.0, 0.0, -2.0])
    2
    """
    if not isinstance(system, System):
        raise TypeError(
            f"constrain: the first argument is a {type(system).__name__}; give the system first, "
            "dl.constrain(system, constraint)"
        )
    placed: list[Constraint] = []
    for k, constraint in enumerate(constraints, start=len(system.constraints)):
        if isinstance(constraint, list | tuple):
            raise ModelError(
                f"{system.name}: a {type(constraint).__name__} is no constraint; give its parts, "
                "dl.constrain(system, *parts)"
            )
        if not isinstance(constraint, FrameConstraint | CoordinateConstraint):
            raise ModelError(
                f"{system.name}: {described(constraint)} is no FrameConstraint and no "
                "CoordinateConstraint; give those of difflie.constraints"
            )
        where = f"{system.name}: constraint {k}, {constraint}"
        try:
            placed.append(on_bodies(system, constraint))
        except ModelError as error:
            message = str(error).removeprefix(f"{system.name}: ")
            raise ModelError(f"{where}: {message}") from None
        _check(system, placed[-1], where)
    added = jax.tree.map(lambda a: jnp.asarray(a, system.dtype), tuple(placed))
    return replace(system, constraints=(*system.constraints, *added))


def _check(system: System, constraint: Constraint, where: str) -> None:
    if isinstance(constraint, FrameConstraint):
        for name in (frame.body for frame in constraint.frames):
            if name is not None and name not in system.body_names:
                near = nearest(str(name), system.body_names)
                raise ModelError(f"{where}: no body is named {name!r}{near}")
        for group in constraint.apart:
            if len({frame.body for frame in group}) < len(group):
                raise ModelError(f"{where}: two of its frames are on one body; take another body")
    if isinstance(constraint, CoordinateConstraint | MixedConstraint):
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

"""Bushings, elastic mounts in all six directions; springs and stops to a rotation."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..groups import quaternion, so3
from ..groups.components import Scalar, Vector
from ..solvers.linear import product
from ..spatial import Force, Motion, Transform
from ..system.fields import number
from .compliance import Compliance
from .coupling import Coupling
from .path import Path, as_path, inverse, root


class Bushing(Coupling):
    """A mount of stiffness K and damping C, both (6, 6), between frames on two bodies.

    The displacement e = (theta, p) of the second frame relative to the first has theta = log(R_1^T
    R_2) in rad and p = R_1^T (x_2 - x_1) in m; its rate in the first frame is w = (omega, dp/dt).
    Then

        U = e^T K e / 2,    wrench on the second body = -(D^T (K e) + C w)

    where de/dt = D w: the elastic part is minus the gradient of U. The opposite wrench acts on the
    first body at the same point, so momentum is conserved. higher_stiffness (2, 2) adds a moment
    (a |theta| + b |theta|^2) theta against theta, with a and b in N m/rad^n from the first row, and
    such a force against p from the second, in N/m^n; None for none.

    path: two pairs (body, point (3,) in m in its frame), body None for the world: the origins of
    the frames. first_rotation, second_rotation (3,): rotation vectors in rad, the frames'
    orientations in their bodies. stiffness K and damping C: symmetric, without negative eigenvalue,
    the angular part first. The mount is unloaded where the frames coincide. |theta| is at most pi:
    at half a turn the moment jumps, and derivatives are those of one side. name: as of `Coupling`.
    """

    needs: ClassVar[str] = "two points"

    path: Path = eqx.field(converter=as_path)
    stiffness: jax.Array = eqx.field(
        converter=number(unit="N m/rad, N/rad or N/m", shape=(6, 6), kind="semidefinite")
    )
    damping: jax.Array = eqx.field(
        converter=number(unit="N m s/rad, N s/rad or N s/m", shape=(6, 6), kind="semidefinite"),
        default_factory=lambda: np.zeros((6, 6)),
        kw_only=True,
    )
    first_rotation: jax.Array = eqx.field(
        converter=number(unit="rad", shape=(3,), kind="rotation"), default=(0, 0, 0), kw_only=True
    )
    second_rotation: jax.Array = eqx.field(
        converter=number(unit="rad", shape=(3,), kind="rotation"), default=(0, 0, 0), kw_only=True
    )
    higher_stiffness: jax.Array | None = eqx.field(
        converter=number(unit="N m/rad^n or N/m^n", shape=(2, 2), optional=True),
        default=None,
        kw_only=True,
    )

    def on_bodies(self, path: Path, rotations: Float[Array, "n 3 3"]) -> Bushing:
        own = self.first_rotation, self.second_rotation
        turned = [so3.log(R @ so3.exp(r)) for R, r in zip(rotations, own, strict=True)]
        return replace(self, path=path, first_rotation=turned[0], second_rotation=turned[1])

    def energy(self, frames: Transform) -> Float[Array, ""]:
        """U () in J with the points at these frames (2,) in the world."""
        first, second = self._frames(frames)
        displacement = self._displacement(first, second)
        e = displacement.to_array()
        stored = jnp.sum(e * product(self.stiffness, e)) / 2
        if self.higher_stiffness is not None:
            parts = displacement.angular, displacement.linear
            for (a, b), part in zip(self.higher_stiffness, parts, strict=True):
                square = part.square()
                stored = stored + (a * root(square) / 3 + b * square / 4) * square
        return stored

    def wrenches(self, frames: Transform, twists: Motion) -> Force:
        first, second = self._frames(frames)
        e = self._displacement(first, second)
        elastic = Force.from_array(product(self.stiffness, e.to_array()))
        # The angular block of D is the inverse differential of the exponential map; transposed it
        # is that of the opposite rotation vector.
        moment = so3.dexp_inv_components(-e.angular) @ elastic.moment
        damped = Force.from_array(product(self.damping, relative_twist(frames, twists, first)))
        force = elastic.force
        if self.higher_stiffness is not None:
            # What is along theta is so for the gradient of U as well.
            (a, b), (c, d) = self.higher_stiffness
            turned, moved = e.angular.square(), e.linear.square()
            moment = moment + e.angular * (a * root(turned) + b * turned)
            force = force + e.linear * (c * root(moved) + d * moved)
        turn = first.rotation
        moment, force = turn @ (moment + damped.moment), turn @ (force + damped.force)
        arm = second.translation - first.translation
        return pair(Force(moment + arm.cross(force), force), Force(-moment, -force))

    def _frames(self, frames: Transform) -> tuple[Transform, Transform]:
        """Both frames, their components ()."""
        first, second = both(frames)
        return turned_frame(first, self.first_rotation), turned_frame(second, self.second_rotation)

    def _displacement(self, first: Transform, second: Transform) -> Motion:
        turn = first.rotation
        angle = so3.log_components(turn.transpose() @ second.rotation)
        return Motion(angle, turn.transposed_times(second.translation - first.translation))


class RotationStop(Compliance, Coupling):
    """A compliant stop to the angle by which one body has turned relative to another.

        gap = angle - |theta|,    theta = log(R_1^T R_2)

    The moments on both bodies are along the axis of theta, with the contact law of `Compliance`; no
    force acts. path: two pairs (body, point (3,) in m in its frame), body None for the world; only
    the bodies matter. stiffness k in N m/rad^p; angle in rad, the largest that is free;
    first_rotation (3,), rotation vector in rad of the first frame in its body; exponent p (1 or
    more), dissipation d in s/rad, smoothing eps in rad; all but first_rotation scalars. |theta| is
    at most pi, where its axis jumps. name: as of `Coupling`. It is the limit of ball joints in
    MuJoCo; at other joints use `JointStop`.
    """

    needs: ClassVar[str] = "two points"

    path: Path = eqx.field(converter=as_path)
    stiffness: jax.Array = eqx.field(converter=number(unit="N m/rad^p", nonnegative=True))
    angle: jax.Array = eqx.field(converter=number(unit="rad", nonnegative=True))
    first_rotation: jax.Array = eqx.field(
        converter=number(unit="rad", shape=(3,), kind="rotation"), default=(0, 0, 0), kw_only=True
    )
    exponent: jax.Array = eqx.field(converter=number(least=1), default=1.0, kw_only=True)
    dissipation: jax.Array = eqx.field(
        converter=number(unit="s/rad", nonnegative=True), default=0.0, kw_only=True
    )
    smoothing: jax.Array = eqx.field(
        converter=number(unit="rad", nonnegative=True), default=0.0, kw_only=True
    )

    def on_bodies(self, path: Path, rotations: Float[Array, "n 3 3"]) -> RotationStop:
        turned = so3.log(rotations[0] @ so3.exp(self.first_rotation) @ rotations[1].T)
        return replace(self, path=path, first_rotation=turned)

    def energy(self, frames: Transform) -> Float[Array, ""]:
        """U () in J with the points at these frames (2,) in the world."""
        return self.potential(self.angle - self.lever(frames)[0])

    def wrenches(self, frames: Transform, twists: Motion) -> Force:
        by, outward = self.lever(frames)
        rate = jnp.sum(twists.dot(outward))
        return outward * -self.pressure(self.angle - by, -rate)

    def lever(self, frames: Transform) -> tuple[Float[Array, ""], Force]:
        """|theta| () in rad, and the wrenches (2,) at the points for a moment of one along it.

        frames (2,): the points in the world, with the attitudes of their bodies.
        """
        turned, seen = self._rotation(frames)
        by = root(turned.square())
        axis = seen.rotation @ (turned * inverse(by))
        none = jax.tree.map(jnp.zeros_like, axis)
        return by, pair(Force(-axis, none), Force(axis, none))

    def _rotation(self, frames: Transform) -> tuple[Vector, Transform]:
        """theta in rad, in the axes of the first frame, and this frame."""
        first, second = both(frames)
        first = turned_frame(first, self.first_rotation)
        return so3.log_components(first.rotation.transpose() @ second.rotation), first


def both(values):
    """The values at the first and at the second point, each with components ()."""
    return tuple(jax.tree.map(lambda a, i=i: a[i], values) for i in (0, 1))


def pair(first: Force, second: Force) -> Force:
    """The wrenches (2,) on both bodies, from that on the first and that on the second."""
    return jax.tree.map(lambda a, b: jnp.stack((a, b)), first, second)


def relative_twist(frames: Transform, twists: Motion, seen: Transform) -> Float[Array, "6"]:
    """The twist (6,) = (omega, dp/dt) of the second point relative to the first body.

    In the axes of the frame `seen`.
    """
    (x1, x2), (t1, t2) = both(frames.translation), both(twists)
    angular = t2.angular - t1.angular
    linear = t2.linear - t1.linear - t1.angular.cross(x2 - x1)
    back = seen.rotation.transposed_times
    return Motion(back(angular), back(linear)).to_array()


def turned_frame(frame: Transform, rotation: jax.Array) -> Transform:
    """A frame that is turned about its origin by a rotation vector (3,) in rad."""
    turn = so3.exp_components(Vector.from_array(rotation))
    return Transform(frame.rotation @ turn, frame.translation)


class TorsionalSpring(Coupling):
    """A torsional spring and damper between two bodies, about an axis n of the first.

    The angle phi is the twist about n of the second body's orientation relative to the first: with
    the quaternion (c, p) of R_1^T R_2 and s = n . p

        phi = 2 atan2(s, c),    U = k (phi - phi_0)^2 / 2
        moment on the second body = -(k (phi - phi_0) + d dphi/dt) g

    where g is the gradient of phi, which is n where the second body has turned about n only
    (Dobrowolski 2015, swing-twist decomposition). No force acts.

    path: two pairs (body, point (3,) in m in its frame), body None for the world; only the bodies
    matter. axis n (3,), of any length, in the first body's frame. stiffness k in N m/rad, damping d
    in N m s/rad, rest_angle phi_0 in rad, scalars. |phi - phi_0| is at most pi, where the moment
    jumps. Where the second body has reversed n, the twist is undefined and the moment zero. At a
    joint use stiffness and spring_reference of `Joint`, for any number of turns.
    """

    needs: ClassVar[str] = "two points"

    path: Path = eqx.field(converter=as_path)
    axis: jax.Array = eqx.field(converter=number(shape=(3,), kind="direction"))
    stiffness: jax.Array = eqx.field(converter=number(unit="N m/rad", nonnegative=True))
    rest_angle: jax.Array = eqx.field(converter=number(unit="rad"), default=0.0, kw_only=True)
    damping: jax.Array = eqx.field(
        converter=number(unit="N m s/rad", nonnegative=True), default=0.0, kw_only=True
    )

    def on_bodies(self, path: Path, rotations: Float[Array, "n 3 3"]) -> TorsionalSpring:
        return replace(self, path=path, axis=rotations[0] @ self.axis)

    def energy(self, frames: Transform) -> Float[Array, ""]:
        """U () in J with the points at these frames (2,) in the world."""
        angle, _ = self._twist(frames)
        return self.stiffness * angle * angle / 2

    def wrenches(self, frames: Transform, twists: Motion) -> Force:
        angle, slope = self._twist(frames)
        (first, _), (t1, t2) = both(frames), both(twists)
        slope = first.rotation @ slope
        rate = slope.dot(t2.angular - t1.angular)
        moment = slope * -(self.stiffness * angle + self.damping * rate)
        none = jax.tree.map(jnp.zeros_like, moment)
        return pair(Force(-moment, none), Force(moment, none))

    def _twist(self, frames: Transform) -> tuple[Scalar, Vector]:
        """phi - phi_0 in rad, and g in the first body's axes."""
        first, second = both(frames)
        n = Vector.from_array(self.axis)
        n = n * inverse(root(n.square()))
        c, p = quaternion.from_matrix_components(first.rotation.transpose() @ second.rotation)
        s = n.dot(p)
        square = c * c + s * s
        exists = square > jnp.finfo(square.dtype).eps ** 2
        slope = ((n * c + p.cross(n)) * c + p * s) * jnp.where(
            exists, 1 / jnp.where(exists, square, 1), 0
        )
        half = self.rest_angle / 2
        cos, sin = jnp.cos(half), jnp.sin(half)
        c, s = c * cos + s * sin, s * cos - c * sin
        back = c < 0
        c, s = jnp.where(back, -c, c), jnp.where(back, -s, s)
        angle = 2 * jnp.arctan2(jnp.where(exists, s, 0), jnp.where(exists, c, 1))
        return angle, slope

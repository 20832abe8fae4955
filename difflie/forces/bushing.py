"""Bushings: elastic and damped mounts between two frames, in all six directions."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..groups import so3
from ..groups.components import Vector
from ..solvers.linear import product
from ..spatial import Force, Motion, Transform
from ..system.fields import number
from .coupling import Coupling
from .path import Path, as_path


class Bushing(Coupling):
    """A mount of stiffness K and damping C, both (6, 6), between frames on two bodies.

    The displacement e = (theta, p) of the second frame relative to the first has theta = log(R_1^T
    R_2) in rad and p = R_1^T (x_2 - x_1) in m; its rate in the first frame is w = (omega, dp/dt).
    Then

        U = e^T K e / 2,    wrench on the second body = -(D^T (K e) + C w)

    where de/dt = D w: the elastic part is minus the gradient of U. The opposite wrench acts on the
    first body at the same point, so momentum is conserved.

    path: two pairs (body, point (3,) in m in its frame), body None for the world: the origins of
    the frames. first_rotation, second_rotation (3,): rotation vectors in rad, the frames'
    orientations in their bodies. stiffness K and damping C: symmetric, without negative eigenvalue,
    the angular part first. The mount is unloaded where the frames coincide. |theta| is at most pi:
    at half a turn the moment jumps, and derivatives are those of one side.
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

    def energy(self, frames: Transform) -> Float[Array, ""]:
        """U () in J with the points at these frames (2,) in the world."""
        first, second = self._frames(frames)
        e = self._displacement(first, second).to_array()
        return jnp.sum(e * product(self.stiffness, e)) / 2

    def wrenches(self, frames: Transform, twists: Motion) -> Force:
        first, second = self._frames(frames)
        e = self._displacement(first, second)
        elastic = Force.from_array(product(self.stiffness, e.to_array()))
        # The angular block of D is the inverse differential of the exponential map; transposed it
        # is that of the opposite rotation vector.
        moment = so3.dexp_inv_components(-e.angular) @ elastic.moment
        damped = Force.from_array(product(self.damping, relative_twist(frames, twists, first)))
        turn = first.rotation
        moment, force = turn @ (moment + damped.moment), turn @ (elastic.force + damped.force)
        arm = second.translation - first.translation
        return pair(Force(moment + arm.cross(force), force), Force(-moment, -force))

    def _frames(self, frames: Transform) -> tuple[Transform, Transform]:
        """Both frames, their components ()."""
        first, second = both(frames)
        return _turned(first, self.first_rotation), _turned(second, self.second_rotation)

    def _displacement(self, first: Transform, second: Transform) -> Motion:
        turn = first.rotation
        angle = so3.log_components(turn.transpose() @ second.rotation)
        return Motion(angle, turn.transposed_times(second.translation - first.translation))


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


def _turned(frame: Transform, rotation: jax.Array) -> Transform:
    """A frame that is turned about its origin by a rotation vector (3,) in rad."""
    turn = so3.exp_components(Vector.from_array(rotation))
    return Transform(frame.rotation @ turn, frame.translation)

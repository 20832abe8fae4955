"""Compliant contacts between bodies, with friction.

A contact has a gap phi, a normal n and a contact point; opposite forces act on both bodies at this
one point, so momentum is conserved. With the velocity u of the second body relative to the first at
the point, and its tangential part v_t = u - (n . u) n,

    f = f_n n - mu f_n v_t / sqrt(|v_t|^2 + vs^2),      phidot = n . u

with the normal force f_n of `compliance.py`. This is Coulomb friction smoothed over the slip
velocity vs: it never sticks, but creeps at a velocity in proportion to vs. For vs = 0 it is
discontinuous, and zero at zero slip.
"""

from __future__ import annotations

import abc
from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..collision.distances.planes import balls_above
from ..collision.distances.spheres_and_capsules import balls
from ..collision.distances.witness import Witness, axis
from ..groups.components import Scalar, Vector
from ..spatial import Force, Motion, Transform
from ..system.fields import number
from .compliance import Compliance
from .coupling import Coupling
from .path import Path, as_path, inverse, root


class Contact(Compliance, Coupling):
    """Contacts of the body at the first point of the path with the bodies at its m other points.

    stiffness k in N/m^p, exponent p (1 or more: 1 is linear, 3/2 is Hertz), dissipation d in s/m,
    friction coefficient mu, slip_velocity vs in m/s, smoothing eps in m, all scalars. name: as of
    `Coupling`.
    """

    exponent: jax.Array = eqx.field(converter=number(least=1), default=1.0, kw_only=True)
    dissipation: jax.Array = eqx.field(
        converter=number(unit="s/m", nonnegative=True), default=0.0, kw_only=True
    )
    friction: jax.Array = eqx.field(converter=number(nonnegative=True), default=0.0, kw_only=True)
    slip_velocity: jax.Array = eqx.field(
        converter=number(unit="m/s", nonnegative=True), default=1e-2, kw_only=True
    )
    smoothing: jax.Array = eqx.field(
        converter=number(unit="m", nonnegative=True), default=0.0, kw_only=True
    )

    @abc.abstractmethod
    def meeting(self, frames: Transform) -> Witness:
        """The contact points (m,) of the first body with the others, in the world.

        The normal is zero where there is none, as of concentric spheres.
        """

    def place(self, met: Witness) -> Vector:
        """Where (m,) forces act."""
        return met.middle

    def wrenches(self, frames: Transform, twists: Motion) -> Force:
        contact = self.meeting(frames)
        normal, place = contact.normal, self.place(contact)
        first, others = _divided((frames.translation, twists))
        arm, other_arm = place - first[0], place - others[0]
        velocity = first[1].linear + first[1].angular.cross(arm)
        other_velocity = others[1].linear + others[1].angular.cross(other_arm)
        relative = other_velocity - velocity
        rate = normal.dot(relative)
        pressure = self.pressure(contact.gap, rate)
        slip = relative - normal * rate
        rubbing = resistance(slip, self.friction * pressure, self.slip_velocity)
        # Concentric spheres have no normal, and exert no force.
        force = jax.tree.map(
            lambda a: jnp.where(normal.square() == 0, 0, a), normal * pressure + rubbing
        )
        back = Force(arm.cross(-force), -force)
        return jax.tree.map(
            lambda a, b: jnp.concatenate((jnp.sum(a, keepdims=True), b)),
            back,
            Force(other_arm.cross(force), force),
        )

    def energy(self, frames: Transform) -> Float[Array, ""]:
        """The energy () in J with the points at these frames (m + 1,) in the world."""
        return jnp.sum(self.potential(self.meeting(frames).gap))


class PlaneContact(Contact):
    """Points or spheres against a plane that is fixed in the world or in a body.

    path: pairs (body, point (3,) in m in its frame), body None for the world. The first is a point
    of the plane; the others touch it: centres of spheres of the `radius` r in m, or points for r =
    0. normal (3,), of any length: out of the plane, in the frame of its body. A sphere is touched
    on its surface, at its centre - r n, so friction makes it roll.

    stiffness k in N/m^p; the other numbers are those of `Contact`. With the depth del, which is
    max(-gap, 0) smoothed over eps, and the tangential velocity v_t, the forces are k del^p max(0, 1
    + d deldot) along n and -mu f_n v_t / sqrt(|v_t|^2 + vs^2) in the plane.

    >>> ball = dl.chain([dl.Body(name="ball", joint=dl.Prismatic(), mass=2.0)])
    >>> floor = dl.PlaneContact([(None, (0, 0, 0)), ("ball", (0, 0, 0))], 1e4, (0, 0, 1))
    >>> print(dl.passive_force(dl.attach(ball, floor), [-0.002], [0.0]).round(3))  # in N
    [20.]
    """

    path: Path = eqx.field(converter=as_path)
    stiffness: jax.Array = eqx.field(converter=number(unit="N/m^p", nonnegative=True))
    normal: jax.Array = eqx.field(converter=number(shape=(3,), kind="direction"))
    radius: jax.Array = eqx.field(
        converter=number(unit="m", nonnegative=True), default=0.0, kw_only=True
    )

    def on_bodies(self, path: Path, rotations: Float[Array, "n 3 3"]) -> PlaneContact:
        return replace(self, path=path, normal=rotations[0] @ self.normal)

    def meeting(self, frames: Transform) -> Witness:
        plane, others = _divided(frames)
        direction = Vector.from_array(self.normal)
        normal = plane.rotation @ (direction * inverse(root(direction.square())))
        step = others.translation - plane.translation
        return balls_above(plane.translation, normal, step, self.radius)

    def place(self, met: Witness) -> Vector:
        return met.second


class SphereContact(Contact):
    """A sphere against a sphere.

    path: two pairs (body, centre (3,) in m in its frame), body None for the world; radii (2,) in m.
    They touch halfway between their surfaces, on the line through their centres. stiffness k in
    N/m^p; the other numbers are those of `Contact`.
    """

    needs: ClassVar[str] = "two points"

    path: Path = eqx.field(converter=as_path)
    stiffness: jax.Array = eqx.field(converter=number(unit="N/m^p", nonnegative=True))
    radii: jax.Array = eqx.field(converter=number(unit="m", shape=(2,), nonnegative=True))

    def meeting(self, frames: Transform) -> Witness:
        first, other = _divided(frames.translation)
        nowhere = axis(2, first.x) * 0
        return balls(first, self.radii[0], other, self.radii[1], nowhere)


def resistance(slip: Vector, most: Scalar, smooth: Scalar) -> Vector:
    """The friction -most v / sqrt(|v|^2 + smooth^2) against a slip v, or against a spin.

    most: in N, or N m; smooth in m/s, or rad/s; of the shape of the components.
    """
    return slip * -(most * inverse(root(slip.square() + smooth * smooth)))


def _divided(values):
    """The values at the first point (1,), and at the others (m,)."""
    return tuple(jax.tree.map(lambda a, s=s: a[s], values) for s in (slice(1), slice(1, None)))

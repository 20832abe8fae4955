"""Springs along paths: the tension as a function of the path's length."""

from __future__ import annotations

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..groups.components import Vector
from ..spatial import Transform
from ..system.fields import number
from ..system.user_functions import called
from .coupling import PointCoupling
from .dampers import Damper
from .discrete_gradient import mean_slope
from .path import Path, as_path, inverse, pulled, segments


class Elastic(PointCoupling):
    """A spring: potential(y) in J of the length y of its path, and its derivative tension(y).

    Both are elementwise in y.
    """

    @abc.abstractmethod
    def potential(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The energy (n,) in J at lengths (n,) of the path in m."""

    @abc.abstractmethod
    def tension(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The tension (n,) in N, the derivative of `potential`; negative where it pushes."""

    def energy(self, frames: Transform) -> Float[Array, ""]:
        """The energy () in J with the points at these frames (n,) in the world."""
        _, square, length = segments(frames.translation)
        if len(self.path.bodies) > 2:
            return called(self.potential, jnp.sum(length))
        apart, (square, length) = square[0] != 0, (square[0], length[0])
        # Where the points of a segment coincide this agrees to second order in the segment; it is
        # smooth if the spring has no tension there.
        start = called(self.potential, jnp.zeros_like(length))
        start += self._initial_stiffness(length) * square / 2
        return jnp.where(apart, called(self.potential, length), start)

    def forces(self, frames: Transform, velocities: Vector) -> Vector:
        step, square, length = segments(frames.translation)
        density = called(self.tension, jnp.sum(length)) * inverse(length)
        if len(self.path.bodies) == 2:
            density = jnp.where(square == 0, self._initial_stiffness(length), density)
        return pulled(step * density)

    def mean_forces(
        self, start: Vector, end: Vector, middle: Transform, velocities: Vector
    ) -> Vector:
        (s0, _, l0), (s1, _, l1) = segments(start), segments(end)
        tension = mean_slope(self.potential, self.tension, jnp.sum(l0), jnp.sum(l1))
        return pulled((s0 + s1) * (inverse(l0 + l1) * tension))

    def _initial_stiffness(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        zero = jnp.zeros_like(length)
        return jax.jvp(self.tension, (zero,), (jnp.ones_like(zero),))[1]


class LinearElastic(Elastic):
    """A spring of the energy k s^2 / 2 and the tension k s, s its stretch."""

    path: Path = eqx.field(converter=as_path)
    stiffness: jax.Array = eqx.field(converter=number(unit="N/m", nonnegative=True))
    rest_length: jax.Array = eqx.field(converter=number(unit="m", nonnegative=True))

    def stretch(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The stretch (n,) in m of paths of these lengths (n,)."""
        return length - self.rest_length

    def potential(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        stretch = self.stretch(length)
        return self.stiffness * stretch * stretch / 2

    def tension(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        return self.stiffness * self.stretch(length)


class Spring(LinearElastic):
    """A linear spring that pulls and pushes: energy k (y - y_r)^2 / 2 of the path's length y.

    path: two or more pairs (body, point (3,) in m in its frame), body None for the world.
    stiffness k in N/m and rest_length y_r in m, scalars.
    """


class SpringDamper(Spring):
    """A `Spring` and a `Damper` in one: the tension k (y - y_r) + c dy/dt.

    Arguments as of `Spring`; damping c in N s/m, a scalar. A segment whose points coincide has no
    direction and is not damped.
    """

    damping: jax.Array = eqx.field(converter=number(unit="N s/m", nonnegative=True))

    def forces(self, frames: Transform, velocities: Vector) -> Vector:
        return super().forces(frames, velocities) + self._damping(frames, velocities)

    def mean_forces(
        self, start: Vector, end: Vector, middle: Transform, velocities: Vector
    ) -> Vector:
        elastic = super().mean_forces(start, end, middle, velocities)
        return elastic + self._damping(middle, velocities)

    def _damping(self, frames: Transform, velocities: Vector) -> Vector:
        return Damper(self.path, self.damping).forces(frames, velocities)

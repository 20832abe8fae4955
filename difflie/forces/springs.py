"""Springs, dampers and ropes along paths: the tension as a function of the length and its rate.

Energy-momentum methods need the mean force of springs over a step. With the segments s_0, s_1 at
both ends of a step, of lengths l_0, l_1, a spring of the potential U(y), y the sum of the lengths,
exerts the tension T along the mean directions u:

    T = (U(y_1) - U(y_0)) / (y_1 - y_0),        u = (s_0 + s_1) / (l_0 + l_1)

Since u . (s_1 - s_0) = l_1 - l_0, its work in the step is U(y_0) - U(y_1). This is the discrete
gradient (Gonzalez 1996) in the squares of the lengths, written without cancellation. Since u is
parallel to the mean segment, angular momentum is conserved. All other forces at points are those at
the middle of the step.
"""

from __future__ import annotations

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..groups.components import Vector
from ..spatial import Transform
from ..system.fields import number
from ..system.user_functions import called
from .coupling import PointCoupling
from .path import Path, as_path, inverse, pulled, segments


class Elastic(PointCoupling):
    """A spring: potential(y) in J of the length y of its path, and its derivative tension(y).

    Both are elementwise in y, in m; tensions are in N. path as of `Path`, name as of
    `Coupling`.
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

    >>> cart = dl.chain([dl.Body(name="cart", joint=dl.Prismatic(axis=(1, 0, 0)), mass=1.0)])
    >>> spring = dl.Spring([(None, (-1, 0, 0)), ("cart", (0, 0, 0))], 100.0, rest_length=0.8)
    >>> print(dl.passive_force(dl.attach(cart, spring), [0.0], [0.0]).round(3))  # in N
    [-20.]
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


class Rope(LinearElastic):
    """An elastic rope, slack below its rest length: energy k max(y - y_r, 0)^2 / 2.

    Arguments as of `Spring`. The tension has a kink at y = y_r, where the derivative is that of the
    taut side.

    >>> cart = dl.chain([dl.Body(name="cart", joint=dl.Prismatic(axis=(1, 0, 0)), mass=1.0)])
    >>> rope = dl.Rope([(None, (-1, 0, 0)), ("cart", (0, 0, 0))], stiffness=100.0, rest_length=1.2)
    >>> print(dl.passive_force(dl.attach(cart, rope), [0.5], [0.0]).round(3))  # in N
    [-30.]
    """

    def stretch(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        stretch = super().stretch(length)
        return jnp.where(stretch < 0, jnp.zeros_like(stretch), stretch)


class SmoothRope(LinearElastic):
    """An elastic rope that becomes taut gradually, within `smoothing` d of its rest length.

    Arguments as of `Spring`; smoothing d in m, a scalar. The tension is 0 below y_r - d and k (y -
    y_r) above y_r + d; between them its slope is k (3 x^2 - 2 x^3), x = (y - y_r + d) / 2 d, so
    that it has two continuous derivatives.
    """

    smoothing: jax.Array = eqx.field(converter=number(unit="m", positive=True, fix="or use Rope"))

    def potential(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        d = self.smoothing
        stretch, x = self._blend(length)
        taut = stretch * stretch / 2 + d * d / 10
        rising = d * d * x * x * x * x * (1 - 2 * x / 5)
        return self.stiffness * jnp.where(stretch > d, taut, rising)

    def tension(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        stretch, x = self._blend(length)
        rising = 2 * self.smoothing * x * x * x * (1 - x / 2)
        return self.stiffness * jnp.where(stretch > self.smoothing, stretch, rising)

    def _blend(self, length: Float[Array, "*n"]) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
        """y - y_r, and x clipped to [0, 1]."""
        stretch, d = self.stretch(length), self.smoothing
        x = (stretch + d) / (2 * d)
        x = jnp.where(stretch < -d, jnp.zeros_like(x), jnp.where(stretch > d, jnp.ones_like(x), x))
        return stretch, x


class Viscous(PointCoupling):
    """A damper: a law tension(y, dy/dt) in N of the length y of its path and its rate."""

    @abc.abstractmethod
    def tension(self, length: Float[Array, "*n"], rate: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The tension (n,) in N at lengths (n,) in m and rates (n,) in m/s; it must dissipate."""

    def forces(self, frames: Transform, velocities: Vector) -> Vector:
        step, _, length = segments(frames.translation)
        direction = step * inverse(length)
        spread = jax.tree.map(lambda a: a[1:] - a[:-1], velocities)
        rate = jnp.sum(direction.dot(spread))
        return pulled(direction * called(self.tension, jnp.sum(length), rate))


class Damper(Viscous):
    """A viscous damper along a path: the tension c dy/dt.

    path as of `Spring`; damping c in N s/m, a scalar.

    >>> cart = dl.chain([dl.Body(name="cart", joint=dl.Prismatic(axis=(1, 0, 0)), mass=1.0)])
    >>> damper = dl.Damper([(None, (-1, 0, 0)), ("cart", (0, 0, 0))], damping=5.0)
    >>> print(dl.passive_force(dl.attach(cart, damper), [0.0], [2.0]).round(3))  # in N
    [-10.]
    """

    path: Path = eqx.field(converter=as_path)
    damping: jax.Array = eqx.field(converter=number(unit="N s/m", nonnegative=True))

    def tension(self, length: Float[Array, "*n"], rate: Float[Array, "*n"]) -> Float[Array, "*n"]:
        return self.damping * rate


class TensionDamper(Viscous):
    """The damping of a rope, which cannot push: c max(dy/dt, 0) while the path is taut, y >= y_r.

    path as of `Spring`; damping c in N s/m, rest_length y_r in m, scalars; with y_r = 0 it acts
    whenever the path lengthens. The tension jumps where a lengthening path becomes taut, and has a
    kink at dy/dt = 0; the derivatives there are those of the side with tension.
    """

    path: Path = eqx.field(converter=as_path)
    damping: jax.Array = eqx.field(converter=number(unit="N s/m", nonnegative=True))
    rest_length: jax.Array = eqx.field(converter=number(unit="m", nonnegative=True), default=0.0)

    def tension(self, length: Float[Array, "*n"], rate: Float[Array, "*n"]) -> Float[Array, "*n"]:
        off = (length < self.rest_length) | (rate < 0)
        return self.damping * jnp.where(off, jnp.zeros_like(rate), rate)


class SmoothTensionDamper(Viscous):
    """A `TensionDamper` with a smooth onset: c dy/dt E((y - y_r) / d) E(dy/dt / e).

    Arguments as of `TensionDamper`; smoothing d in m and rate_smoothing e in m/s, scalars. E(x) =
    10 x^3 - 15 x^4 + 6 x^5 rises from 0 at x = 0 to 1 at x = 1, with two continuous derivatives.
    The tension is exactly zero in a slack path and in one that shortens.
    """

    path: Path = eqx.field(converter=as_path)
    damping: jax.Array = eqx.field(converter=number(unit="N s/m", nonnegative=True))
    rest_length: jax.Array = eqx.field(converter=number(unit="m", nonnegative=True))
    smoothing: jax.Array = eqx.field(
        converter=number(unit="m", positive=True, fix="or use TensionDamper")
    )
    rate_smoothing: jax.Array = eqx.field(
        converter=number(unit="m/s", positive=True, fix="or use TensionDamper")
    )

    def tension(self, length: Float[Array, "*n"], rate: Float[Array, "*n"]) -> Float[Array, "*n"]:
        taut = _engaged((length - self.rest_length) / self.smoothing)
        return self.damping * rate * taut * _engaged(rate / self.rate_smoothing)


def _engaged(x: jax.Array) -> jax.Array:
    inside = jnp.where(x < 0, jnp.zeros_like(x), jnp.where(x > 1, jnp.ones_like(x), x))
    return inside * inside * inside * (10 - 15 * inside + 6 * inside * inside)


def mean_slope(
    potential: Callable[[jax.Array], jax.Array],
    slope: Callable[[jax.Array], jax.Array],
    y0: Float[Array, "*n"],
    y1: Float[Array, "*n"],
) -> Float[Array, "*n"]:
    """(potential(y1) - potential(y0)) / (y1 - y0), or its limit, the slope, for y1 = y0.

    y0, y1 and the result have one shape; elementwise. Gauss quadrature of the slope with three
    points avoids cancellation. Where it does not give the difference of the potential to rounding
    (a large step, or one across a kink), the quotient itself is taken.
    """
    difference, centre = y1 - y0, (y0 + y1) / 2
    offset = difference * (0.15**0.5)
    mean = (5 * (slope(centre - offset) + slope(centre + offset)) + 8 * slope(centre)) / 18
    before, after = potential(y0), potential(y1)
    scale = jnp.abs(before) + jnp.abs(after) + jnp.abs(mean) * (jnp.abs(y0) + jnp.abs(y1))
    rounding = 16 * jnp.finfo(difference.dtype).eps * scale
    off = jnp.abs(after - before - mean * difference) > rounding
    safe = jnp.where(off, difference, jnp.ones_like(difference))
    return jnp.where(off, (after - before) / safe, mean)

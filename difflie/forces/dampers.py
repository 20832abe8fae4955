"""Dampers along paths: the tension as a function of the path's length and its rate."""

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
from .path import Path, as_path, inverse, pulled, segments


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

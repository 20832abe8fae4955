"""Impulses as functions of velocities: contacts with friction, limits and dry friction.

Each law is softened by a small R in 1/kg, and but for the last one the derivative of a convex cost,
g = -dl/du:

    y = -(u - target) / R
    contact   g = the point of the cone |z_t| <= mu z_n that is nearest to y in the metric R
    interval  g = y within [lower, upper]
    disc      g = y, of a length of at most the radius
    Coulomb   g_n = y_n, not negative; g_t = y_t, of a length of at most mu g_n

A contact has the velocities u of the normal and of two tangents, and R = (R_n, R_t, R_t). With
s = mu R_t / R_n it sticks for |y_t| <= mu y_n, is open for y_n <= -s |y_t|, and slides between:

    g_n = (y_n + s |y_t|) / (1 + mu s),    g_t = mu g_n y_t / |y_t|

Castro, Permenter and Han 2022, section V, where the cost is called SAP. The elliptic cones of
MuJoCo are the same law. Coulomb's law is that of a contact whose target is lower by mu |u_t + R
g_t| (de Saxce and Feng 1998).
"""

from __future__ import annotations

import abc
from dataclasses import replace
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..groups.components import Scalar


class Law(eqx.Module):
    """The impulses of k contacts, stops or joints along d directions.

    softness: R (k, d), or (k, 1) where it is the same for all directions, in 1/kg or 1/(kg m^2).
    target (k, d): the velocities in m/s or rad/s at which nothing is exchanged.
    """

    softness: jax.Array
    target: jax.Array

    @abc.abstractmethod
    def impulses(self, u: Float[Array, "k d"]) -> Float[Array, "k d"]:
        """g (k, d) in N s or N m s at the velocities u (k, d) in m/s or rad/s."""

    @abc.abstractmethod
    def slopes(self, u: Float[Array, "k d"]) -> Float[Array, "k d d"]:
        """-dg/du (k, d, d); of a convex cost symmetric and positive semidefinite."""

    def excess(self, u: Float[Array, "k d"]) -> Float[Array, " k"]:
        """By how much (k,) less is asked of the first direction of `convex`, at its solution u."""
        return jnp.zeros(len(u), u.dtype)

    def convex(self, less: Float[Array, " k"]) -> Law:
        """The law of a convex cost, with a first target that is lower by less (k,)."""
        return self

    def softer(self, factor: Scalar) -> Self:
        """The same law with `factor` times its softness, () or (k, 1) or (k, d)."""
        return replace(self, softness=factor * self.softness)

    def about(self, g: Float[Array, "k d"], factor: Scalar) -> Self:
        """A softer law, by a factor as of `softer`, which gives g where this one does."""
        more = jnp.where(factor > 1, (factor - 1) * self.softness, 0)
        target = self.target + more * g
        return replace(self, softness=factor * self.softness, target=target)

    def _soft(self, u: jax.Array) -> jax.Array:
        """y (k, d)."""
        return (self.target - u) / self.softness


class Cones(Law):
    """The law of k contacts along the normal and two tangents, shapes (k,).

    friction: mu. softness (k, 3): R_n, R_t and R_t again. active: whether there is a contact at
    all.
    """

    friction: jax.Array
    active: jax.Array

    def impulses(self, u: Float[Array, "k 3"]) -> Float[Array, "k 3"]:
        y, length, direction, stick, slide = self._regions(u)
        normal = jnp.where(slide, self._pressed(y, length), jnp.where(stick, y[:, 0], 0))
        along = jnp.where(slide, self.friction * normal, 0)[:, None] * direction
        tangent = jnp.where(stick[:, None], y[:, 1:], along)
        return jnp.concatenate((normal[:, None], tangent), axis=1)

    def slopes(self, u: Float[Array, "k 3"]) -> Float[Array, "k 3 3"]:
        y, length, t, stick, slide = self._regions(u)
        mu, (rn, rt, _) = self.friction, self.softness.T
        share = 1 / (1 + mu * mu * rt / rn)
        nn = jnp.where(stick, 1, jnp.where(slide, share, 0)) / rn
        nt = jnp.where(slide, mu * share / rn, 0)[:, None] * t
        radial = jnp.where(slide, mu * mu * share / rn, 0)[:, None, None]
        safe = jnp.where(length > 0, length, 1)
        around = jnp.where(slide, mu * self._pressed(y, length) / (safe * rt), 0)[:, None, None]
        square, unit = t[:, :, None] * t[:, None, :], jnp.eye(2, dtype=u.dtype)
        tt = jnp.where(
            stick[:, None, None],
            unit / rt[:, None, None],
            radial * square + around * (unit - square),
        )
        first = jnp.concatenate((nn[:, None], nt), axis=1)[:, None, :]
        return jnp.concatenate((first, jnp.concatenate((nt[:, :, None], tt), axis=2)), axis=1)

    def _regions(self, u: jax.Array) -> tuple[jax.Array, ...]:
        """y (k, 3), |y_t| (k,), its direction (k, 2), and whether a contact sticks, slides (k,)."""
        y = self._soft(u)
        square = jnp.sum(y[:, 1:] ** 2, axis=1)
        moves = square > 0
        length = jnp.where(moves, jnp.sqrt(jnp.where(moves, square, 1)), 0)
        direction = y[:, 1:] / jnp.where(moves, length, 1)[:, None]
        # Without friction, too, what pulls is open.
        stick = self.active & (y[:, 0] > 0) & (length <= self.friction * y[:, 0])
        edge = -self._lift * length
        return y, length, direction, stick, self.active & ~stick & (y[:, 0] > edge)

    def _pressed(self, y: jax.Array, length: jax.Array) -> jax.Array:
        """g_n (k,) of a contact that slides."""
        s = self._lift
        return (y[:, 0] + s * length) / (1 + self.friction * s)

    @property
    def _lift(self) -> jax.Array:
        """s (k,)."""
        return self.friction * self.softness[:, 1] / self.softness[:, 0]


class Coulomb(Law):
    """Coulomb's law of k contacts along the normal and two tangents, shapes (k,).

    friction: mu. softness (k, 3): R_n, R_t and R_t again. active: whether the contact is closed.
    """

    friction: jax.Array
    active: jax.Array

    def impulses(self, u: Float[Array, "k 3"]) -> Float[Array, "k 3"]:
        normal, y, length, slides = self._pressed(u)
        share = jnp.where(slides, self.friction * normal / length, 1)[:, None]
        g = jnp.concatenate((normal[:, None], share * y), axis=1)
        return jnp.where(self.active[:, None], g, 0)

    def slopes(self, u: Float[Array, "k 3"]) -> Float[Array, "k 3 3"]:
        normal, y, length, slides = self._pressed(u)
        across, inverse = (jnp.where(self.active, 1 / r, 0) for r in self.softness.T[:2])
        presses = jnp.where(normal > 0, across, 0)
        t = y / length[:, None]
        share = jnp.where(slides, self.friction * normal / length, 1) * inverse
        along = jnp.where(slides, share, 0)[:, None, None] * t[:, :, None] * t[:, None, :]
        tt = share[:, None, None] * jnp.eye(2, dtype=u.dtype) - along
        tn = jnp.where(slides, self.friction * presses, 0)[:, None] * t
        first = jnp.pad(presses[:, None, None], ((0, 0), (0, 0), (0, 2)))
        return jnp.concatenate((first, jnp.concatenate((tn[:, :, None], tt), axis=2)), axis=1)

    def excess(self, u: Float[Array, "k 3"]) -> Float[Array, " k"]:
        """mu |u_t + R_t g_t| (k,) in m/s: by how much less is asked of the normal of `convex`."""
        y = self._soft(u)[:, 1:]
        square = jnp.sum((self.impulses(u)[:, 1:] - y) ** 2, axis=1)
        slips = square > 0
        length = jnp.where(slips, jnp.sqrt(jnp.where(slips, square, 1)), 0)
        return self.friction * self.softness[:, 1] * length

    def convex(self, less: Float[Array, " k"]) -> Cones:
        target = self.target - jnp.pad(less[:, None], ((0, 0), (0, 2)))
        return Cones(self.softness, target, self.friction, self.active)

    def _pressed(self, u: jax.Array) -> tuple[jax.Array, ...]:
        """g_n (k,), y_t (k, 2), its length (k,), where that matters, and where it slides (k,)."""
        y = self._soft(u)
        normal = jnp.maximum(y[:, 0], 0)
        square = jnp.sum(y[:, 1:] ** 2, axis=1)
        slides = square > (self.friction * normal) ** 2
        return normal, y[:, 1:], jnp.sqrt(jnp.where(slides, square, 1)), slides


class Intervals(Law):
    """The law of k impulses between bounds, shapes (k,).

    lower, upper: the bounds in N s or N m s: 0 and inf of a stop, -h c and h c of dry friction c,
    -inf and inf of an equation. softness, target (k, 1).
    """

    lower: jax.Array
    upper: jax.Array

    def impulses(self, u: Float[Array, "k 1"]) -> Float[Array, "k 1"]:
        return jnp.clip(self._soft(u), self.lower[:, None], self.upper[:, None])

    def slopes(self, u: Float[Array, "k 1"]) -> Float[Array, "k 1 1"]:
        y = self._soft(u)
        inside = (y > self.lower[:, None]) & (y < self.upper[:, None])
        return jnp.where(inside, 1 / self.softness, 0)[:, :, None]


class Discs(Law):
    """The law of k impulses of limited length along two directions, shapes (k,).

    radius: the length in N s or N m s. softness (k, 1), target (k, 2).
    """

    radius: jax.Array

    def impulses(self, u: Float[Array, "k 2"]) -> Float[Array, "k 2"]:
        y, share, _ = self._shortened(u)
        return y * share[:, None]

    def slopes(self, u: Float[Array, "k 2"]) -> Float[Array, "k 2 2"]:
        y, share, long = self._shortened(u)
        square = jnp.where(long, jnp.sum(y**2, axis=1), 1)[:, None, None]
        along = jnp.where(long[:, None, None], y[:, :, None] * y[:, None, :] / square, 0)
        return (share[:, None] / self.softness)[:, :, None] * (jnp.eye(2, dtype=u.dtype) - along)

    def _shortened(self, u: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """y (k, 2), by what it is multiplied (k,), and whether it is too long (k,)."""
        y = self._soft(u)
        square = jnp.sum(y**2, axis=1)
        long = square > self.radius**2
        length = jnp.sqrt(jnp.where(long, square, 1))
        return y, jnp.where(long, self.radius / length, 1), long

"""How far a search follows a step that goes too far.

A step of Newton's method follows the slopes at its start. Where they change on a short way, as
those of dry friction do with the sense of a velocity, it may end so far beyond the root that the
next step leads back by as much: full steps then swing around the root for ever. The point of the
step at which the next one leads neither on nor back is looked for instead, by sections. There, in
most cases within the change of slopes, the next derivative is taken.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

# The part of a step by which the next one may lead back, and at most leads on or back where the
# search along it ends.
_ACROSS = 0.1
# Not halves: at simple fractions searches were seen to go round in circles.
_SECTION = 0.382


class Line(NamedTuple):
    """The point base + at step (n,) of a search; low, high (): the end is looked for between."""

    base: jax.Array
    step: jax.Array
    at: jax.Array
    low: jax.Array
    high: jax.Array

    @property
    def point(self) -> jax.Array:
        return self.base + self.at * self.step

    def next(
        self, x: jax.Array, change: jax.Array, wrong: jax.Array
    ) -> tuple[Line, jax.Array, jax.Array]:
        """The line after its point x (n,), at which the next step would be `change` (n,).

        wrong (): whether that step is no progress. If it leads back besides, this step was too
        long, and the line is another point of it, otherwise x and its change. Besides: whether it
        is another point of this step (), and whether x is the end of such a search ().
        """
        size = jnp.max(jnp.abs(self.step))
        along = jnp.sum(self.step * change) / jnp.sum(self.step * self.step)
        searched = self.at < 1
        # What is not a number is too far.
        back = ~(along >= jnp.where(searched, 0, -_ACROSS))
        low, high = jnp.where(back, self.low, self.at), jnp.where(back, self.at, self.high)
        few = float(jnp.finfo(x.dtype).eps) ** 0.25
        narrow = high - low <= few**2 * (high + few)
        # Across several changes of slopes that make up for each other the next step is larger.
        found = (jnp.abs(along) <= _ACROSS) & (jnp.max(jnp.abs(change)) <= size)
        ended = searched & (found | narrow)
        shorter = (searched | (wrong & back & (size > 0) & jnp.isfinite(size))) & ~ended
        part = Line(self.base, self.step, low + _SECTION * (high - low), low, high)
        return chosen_line(shorter, part, whole(x, change)), shorter, ended


def whole(x: jax.Array, step: jax.Array) -> Line:
    """The end of a whole step (n,) from x (n,)."""
    one = jnp.ones((), x.dtype)
    return Line(x, step, one, 0 * one, one)


def chosen_line(which: jax.Array, yes: Line, no: Line) -> Line:
    """One of two lines, by a boolean scalar."""
    return Line(*(jnp.where(which, a, b) for a, b in zip(yes, no, strict=True)))

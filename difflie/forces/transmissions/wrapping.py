"""Shortest paths between two points around a circle: on its outside, or within it.

A tendon that wraps around a sphere lies in the plane of its two ends and the centre; around a
cylinder its projection along the axis is that of a circle. So both are a circle in a plane, about
the origin, and two ends d_0, d_1 outside of it. All is elementwise in scalars, and each branch is
finite where another one is taken, so that derivatives are.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

Scalar = Float[Array, ""]
# The steps of Newton's method, which converges from one side, for an angle of at most 90 degrees.
_STEPS = 20
_TINY = 1e-15


class Planar(NamedTuple):
    """A vector of the plane, with components ()."""

    x: Scalar
    y: Scalar

    def __add__(self, o: Planar) -> Planar:  # type: ignore[override]
        return Planar(self.x + o.x, self.y + o.y)

    def __sub__(self, o: Planar) -> Planar:
        return Planar(self.x - o.x, self.y - o.y)

    def times(self, s: Scalar | float) -> Planar:
        """s times it."""
        return Planar(self.x * s, self.y * s)

    def dot(self, o: Planar) -> Scalar:
        """The scalar product ()."""
        return self.x * o.x + self.y * o.y

    def cross(self, o: Planar) -> Scalar:
        """The component () of the cross product normal to the plane."""
        return self.x * o.y - self.y * o.x

    def turned(self, cos: Scalar, sin: Scalar) -> Planar:
        """It, turned by an angle counterclockwise."""
        return Planar(cos * self.x - sin * self.y, sin * self.x + cos * self.y)


class Wrapped(NamedTuple):
    """The ends of the arc on the circle, its length () in m, and whether the path touches it."""

    start: Planar
    end: Planar
    arc: Scalar
    touches: Bool[Array, ""]


def chosen(first: Bool[Array, ""], one: Wrapped, other: Wrapped) -> Wrapped:
    """One path where `first`, else the other."""
    return jax.tree.map(lambda a, b: jnp.where(first, a, b), one, other)


def around(d0: Planar, d1: Planar, radius: Scalar, side: Planar | None) -> Wrapped:
    """The path on the outside of a circle, between two points d0, d1.

    It is the shorter one, and touches only where the straight segment meets the circle. With a
    side, a point from which the centre hides a part of the segment, it passes the circle on that
    side, and touches in any case; other sides do not matter. It does not touch where an end is
    inside of the circle. This is MuJoCo 4's rule; MuJoCo 3 passes on the side in more cases.
    """
    square0, square1, r2 = d0.dot(d0), d1.dot(d1), radius * radius
    step = d1 - d0
    length = step.dot(step)
    part = -step.dot(d0) / jnp.where(length < _TINY, 1, length)
    nearest = d0 + step.times(jnp.where(part < 0, 0, jnp.where(part > 1, 1, part)))
    missed, hidden = nearest.dot(nearest) > r2, jnp.zeros_like(r2, bool)
    if side is not None:
        turn = d0.cross(d1)
        hidden = (side.cross(d0) * turn > 0) & (d1.cross(side) * turn > 0)
        missed &= ~hidden
    apart = (square0 >= r2) & (square1 >= r2) & (length >= _TINY)
    both = [_tangents(d0, d1, radius, sign, (square0, square1)) for sign in (1.0, -1.0)]
    crossed = [_cross(d0, start, d1, end) for start, end in both]
    goodness = []
    for (start, end), cross in zip(both, crossed, strict=True):
        middle, chord = start + end, start - end
        good = -chord.dot(chord)
        if side is not None:
            size = jnp.sqrt(jnp.maximum(middle.dot(middle), _TINY))
            good = jnp.where(hidden, middle.dot(side) / size, good)
        goodness.append(jnp.where(cross, -jnp.inf, good))
    arcs = [
        Wrapped(start, end, radius * _angle(start, end, clockwise), ~cross)
        for (start, end), cross, clockwise in zip(both, crossed, (True, False), strict=True)
    ]
    path = chosen(goodness[0] > goodness[1], *arcs)
    return path._replace(touches=path.touches & apart & ~missed)


def _tangents(
    d0: Planar, d1: Planar, radius: Scalar, sign: float, squares: tuple[Scalar, Scalar]
) -> tuple[Planar, Planar]:
    """Where tangents from two points touch the circle: the start and the end of an arc."""
    found = []
    for d, square, turn in zip((d0, d1), squares, (sign, -sign), strict=True):
        outside = square > radius * radius
        root = jnp.sqrt(jnp.where(outside, square - radius * radius, 1))
        root = jnp.where(outside, root, 0)
        scale = radius / jnp.where(square < _TINY, 1, square)
        across = Planar(d.y, -d.x).times(turn * root * scale)
        found.append(d.times(radius * scale) + across)
    return found[0], found[1]


def _angle(start: Planar, end: Planar, clockwise: bool) -> Scalar:
    """The angle () from 0 to 2 pi of an arc."""
    cross, dot = start.cross(end), start.dot(end)
    apart = (cross != 0) | (dot != 0)
    angle = jnp.arctan2(jnp.where(apart, cross, 0), jnp.where(apart, dot, 1))
    angle = -angle if clockwise else angle
    return jnp.where(angle < 0, angle + 2 * jnp.pi, angle)


def _cross(p1: Planar, p2: Planar, p3: Planar, p4: Planar) -> Bool[Array, ""]:
    """Whether the segment from p1 to p2 crosses that from p3 to p4."""
    one, other, between = p2 - p1, p4 - p3, p1 - p3
    det = one.cross(other)
    parallel = jnp.abs(det) < _TINY
    safe = jnp.where(parallel, 1, det)
    a, b = other.cross(between) / safe, one.cross(between) / safe
    return ~parallel & (a >= 0) & (a <= 1) & (b >= 0) & (b <= 1)


def within(d0: Planar, d1: Planar, radius: Scalar) -> Wrapped:
    """The shortest path between two points outside of a circle through a point on it.

    It does not touch where an end is inside of the circle, or the straight segment meets it. With
    the angle x between the inward normal and both segments, the condition is

        asin(a sin x) + asin(b sin x) - 2 x + g = 0,    a = r / |d_0|,    b = r / |d_1|

    g the angle between the ends. Its left-hand side falls, and is concave, so that Newton's method
    converges from 90 degrees on. Where the root is beyond, the point is halfway between the ends.
    """
    square0, square1 = d0.dot(d0), d1.dot(d1)
    r2, step = radius * radius, d1 - d0
    length = step.dot(step)
    outside = (square0 > r2) & (square1 > r2)
    part = -step.dot(d0) / jnp.where(length < _TINY, 1, length)
    nearest = d0 + step.times(part)
    meets = (length > _TINY) & (part > 0) & (part < 1) & (nearest.dot(nearest) <= r2)
    length0 = jnp.sqrt(jnp.where(outside, square0, 4 * r2))
    length1 = jnp.sqrt(jnp.where(outside, square1, 4 * r2))
    a, b = radius / length0, radius / length1
    cross = d0.cross(d1)
    bent = jnp.abs(cross) > _TINY
    g = jnp.arctan2(jnp.where(bent, jnp.abs(cross), 0), jnp.where(bent, d0.dot(d1), 1))

    def newton(x: Scalar, a: Scalar, b: Scalar, g: Scalar) -> Scalar:
        sin, cos = jnp.sin(x), jnp.cos(x)
        f = jnp.arcsin(a * sin) + jnp.arcsin(b * sin) - 2 * x + g
        slope = a * cos / jnp.sqrt(1 - a * a * sin * sin)
        slope += b * cos / jnp.sqrt(1 - b * b * sin * sin) - 2
        return x - f / slope

    right = jnp.full_like(a, jnp.pi / 2)
    beyond = jnp.arcsin(a) + jnp.arcsin(b) - jnp.pi + g > 0
    still = jax.lax.stop_gradient((a, b, g))
    x = jax.lax.fori_loop(0, _STEPS, lambda _, x: newton(x, *still), right)
    # At the root one step has its first derivative, and two have its second one.
    x = newton(newton(jax.lax.stop_gradient(x), a, b, g), a, b, g)
    ahead = cross > 0
    vector = Planar(
        jnp.where(ahead, d0.x / length0, d1.x / length1),
        jnp.where(ahead, d0.y / length0, d1.y / length1),
    )
    angle = x - jnp.arcsin(jnp.where(ahead, a, b) * jnp.sin(x))
    root = vector.turned(jnp.cos(angle), jnp.sin(angle)).times(radius)
    middle = d0 + d1
    size = middle.dot(middle)
    middle = middle.times(radius / jnp.sqrt(jnp.where(size < _TINY, 1, size)))
    at = jax.tree.map(lambda m, p: jnp.where(beyond | ~bent, m, p), middle, root)
    opposite = ~bent & (d0.dot(d1) < 0)
    return Wrapped(at, at, jnp.zeros_like(a), outside & ~meets & ~opposite)

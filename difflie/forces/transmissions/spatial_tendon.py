"""Spatial tendons: paths through points of bodies, with pulleys, around spheres and cylinders."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ...groups.components import Vector
from ...spatial import Force, Transform
from ...system.fields import Numbers, number, number_faults
from ...system.frame import Frame, as_frame
from ..path import Path, as_path, inverse, root
from .transmission import PointTransmission, stacked
from .wrapping import Planar, around, chosen, within


def _as_side(side: Any) -> Path | None:
    return side if side is None or isinstance(side, Path) else as_path([side])


class Wrap(eqx.Module):
    """A sphere, or a cylinder, around which a tendon passes between two of its points.

    after: the number of the point before it, from 0. frame: a `Frame` at its centre, whose z axis
    is the cylinder's; radius in m. cylinder: whether it is one, of any length. side: a pair (body,
    point (3,) in m): the tendon passes on that side, or through the inside if the point is nearer
    to the centre than the radius; None for the shorter way.
    """

    after: int = eqx.field(static=True)
    frame: Frame = eqx.field(converter=as_frame)
    radius: jax.Array = eqx.field(converter=number(unit="m", positive=True))
    cylinder: bool = eqx.field(static=True, default=False)
    side: Path | None = eqx.field(converter=_as_side, default=None)


class SpatialTendon(PointTransmission):
    """A tendon of the shortest path through points of bodies, around spheres and cylinders.

    points: two or more pairs (body, point (3,) in m in its frame), body None for the world. wraps:
    `Wrap`s, at most one between two points. branches: the numbers of the points with which new
    branches begin, at a pulley; without pulleys there is one branch. divisors (n,), without unit,
    by which the lengths of the n branches are divided; gear without unit, a scalar. The length is
    gear times the sum of the branches. It is the `spatial` tendon of MuJoCo, smooth but where a
    path begins to touch.
    """

    points: Path = eqx.field(converter=as_path)
    wraps: tuple[Wrap, ...] = eqx.field(converter=tuple, default=())
    branches: tuple[int, ...] = eqx.field(static=True, converter=tuple, default=())
    divisors: Numbers = eqx.field(converter=number(shape=None, positive=True), default=(1.0,))
    gear: jax.Array = eqx.field(converter=number(), default=1.0, kw_only=True)

    @property
    def path(self) -> Path:
        parts = [self.points]
        for wrap in self.wraps:
            parts.append(Path(wrap.frame.position[None], (wrap.frame.body,)))
            parts += [] if wrap.side is None else [wrap.side]
        bodies = sum((part.bodies for part in parts), ())
        return Path(jnp.concatenate([part.points for part in parts]), bodies)

    @property
    def label(self) -> str:
        named = [name for name in self.points.bodies if name is not None]
        return named[-1] if named else "the world"

    def problems(self) -> list[str]:
        count, found = len(self.points.bodies), []
        if count < 2:
            found.append(f"its path has {count} points; give it two or more")
        if jnp.shape(self.divisors) != (1 + len(self.branches),):
            found.append(
                f"divisors has shape {jnp.shape(self.divisors)}; give it one number more than "
                f"there are branches, {1 + len(self.branches)}"
            )
        starts = {*self.branches}
        for wrap in self.wraps:
            if not 0 <= wrap.after < count - 1 or wrap.after + 1 in starts:
                found.append(f"no segment begins with point {wrap.after}, around which it wraps")
            found += [f"its wrap {fault}" for fault in number_faults(wrap)]
        if len({wrap.after for wrap in self.wraps}) < len(self.wraps):
            found.append("it wraps twice between two points; put a point in between")
        return [*found, *super().problems()]

    def lever(self, frames: Transform) -> tuple[Float[Array, ""], Force]:
        n = len(self.points.bodies)
        at = [jax.tree.map(lambda a, i=i: a[i], frames) for i in range(len(self.path.bodies))]
        positions = [frame.translation for frame in at]
        nothing = positions[0] * 0.0
        forces, moments = len(at) * [nothing], len(at) * [nothing]
        centre, wound = n, {}
        for wrap in self.wraps:
            wound[wrap.after] = wrap, centre
            centre += 1 if wrap.side is None else 2
        total, branch = jnp.zeros_like(nothing.x), 0
        for i in range(n - 1):
            if i + 1 in self.branches:
                branch += 1
                continue
            share = self.gear / jnp.reshape(self.divisors, (-1,))[branch]
            ends = positions[i], positions[i + 1]
            if i in wound:
                wrap, c = wound[i]
                side = None if wrap.side is None else positions[c + 1]
                length, first, last, moment = _around(wrap, at[c], *ends, side)
                forces[c] = forces[c] + (first - last) * share
                moments[c] = moments[c] + moment * share
            else:
                length, first = _segment(*ends)
                last = first
            total = total + share * length
            forces[i] = forces[i] - first * share
            forces[i + 1] = forces[i + 1] + last * share
        return total, Force(stacked(moments), stacked(forces))

    def __str__(self) -> str:
        return f"SpatialTendon ({self.points})"


def _segment(start: Vector, end: Vector) -> tuple[Float[Array, ""], Vector]:
    """The length () in m of a straight segment, and its direction; none where it has no length."""
    step = end - start
    length = root(step.square())
    return length, step * inverse(length)


def _around(
    wrap: Wrap, frame: Transform, start: Vector, end: Vector, side: Vector | None
) -> tuple[Float[Array, ""], Vector, Vector, Vector]:
    """The length of a part that may wrap, and its first and last direction.

    With them the moment about the centre of the two straight segments, for a tension of one. frame:
    at the centre, with the attitude of its body.
    """
    leaves, meets, arc, touches = _touching(wrap, frame, start, end, side)
    (before, first), (after, last) = _segment(start, leaves), _segment(meets, end)
    straight, direction = _segment(start, end)
    centre = frame.translation
    moment = (leaves - centre).cross(first) - (meets - centre).cross(last)
    wound = before + arc + after, first, last, moment
    free = straight, direction, direction, direction * 0.0
    return jax.tree.map(lambda a, b: jnp.where(touches, a, b), wound, free)


def _touching(
    wrap: Wrap, frame: Transform, start: Vector, end: Vector, side: Vector | None
) -> tuple[Vector, Vector, Float[Array, ""], Bool[Array, ""]]:
    """Where a tendon meets and leaves a sphere or a cylinder, in the world, the length between.

    With them whether it touches.
    """
    turn = frame.rotation @ wrap.frame.pose.rotation
    p0, p1 = (turn.transposed_times(p - frame.translation) for p in (start, end))
    one, zero = jnp.ones_like(p0.x), jnp.zeros_like(p0.x)
    if wrap.cylinder:
        first, second = Vector(one, zero, zero), Vector(zero, one, zero)
    else:
        _, first = _segment(Vector(zero, zero, zero), p0)
        # Where the ends are in line with the centre, any plane through them will do.
        spare = jax.tree.map(lambda a: jnp.where(jnp.abs(first.x) < 0.6, a[0], a[1]), _spare(one))
        across = p1 - first * first.dot(p1)
        inline = across.square() <= 1e-24 * p1.square()
        other = spare - first * first.dot(spare)
        across = jax.tree.map(lambda a, b: jnp.where(inline, b, a), across, other)
        second = across * (1 / jnp.sqrt(across.square()))
    d0, d1 = (Planar(p.dot(first), p.dot(second)) for p in (p0, p1))
    radius = wrap.radius.astype(p0.x.dtype)
    if side is None:
        path = around(d0, d1, radius, None)
    else:
        seen = turn.transposed_times(side - frame.translation)
        beside = Planar(seen.dot(first), seen.dot(second))
        outer, inner = around(d0, d1, radius, beside), within(d0, d1, radius)
        path = chosen(seen.square() < radius * radius, inner, outer)
    ends = [first * p.x + second * p.y for p in (path.start, path.end)]
    arc = path.arc
    if wrap.cylinder:
        gaps = d0 - path.start, d1 - path.end
        length0, length1 = (root(gap.dot(gap)) for gap in gaps)
        whole = length0 + arc + length1
        rise = (p1.z - p0.z) * inverse(whole)
        heights = p0.z + rise * length0, p0.z + rise * (length0 + arc)
        ends = [Vector(p.x, p.y, z) for p, z in zip(ends, heights, strict=True)]
        climb = rise * arc
        arc = root(arc * arc + climb * climb)
    leaves, meets = (turn @ p + frame.translation for p in ends)
    return leaves, meets, arc, path.touches


def _spare(one: jax.Array) -> Vector:
    """The x and the y axis, to choose the one that is less in line with another vector."""
    zero = jnp.zeros_like(one)
    return Vector(*(jnp.stack(pair) for pair in ((one, zero), (zero, one), (zero, zero))))

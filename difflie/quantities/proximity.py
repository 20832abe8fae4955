"""What touch sensors and sensors of distances read."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..collision.clearance import pair_distances
from ..collision.distances.witness import deepest
from ..collision.shapes import Box, Capsule, Cylinder, Ellipsoid, Shape, Sphere
from ..forces.contact_report import contact_of
from ..forces.points import point_motions
from ..forces.shape_contact import Touch as Acting
from ..groups.components import Vector
from ..system.fields import number
from ..system.kinematic_tree import Tree
from ..system.named_frames import placement
from ..system.shared import shared
from ..system.system import System
from ..system.validation import ModelError, format_value, nearest
from .frames import placed
from .quantity import Labels, Quantity, xyz

_ZONES = Sphere, Capsule, Cylinder, Box, Ellipsoid


class Touch(Quantity):
    """The sum () in N of the normal forces of contacts of shapes on a body, within a zone.

    zone: a `Sphere`, `Capsule`, `Cylinder`, `Box` or `Ellipsoid` in a frame of the body. A contact
    counts where the ray from its point along the normal, away from the body, meets the zone; points
    in the zone do. It is MuJoCo's `touch`. Raises `ModelError` for another zone, and where no
    shapes are in contact.

    >>> slide = dl.Prismatic(axis=(0, 0, 1))
    >>> ball = dl.chain([dl.Body(name="ball", joint=slide, mass=2.0, position=(0, 0, 0.098))])
    >>> ball = ball.with_shapes({"ball": dl.Sphere("ball", 0.1), "ground": dl.Plane()})
    >>> system, zone = dl.touching(ball, "ball", "ground", stiffness=1e4), dl.Sphere("ball", 0.11)
    >>> print(dl.quantities.Touch(zone)(system, *2 * [ball.neutral()], None, 0.0).round(3))  # in N
    20.0
    """

    zone: Shape

    def __check_init__(self) -> None:
        if not isinstance(self.zone, _ZONES):
            raise ModelError(
                f"the zone of a touch sensor is a {type(self.zone).__name__}; take a Sphere, "
                "Capsule, Cylinder, Box or Ellipsoid"
            )

    @property
    def name(self) -> str:
        return f"touch on {self.zone.frame}"

    def labels(self, system: System) -> Labels:
        return ((self.name, "N"),)

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, ""]:
        contact = contact_of(system)
        body, _ = placement(system, self.zone.frame, q.dtype)
        (pose,) = placed(system, q, self.zone.frame)
        owners = [[contact.geometry[name].frame.body for name in pair] for pair in contact.pairs]
        sides = np.array([(b == body) * -1.0 + (a == body) for a, b in owners])
        total = jnp.zeros((), q.dtype)
        for index, touch in _touches(system, q, v):
            side = sides[index][:, None]
            start = pose.rotation.transposed_times(touch.place - pose.translation)
            way = pose.rotation.transposed_times(touch.points.normal * side)
            felt = meets(self.zone, start, way) & (side != 0)
            total = total + jnp.sum(jnp.where(felt, touch.pressure, 0))
        return total


@shared
def _touches(
    system: System, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> list[tuple[np.ndarray, Acting]]:
    """What acts in the contacts of a system, as of `ShapeContact.touches`."""
    contact = contact_of(system)
    ((frames, twists),) = point_motions(Tree.of(system), [contact.path], q, v)
    return list(contact.touches(frames, twists))


def meets(zone: Shape, start: Vector, way: Vector) -> Bool[Array, "*n"]:
    """Whether rays from points (n,) along directions (n,), in the zone's frame, meet the zone."""
    if isinstance(zone, Sphere | Ellipsoid):
        radii = zone.radii if isinstance(zone, Ellipsoid) else jnp.stack(3 * [zone.radius])
        return _forward(_ball(_scaled(start, radii), _scaled(way, radii), 1.0))
    if isinstance(zone, Box):
        x, y, z = zone.half_sizes
        return _forward(
            _slab(start.x, way.x, x), _slab(start.y, way.y, y), _slab(start.z, way.z, z)
        )
    assert isinstance(zone, Cylinder | Capsule)
    at, along = (Vector(p.x, p.y, jnp.zeros_like(p.z)) for p in (start, way))
    barrel = _ball(at, along, zone.radius), _slab(start.z, way.z, zone.half_length)
    met = _forward(*barrel)
    if isinstance(zone, Capsule):
        for end in (zone.half_length, -zone.half_length):
            moved = Vector(start.x, start.y, start.z - end)
            met = met | _forward(_ball(moved, way, zone.radius))
    return met


Span = tuple[jax.Array, jax.Array]


def _forward(*spans: Span) -> jax.Array:
    """Whether a ray is in all spans at once somewhere from its start on."""
    low, high = jnp.zeros_like(spans[0][0]), jnp.full_like(spans[0][0], jnp.inf)
    for begin, end in spans:
        low, high = jnp.maximum(low, begin), jnp.minimum(high, end)
    return low <= high


def _scaled(v: Vector, radii: jax.Array) -> Vector:
    return Vector(v.x / radii[0], v.y / radii[1], v.z / radii[2])


def _ball(start: Vector, way: Vector, radius: Any) -> Span:
    """Where along a ray it is within a radius of the origin."""
    a, b = way.square(), start.dot(way)
    inside = radius * radius - start.square()
    root = b * b + a * inside
    moves, met = a > 0, root >= 0
    over = jnp.where(moves, a, 1)
    half = jnp.sqrt(jnp.where(met & moves, root, 0))
    begin = jnp.where(moves, (-b - half) / over, jnp.where(inside >= 0, -jnp.inf, jnp.inf))
    end = jnp.where(moves, (-b + half) / over, jnp.where(inside >= 0, jnp.inf, -jnp.inf))
    return jnp.where(met, begin, jnp.inf), jnp.where(met, end, -jnp.inf)


def _slab(start: jax.Array, way: jax.Array, half: jax.Array) -> Span:
    """Where along a ray a coordinate is between -half and half."""
    moves, inside = way != 0, jnp.abs(start) <= half
    over = jnp.where(moves, way, 1)
    ends = (-half - start) / over, (half - start) / over
    begin = jnp.where(moves, jnp.minimum(*ends), jnp.where(inside, -jnp.inf, jnp.inf))
    end = jnp.where(moves, jnp.maximum(*ends), jnp.where(inside, jnp.inf, -jnp.inf))
    return begin, end


def _names(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


class ShapeGap(Quantity):
    """The least signed distance between two groups of shapes, or where it is, up to a limit.

    first, second: names of `System.shapes`, one or several each. most () in m: beyond it nothing is
    seen. reading: "distance", () in m, `most` where nothing is seen; "normal", (3,), the unit
    vector from the nearest point of the first group to that of the second; "points", (6,) in m,
    these two points; in world coordinates, both 0 where nothing is seen. Of overlapping shapes the
    points are the deepest, and the distance is negative. They are MuJoCo's `distance`, `normal` and
    `fromto`. Raises `ModelError` for an unknown shape, with the nearest name, for no shape, and for
    an unknown reading.
    """

    first: tuple[str, ...] = eqx.field(static=True, converter=_names)
    second: tuple[str, ...] = eqx.field(static=True, converter=_names)
    most: jax.Array = eqx.field(converter=number(unit="m"))
    reading: str = eqx.field(static=True, default="distance")

    def __check_init__(self) -> None:
        if self.reading not in ("distance", "normal", "points"):
            raise ModelError(
                f"the reading is {format_value(self.reading)}; it is distance, normal or points"
            )
        if not (self.first and self.second):
            raise ModelError("a group of shapes is empty; name one or more in first and in second")

    @property
    def name(self) -> str:
        return f"{self.reading} between {', '.join(self.first)} and {', '.join(self.second)}"

    def labels(self, system: System) -> Labels:
        if self.reading == "distance":
            return ((self.name, "m"),)
        if self.reading == "normal":
            return xyz("")
        return (*xyz("m", "first "), *xyz("m", "second "))

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: jax.Array,
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, "..."]:
        for name in (*self.first, *self.second):
            if name not in system.shapes:
                near = nearest(name, system.shapes)
                raise ModelError(f"{system.name}: no shape is named {format_value(name)}{near}")
        pairs = [(a, b) for a in self.first for b in self.second]
        found = deepest(pair_distances(Tree.of(system), q, pairs))
        seen = found.gap < self.most
        if self.reading == "distance":
            return jnp.where(seen, found.gap, self.most)
        if self.reading == "normal":
            value = (found.normal * jnp.where(found.gap < 0, -1, 1)).to_array()
        else:
            value = jnp.concatenate((found.first.to_array(), found.second.to_array()))
        return jnp.where(seen, value, 0)

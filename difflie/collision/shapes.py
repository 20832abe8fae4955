"""Convex shapes and height fields, each in a frame on a body or in the world.

The axis of a capsule or a cylinder is z of this frame, the edges of a box are along its axes, and a
plane is z = 0, solid below.
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..groups.components import Vector
from ..system.fields import number, number_faults
from ..system.frame import Frame, as_frame

MOST_VERTICES = 64


class Shape(eqx.Module):
    """A shape in a frame.

    frame: a `Frame`, the name of a body or of a named frame, or None for the world. Its numbers are
    leaves. A shape does not affect the motion unless it is in contact, see `difflie.touching`.
    """

    kind: ClassVar[str]

    frame: Frame = eqx.field(converter=as_frame)

    @property
    def body(self) -> str | None:
        """The name of the body that has it; None for the world."""
        return self.frame.body

    @property
    def numbers(self) -> tuple[Any, ...]:
        """Its sizes, scalars () and a `Vector`, as `distances.contact_points` takes them."""
        raise NotImplementedError

    @property
    def bound(self) -> jax.Array:
        """The radius () in m of a ball about the origin of its frame that holds it."""
        raise NotImplementedError

    def problems(self) -> list[str]:
        """The faults of its numbers, each with the fix."""
        return [*number_faults(self.frame), *number_faults(self)]

    def __str__(self) -> str:
        return f"{type(self).__name__} on {self.frame}"


class Sphere(Shape):
    """A ball about the origin of its frame, radius in m."""

    kind: ClassVar[str] = "sphere"

    radius: jax.Array = eqx.field(converter=number(unit="m", positive=True))

    @property
    def numbers(self) -> tuple[Any, ...]:
        return (self.radius,)

    @property
    def bound(self) -> jax.Array:
        return self.radius


class Capsule(Shape):
    """All points within `radius` (m) of a segment along z, from -half_length to half_length (m)."""

    kind: ClassVar[str] = "capsule"

    radius: jax.Array = eqx.field(converter=number(unit="m", positive=True))
    half_length: jax.Array = eqx.field(converter=number(unit="m", nonnegative=True))

    @property
    def numbers(self) -> tuple[Any, ...]:
        return self.radius, self.half_length

    @property
    def bound(self) -> jax.Array:
        return self.radius + self.half_length


class Cylinder(Shape):
    """A round cylinder along z, from -half_length to half_length, with flat ends; radius; in m."""

    kind: ClassVar[str] = "cylinder"

    radius: jax.Array = eqx.field(converter=number(unit="m", positive=True))
    half_length: jax.Array = eqx.field(converter=number(unit="m", positive=True))

    @property
    def numbers(self) -> tuple[Any, ...]:
        return self.radius, self.half_length

    @property
    def bound(self) -> jax.Array:
        return jnp.sqrt(self.radius**2 + self.half_length**2)


class Box(Shape):
    """A box about the origin of its frame; half_sizes (3,) in m: half its edges."""

    kind: ClassVar[str] = "box"

    half_sizes: jax.Array = eqx.field(converter=number(unit="m", shape=(3,), positive=True))

    @property
    def numbers(self) -> tuple[Any, ...]:
        return (Vector.from_array(self.half_sizes),)

    @property
    def bound(self) -> jax.Array:
        return jnp.sqrt(jnp.sum(self.half_sizes**2))


class Ellipsoid(Shape):
    """An ellipsoid about the origin of its frame, whose radii (3,) in m are along its axes."""

    kind: ClassVar[str] = "ellipsoid"

    radii: jax.Array = eqx.field(converter=number(unit="m", shape=(3,), positive=True))

    @property
    def numbers(self) -> tuple[Any, ...]:
        return (Vector.from_array(self.radii),)

    @property
    def bound(self) -> jax.Array:
        return jnp.max(self.radii)


class Plane(Shape):
    """The half space z <= 0 of its frame; by default the ground, in the world."""

    kind: ClassVar[str] = "plane"

    frame: Frame = eqx.field(converter=as_frame, default=None)

    @property
    def numbers(self) -> tuple[Any, ...]:
        return ()

    @property
    def bound(self) -> jax.Array:
        return jnp.full((), jnp.inf, self.frame.position.dtype)


class HeightField(Shape):
    """A surface over the rectangle |x|, |y| <= half_sizes (2,) in m, solid below.

    heights (rows, columns) in m: above z = 0 of the frame, at even distances, rows along y and
    columns along x, from the least to the greatest. By default its frame is the world. It touches
    spheres, capsules, and the corners of boxes and hulls, whatever is within two of its cells; the
    radius of these is at most two of its cells.
    """

    kind: ClassVar[str] = "heights"

    half_sizes: jax.Array = eqx.field(converter=number(unit="m", shape=(2,), positive=True))
    heights: jax.Array = eqx.field(converter=number(unit="m", shape=None))
    frame: Frame = eqx.field(converter=as_frame, default=None, kw_only=True)

    @property
    def numbers(self) -> tuple[Any, ...]:
        return self.half_sizes, self.heights

    @property
    def bound(self) -> jax.Array:
        return jnp.sqrt(jnp.sum(self.half_sizes**2) + jnp.max(self.heights**2))

    @property
    def cells(self) -> jax.Array:
        """The sizes (2,) of a cell in m, along x and y."""
        return 2 * self.half_sizes / (np.array(jnp.shape(self.heights)[::-1]) - 1)

    def problems(self) -> list[str]:
        shape = jnp.shape(self.heights)
        if len(shape) != 2 or min(shape) < 2:
            return [f"heights has shape {shape}; give (rows, columns), two or more of each"]
        return super().problems()


class ConvexHull(Shape):
    """The convex hull of vertices (n, 3) in m, in its frame; n from 4 to 64."""

    kind: ClassVar[str] = "hull"

    vertices: jax.Array = eqx.field(converter=number(unit="m", shape=None))

    @property
    def numbers(self) -> tuple[Any, ...]:
        return (self.vertices,)

    @property
    def bound(self) -> jax.Array:
        return jnp.sqrt(jnp.max(jnp.sum(self.vertices**2, axis=1)))

    def problems(self) -> list[str]:
        shape = jnp.shape(self.vertices)
        if len(shape) != 2 or shape[1] != 3 or not 4 <= shape[0] <= MOST_VERTICES:
            return [
                f"vertices has shape {shape}; give (n, 3) with n from 4 to {MOST_VERTICES}, the "
                "corners of a simpler hull"
            ]
        return super().problems()

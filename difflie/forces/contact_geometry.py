"""Where bodies touch: gaps, normals and places, for compliant and for hard contacts.

All arguments are in world coordinates, their components of any one shape; points are spheres
without radius.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..groups.components import Scalar, Vector
from .path import inverse, root


@dataclass(frozen=True, slots=True)
class Meeting:
    """A gap in m, open where positive, the normal from the first body to the second, the place.

    The normal is zero where there is none.
    """

    gap: Scalar
    normal: Vector
    place: Vector


def plane_and_sphere(point: Vector, normal: Vector, centre: Vector, radius: Scalar) -> Meeting:
    """A plane through a point with a unit normal, and a sphere of this radius in m.

    They touch on the sphere's surface, at its centre - radius normal.
    """
    gap = normal.dot(centre - point) - radius
    return Meeting(gap, normal, centre - normal * radius)


def sphere_and_sphere(
    centre: Vector, radius: Scalar, other_centre: Vector, other_radius: Scalar
) -> Meeting:
    """Two spheres with radii in m.

    They touch halfway between their surfaces; where the centres coincide there is no normal.
    """
    step = other_centre - centre
    length = root(step.square())
    normal = step * inverse(length)
    gap = length - radius - other_radius
    return Meeting(gap, normal, centre + normal * (radius + gap / 2))

"""The geometry of contacts: gaps, normals and contact points, for compliant and hard contacts.

All arguments are in world coordinates, their components of one common shape; points are spheres of
radius zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..groups.components import Scalar, Vector
from .path import inverse, root


@dataclass(frozen=True, slots=True)
class Meeting:
    """The gap in m, open where positive; the normal from the first body to the second; the point.

    The normal is zero where it is undefined.
    """

    gap: Scalar
    normal: Vector
    place: Vector


def plane_and_sphere(point: Vector, normal: Vector, centre: Vector, radius: Scalar) -> Meeting:
    """The contact of a plane, through a point with a unit normal, with a sphere of radius () in m.

    The contact point is on the sphere's surface, at its centre - radius normal.
    """
    gap = normal.dot(centre - point) - radius
    return Meeting(gap, normal, centre - normal * radius)


def sphere_and_sphere(
    centre: Vector, radius: Scalar, other_centre: Vector, other_radius: Scalar
) -> Meeting:
    """The contact of two spheres with radii () in m.

    The contact point is halfway between their surfaces; the normal is zero where the centres
    coincide.
    """
    step = other_centre - centre
    length = root(step.square())
    normal = step * inverse(length)
    gap = length - radius - other_radius
    return Meeting(gap, normal, centre + normal * (radius + gap / 2))

"""Which function finds the contact points of two kinds of shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...spatial import Transform
from . import boxes, cylinders, heights, planes, spheres_and_capsules, support
from .witness import Witness, swapped

ContactPoints = Callable[[Transform, Any, Transform, Any], Witness]

KINDS = ("plane", "heights", "sphere", "capsule", "cylinder", "box", "ellipsoid", "hull")

PAIRS: dict[tuple[str, str], ContactPoints] = {
    ("plane", "sphere"): planes.sphere,
    ("plane", "capsule"): planes.capsule,
    ("plane", "cylinder"): planes.cylinder,
    ("plane", "box"): planes.box,
    ("plane", "ellipsoid"): planes.ellipsoid,
    ("plane", "hull"): planes.hull,
    ("heights", "sphere"): heights.sphere,
    ("heights", "capsule"): heights.capsule,
    ("heights", "box"): heights.box,
    ("heights", "hull"): heights.hull,
    ("sphere", "sphere"): spheres_and_capsules.sphere_sphere,
    ("sphere", "capsule"): spheres_and_capsules.sphere_capsule,
    ("capsule", "capsule"): spheres_and_capsules.capsule_capsule,
    ("sphere", "box"): boxes.sphere_box,
    ("capsule", "box"): boxes.capsule_box,
    ("box", "box"): boxes.box_box,
    ("sphere", "cylinder"): cylinders.sphere_cylinder,
}


def is_closed_form(kind_a: str, kind_b: str) -> bool:
    """Whether two kinds have a formula; others are found by `support`."""
    return (kind_a, kind_b) in PAIRS or (kind_b, kind_a) in PAIRS


def takes_long(kind_a: str, kind_b: str) -> bool:
    """Whether contact points of two kinds take so long that it pays to look at balls first.

    Those of a box with a capsule or a box take ten times as long as other formulas.
    """
    return not is_closed_form(kind_a, kind_b) or {kind_a, kind_b} in ({"box"}, {"box", "capsule"})


def contact_points(kind_a: str, kind_b: str) -> ContactPoints:
    """The function that finds the contact points of two convex shapes of these kinds.

    It takes the pose of the first shape in the world, its numbers in m, and those of the second,
    all components of shape (), and returns a `Witness` of k contact points in the world; k depends
    on the kinds only. The signed distance is the least gap: the distance of shapes apart, and minus
    the least translation that separates overlapping ones. The numbers are a tuple by kind:

    - "sphere": radius
    - "capsule", "cylinder": radius, half_length, along z without the caps of the capsule
    - "box": half_sizes `Vector`
    - "ellipsoid": radii `Vector`
    - "plane": none; solid below its frame's plane z = 0
    - "hull": vertices (n, 3) in its frame
    - "heights": half_sizes (2,) and heights (rows, columns)

    Raises ValueError for an unknown kind, for two planes, and for what no height field touches.
    """
    for kind in (kind_a, kind_b):
        if kind not in KINDS:
            raise ValueError(f"no shape {kind!r}: contact points are found for {', '.join(KINDS)}")
    if kind_a == kind_b == "plane":
        raise ValueError(
            "two planes have no signed distance: leave out the pair, or make one of them a box"
        )
    if "heights" in (kind_a, kind_b) and not is_closed_form(kind_a, kind_b):
        raise ValueError(
            "height fields touch spheres, capsules, boxes and hulls: make the other shape one of "
            "these, or leave out the pair"
        )
    if (kind_a, kind_b) in PAIRS:
        return PAIRS[kind_a, kind_b]
    mirrored = PAIRS.get((kind_b, kind_a))
    if mirrored is None and KINDS.index(kind_a) <= KINDS.index(kind_b):
        return support.contact_point(kind_a, kind_b)
    mirrored = mirrored or support.contact_point(kind_b, kind_a)

    def swap(pose: Transform, numbers: Any, other: Transform, numbers_b: Any) -> Witness:
        return swapped(mirrored(other, numbers_b, pose, numbers))

    return swap

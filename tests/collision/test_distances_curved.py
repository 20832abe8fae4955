import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checks_of_distances import (
    check_derivatives,
    check_optimal,
    check_points,
    checked,
    pairs_of,
    pose,
)
from pairs_at_random import at_random, by_coal, by_search, result

from difflie.collision.distances import contact_points
from difflie.groups.components import Vector

CYLINDERS = [(kind, "cylinder") for kind in ("sphere", "capsule", "box", "cylinder")]
ELLIPSOIDS = [(kind, "ellipsoid") for kind in ("sphere", "capsule", "box", "cylinder", "ellipsoid")]
MANY = [
    (("ellipsoid", "ellipsoid"), 2_000),
    *(pytest.param(k, 10_000, marks=pytest.mark.thorough) for k in CYLINDERS + ELLIPSOIDS),
]
QUICK = [("sphere", "cylinder"), ("sphere", "ellipsoid"), ("capsule", "ellipsoid")]
EVERY = pairs_of(*QUICK, slow=[k for k in CYLINDERS + ELLIPSOIDS if k not in QUICK])
OFTEN = [("capsule", "cylinder"), ("box", "ellipsoid")]


@pytest.mark.slow("capsule-ellipsoid", "sphere-ellipsoid")
@EVERY
def test_signed_distances_are_optimal(kinds):
    """Guards values: apart, points in both shapes; overlapping, no direction separates better."""
    check_optimal(*kinds, 200)


@pytest.mark.slow
@pytest.mark.parametrize(("kinds", "count"), MANY)
def test_many_signed_distances_are_optimal(kinds, count):
    """Guards values of rare positions, and against directions that are refined."""
    check_optimal(*kinds, count)
    pairs = at_random(*kinds, 300, seed=6)
    assert (np.asarray(result(pairs).gap) - by_search(pairs, refine=True)).min() > -1e-9


@EVERY
def test_signed_distances_are_those_of_coal(kinds):
    """Guards values apart against an independent program; its overlaps are often too deep."""
    pairs = at_random(*kinds, 200)
    theirs, found = by_coal(pairs), np.asarray(result(pairs).gap)
    known = ~np.isnan(theirs) & (found > 1e-4)
    assert known.sum() > 50
    tolerance = 1e-5 if "ellipsoid" in kinds else 2e-8
    assert np.abs(theirs - found)[known].max() < tolerance


@pytest.mark.slow
def test_a_sphere_and_a_point_are_alike():
    """Guards an ellipsoid with equal radii against spheres in closed form."""
    pairs = at_random("sphere", "ellipsoid", 50)
    pairs.numbers[1][0][:] = pairs.numbers[1][0][:, :1]
    step = np.linalg.norm(pairs.origins[1] - pairs.origins[0], axis=1)
    expected = step - pairs.numbers[0][0] - pairs.numbers[1][0][:, 0]
    assert np.abs(result(pairs).gap - expected).max() < 1e-9


@pairs_of(
    slow=OFTEN[:1],
    thorough=[("cylinder", "ellipsoid"), ("cylinder", "cylinder"), *OFTEN[1:]],
)
def test_derivatives(kinds):
    """Guards the derivatives of gap and normal, in both modes."""
    check_derivatives(*kinds, 100)


@pytest.mark.slow
@pairs_of(("sphere", "cylinder"), slow=OFTEN, thorough=[("ellipsoid", "ellipsoid")])
def test_points(kinds):
    """Guards points, normals, the mirrored pair and single precision."""
    check_points(*kinds, 100)


NUMBERS = {
    "sphere": (0.4,),
    "capsule": (0.3, 0.6),
    "cylinder": (0.5, 0.8),
    "box": (Vector(*jnp.array([1.0, 0.7, 0.5])),),
    "ellipsoid": (Vector(*jnp.array([1.0, 0.7, 0.5])),),
}
REACH = {"sphere": 0.4, "capsule": 0.9, "cylinder": 0.8, "box": 0.5, "ellipsoid": 0.5}


@pairs_of(slow=[("capsule", "ellipsoid")], thorough=[("box", "cylinder"), *OFTEN])
def test_shapes_on_one_axis(kinds):
    """Guards upright shapes on top of each other, and of one centre: exact, and nothing is NaN."""
    numbers = [NUMBERS[kind] for kind in kinds]
    for gap in (0.25, -0.01):
        height = REACH[kinds[0]] + REACH[kinds[1]] + gap
        found = checked(kinds, pose([0, 0, height]), numbers[0], pose([0, 0, 0]), numbers[1])
        assert found.gap.min() == pytest.approx(gap, abs=1e-9)
        assert found.normal.z[0] == pytest.approx(-1)
        assert abs(found.first.x[0]) + abs(found.first.y[0]) < 1.5
    checked(kinds, pose([0, 0, 0]), numbers[0], pose([0, 0, 0]), numbers[1])


@pytest.mark.slow
def test_a_cylinder_on_a_box_touches_all_around():
    """Guards the points of a cylinder that stands on a box, over its edge too, or lies there."""
    at, cylinder, box = pose([0, 0, 0]), NUMBERS["cylinder"], NUMBERS["box"]
    kinds = ("cylinder", "box")
    found = checked(kinds, pose([0.1, 0, 1.3]), cylinder, at, box)
    near = np.asarray(found.valid & (found.gap < 1e-9))
    assert near.sum() == 4
    points = found.first.to_array()[near]
    assert np.allclose(points.sum(0), [0.4, 0, 2.0], atol=0.05)  # around the axis
    assert np.ptp(points[:, 1]) == pytest.approx(1.0)
    find = jax.jit(contact_points(*kinds))
    for tilt in ([1e-3, 0, 0], [0, 1e-9, 0]):
        found = find(pose([0, 0, 1.3], tilt), cylinder, at, box)
        assert (found.valid & (found.gap < 2e-3)).sum() in (3, 4)
    found = find(pose([0.9, 0, 1.3]), cylinder, at, box)
    assert np.abs(found.gap[found.valid]).max() == pytest.approx(0, abs=1e-9)
    x, y = found.first.x[found.valid], found.first.y[found.valid]
    assert x.max() == pytest.approx(1.0)
    assert 0.4 <= x.min() < 0.45 and abs(y.min() + y.max()) < 0.05
    found = find(pose([0, 0, 1.0], [0, np.pi / 2, 0]), cylinder, at, box)
    near = np.asarray(found.valid & (found.gap < 1e-9))
    assert np.allclose(sorted(found.first.x[near]), [-0.8, 0.8], atol=0.05)

import numpy as np
import pytest
from checks_of_distances import check_derivatives, check_optimal, check_points, pairs_of
from pairs_at_random import SIGNS, Pairs, at_random, by_hulls, result

POLYTOPES = [(kind, "hull") for kind in ("sphere", "capsule", "box", "hull")]
PAIRS = [*POLYTOPES, ("cylinder", "hull"), ("ellipsoid", "hull")]
QUICK = [("sphere", "hull"), ("box", "hull")]


@pytest.mark.slow("box-hull")
@pairs_of(*QUICK, slow=[kinds for kinds in POLYTOPES if kinds not in QUICK])
def test_full_precision(kinds):
    """Guards 1e-10 against hulls of differences of vertices."""
    pairs = at_random(*kinds, 200, seed=3)
    expected = by_hulls(pairs)
    assert (expected < 0).sum() > 50
    assert np.abs(result(pairs).gap - expected).max() < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kinds", "count"),
    [
        (("hull", "hull"), 2_000),
        *(pytest.param(kinds, 10_000, marks=pytest.mark.thorough) for kinds in POLYTOPES),
    ],
)
def test_many_signed_distances(kinds, count):
    """Guards rare positions: of ten thousand a few that overlap lie too deep."""
    pairs = at_random(*kinds, count, seed=4)
    error = np.abs(result(pairs).gap - by_hulls(pairs))
    assert np.quantile(error, 0.998) < 1e-10
    assert error.max() < 0.05


@pytest.mark.slow("box-hull")
@pairs_of(*QUICK, slow=[kinds for kinds in PAIRS if kinds not in QUICK])
def test_signed_distances_are_optimal(kinds):
    """Guards values: apart, points in both shapes; overlapping, no direction separates better."""
    check_optimal(*kinds, 100)


@pairs_of(slow=[("ellipsoid", "hull")], thorough=[("hull", "hull"), ("box", "hull")])
def test_derivatives(kinds):
    """Guards the derivatives of gap and normal, in both modes."""
    check_derivatives(*kinds, 100)


@pairs_of(slow=[("box", "hull")], thorough=[("sphere", "hull"), ("cylinder", "hull")])
def test_points(kinds):
    """Guards points, normals, the mirrored pair and single precision."""
    check_points(*kinds, 100)


@pytest.mark.slow
def test_a_hull_of_the_corners_of_a_box_is_that_box():
    """Guards hulls against boxes, faces with four corners among them."""
    boxes = at_random("box", "box", 200, seed=5)
    corners = tuple((SIGNS * x[0][:, None],) for x in boxes.numbers)
    hulls = Pairs(("hull", "hull"), boxes.rotations, boxes.origins, corners)
    assert np.abs(result(hulls).gap - result(boxes).gap).max() < 1e-10

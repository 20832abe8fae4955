import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checks_of_distances import (
    check_against_coal,
    check_derivatives,
    check_points,
    checked,
    pose,
)
from pairs_at_random import at_random, by_coal, by_projection, result

from difflie.collision.distances import contact_points, deepest
from difflie.groups import so3
from difflie.groups.components import Matrix, Vector
from difflie.spatial import Transform

PLANES = [("plane", kind) for kind in ("sphere", "capsule", "cylinder", "box", "ellipsoid", "hull")]
ROUND = [("sphere", "sphere"), ("sphere", "capsule"), ("capsule", "capsule")]
EVERY = pytest.mark.parametrize("kinds", PLANES + ROUND)


@EVERY
def test_signed_distances_are_those_of_coal(kinds):
    """Guards values against an independent program."""
    check_against_coal(*kinds, 200)


@pytest.mark.slow
@EVERY
def test_many_signed_distances_are_those_of_coal(kinds):
    """Guards values of rare positions."""
    check_against_coal(*kinds, 10_000)


@pytest.mark.slow(
    "kinds2",
    "kinds4",
    "kinds5",
    "kinds7",
    "kinds8",
    "kinds1",
    "kinds2",
    "kinds3",
    "kinds4",
    "kinds5",
    "kinds7",
    "kinds8",
)
@EVERY
def test_derivatives(kinds):
    """Guards the derivatives of gap and normal, in both modes."""
    check_derivatives(*kinds, 200)


@EVERY
def test_points(kinds):
    """Guards points, normals, the mirrored pair and single precision."""
    check_points(*kinds, 200)


@pytest.mark.parametrize("kinds", ROUND)
def test_full_precision(kinds):
    """Guards 1e-12 relative against least squares with bounds."""
    pairs = at_random(*kinds, 200, seed=3)
    expected = by_projection(pairs)
    assert (np.abs(result(pairs).gap - expected) <= 1e-12 * (1 + np.abs(expected))).all()


def test_two_spheres_of_one_centre_have_a_fixed_normal():
    """Guards the singular point of the distance of two points."""
    found = checked(("sphere", "sphere"), pose([1, 2, 3]), (0.5,), pose([1, 2, 3]), (0.2,))
    assert found.gap[0] == pytest.approx(-0.7, abs=1e-15)
    assert found.normal.z[0] == 1


def test_a_sphere_on_the_axis_of_a_capsule():
    """Guards the singular line of a capsule, and the point beyond its end."""
    found = checked(("capsule", "sphere"), pose([0, 0, 0]), (0.5, 1.0), pose([0, 0, 0.3]), (0.1,))
    assert found.gap[0] == pytest.approx(-0.6)
    found = checked(("capsule", "sphere"), pose([0, 0, 0]), (0.5, 1.0), pose([0, 0, 2]), (0.1,))
    assert found.gap[0] == pytest.approx(0.4)


@pytest.mark.slow
def test_parallel_capsules_touch_at_both_ends_of_what_they_share():
    """Guards the second point, and that there is none end to end or across."""
    kinds, numbers = ("capsule", "capsule"), (0.2, 1.0)
    found = checked(kinds, pose([0, 0, 0]), numbers, pose([0.5, 0, 0.5]), (0.2, 1.0))
    assert found.valid.all()
    assert np.allclose(found.gap, 0.1)
    assert np.allclose(sorted(found.first.z), [-0.5, 1])
    found = checked(kinds, pose([0, 0, 0]), numbers, pose([0, 0, 3]), (0.2, 1.0))
    assert np.allclose(found.gap[0], 0.6)
    assert found.valid.tolist() == [True, False]
    found = checked(kinds, pose([0, 0, 0]), numbers, pose([0.3, 0, 0], [1.5, 0, 0]), (0.2, 1.0))
    assert found.valid.tolist() == [True, False]
    assert found.gap[0] == pytest.approx(-0.1)


def test_capsules_on_one_axis_or_with_axes_that_cross():
    """Guards directions where the axes meet."""
    kinds, numbers = ("capsule", "capsule"), (0.2, 1.0)
    found = checked(kinds, pose([0, 0, 0]), numbers, pose([0, 0, 0.5]), (0.3, 1.0))
    assert found.gap.min() == pytest.approx(-0.5)
    found = checked(kinds, pose([0, 0, 0]), numbers, pose([0, 0, 0.5], [1.0, 0, 0]), (0.3, 1.0))
    assert found.gap.min() == pytest.approx(-0.5)
    assert abs(found.normal.x[0]) == pytest.approx(1)


@pytest.mark.slow
def test_what_stands_on_a_plane_touches_it_all_over():
    """Guards the points of a box, a capsule and a cylinder that stand or lie on a plane."""
    box = (Vector(*jnp.array([0.3, 0.2, 0.1])),)
    found = checked(("plane", "box"), pose([0, 0, 0]), (), pose([1, 1, 0.1]), box)
    low = np.asarray(found.gap) < 1e-9
    assert low.sum() == 4
    assert np.ptp(np.asarray(found.second.x)[low]) == pytest.approx(0.6)
    assert np.ptp(np.asarray(found.second.y)[low]) == pytest.approx(0.4)
    lying = pose([0, 0, 0.2], [0, np.pi / 2, 0])
    found = checked(("plane", "capsule"), pose([0, 0, 0]), (), lying, (0.2, 1.0))
    assert np.abs(found.gap).max() < 1e-15
    found = checked(("plane", "cylinder"), pose([0, 0, 0]), (), lying, (0.2, 1.0))
    assert (np.abs(found.gap) < 1e-12).sum() == 2
    found = checked(("plane", "cylinder"), pose([0, 0, 0]), (), pose([0, 0, 1]), (0.2, 1.0))
    low = np.abs(np.asarray(found.gap)) < 1e-12
    assert low.sum() == 3
    assert np.abs(found.second.to_array()[low].sum(0)).max() < 1e-12  # around the axis


@pytest.mark.slow
def test_derivatives_on_a_border_of_features_lie_between_those_beside_it():
    """Guards a box that lies flat on a plane, and a sphere beside the end of a capsule."""
    box = (Vector(*jnp.array([0.3, 0.2, 0.1])),)
    plane = pose([0, 0, 0])

    def gap(tilt):
        rotation = Matrix.from_array(so3.exp(jnp.array([0.0, 1.0, 0.0]) * tilt))
        lying = Transform(rotation, Vector(*jnp.array([0.0, 0.0, 0.1])))
        return deepest(contact_points("plane", "box")(plane, (), lying, box)).gap

    assert abs(jax.grad(gap)(0.0)) <= 0.3 + 1e-12
    assert jax.grad(gap)(1e-9) == pytest.approx(-0.3)
    assert jax.grad(gap)(-1e-9) == pytest.approx(0.3)


def test_two_planes_and_unknown_shapes_are_refused():
    """Guards that nothing is silently given for them."""
    with pytest.raises(ValueError, match="two planes"):
        contact_points("plane", "plane")
    with pytest.raises(ValueError, match="no shape 'torus'"):
        contact_points("torus", "box")


def test_coal_is_asked_for_signed_distances():
    """Guards the reference itself: it measures overlap, too."""
    pairs = at_random("sphere", "sphere", 50)
    assert np.abs(by_coal(pairs) - by_projection(pairs)).max() < 1e-12
    assert (by_coal(pairs) < 0).any()

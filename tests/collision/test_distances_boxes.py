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
from pairs_at_random import at_random, batched, by_projection, result
from scipy.spatial import ConvexHull

from difflie.collision.distances import contact_points, deepest
from difflie.groups import so3
from difflie.groups.components import Matrix, Vector
from difflie.spatial import Transform

EVERY = pytest.mark.parametrize("kind", ["sphere", "capsule", "box"])


@pytest.mark.slow("box")
@EVERY
def test_full_precision(kind):
    """Guards 1e-12 relative against least squares with bounds and hulls of differences."""
    pairs = at_random(kind, "box", 200, seed=3)
    expected = by_projection(pairs)
    assert (expected < 0).sum() > 50
    assert (np.abs(result(pairs).gap - expected) <= 1e-12 * (1 + np.abs(expected))).all()


@EVERY
def test_signed_distances_are_those_of_coal(kind):
    """Guards values, and the reference above, against an independent program."""
    check_against_coal(kind, "box", 200)


@pytest.mark.slow
@pytest.mark.thorough("sphere", "capsule")
@EVERY
def test_many_signed_distances(kind):
    """Guards values of rare positions."""
    check_against_coal(kind, "box", 10_000)
    pairs = at_random(kind, "box", 10_000, seed=4)
    assert np.abs(result(pairs).gap - by_projection(pairs)).max() < 1e-12


@pytest.mark.parametrize(
    "kind",
    [
        "sphere",
        pytest.param("box", marks=pytest.mark.slow),
        pytest.param("capsule", marks=pytest.mark.thorough),
    ],
)
def test_derivatives(kind):
    """Guards the derivatives of gap and normal, in both modes."""
    check_derivatives(kind, "box", 200)


@pytest.mark.slow("box", "capsule")
@EVERY
def test_points(kind):
    """Guards points, normals, the mirrored pair and single precision."""
    check_points(kind, "box", 200)


@EVERY
def test_points_lie_on_the_surfaces(kind):
    """Guards that points of the box are in it, but not inside, whatever the normal."""
    pairs = at_random(kind, "box", 200, seed=5)
    found = batched(pairs.kinds)(*pairs.arguments())
    points = found.second.to_array() - pairs.origins[1][:, None]
    inside = np.abs(np.einsum("nji,nkj->nki", pairs.rotations[1], points))
    over = (inside - pairs.numbers[1][0][:, None]).max(-1)[np.asarray(found.valid)]
    assert over.max() < 1e-6
    assert np.quantile(np.abs(over), 0.5) < 1e-12


def box(x, y, z):
    return (Vector(*jnp.array([x, y, z])),)


def touching(found, within=1e-6):
    """The points (n, 3) on the first shape that are no further apart than this."""
    return found.first.to_array()[np.asarray(found.valid & (found.gap < within))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("numbers", "place", "turn", "points", "area"),
    [
        (box(0.2, 0.2, 0.2), (0, 0, 1.2), (0, 0, 0), 4, 0.16),
        (box(1.0, 1.0, 1.0), (0, 0, 2.0), (0, 0, 0), 4, 4.0),
        (box(1.0, 1.0, 1.0), (0.5, 0, 2.0), (0, 0, 0), 4, 3.0),
        (box(1.0, 1.0, 1.0), (0.5, -0.5, 1.9), (0, 0, 0), 4, 2.25),
        (box(1.0, 1.0, 1.0), (0, 0, 2.0), (0, 0, np.pi / 4), 8, 8 * (2**0.5 - 1)),
        (box(0.2, 2.0, 0.2), (0, 0, 1.2), (0, 0, 0), 4, 0.8),
        (box(0.2, 2.0, 0.2), (2e-7, 0, 1.2), (1e-9, -2e-9, 1e-9), 4, 0.8),
    ],
)
def test_a_box_on_a_box_touches_all_over_what_they_share(numbers, place, turn, points, area):
    """Guards the points of stacked boxes: their number, that none repeats, what they span."""
    found = checked(("box", "box"), pose([0, 0, 0]), box(1.0, 1.0, 1.0), pose(place, turn), numbers)
    assert np.allclose(found.gap[found.valid], place[2] - 1 - numbers[0].z, atol=1e-8)
    corners = touching(found)
    assert len(corners) == points
    assert ConvexHull(corners[:, :2]).volume == pytest.approx(area, abs=1e-6)


@pytest.mark.slow
def test_points_of_a_stack_do_not_flicker():
    """Guards that boxes laid across each other keep their points when one tilts a little."""
    rng = np.random.default_rng(0)
    find = jax.jit(contact_points("box", "box"))
    for _ in range(50):
        tilted = pose([0, 0, 1.199], [*rng.normal(size=2) * 1e-4, rng.uniform(-0.5, 0.5)])
        numbers = box(0.2, 2.0, 0.2)
        found = find(pose([0, 0, 0]), box(1.0, 1.0, 1.0), tilted, numbers)
        assert len(touching(found)) == 4


@pytest.mark.slow
def test_the_least_gap_of_valid_points_is_the_distance_of_edges():
    """Guards the point where two edges cross, overlapping and apart."""
    for height in (-0.01, 0.01):
        turn = so3.exp(jnp.array([0, 0, np.pi / 2])) @ so3.exp(jnp.array([0, np.pi / 4, 0]))
        first = pose([0, 0, 0], [0, np.pi / 4, 0])
        place = Vector(*jnp.array([0.1, 0.1, 2 * 2**0.5 + height]))
        other = Transform(Matrix.from_array(turn), place)
        found = deepest(
            checked(("box", "box"), first, box(1.0, 1.0, 1.0), other, box(1.0, 1.0, 1.0))
        )
        assert found.gap == pytest.approx(height, abs=1e-12)
        assert found.normal.z == pytest.approx(1)
        assert np.allclose([found.first.x, found.first.y], [0, 0.1], atol=1e-12)


@pytest.mark.slow
def test_positions_without_a_single_normal():
    """Guards equal centres, points on faces and axes that are parallel: nothing is NaN."""
    cube, at = box(1.0, 1.0, 1.0), pose([0, 0, 0])
    found = deepest(checked(("box", "box"), at, cube, at, cube))
    assert found.gap == pytest.approx(-2)
    for centre in ([0, 0, 0], [1, 0, 0], [1, 1, 1], [1, 0.5, 1]):
        found = checked(("sphere", "box"), pose(centre), (0.2,), at, cube)
        expected = np.abs(np.array(centre)).max() - 1.2
        assert found.gap[0] == pytest.approx(expected, abs=1e-15)
    for centre in ([0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 1.5]):
        found = deepest(checked(("capsule", "box"), pose(centre), (0.2, 0.5), at, cube))
        inside = max(abs(centre[0]) - 1, abs(centre[1]) - 1, abs(centre[2]) - 1.5)
        assert found.gap == pytest.approx(inside - 0.2, abs=1e-15)


@pytest.mark.slow
def test_a_capsule_on_a_box_touches_at_both_ends():
    """Guards a lying capsule, one that is longer than the box, and one that stands."""
    find = contact_points("capsule", "box")
    numbers, cube, at = (0.2, 0.5), box(1.0, 1.0, 1.0), pose([0, 0, 0])
    lying = [0, np.pi / 2, 0]
    found = find(pose([0.1, 0, 1.2], lying), numbers, at, cube)
    assert found.valid.all()
    assert np.allclose(sorted(found.second.x), [-0.4, 0.6])
    found = find(pose([0.1, 0, 1.2], lying), (0.2, 5.0), at, cube)
    assert np.allclose(sorted(found.second.x), [-1, 1])
    found = find(pose([0.1, 0, 1.7]), numbers, at, cube)
    assert found.valid.tolist() == [True, False]
    assert np.abs(found.gap[0]) < 1e-12


@pytest.mark.slow
def test_derivatives_on_a_border_of_features_lie_between_those_beside_it():
    """Guards a sphere at the edge of a face, inside and outside, and a box flat on a box."""
    cube, at = box(1.0, 1.0, 1.0), pose([0, 0, 0])

    @jax.jit
    def gap(point):
        where = Transform(Matrix.from_array(jnp.eye(3)), Vector(point[0], point[1] * 0, point[1]))
        return contact_points("sphere", "box")(where, (0.2,), at, cube).gap[0]

    inside = jax.grad(gap)(jnp.array([0.5, 0.5]))
    assert inside.sum() == pytest.approx(1)
    assert (inside >= 0).all()
    assert np.allclose(jax.grad(gap)(jnp.array([1.0, 1.5])), [0, 1])

    @jax.jit
    @jax.grad
    def slope(angle):
        turn = Matrix.from_array(so3.exp(jnp.array([0.0, 1.0, 0.0]) * angle))
        lying = Transform(turn, Vector(*jnp.array([0.0, 0.0, 1.19])))
        find = contact_points("box", "box")
        return deepest(find(at, cube, lying, box(0.3, 0.3, 0.2))).gap

    assert abs(slope(0.0)) <= 0.3 + 1e-12
    assert slope(1e-9) == pytest.approx(-0.3, abs=1e-6)
    assert slope(-1e-9) == pytest.approx(0.3, abs=1e-6)

"""The points of shapes that lie flat on each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checks_of_distances import checked, pose
from pairs_at_random import SIGNS
from scipy.spatial import ConvexHull, HalfspaceIntersection

import difflie as dl
from difflie.collision.distances import contact_points
from difflie.groups.components import Vector

HALF = np.array([1.0, 0.7, 0.5])
BOX, CORNERS = (Vector(*jnp.asarray(HALF)),), (jnp.asarray(SIGNS * HALF),)
LYING = (0, np.pi / 2, 0)


def points_of(kinds, first, numbers, second, numbers_b):
    """The valid points (n, 3) on the first shape, and their gaps."""
    found = jax.jit(contact_points(*kinds))(first, numbers, second, numbers_b)
    valid = np.asarray(found.valid)
    return np.asarray(found.first.to_array())[valid], np.asarray(found.gap)[valid]


@pytest.mark.slow("0.0", "0.7853981633974483")
@pytest.mark.parametrize("turn", [0.0, 0.4, np.pi / 4])
def test_points_span_what_two_faces_share(turn):
    """Guards that corners lie in both faces, at their depth, and span nearly all they share."""
    above = pose([0.3, 0.1, 0.998], (0, 0, turn))
    points, gaps = points_of(("hull", "hull"), above, CORNERS, pose([0, 0, 0]), CORNERS)
    np.testing.assert_allclose(gaps, -0.002, atol=1e-12)
    np.testing.assert_allclose(points[:, 2], 0.498, atol=1e-12)
    turned = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    sides, bounds = np.vstack((np.eye(2), -np.eye(2))), np.tile(HALF[:2], 2)
    shared = np.vstack(
        (
            np.column_stack((sides, -bounds)),
            np.column_stack((sides @ turned, -bounds - sides @ turned @ [0.3, 0.1])),
        )
    )
    inside = shared @ np.column_stack((points[:, :2], np.ones(len(points)))).T
    assert inside.max() < 1e-12
    whole = ConvexHull(HalfspaceIntersection(shared, np.array([0.2, 0.1])).intersections).volume
    assert ConvexHull(points[:, :2]).volume > (0.9999 if turn == 0 else 0.65) * whole


@pytest.mark.slow("cylinder")
@pytest.mark.parametrize("kind", ["cylinder", "capsule"])
def test_what_lies_touches_at_both_ends(kind):
    """Guards cylinders and capsules that lie on a hull, over its edge, and on a parallel one."""
    numbers, height = ((0.5, 0.8), 1.0) if kind == "cylinder" else ((0.3, 0.8), 0.8)
    lying = pose([0.5, 0, height - 1e-3], LYING)
    points, gaps = points_of((kind, "hull"), lying, numbers, pose([0, 0, 0]), CORNERS)
    np.testing.assert_allclose(gaps, -1e-3, atol=1e-12)
    np.testing.assert_allclose(np.sort(points[:, 0]), [-0.3, 1.0], atol=1e-9)
    beside = pose([0.5, 0, numbers[0] + 0.4 - 1e-3], LYING)
    points, gaps = points_of((kind, "cylinder"), beside, numbers, pose([0, 0, 0], LYING), (0.4, 1))
    np.testing.assert_allclose(gaps, -1e-3, atol=1e-12)
    np.testing.assert_allclose(np.sort(points[:, 0]), [-0.3, 1.0], atol=1e-9)
    across = pose([0.0, 0, numbers[0] + 0.4 - 1e-3], (np.pi / 2, 0, 0))
    points, gaps = points_of((kind, "cylinder"), across, numbers, pose([0, 0, 0], LYING), (0.4, 1))
    np.testing.assert_allclose(points, [[0, 0, 0.4 - 1e-3]], atol=1e-6)


@pytest.mark.slow
def test_derivatives_of_corners():
    """Guards gaps and places of all points by a motion, against differences."""
    below = pose([0, 0, 0])

    def all_points(x):
        above = pose(jnp.array([0.3, 0.1, 0.998]) + x[:3], jnp.array([1e-3, 2e-3, 0.4]) + x[3:])
        found = contact_points("hull", "hull")(above, CORNERS, below, CORNERS)
        return jnp.column_stack((found.gap, found.first.to_array()))

    ours = jax.jit(jax.jacfwd(all_points))(jnp.zeros(6))
    f = jax.jit(all_points)
    steps = [(f(1e-6 * e) - f(-1e-6 * e)) / 2e-6 for e in np.eye(6)]
    np.testing.assert_allclose(ours, np.moveaxis(steps, 0, -1), atol=2e-8)


@pytest.mark.slow
def test_faces_that_coincide():
    """Guards finite derivatives where sides lie on each other, and all four corners."""
    found = checked(("box", "hull"), pose([0, 0, 0.999]), BOX, pose([0, 0, 0]), CORNERS)
    assert found.valid.all()
    assert len(np.unique(np.asarray(found.first.to_array()).round(9), axis=0)) == 4


UPPER = {
    "hull": (dl.ConvexHull("body", 0.1 * SIGNS * HALF), 0.05),
    "standing": (dl.Cylinder("body", 0.05, 0.08), 0.08),
    "lying": (dl.Cylinder(dl.Frame("body", rotation=LYING), 0.05, 0.08), 0.05),
}
LOWER = {
    "box": (dl.Box(None, (0.2, 0.2, 0.05)), 0.05),
    "hull": (dl.ConvexHull(None, 0.2 * SIGNS * HALF), 0.1),
    "standing": (dl.Cylinder(None, 0.1, 0.08), 0.08),
}
# How many points carry the upper one.
PAIRS = {
    ("hull", "box"): 4,
    ("hull", "hull"): 4,
    ("standing", "box"): 4,
    ("lying", "box"): 2,
    ("lying", "hull"): 2,
    ("standing", "hull"): 4,
    ("standing", "standing"): 4,
}


@pytest.mark.slow
@pytest.mark.thorough("*-standing", "*-box", "lying-*", "hull-hull")
@pytest.mark.parametrize(("upper", "lower"), PAIRS)
def test_what_rests_does_not_drift(upper, lower):
    """Guards rest for 10 s, a little off the middle, and the depth by the number of points."""
    (one, height), (two, half) = UPPER[upper], LOWER[lower]
    body = dl.Body(name="body", joint=dl.Free(), mass=2.0, inertia=np.eye(3) * 0.01)
    system = dl.chain([body]).with_shapes({"upper": one, "lower": two})
    system = dl.touching(system, "lower", "upper", stiffness=5e3, slip_velocity=0.02)
    depth = 2 * 9.81 / 5e3 / PAIRS[upper, lower]
    q = system.neutral().at[4:].set([0.01, 0.005, half + height - depth])
    run = dl.simulate(system, q, np.zeros(6), dt=1e-3, steps=10_000, save_every=1000)
    assert np.abs(run.q[:, 4:] - q[4:]).max() < 1e-4
    assert np.abs(run.q[:, 1:4]).max() < 1e-4
    np.testing.assert_allclose(run.q[-1, 6], q[6], atol=1e-6)

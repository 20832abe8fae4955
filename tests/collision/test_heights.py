"""Height fields, against triangles, planes and differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checks_of_distances import pose
from pairs_at_random import SIGNS

import difflie as dl
from difflie.collision.distances import contact_points, deepest
from difflie.groups.components import Vector
from difflie.view.own_shapes import own_shapes

HALF = jnp.array([1.5, 2.0])
ROUGH = np.random.default_rng(0).uniform(0, 0.3, (9, 7))


def touch(p, heights, radius=0.1):
    """The points of a ball around p and a height field."""
    field, at = pose([0, 0, 0]), pose([0, 0, 0])
    at = type(at)(at.rotation, Vector.from_array(p))
    found = contact_points("heights", "sphere")
    return found(field, (HALF, jnp.asarray(heights)), at, (jnp.asarray(radius),))


@pytest.mark.slow
def test_the_nearest_point_of_many_triangles():
    """Guards distances above a rough surface against another program's, to rounding."""
    trimesh = pytest.importorskip("trimesh")
    field = dl.HeightField(HALF, ROUGH)
    body = dl.Body(name="body", joint=dl.Free(), mass=1.0, inertia=np.eye(3))
    (shape,) = own_shapes(dl.chain([body]).with_shapes({"field": field}))[None]
    mesh = trimesh.Trimesh(shape.vertices, shape.faces, process=False)
    assert (mesh.face_normals[:, 2] > 0).all()
    rng = np.random.default_rng(1)
    p = np.column_stack([rng.uniform(-s, s, 300) for s in (1.4, 1.9)])
    p = np.column_stack((p, rng.uniform(0.31, 0.5, 300)))
    found = jax.jit(jax.vmap(lambda x: touch(x, ROUGH)))(p)
    _, distance, _ = trimesh.proximity.closest_point_naive(mesh, p)
    np.testing.assert_allclose(found.gap[:, 0], distance - 0.1, atol=1e-14)
    step = (found.second - found.first - found.normal * found.gap).to_array()
    assert np.abs(step)[np.asarray(found.valid)].max() < 1e-14
    assert 0.02 < found.valid[:, 1].mean() < 0.5  # valleys


SLOPE = np.add.outer(0.3 * np.linspace(-2, 2, 9), 0.1 * np.linspace(-1.5, 1.5, 7))


@pytest.mark.slow("box", "capsule", "sphere")
@pytest.mark.parametrize("kind", ["sphere", "capsule", "box", "hull"])
def test_a_slope_is_a_plane(kind):
    """Guards all shapes on a plane surface against those on a plane, above and below."""
    numbers = {
        "sphere": (jnp.asarray(0.2),),
        "capsule": (jnp.asarray(0.2), jnp.asarray(0.3)),
        "box": (Vector(*jnp.array([0.3, 0.2, 0.1])),),
        "hull": (jnp.asarray(0.2 * SIGNS),),
    }[kind]
    normal = np.array([-0.1, -0.3, 1.0]) / np.sqrt(1.1)
    axis = np.cross([0, 0, 1], normal)
    plane = pose([0, 0, 0], axis / np.linalg.norm(axis) * np.arccos(normal[2]))
    field = pose([0, 0, 0])
    for height in (0.5, 0.2, 0.05):
        at = pose([0.2, 0.1, height], (0.3, 0.2, 0.5))
        found = contact_points("heights", kind)(field, (HALF, jnp.asarray(SLOPE)), at, numbers)
        expected = contact_points("plane", kind)(plane, (), at, numbers)
        gap, theirs = deepest(found), deepest(expected)
        np.testing.assert_allclose(gap.gap, theirs.gap, atol=1e-14)
        np.testing.assert_allclose(gap.normal.to_array(), normal, atol=1e-14)
        valid = np.asarray(found.valid)
        own = found.gap[valid]
        assert len(own) == len(expected.gap) + (kind == "capsule")
        assert all(np.abs(own - x).min() < 1e-14 for x in expected.gap)


@pytest.mark.slow
def test_derivatives():
    """Guards the gap by places and heights against differences, in both modes, and off the edge."""

    def gap(p, heights):
        return deepest(touch(p, heights)).gap

    rng = np.random.default_rng(2)
    f = jax.jit(gap)
    for z in (0.5, 0.32, 0.05):
        p = jnp.array([*rng.uniform(-1, 1, 2), z])
        ours = jax.jit(jax.grad(gap, (0, 1)))(p, jnp.asarray(ROUGH))
        steps = [(f(p + h, ROUGH) - f(p - h, ROUGH)) / 2e-6 for h in 1e-6 * np.eye(3)]
        np.testing.assert_allclose(ours[0], steps, atol=1e-8)
        direction = rng.normal(size=ROUGH.shape)
        there = [f(p, ROUGH + s * 1e-6 * direction) for s in (1, -1)]
        slope = (there[0] - there[1]) / 2e-6
        np.testing.assert_allclose((ours[1] * direction).sum(), slope, atol=1e-8)
        assert ours[1].max() <= 1e-12 and ours[1].sum() < -0.5
    assert not touch(jnp.array([1.6, 0, 0.1]), ROUGH).valid.any()


def ball(shape):
    body = dl.Body(name="ball", joint=dl.Free(), mass=1.0, inertia=np.eye(3) * 0.004)
    return dl.chain([body]).with_shapes({"ball": shape, "field": dl.HeightField(HALF, ROUGH)})


def test_what_does_not_touch_is_named():
    """Guards one sentence with the fix for shapes that a height field does not touch."""
    with pytest.raises(dl.ModelError, match="'ball' and 'field': a height field touches spheres"):
        dl.touching(ball(dl.Cylinder("ball", 0.1, 0.1)))
    with pytest.raises(dl.ModelError, match="a radius of 1"):
        dl.touching(ball(dl.Sphere("ball", 1.5)))
    with pytest.raises(dl.ModelError, match=r"heights has shape \(3,\); give \(rows, columns\)"):
        ball(dl.Sphere("ball", 0.1)).with_shapes({"line": dl.HeightField(HALF, [0.0, 1, 2])})


@pytest.mark.slow
def test_a_ball_comes_to_rest_in_a_valley():
    """Guards a motion on a height field, and its gradient by the heights."""
    system = dl.touching(ball(dl.Sphere("ball", 0.1)), stiffness=2e3, rolling=0.02)
    q = system.neutral().at[6].set(0.45)

    run = dl.simulate(system, q, np.zeros(6), dt=1e-3, steps=4000, save_every=500)
    assert np.abs(run.v[-1, 3:]).max() < 0.02
    force = run.contacts(system).force[-1]
    np.testing.assert_allclose(force.sum(0)[2], -9.81, rtol=0.05)  # on the field

    parameters = dl.Parameters(system, ["field/heights"])
    values = parameters.values_of(system)

    def end(x):
        moved = parameters.with_values(x)
        return dl.simulate(moved, q, np.zeros(6), dt=1e-3, steps=200).q[-1, 6]

    slope = jax.grad(end)(values)
    step = 1e-6 * np.sign(slope)
    expected = (end(values + step) - end(values - step)) / 2e-6
    np.testing.assert_allclose(np.abs(slope).sum(), expected, rtol=1e-4)

"""Distances of shapes that are rounded: gradients without jumps, and how far they are off."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checks_of_distances import pairs_of
from pairs_at_random import at_random, result

import difflie as dl
from difflie import quantities as dq
from difflie.collision.distances import deepest, smooth_points
from difflie.groups import so3
from difflie.groups.components import Matrix, Vector
from difflie.spatial import Transform

KINDS = "sphere", "capsule", "cylinder", "box", "ellipsoid", "hull"
PAIRS = [("plane", kind) for kind in KINDS]
PAIRS += list(itertools.combinations_with_replacement(KINDS, 2))
QUICK = ("plane", "hull"), ("box", "box")
# One search does for all pairs, so that these, which have every kind, stand for the others.
OFTEN = ("plane", "cylinder"), ("sphere", "capsule"), ("capsule", "ellipsoid")
EVERY = pairs_of(*QUICK, slow=OFTEN, thorough=[p for p in PAIRS if p not in QUICK + OFTEN])
R = 0.02


@functools.cache
def smooth(kinds, radius=R):
    def one(*given):
        return deepest(
            smooth_points(*kinds, jnp.asarray(radius, given[0].translation.x.dtype))(*given)
        )

    return jax.jit(jax.vmap(one))


@pytest.mark.slow("box-box")
@EVERY
def test_distances_are_too_small_by_no_more_than_the_radius(kinds):
    """Guards the bound, apart and overlapping, points that are that far apart, and f32."""
    pairs = at_random(*kinds, 120, seed=11)
    exact, found = np.asarray(result(pairs).gap), smooth(kinds)(*pairs.arguments())
    gap = np.asarray(found.gap)
    assert (gap - exact).max() < 1e-12
    assert (gap - exact).min() > -R - 1e-12
    step = (found.second - found.first).to_array()
    np.testing.assert_allclose(step, gap[:, None] * found.normal.to_array(), atol=1e-13)
    if "sphere" in kinds and set(kinds) <= {"sphere", "plane"}:
        np.testing.assert_allclose(gap, exact, atol=1e-12)
    single = smooth(kinds)(*pairs.arguments(np.float32)).gap
    assert single.dtype == np.float32
    assert np.quantile(np.abs(np.asarray(single) - gap), 0.95) < 1e-4


@pytest.mark.slow("box-box")
@EVERY
def test_the_distance_is_the_greatest_separation_of_smooth_bodies(kinds):
    """Guards the search, by 20,000 directions and a formula of its own; shapes apart and not."""
    pairs = at_random(*kinds, 30, seed=12)
    gap = np.asarray(smooth(kinds, 0.2)(*pairs.arguments()).gap)
    rng = np.random.default_rng(0)
    n = rng.normal(size=(20_000, 3))
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    if "plane" in kinds:
        return
    for i in range(len(gap)):
        best = reaches(pairs, i, n, 0.2).max()
        assert -1e-12 < gap[i] - best < 0.02


def reaches(pairs, i, n, radius):
    """How far two rounded shapes are separated along directions (k, 3)."""
    sides, rounds, corners, balls, step = [], [], [], 0.0, 0.0
    for s, kind in zip((1, -1), pairs.kinds, strict=True):
        r, numbers = pairs.rotations[s < 0][i], [x[i] for x in pairs.numbers[s < 0]]
        step = step - s * n @ pairs.origins[s < 0][i]
        if kind == "sphere":
            balls += numbers[0]
        elif kind == "capsule":
            balls += numbers[0]
            sides.append(numbers[1] * n @ r[:, 2])
        elif kind == "cylinder":
            sides.append(numbers[1] * n @ r[:, 2])
            rounds.append(numbers[0] * np.linalg.norm(n @ r[:, :2], axis=1))
        elif kind == "box":
            sides += [h * n @ r[:, k] for k, h in enumerate(numbers[0])]
        elif kind == "ellipsoid":
            rounds.append(np.linalg.norm(n @ r * numbers[0], axis=1))
        else:
            corners.append(s * n @ r @ numbers[0].T)
    count = len(sides) + len(rounds) + sum(np.log(c.shape[1]) for c in corners)
    mu = radius / count if count else 1.0
    total = step - balls
    total = total - sum(np.sqrt(x**2 + mu**2) for x in (*sides, *rounds))
    return total - sum(mu * np.log(np.exp(c / mu).sum(axis=1)) for c in corners)


@pytest.mark.slow("box-box")
@pytest.mark.thorough("capsule-ellipsoid")
@EVERY
def test_derivatives(kinds):
    """Guards gradients, in both modes, and second derivatives, against differences."""
    pairs = at_random(*kinds, 12, seed=13)
    arguments = pairs.arguments()

    def moved(x, one, a, other, b):
        turned = other.rotation.to_array() @ so3.exp(x[:3])
        place = Vector.from_array(other.translation.to_array() + x[3:])
        placed = Transform(Matrix.from_array(turned), place)
        return deepest(smooth_points(*kinds, jnp.asarray(R))(one, a, placed, b)).gap

    zero = jnp.zeros(6)
    slopes = [jax.jit(jax.vmap(f(moved), (None, *(0,) * 4))) for f in (jax.jacfwd, jax.jacrev)]
    forward, reverse = (np.asarray(f(zero, *arguments)) for f in slopes)
    np.testing.assert_allclose(forward, reverse, atol=1e-10)
    h = 1e-5
    each = jax.jit(jax.vmap(moved, (None, *(0,) * 4)))
    off = [[each(s * h * e, *arguments) for e in jnp.eye(6)] for s in (1, -1)]
    expected = (np.asarray(off[0]) - np.asarray(off[1])).T / (2 * h)
    apart = np.asarray(each(zero, *arguments)) > 1e-3 if kinds[0] != "plane" else slice(None)
    smoothly = np.abs(forward - expected).max(axis=1) < 1e-5 * (1 + np.abs(expected).max(axis=1))
    assert smoothly[apart].all()
    assert smoothly.mean() > 0.7  # of overlapping ones gradients may jump in between
    second = np.asarray(jax.jit(jax.vmap(jax.hessian(moved), (None, *(0,) * 4)))(zero, *arguments))
    more = [[slopes[0](s * h * e, *arguments) for e in jnp.eye(6)] for s in (1, -1)]
    more = np.moveaxis(np.asarray(more[0]) - np.asarray(more[1]), 0, 1) / (2 * h)
    size = 1 + np.abs(more).max(axis=(1, 2))
    assert (np.abs(second - more).max(axis=(1, 2)) < 1e-3 * size)[apart].all()


def rocking(first, second, smoothing, height):
    """The slope of the distance by the angle at which a shape stands on another, on both sides."""
    body = dl.Body(name="a", joint=dl.Free(), mass=1.0, inertia=np.eye(3))
    system = dl.chain([body]).with_shapes({"a": first, "b": second})

    @jax.jit
    @jax.grad
    def slope(angle):
        q = system.neutral().at[6].set(height)
        q = q.at[:4].set(dl.quaternion.exp(jnp.array([angle, 0.0, 0.0])))
        return dl.distance(system, q, "a", "b", smoothing=smoothing).distance[0]

    return [float(slope(angle)) for angle in (-1e-6, 1e-6)]


@pytest.mark.slow("box")
@pytest.mark.thorough("cylinder")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (dl.Box("a", (0.1, 0.2, 0.1)), dl.Plane()),
        (dl.Box("a", (0.1, 0.2, 0.1)), dl.Box(None, (0.5, 0.5, 0.1))),
        (dl.Cylinder("a", 0.2, 0.1), dl.Box(None, (0.5, 0.5, 0.1))),
    ],
    ids=["plane", "box", "cylinder"],
)
def test_gradients_do_not_jump_where_faces_are_level(first, second):
    """Guards continuity: on either side of lying flat, where the nearest corner changes."""
    height = 0.3
    sharp = rocking(first, second, None, height)
    assert abs(sharp[1] - sharp[0]) > 0.3
    round_ = rocking(first, second, 5e-3, height)
    assert abs(round_[1] - round_[0]) < 1e-3
    np.testing.assert_allclose(round_, 0, atol=1e-3)


@pytest.mark.slow
def test_where_it_is_asked_for():
    """Clearances and radii as numbers; what has no smooth distance is named."""
    body = dl.Body(name="a", joint=dl.Free(), mass=1.0, inertia=np.eye(3))
    shapes = {"a": dl.Box("a", (0.1, 0.2, 0.1)), "ground": dl.Plane()}
    system = dl.chain([body]).with_shapes(shapes)
    q, v = system.neutral().at[6].set(0.3), np.zeros(6)
    smoothed = dq.Clearance("a", "ground", smoothing=0.03)(system, q, v, None, 0.0)
    np.testing.assert_allclose(smoothed, dl.distance(system, q, smoothing=0.03).distance)
    np.testing.assert_allclose(0.2 - smoothed, 0.02, atol=1e-3)
    slope = jax.grad(lambda r: dl.distance(system, q, smoothing=r).distance[0])(0.03)
    assert -1 < slope < 0
    with pytest.raises(ValueError, match="the smoothing of distances is 0"):
        dl.distance(system, q, smoothing=0.0)
    bumps = dl.HeightField((1.0, 1.0), np.zeros((3, 3)))
    bumpy = dl.chain([body]).with_shapes({"a": shapes["a"], "bumps": bumps})
    with pytest.raises(ValueError, match=r"of height fields .* are not smoothed"):
        dl.distance(bumpy, q, smoothing=0.01)

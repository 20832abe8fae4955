"""Every type of constraint at the frames it is about, against differences and built poses."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from difflie import constraints as dc
from difflie.constraints.constraint import moved_along
from difflie.groups.components import Matrix, Vector
from difflie.spatial import Motion, Transform

RNG = np.random.default_rng(3)
FIRST, SECOND, THIRD, FOURTH = (dc.Frame(body) for body in "abac")
CURVE = dc.SplineCurve(RNG.normal(size=(6, 3)))
CUBIC = dc.PolynomialCurve(((0.1, 0, 0.2), (1, -0.5, 0.3), (0.4, 0.6, -0.7), (-0.3, 0.2, 0.5)))
PITCH, LENGTH, RADIUS, ANGLE, RATIO, OFFSET = -0.07, 0.8, 0.35, 1.1, 1.5, 0.3
HINGES = dc.RevoluteConstraint(FIRST, SECOND), dc.RevoluteConstraint(THIRD, FOURTH)
RACK = dc.PrismaticConstraint(THIRD, FOURTH)
THREAD = dc.HelicalConstraint(THIRD, FOURTH, PITCH)


def pose(rotation=None, position=(0.0, 0.0, 0.0)):
    t = np.eye(4)
    t[:3, :3] = np.eye(3) if rotation is None else rotation.as_matrix()
    t[:3, 3] = position
    return t


def turned(axis, angle):
    return Rotation.from_euler(axis, angle)


def anywhere(rng):
    return pose(Rotation.random(random_state=rng), rng.normal(size=3))


def across(rng):
    """Motions of a universal joint whose axes, x and y, are not orthogonal."""
    lean = turned("z", ANGLE - np.pi / 2)
    x, y = rng.uniform(-3, 3, 2)
    return pose(turned("x", x) * lean * turned("y", y))


def screwed(x):
    return pose(turned("z", x), (0, 0, PITCH * x))


def rolling(rng):
    turn = Rotation.random(random_state=rng)
    axis = turn.as_matrix()[:, 2]
    return pose(turn, (*rng.normal(size=2), RADIUS * np.hypot(*axis[:2])))


# The type, how many equations it has, and a motion of its second frame in the first that keeps it.
JOINTS = {
    "fixed": (dc.FixedConstraint, 6, lambda rng: pose()),
    "revolute": (dc.RevoluteConstraint, 5, lambda rng: pose(turned("z", rng.uniform(-3, 3)))),
    "prismatic": (dc.PrismaticConstraint, 5, lambda rng: pose(None, (0, 0, rng.normal()))),
    "cylindrical": (
        dc.CylindricalConstraint,
        4,
        lambda rng: pose(turned("z", rng.uniform(-3, 3)), (0, 0, rng.normal())),
    ),
    "helical": (
        partial(dc.HelicalConstraint, pitch=PITCH),
        5,
        lambda rng: screwed(rng.uniform(-40, 40)),
    ),
    "spherical": (dc.SphericalConstraint, 3, lambda rng: pose(Rotation.random(random_state=rng))),
    "universal": (
        dc.UniversalConstraint,
        4,
        lambda rng: pose(turned("x", rng.uniform(-3, 3)) * turned("y", rng.uniform(-3, 3))),
    ),
    "oblique universal": (partial(dc.UniversalConstraint, angle=ANGLE), 4, across),
    "planar": (
        dc.PlanarConstraint,
        3,
        lambda rng: pose(turned("z", rng.uniform(-3, 3)), (*rng.normal(size=2), 0)),
    ),
    "translation": (dc.TranslationConstraint, 3, lambda rng: pose(None, rng.normal(size=3))),
    "distance": (
        partial(dc.Distance, length=LENGTH),
        1,
        lambda rng: pose(
            Rotation.random(random_state=rng),
            Rotation.random(random_state=rng).apply((0, 0, LENGTH)),
        ),
    ),
    "point on spline": (
        partial(dc.PointOnCurve, curve=CURVE),
        2,
        lambda rng: pose(
            Rotation.random(random_state=rng), CURVE.position(jnp.asarray(rng.uniform(0, 5)))
        ),
    ),
    "point on cubic": (
        partial(dc.PointOnCurve, curve=CUBIC),
        2,
        lambda rng: pose(
            Rotation.random(random_state=rng), CUBIC.position(jnp.asarray(rng.uniform(0, 1)))
        ),
    ),
    "rolling disk": (partial(dc.RollingDisk, radius=RADIUS), 3, rolling),
    "knife edge": (dc.KnifeEdge, 1, anywhere),
}


def wheels(rng):
    x = rng.uniform(-20, 20)
    return pose(turned("z", OFFSET - RATIO * x)), pose(turned("z", x))


def racked(rng):
    x = rng.uniform(-5, 5)
    return pose(turned("z", OFFSET - RATIO * x)), pose(None, (0, 0, x))


def threaded(rng):
    x = rng.uniform(-20, 20)
    return pose(turned("z", OFFSET - RATIO * x)), screwed(x)


GEARS = {
    "wheels": (dc.Gear(*HINGES, ratio=RATIO, offset=OFFSET, teeth=2), wheels),
    "pinion and rack": (dc.Gear(HINGES[0], RACK, ratio=RATIO, offset=OFFSET), racked),
    "wheel and screw": (dc.Gear(HINGES[0], THREAD, ratio=RATIO, offset=OFFSET), threaded),
    "transmission": (dc.Transmission(*HINGES, ratio=0.7), wheels),
}

TYPES = {name: (kind(FIRST, SECOND), size) for name, (kind, size, _) in JOINTS.items()}
TYPES |= {name: (gear, 1) for name, (gear, _) in GEARS.items()}


def assembled(name, rng):
    """Poses (4, 4) of the frames that keep the constraint of this name."""
    if name in JOINTS:
        first = anywhere(rng)
        return [first, first @ JOINTS[name][2](rng)]
    one, other = GEARS[name][1](rng)
    first, third = anywhere(rng), anywhere(rng)
    return [first, first @ one, third, third @ other]


def samples(name, count, seed, off=0.0):
    """Poses (count, k, 4, 4) and twists (count, k, 6) of its k frames, off by so much at random."""
    rng = np.random.default_rng(seed)
    poses = np.array([assembled(name, rng) for _ in range(count)])
    twists = rng.normal(size=(*poses.shape[:2], 6))
    return moved(poses, off * rng.normal(size=twists.shape)), twists


def moved(poses, x):
    """Poses (..., 4, 4) moved by x (..., 6) in their own frames."""
    turns = Rotation.from_rotvec(x[..., :3].reshape(-1, 3)).as_matrix()
    result = poses.copy()
    result[..., :3, :3] = poses[..., :3, :3] @ turns.reshape((*x.shape[:-1], 3, 3))
    result[..., :3, 3] += np.einsum("...ij,...j->...i", poses[..., :3, :3], x[..., 3:])
    return result


def transforms(poses):
    """Poses (k, 4, 4) of k frames as the constraint takes them."""
    return tuple(
        Transform(Matrix.from_array(t[:3, :3]), Vector.from_array(t[:3, 3])) for t in poses
    )


def residual(c, poses):
    """g (p,) at poses (k, 4, 4)."""
    return jnp.stack([*c.residual(*transforms(poses)), *[jnp.zeros((), poses.dtype)] * 6])[
        : c.positions
    ]


def rate(c, poses, twists):
    """A v (m,) for twists (k, 6)."""
    return jnp.stack(c.rate(transforms(poses), tuple(Motion.from_array(w) for w in twists)))


def bias(c, poses, twists):
    """c (m,): the derivative of `rate` along the motion with constant twists."""
    motions = tuple(Motion.from_array(w) for w in twists)
    frames = transforms(poses)
    along = tuple(moved_along(f, w) for f, w in zip(frames, motions, strict=True))
    return jnp.stack(jax.jvp(lambda *f: c.rate(f, motions), frames, along)[1])


def everywhere(function, c, *arrays):
    return np.asarray(jax.vmap(partial(function, c))(*map(jnp.asarray, arrays)))


@pytest.mark.slow
@pytest.mark.thorough("point on cubic")
@pytest.mark.parametrize("name", TYPES)
def test_derivatives_are_those_of_differences(name):
    """Also where the constraint is broken, but near: far from a curve are several nearest points"""
    c, size = TYPES[name]
    poses, twists = samples(name, 8, seed=5, off=0.05 if "point" in name else 0.5)
    h = 1e-5
    forth, back = moved(poses, h * twists), moved(poses, -h * twists)
    found = everywhere(rate, c, poses, twists)
    assert found.shape == (8, size) == (8, len(c.equations))
    change = (everywhere(residual, c, forth) - everywhere(residual, c, back)) / (2 * h)
    np.testing.assert_allclose(found[:, : c.positions], change, rtol=1e-6, atol=1e-6)
    drift = (everywhere(rate, c, forth, twists) - everywhere(rate, c, back, twists)) / (2 * h)
    np.testing.assert_allclose(everywhere(bias, c, poses, twists), drift, rtol=1e-5, atol=1e-5)
    other = np.random.default_rng(1).normal(size=twists.shape)
    linear = everywhere(rate, c, poses, 2 * twists - other)
    np.testing.assert_allclose(
        linear, 2 * found - everywhere(rate, c, poses, other), rtol=0, atol=1e-11
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", TYPES)
def test_rows_are_independent_where_the_constraint_holds(name):
    c, size = TYPES[name]
    poses, _ = samples(name, 8, seed=8)
    assert np.max(np.abs(everywhere(residual, c, poses)), initial=0) < 1e-13
    k = poses.shape[1]
    units = np.zeros((6, k, 6))
    units[:, 1] = np.eye(6)
    columns = [everywhere(rate, c, poses, np.broadcast_to(u, (8, k, 6))) for u in units]
    singular = np.linalg.svd(np.stack(columns, axis=-1), compute_uv=False)
    assert singular.shape == (8, size)
    assert singular.min() > 0.15


def test_misassembled_ways_are_told():
    flipped, half = turned("x", np.pi), turned("z", np.pi)
    spurious = {
        "fixed": pose(half),
        "revolute": pose(flipped),
        "prismatic": pose(half),
        "cylindrical": pose(flipped),
        "helical": screwed(0.4) @ pose(half),
        "planar": pose(flipped),
        "translation": pose(flipped, (0.3, 0.1, 0.2)),
    }
    rng = np.random.default_rng(2)
    for name, (c, _) in TYPES.items():
        meant = assembled(name, rng)
        if name in spurious:
            wrong = np.array([meant[0], meant[0] @ spurious[name]])
            assert np.max(np.abs(residual(c, jnp.asarray(wrong)))) < 1e-14
            assert bool(c.misassembled(*transforms(wrong)))
            assert not bool(c.misassembled(*transforms(meant)))
        else:
            assert c.misassembled(*transforms(meant)) is None


@pytest.mark.slow
@pytest.mark.thorough("point on spline")
@pytest.mark.parametrize("name", TYPES)
def test_single_precision(name):
    c, _ = TYPES[name]
    low = jax.tree.map(lambda a: a.astype("f"), c)
    poses, twists = samples(name, 8, seed=4)
    for function, *arrays in ((residual, poses), (rate, poses, twists), (bias, poses, twists)):
        exact = everywhere(function, c, *arrays)
        found = everywhere(function, low, *(a.astype("f") for a in arrays))
        assert found.dtype == np.float32 or not found.size
        assert np.max(np.abs(exact - found), initial=0) < 1e-3 * (
            1 + np.max(np.abs(exact), initial=0)
        )


@pytest.mark.slow
@pytest.mark.thorough("point on cubic")
@pytest.mark.parametrize("name", [n for n, (c, _) in TYPES.items() if jax.tree.leaves(c)[4:]])
def test_derivatives_with_respect_to_lengths_and_curves(name):
    """Forward and reverse mode, all leaves in one direction at once, against differences."""
    rng = np.random.default_rng(6)
    c, size = TYPES[name]
    poses, twists = (jnp.asarray(a[0]) for a in samples(name, 1, seed=3))
    weight = rng.normal(size=size)
    leaves, structure = jax.tree.flatten(c)
    direction = structure.unflatten([jnp.asarray(rng.normal(size=a.shape)) for a in leaves])

    @jax.jit
    def measured(c):
        p = c.positions
        g, c_of_v = residual(c, poses), bias(c, poses, twists)
        return g @ weight[:p] + c_of_v @ weight + rate(c, poses, twists) @ weight

    h = 1e-6
    ahead = jax.tree.map(lambda a, d: a + h * d, c, direction)
    behind = jax.tree.map(lambda a, d: a - h * d, c, direction)
    expected = (measured(ahead) - measured(behind)) / (2 * h)
    _, forward = jax.jit(lambda c, d: jax.jvp(measured, (c,), (d,)))(c, direction)
    gradient = jax.jit(jax.grad(measured))(c)
    products = jax.tree.map(lambda a, b: jnp.sum(a * b), gradient, direction)
    np.testing.assert_allclose(forward, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(sum(jax.tree.leaves(products)), forward, rtol=1e-10, atol=1e-12)


def test_splines_are_those_of_scipy():
    points = np.random.default_rng(0).normal(size=(7, 3))
    s = np.linspace(0, 6, 50)
    curve = dc.SplineCurve(points)
    exact = CubicSpline(np.arange(7), points, bc_type="natural")
    np.testing.assert_allclose(jax.vmap(curve.position)(s), exact(s), atol=1e-13)
    np.testing.assert_allclose(jax.vmap(curve.tangent)(s), exact(s, 1), atol=1e-12)
    closed = dc.SplineCurve(points, closed=True)
    exact = CubicSpline(np.arange(8), np.r_[points, points[:1]], bc_type="periodic")
    s = np.linspace(-3, 12, 50)
    np.testing.assert_allclose(jax.vmap(closed.position)(s), exact(s), atol=1e-12)
    np.testing.assert_allclose(jax.vmap(closed.tangent)(s), exact(s, 1), atol=1e-12)

"""Every type of constraint between three free bodies, against differences and built poses.

All types stand in one system, so that it is compiled once; the rows of each are looked at alone.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from trees import random_body

import difflie as dl
from difflie import constraints as dc
from difflie.constraints.equations import equations, holonomic
from difflie.system.linkage import linkage

RNG = np.random.default_rng(3)
FIRST, SECOND, THIRD, FOURTH = (
    dc.Frame(body, RNG.normal(size=3) * 0.4, RNG.normal(size=3)) for body in "abac"
)
CURVE = dc.SplineCurve(RNG.normal(size=(6, 3)))
CUBIC = dc.PolynomialCurve(((0.1, 0, 0.2), (1, -0.5, 0.3), (0.4, 0.6, -0.7), (-0.3, 0.2, 0.5)))
PITCH, LENGTH, RADIUS, ANGLE, RATIO, OFFSET = -0.07, 0.8, 0.35, 1.1, 1.5, 0.3
HINGES = dc.Revolute(FIRST, SECOND), dc.Revolute(THIRD, FOURTH)
RACK = dc.Prismatic(THIRD, FOURTH)
THREAD = dc.Helical(THIRD, FOURTH, PITCH)


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
    "fixed": (dc.Fixed, 6, lambda rng: pose()),
    "revolute": (dc.Revolute, 5, lambda rng: pose(turned("z", rng.uniform(-3, 3)))),
    "prismatic": (dc.Prismatic, 5, lambda rng: pose(None, (0, 0, rng.normal()))),
    "cylindrical": (
        dc.Cylindrical,
        4,
        lambda rng: pose(turned("z", rng.uniform(-3, 3)), (0, 0, rng.normal())),
    ),
    "helical": (partial(dc.Helical, pitch=PITCH), 5, lambda rng: screwed(rng.uniform(-40, 40))),
    "spherical": (dc.Spherical, 3, lambda rng: pose(Rotation.random(random_state=rng))),
    "universal": (
        dc.Universal,
        4,
        lambda rng: pose(turned("x", rng.uniform(-3, 3)) * turned("y", rng.uniform(-3, 3))),
    ),
    "oblique universal": (partial(dc.Universal, angle=ANGLE), 4, across),
    "planar": (
        dc.Planar,
        3,
        lambda rng: pose(turned("z", rng.uniform(-3, 3)), (*rng.normal(size=2), 0)),
    ),
    "translation": (dc.Translation, 3, lambda rng: pose(None, rng.normal(size=3))),
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
SIZES = {**{name: size for name, (_, size, _) in JOINTS.items()}, **dict.fromkeys(GEARS, 1)}
ENDS = np.cumsum(list(SIZES.values()))
ROWS = {n: slice(e - SIZES[n], e) for n, e in zip(SIZES, ENDS, strict=True)}


def machine():
    rng = np.random.default_rng(1)
    bodies = dl.tree([random_body(rng, name, dl.Free()) for name in "abc"])
    made = [kind(FIRST, SECOND) for kind, _, _ in JOINTS.values()]
    return dl.constrain(bodies.with_traversal("loop"), *made, *(g for g, _ in GEARS.values()))


SYSTEM = machine()
POSITIONS = holonomic(SYSTEM.constraints)


@jax.jit
def evaluated(system, q, v):
    """g with zeros for the equations of velocities, A, A v and c, for many states."""

    def one(q, v):
        here = equations(system, linkage(system), q)
        g = jnp.zeros(POSITIONS.size, q.dtype).at[np.flatnonzero(POSITIONS)].set(here.residual())
        return g, here.jacobian(), here.rate(v), here.bias(v)

    return jax.vmap(one)(q, v)


def state(*poses):
    q = []
    for t in poses:
        x, y, z, w = Rotation.from_matrix(t[:3, :3]).as_quat()
        q += [w, x, y, z, *t[:3, 3]]
    return np.array(q)


def fixed_frame(frame):
    return pose(Rotation.from_rotvec(np.array(frame.rotation)), frame.position)


def assembled(name, rng):
    """A configuration that keeps the constraint of this name."""
    a = anywhere(rng)
    first = a @ fixed_frame(FIRST)
    inner = [np.linalg.inv(fixed_frame(f)) for f in (SECOND, FOURTH)]
    if name in JOINTS:
        return state(a, first @ JOINTS[name][2](rng) @ inner[0], anywhere(rng))
    moved = GEARS[name][1](rng)
    third = a @ fixed_frame(THIRD)
    return state(a, first @ moved[0] @ inner[0], third @ moved[1] @ inner[1])


def moved(q, x):
    """q (n, 21) moved along right increments x (n, 18)."""
    return np.asarray(jax.vmap(SYSTEM.manifold.retract)(q, x))


@pytest.fixture(scope="module")
def anywhere_at_all():
    """States with no regard to any constraint, but near the curves, whose nearest points jump."""
    rng = np.random.default_rng(5)
    names = [*JOINTS, *GEARS]
    q = np.array([assembled(names[k % len(names)], rng) for k in range(40)])
    return moved(q, rng.normal(size=(40, 18)) * 0.05), rng.normal(size=(40, 18))


@pytest.mark.parametrize("name", SIZES)
def test_derivatives_are_those_of_differences(name, anywhere_at_all):
    q, v = anywhere_at_all
    rows, h = ROWS[name], 1e-5
    _, A, rate, c = evaluated(SYSTEM, q, v)
    g1, _, _, _ = evaluated(SYSTEM, moved(q, h * v), v)
    g0, _, _, _ = evaluated(SYSTEM, moved(q, -h * v), v)
    np.testing.assert_allclose(
        np.einsum("kij,kj->ki", A, v)[:, rows], rate[:, rows], rtol=0, atol=1e-12
    )
    of_positions = POSITIONS[rows]
    change = np.asarray(g1 - g0)[:, rows] / (2 * h)
    scale = 1 + np.abs(rate[:, rows])
    off = np.abs(change - rate[:, rows]) / scale
    # A curve far from the point has several nearest points.
    assert np.quantile(off[:, of_positions], 0.9, axis=0).max(initial=0) < 1e-7
    _, _, r1, _ = evaluated(SYSTEM, moved(q, h * v), v)
    _, _, r0, _ = evaluated(SYSTEM, moved(q, -h * v), v)
    drift = np.asarray(r1 - r0)[:, rows] / (2 * h)
    off = np.abs(drift - c[:, rows]) / (1 + np.abs(c[:, rows]))
    assert np.quantile(off, 0.9, axis=0).max() < 1e-6


@pytest.mark.parametrize("name", SIZES)
def test_rows_are_independent_where_the_constraint_holds(name):
    rng = np.random.default_rng(8)
    q = np.array([assembled(name, rng) for _ in range(20)])
    g, A, _, _ = evaluated(SYSTEM, q, np.zeros((20, 18)))
    rows = ROWS[name]
    assert np.max(np.abs(g[:, rows])) < 1e-13
    singular = np.linalg.svd(np.asarray(A)[:, rows], compute_uv=False)
    assert singular.shape == (20, SIZES[name])
    assert singular.min() > 0.1 * min(1, abs(PITCH) * 10 if "helical" in name else 1)


def test_misassembled_ways_are_told():
    flipped = turned("x", np.pi)
    half = turned("z", np.pi)
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
    for name, (kind, _, motion) in JOINTS.items():
        joint = kind(FIRST, SECOND)
        here = anywhere(rng)
        if name in spurious:
            wrong = transforms(here, here @ spurious[name])
            assert np.max(np.abs(np.array(joint.residual(*wrong)))) < 1e-14
            assert bool(joint.misassembled(*wrong))
            assert not bool(joint.misassembled(*transforms(here, here @ motion(rng))))
        else:
            assert joint.misassembled(*transforms(here, here @ motion(rng))) is None


def transforms(*poses):
    from difflie.groups.components import Matrix, Vector
    from difflie.spatial import Transform

    return [
        Transform(
            Matrix.from_array(jnp.asarray(t[:3, :3])), Vector.from_array(jnp.asarray(t[:3, 3]))
        )
        for t in poses
    ]


def test_single_precision():
    rng = np.random.default_rng(5)
    q = np.array([assembled(n, rng) for n in SIZES])
    v = rng.normal(size=(len(SIZES), 18))
    exact = evaluated(SYSTEM, q, v)
    found = evaluated(SYSTEM.astype("float32"), q.astype("f"), v.astype("f"))
    for k, name in enumerate(SIZES):
        for a, b in zip(exact, found, strict=True):
            assert b.dtype == np.float32
            a, b = a[k, ROWS[name]], b[k, ROWS[name]]
            assert np.max(np.abs(a - b)) < 2e-4 * (1 + np.max(np.abs(a)))


def test_derivatives_with_respect_to_what_constraints_are_made_of(anywhere_at_all):
    """Forward and reverse mode, all leaves at once in one direction, against differences."""
    rng = np.random.default_rng(6)
    q = np.array([assembled(n, rng) for n in SIZES])
    v = rng.normal(size=q.shape[:1] + (18,))
    weight = [np.zeros((len(q), *a.shape[1:])) for a in evaluated(SYSTEM, q, v)]
    for k, name in enumerate(SIZES):
        for w in weight:
            w[k, ROWS[name]] = rng.normal(size=w[k, ROWS[name]].shape)
    leaves, structure = jax.tree.flatten(SYSTEM.constraints)
    directions = [rng.normal(size=a.shape) for a in leaves]

    def measured(x):
        changed = [a + x * d for a, d in zip(leaves, directions, strict=True)]
        system = eqx.tree_at(lambda s: s.constraints, SYSTEM, structure.unflatten(changed))
        found = evaluated(system, q, v)
        return jnp.array([jnp.sum(w * a) for w, a in zip(weight, found, strict=True)])

    measured = jax.jit(measured)
    h = 1e-6
    expected = (measured(h) - measured(-h)) / (2 * h)
    forward = jax.jit(jax.jacfwd(measured))(0.0)
    reverse = jax.jit(jax.jacrev(measured))(0.0)
    np.testing.assert_allclose(forward, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(reverse, forward, rtol=1e-11)

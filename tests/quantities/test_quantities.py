"""Quantities: values against Pinocchio and closed forms, singular points, batches, bad input."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pendulums import pendulum
from trees import random_body, random_states

import difflie as dl
from difflie import quantities as dq


class States(NamedTuple):
    """What is measured along: states at times."""

    t: Any
    q: Any
    v: Any
    u: Any = None


OFFSET = np.array((0.3, -0.1, 0.2)), np.array((0.4, 0.9, -0.3))
LIMITS = {"lower": -1.0, "upper": 2.0}


def bodies():
    rng = np.random.default_rng(5)
    joints = {
        "hull": dl.Free(),
        "arm": dl.Revolute(axis=(0.0, 0.6, 0.8), **LIMITS),
        "hand": dl.Spherical(),
        "tool": dl.Prismatic(axis=(1.0, 0.0, 0.0), upper=0.5),
    }
    above = (None, *joints)
    return [
        random_body(rng, name, joint, parent)
        for (name, joint), parent in zip(joints.items(), above, strict=False)
    ]


SYSTEM = dl.tree(bodies())
FRAME, OTHER = dl.Frame("tool", *OFFSET), dl.Frame("arm", OFFSET[1], OFFSET[0])
QUANTITIES = {
    "pose": dq.Pose("hand"),
    "pose in a frame": dq.Pose(FRAME, OTHER),
    "point": dq.Point("tool", OFFSET[0]),
    "distance": dq.Distance(FRAME, OTHER),
    "to the world": dq.Distance("hand", None),
    "momentum": dq.Momentum(),
    "centroidal": dq.CentroidalMomentum(),
    "energy": dq.Energy(),
    "limits": dq.LimitMargin(),
}


def every(system, q, v, u, t):
    """All of them, as one function of a user's own: one program."""
    found = [jnp.ravel(measured(system, q, v, u, t)) for measured in QUANTITIES.values()]
    return jnp.concatenate(found)


def expected(twin, pin, q, v):
    """The same by Pinocchio."""
    model, data = twin.model, twin.data
    x, rate = twin.coordinates(q), twin.rates(q) @ v
    pin.framesForwardKinematics(model, data, x)
    names = dict(zip(SYSTEM.body_names, twin.frame_ids, strict=True))

    def placed(body, position=(0.0, 0.0, 0.0), rotation=(0.0, 0.0, 0.0)):
        position, rotation = np.array(position), np.array(rotation)
        return data.oMf[names[body]] * pin.SE3(pin.exp3(rotation), position)

    def pose(frame):
        return np.r_[pin.log3(frame.rotation), frame.translation]

    tool, arm = placed("tool", *OFFSET), placed("arm", OFFSET[1], OFFSET[0])
    central = pin.computeCentroidalMomentum(model, data, x, rate)
    kinetic = pin.computeKineticEnergy(model, data, x, rate)
    potential = pin.computePotentialEnergy(model, data, x)
    arm_left, tool_left = min(q[7] + 1.0, 2.0 - q[7]), 0.5 - q[12]
    parts = (
        *(pose(placed("hand")), pose(arm.inverse() * tool), tool.translation),
        np.linalg.norm(tool.translation - arm.translation),
        np.linalg.norm(placed("hand").translation),
        *(twin.expected(q, v, v, v)["momentum"], central.angular, central.linear),
        *((kinetic, potential, kinetic + potential), 6 * (np.inf,), arm_left, 3 * (np.inf,)),
        tool_left,
    )
    return np.concatenate([np.atleast_1d(part) for part in parts])


def some_states(dtype=float):
    q, v, *_ = random_states(SYSTEM, 6, seed=2)
    return States(*(jnp.asarray(a, dtype) for a in (np.arange(6.0), q, v)))


@pytest.mark.slow
def test_values_are_those_of_pinocchio():
    """Frames, momenta and energies of an independent library, in both precisions, and batched."""
    robots = pytest.importorskip("robots")
    twin, run = robots.built(bodies()), some_states()
    states = zip(np.asarray(run.q), np.asarray(run.v), strict=True)
    theirs = np.stack([expected(twin, robots.pin, *state) for state in states])
    batch = jax.tree.map(lambda a: a.reshape(2, 3, *a.shape[1:]), run)
    found = dq.along(every, SYSTEM, batch)
    assert found.shape == (2, 3, theirs.shape[1])
    np.testing.assert_allclose(found.reshape(theirs.shape), theirs, rtol=1e-12, atol=1e-12)
    single = dq.along(every, SYSTEM.astype(jnp.float32), some_states(jnp.float32))
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, theirs, rtol=1e-4, atol=1e-4)


def ball():
    joint = {"joint": dl.Spherical(), "mass": 1.0, "inertia": np.eye(3), "com": (0.1, 0.2, 0.3)}
    return dl.chain([dl.Body(name="ball", **joint)])


BALL = ball()
TURN = np.array((0.48, 0.6, 0.64))


@pytest.mark.slow
@pytest.mark.thorough("float64")
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_derivatives_at_singular_points(dtype):
    """Attitudes at zero and pi as by the closed form; none of a distance that is zero."""
    system = BALL.astype(dtype)
    turns = np.stack([angle * TURN for angle in (0.0, 1e-9, 0.7, np.pi - 1e-9, np.pi)])
    coincident = dq.Distance("ball", None)

    def measured(w, q):
        q = system.manifold.retract(q, w)
        state = system, q, jnp.zeros(3, dtype), None, jnp.zeros((), dtype)
        return jnp.append(dq.Pose("ball")(*state), coincident(*state))

    @jax.jit
    @jax.vmap
    def found(turn):
        q, zero = dl.quaternion.exp(turn), jnp.zeros(3, dtype)
        modes = [mode(measured)(zero, q) for mode in (jax.jacfwd, jax.jacrev)]
        return measured(zero, q), *modes

    value, ahead, back = (np.asarray(a, float) for a in found(jnp.asarray(turns, dtype)))
    eps = 1e-5 if dtype == jnp.float32 else 1e-12
    for turn, pose, one, two in zip(turns, value, ahead, back, strict=True):
        # Both vectors of a rotation by pi are right.
        side = np.sign(pose[:3] @ TURN) or 1.0
        near_pi = np.linalg.norm(turn) > 3
        np.testing.assert_allclose(side * pose[:3] if near_pi else pose[:3], turn, atol=9 * eps)
        w, angle = pose[:3], np.linalg.norm(pose[:3])
        hat = np.cross(np.eye(3), w)
        half = angle / 2
        # 1 - (t/2) cot(t/2), over t^2.
        bent = 1 / 12 if angle < 1e-3 else (1 - half * np.cos(half) / np.sin(half)) / angle**2
        inverse = np.eye(3) + hat / 2 + bent * hat @ hat
        np.testing.assert_allclose(one[:3], inverse, atol=9 * eps)
        assert not one[3:].any()
        np.testing.assert_allclose(one, two, atol=eps)


PENDULUM = pendulum(damping=0.1)


@pytest.mark.slow
def test_derivatives_of_curves_in_closed_form():
    """By the states and by the arrays that a quantity holds; a module of a user's own, too."""

    class Height(eqx.Module):
        scale: jax.Array

        def __call__(self, system, q, v, u, t):
            return self.scale * dl.body_poses(system, q)[0, :3, :3] @ jnp.array((0.0, 0.0, -1.0))

    angles = jnp.linspace(-3.0, 3.0, 7)
    run = States(angles, angles[:, None], jnp.ones((7, 1)))

    def total(q, point, height):
        x = dq.along(point, PENDULUM, run._replace(q=q))[:, 0]
        z = dq.along(height, PENDULUM, run._replace(q=q))[:, 2]
        return jnp.sum(x) + jnp.sum(z)

    given = run.q, dq.Point("bob", (0.0, 0.0, -2.0)), Height(jnp.asarray(3.0))
    by_q, by_point, by_height = jax.grad(total, argnums=(0, 1, 2))(*given)
    sin, cos = np.sin(angles), np.cos(angles)
    np.testing.assert_allclose(by_q[:, 0], -2 * cos + 3 * sin, atol=1e-14)
    np.testing.assert_allclose(by_point.frame.position, (cos.sum(), 0, sin.sum()), atol=1e-13)
    np.testing.assert_allclose(by_height.scale, -cos.sum(), atol=1e-13)
    ahead = jax.jvp(lambda q: total(q, *given[1:]), (run.q,), (jnp.ones((7, 1)),))[1]
    np.testing.assert_allclose(ahead, by_q.sum(), atol=1e-13)


def test_curves_have_names_and_units():
    """Of the entries of every quantity, and numbers where a function names none."""
    t = SYSTEM.topology
    for measured in (*QUANTITIES.values(), dq.Effort(), dq.Passive(), dq.Power()):
        assert all(
            unit in {"rad", "m", "N m s", "N s", "J", "N m", "N", "W"}
            for _, unit in measured.labels(SYSTEM)
        )
    assert [unit for _, unit in dq.Effort().labels(SYSTEM)] == ["N m"] * 3 + ["N"] * 3 + [
        *("N m",) * 4,
        "N",
    ]
    assert len(dq.LimitMargin().labels(SYSTEM)) == t.n_dofs
    run = States(np.arange(2.0), np.zeros((2, 1)), np.ones((2, 1)))

    @dq.quantity("speed", "rad/s", ["forwards", "backwards"])
    def speed(system, q, v, u, t):
        return jnp.append(v, -v)

    found = dq.curve(speed, PENDULUM, run)
    assert (found.name, found.unit) == ("speed", "rad/s")
    assert found.labels == (("forwards", "rad/s"), ("backwards", "rad/s"))
    np.testing.assert_array_equal(found.values, ((1, -1), (1, -1)))
    assert dq.curve(lambda s, q, v, u, t: 2 * q, PENDULUM, run).labels == (("<lambda>", ""),)


ANY = States(jnp.arange(2.0), jnp.zeros((2, 1)), jnp.zeros((2, 1)))


@pytest.mark.parametrize(
    ("measured", "error", "said"),
    [
        ("energy", TypeError, "the quantity is 'energy'; give a function of"),
        (dq.Energy, TypeError, "the quantity is the class Energy; write Energy"),
        (dq.Pose("bobb"), ValueError, "no body is named 'bobb'; did you mean 'bob'"),
        (lambda s, q, v, u, t: None, TypeError, "<lambda> returns is None; give real numbers"),
        (lambda s, q, v, u, t: q > 0, TypeError, "<lambda> returns is bool; give real numbers"),
        (lambda s, q, v, u, t: (q, [v, q]), TypeError, "give real numbers"),
        (
            dq.quantity("speed", "m/s", "xyz")(lambda s, q, v, u, t: v),
            ValueError,
            r"speed returns has shape \(1,\), and it has 3 names of entries",
        ),
    ],
)
def test_what_is_no_quantity_is_named(measured, error, said):
    with pytest.raises(error, match=said) as raised:
        dq.along(measured, PENDULUM, ANY)
    assert "\n" not in str(raised.value)


def test_a_quantity_without_its_name_is_told():
    """The brackets of the decorator are easily forgotten."""
    with pytest.raises(TypeError, match=r'write @quantity\("NAME", "UNIT"\) above the function'):
        dq.quantity(lambda system, q, v, u, t: q)


def test_what_does_not_fit_is_named():
    """A frame that is none, the run of another system, and a curve of several runs."""
    with pytest.raises(dl.ModelError, match="3 is no frame; give the name of a body"):
        dq.Pose(3)
    with pytest.raises(ValueError, match="1 coordinates and 1 velocities, the system 4 and 3"):
        dq.along(dq.Energy(), BALL, ANY)
    with pytest.raises(ValueError, match=r"\(3,\) runs, and a curve is of one; take one"):
        dq.curve(dq.Energy(), PENDULUM, jax.tree.map(lambda a: jnp.stack((a,) * 3), ANY))

"""Contacts and stops that the multipliers switch, against closed forms."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import difflie as dl
from difflie.constraints import HardStop, PointOnPlane, SphereOnPlane, SphereOnSphere

MASS, RADIUS = 2.0, 0.1
GROUND = dl.Frame()
BALL = dl.tree(
    [dl.Body(name="ball", joint=dl.Free(), mass=MASS, inertia=0.4 * MASS * RADIUS**2 * np.eye(3))],
    name="ball",
)


def moved(system, position, velocity, *, dt, steps):
    q = system.neutral().at[4:].set(jnp.asarray(position))
    v = jnp.zeros(6, q.dtype).at[3:].set(jnp.asarray(velocity))
    return dl.simulate(system, q, v, dt=dt, steps=steps, method=dl.Moreau())


def rolling(friction):
    numbers = {"radius": RADIUS, "friction": friction, "restitution": 0.6}
    return dl.constrain(BALL, SphereOnPlane(dl.Frame("ball"), GROUND, **numbers))


def on_slope(angle, friction=0.4):
    ground = dl.Frame(rotation=jnp.array([0, 1.0, 0]) * np.deg2rad(angle))
    return dl.constrain(BALL, PointOnPlane(dl.Frame("ball"), ground, friction=friction))


@pytest.mark.slow("0.1-0.7142857142857143-7.142857142857143")
@pytest.mark.parametrize(("friction", "speed", "spin"), [(0.1, 5 / 7, 50 / 7), (0.05, 0.84, 4.0)])
def test_a_ball_that_hits_the_ground_sticks_or_slides(friction, speed, spin):
    system = rolling(friction).replace(gravity=jnp.zeros(3))
    run = moved(system, (0, 0, RADIUS + 1e-7), (1, 0, -2), dt=1e-7, steps=2)
    velocity = dl.body_poses(system, run.q[-1])[0, :3, :3] @ run.v[-1, 3:]
    assert run.result.ok
    assert_allclose(velocity, [speed, 0, 1.2], atol=1e-6)
    assert_allclose(run.v[-1, :3], [0, spin, 0], atol=1e-5)
    # The impulse stops the fall and starts the rise.
    assert_allclose(run.states.contacts[:, 0, 0].sum(), MASS * 3.2, rtol=1e-6)


@pytest.mark.slow
def test_impacts_follow_the_coefficient_of_restitution():
    system = dl.constrain(BALL, PointOnPlane(dl.Frame("ball"), GROUND, restitution=0.8))
    run = moved(system, (0, 0, 1.0), (0, 0, 0), dt=5e-4, steps=9000)
    hits = run.t[np.flatnonzero(run.states.contacts[:, 0, 0] > 0.5)]
    assert_allclose(hits[:3], [0.45152364, 1.17396147, 1.75191173], atol=2e-3)
    # Infinitely many impacts end after t1 (1 + e) / (1 - e) = 4.064 s.
    assert abs(run.q[-1, 6]) < 1e-5 and abs(run.v[-1, 5]) < 1e-9


@pytest.mark.parametrize(
    ("angle", "speed", "path"),
    [(25, 0.0, 0.5895333913 * 0.125), (15, 0.0, 0.0), (15, -2.0, -0.3159903)],
)
def test_a_slope_is_climbed_and_slid_down(angle, speed, path):
    along = np.array([np.cos(np.deg2rad(angle)), 0, -np.sin(np.deg2rad(angle))])
    run = moved(on_slope(angle), (0, 0, 0), speed * along, dt=1e-3, steps=500)
    assert run.result.ok
    assert_allclose(run.q[-1, 4:] @ along, path, atol=1e-5)


@pytest.mark.slow
def test_a_body_leaves_a_sphere_where_nothing_presses_it():
    contact = SphereOnSphere(dl.Frame("ball"), GROUND, radius=0.0, other_radius=1.2)
    system = dl.constrain(BALL, contact)
    errors = []
    for dt in (2e-3, 2.5e-4):
        run = moved(system, (0, 0, 1.2), (1.5, 0, 0), dt=dt, steps=int(1.0 / dt))
        last = np.flatnonzero(run.states.contacts[:, 0, 0] > 0)[-1]
        height = run.q[last, 6] / np.linalg.norm(run.q[last, 4:])
        errors.append(abs(height - 0.7303771662))
    # Where the force fades out a grazing contact opens and closes: about the root of the step.
    assert errors[0] < 0.03 and errors[1] < 0.01


def test_a_stop_turns_a_pendulum_back():
    rod = dl.Body(
        name="rod",
        joint=dl.Revolute(name="hinge", axis=(0, 1, 0)),
        mass=1.0,
        com=(0, 0, -0.5),
        inertia=np.eye(3) * 0.05,
    )
    system = dl.constrain(dl.chain([rod]), HardStop("hinge", lower=-0.2, restitution=0.5))
    start = jnp.array([0.8]), jnp.zeros(1)
    run = dl.simulate(system, *start, dt=1e-3, steps=600, method=dl.Moreau())
    step = int(np.flatnonzero(run.states.contacts[:, 0, 0] > 0)[0])
    assert_allclose(run.v[step], -0.5 * run.v[step - 1], rtol=1e-2)
    assert run.q.min() > -0.203


@pytest.mark.slow
def test_a_tossed_cube_comes_to_rest():
    body = dl.Body(name="cube", joint=dl.Free(), mass=0.37, inertia=np.eye(3) * 6.2e-4)
    cube = dl.tree([body])
    corners = itertools.product((-0.05, 0.05), repeat=3)
    numbers = {"friction": 0.2, "restitution": 0.1}
    contacts = [PointOnPlane(dl.Frame("cube", c), GROUND, **numbers) for c in corners]
    system = dl.constrain(cube, *contacts)
    attitude = np.array([0.9, 0.3, 0.2, 0.1])
    q = jnp.concatenate((jnp.asarray(attitude / np.linalg.norm(attitude)), jnp.array([0, 0, 0.3])))
    v = jnp.array([3.0, 1, -2, 0.8, 0.2, 0])
    run = dl.simulate(system, q, v, dt=1e-3, steps=1500, method=dl.Moreau())
    assert run.result.ok, run.result
    energy = np.asarray(sum(run.energy(system)))
    assert np.diff(energy).max() < 1e-4 * energy[0]
    assert np.abs(run.v[-1]).max() < 1e-6 and abs(run.q[-1, 6] - 0.05) < 1e-3
    # At rest the four lower corners carry the weight.
    assert_allclose(run.states.contacts[-1, :, 0].sum(), 0.37 * 9.81 * 1e-3, rtol=1e-6)


@pytest.mark.slow
def test_derivatives_are_those_of_the_motion():
    def path(friction, slope):
        ground = dl.Frame(rotation=jnp.array([0, 1.0, 0]) * slope)
        system = dl.constrain(BALL, PointOnPlane(dl.Frame("ball"), ground, friction=friction))
        return moved(system, (0, 0, 0), (0, 0, 0), dt=2e-3, steps=50).q[-1, 4]

    at = jnp.array(0.3), jnp.array(0.5)
    found = jax.jit(jax.grad(path, argnums=(0, 1)))(*at)
    forward = jax.jvp(path, at, (jnp.array(1.0), jnp.array(0.0)))[1]
    h = 1e-5
    for k in range(2):
        ahead, back = list(at), list(at)
        ahead[k], back[k] = at[k] + h, at[k] - h
        assert_allclose(found[k], (path(*ahead) - path(*back)) / (2 * h), rtol=1e-6)
    assert_allclose(forward, found[0], rtol=1e-9)


@pytest.mark.slow
def test_single_precision_stays_single():
    run = moved(on_slope(25).astype("float32"), (0, 0, 0), (0, 0, 0), dt=1e-3, steps=100)
    assert run.q.dtype == "float32"
    assert_allclose(run.v[-1, 3] / np.cos(np.deg2rad(25)), 0.05895334, rtol=1e-3)


@pytest.mark.slow
def test_what_cannot_be_is_said():
    system = on_slope(15)
    with pytest.raises(ValueError, match="RKMK4 switches no contacts"):
        dl.simulate(system, system.neutral(), jnp.zeros(6))
    with pytest.raises(ValueError, match=r"overlapped by 0\.1"):
        moved(rolling(0.1), (0, 0, 0), (0, 0, 0), dt=1e-3, steps=2)
    with pytest.raises(ValueError, match="lower or its upper"):
        HardStop("hinge")
    with pytest.raises(ValueError, match=r"friction is -0\.1"):
        dl.constrain(BALL, PointOnPlane(dl.Frame("ball"), GROUND, friction=-0.1))
    with pytest.raises(ValueError, match=r"restitution is 1\.5"):
        dl.constrain(BALL, PointOnPlane(dl.Frame("ball"), GROUND, restitution=1.5))
    bare = dataclasses.replace(system, constraints=())
    run = moved(bare, (0, 0, 1), (0, 0, 0), dt=1e-3, steps=10)
    assert_allclose(run.q[-1, 6], 1 - 9.81 * 0.01**2 / 2, atol=1e-6)

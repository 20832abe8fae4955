"""The convex step along lengths: ropes, tendons, limits of rotations, actuators along tendons."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl

G, DT = 9.81, 5e-3


def run_of(system, q, v, dt, time, **given):
    given = {"method": "ConvexContact"} | given
    run = dl.simulate(system, q, v, dt=dt, steps=round(time / dt), **given)
    assert run.result.ok
    return run


def lift(mass=2.0):
    return dl.chain([dl.Body(name="lift", joint=dl.Prismatic(axis=(0, 0, 1)), mass=mass)])


def two_links():
    inertia, com = 0.02 * np.eye(3), (0, 0, -0.25)
    hinge = dl.Revolute(axis=(0, 1, 0))
    link = {"joint": hinge, "mass": 1.0, "com": com, "inertia": inertia}
    upper, lower = dl.Body(name="upper", **link), dl.Body(name="lower", **link)
    return dl.chain([upper, replace(lower, position=(0, 0, -0.5))])


def over_the_elbow(**given):
    points = [(None, (0.1, 0, 0)), ("upper", (0.05, 0, -0.3)), ("lower", (0.05, 0, -0.2))]
    return dl.SpatialTendon(points, **given)


@pytest.mark.parametrize("stiffness", [1e9, 500.0])
def test_a_rope_carries_a_weight(stiffness):
    """Guards ropes at long steps: it falls until the rope is taut, which then carries m g."""
    system = dl.attach(lift(), dl.Rope([(None, (0, 0, 1)), ("lift", (0, 0, 0))], stiffness, 1.0))
    run = run_of(system, [0.1], [0.0], DT, 60.0, save_every=10)
    assert run.result.resolution.good
    np.testing.assert_allclose(run.states.lengths[-1] / DT, 2 * G, rtol=1e-9)
    stretch = 2 * G / stiffness if stiffness < 1e3 else 0.0
    np.testing.assert_allclose(run.q[-1, 0], -stretch, atol=1e-5)
    assert np.asarray(run.q).min() > (-0.01 if stretch == 0 else -0.137)


@pytest.mark.parametrize("kind", ["joint", "points"])
def test_limits_of_tendons_carry(kind):
    """Guards both limits, stiff ones, of tendons of both kinds: m g, within a length."""
    numbers = {"length_range": (0.7, 1.2), "stop_stiffness": 1e8, "stop_dissipation": 1.0}
    if kind == "joint":
        tendon = dl.JointTendon(dl.FixedTendon("lift", [0.5], offset=1.0), **numbers)
        ends, arm = (-0.6, 0.4), 0.5
    else:
        tendon = dl.Tendon(dl.SpatialTendon([(None, (0, 0, -1)), ("lift", (0, 0, 0))]), **numbers)
        ends, arm = (-0.3, 0.2), 1.0
    for way, end in zip((1, -1), ends, strict=True):
        system = dl.attach(lift(), tendon).replace(gravity=np.array([0, 0, -way * G]))
        run = run_of(system, [0.0], [0.0], DT, 4.0)
        np.testing.assert_allclose(run.q[-1, 0], end, atol=1e-5)
        carried = np.where(np.array([1, -1]) == way, 2 * G / arm, 0)
        np.testing.assert_allclose(run.states.lengths[-1] / DT, carried, rtol=1e-6, atol=1e-9)


def test_dry_friction_along_a_tendon_holds():
    """Guards creep, and the threshold: m g / arm for good, and Coulomb's motion above."""
    least = 2 * G / 0.5
    for part in (1.001, 0.9):
        tendon = dl.JointTendon(dl.FixedTendon("lift", [0.5]), friction=part * least)
        run = run_of(dl.attach(lift(), tendon), [0.0], [0.0], DT, 10.0, save_every=50)
        if part > 1:
            np.testing.assert_allclose(run.q, 0, atol=1e-6)
            np.testing.assert_allclose(run.states.friction[-1, -1] / DT, least, rtol=1e-9)
        else:
            np.testing.assert_allclose(run.v[-1, 0], -0.1 * G * 10, rtol=1e-6)


@pytest.mark.slow
def test_a_ball_joint_leans_on_its_limit():
    """Guards limits of rotations: m g l sin(angle) about the axis of the turn, at its angle."""
    ball = dl.Spherical(damping=0.05)
    arm = dl.Body(name="arm", joint=ball, mass=1.0, com=(0, 0, 0.2), inertia=0.01 * np.eye(3))
    stop = dl.RotationStop([(None, (0, 0, 0)), ("arm", (0, 0, 0))], stiffness=1e7, angle=0.5)
    system = dl.attach(dl.chain([arm]), stop)
    q = jnp.array([np.cos(0.15), 0.6 * np.sin(0.15), 0.8 * np.sin(0.15), 0])
    run = run_of(system, q, np.zeros(3), DT, 20.0, save_every=20)
    turned = dl.quaternion.log(run.q[-1])
    np.testing.assert_allclose(np.linalg.norm(turned), 0.5, atol=3e-5)
    np.testing.assert_allclose(turned[2], 0, atol=1e-9)
    np.testing.assert_allclose(run.states.lengths[-1] / DT, 0.2 * G * np.sin(0.5), rtol=1e-4)
    soft = dl.attach(dl.chain([arm]), replace(stop, exponent=1.5))
    with pytest.raises(ValueError, match=r"RotationStop.*exponent 1"):
        run_of(soft, q, np.zeros(3), DT, 0.01)


@pytest.mark.slow
def test_stiff_actuators_along_tendons_take_long_steps():
    """Guards servos at the end of a step, of 1e6 N/m along a path, along joints and at an axis."""
    elbow = dl.PositionServo(transmission=over_the_elbow(), kp=1e6, kd=1e3)
    both = dl.FixedTendon(("upper", "lower"), (1.0, -0.5))
    across = dl.PositionServo(transmission=both, kp=1e6, kd=1e3, name="across")
    system = dl.attach(two_links(), elbow, across)
    command = np.array([0.6, 0.2])
    run = run_of(system, [0.1, 0.0], [0.0, 0.0], DT, 2.0, control=command)
    assert np.abs(run.v[-1]).max() < 1e-6
    np.testing.assert_allclose(run.q[-1] @ np.array([1.0, -0.5]), 0.2, atol=1e-4)
    damped = dl.VelocityServo(axis={"body": "lower", "direction": (1, 0, 0)}, kd=1e6)
    slow = run_of(dl.attach(two_links(), damped), [0.3, 0.2], [0.0, 0.0], DT, 1.0)
    assert np.abs(slow.v).max() < 10


@pytest.mark.slow
def test_order_along_tendons():
    """Order 1 towards RKMK4, with springs, dampers, a servo, and derivatives in both modes."""
    numbers = {"stiffness": 200.0, "damping": 3.0, "rest_lengths": (0.4, 0.42)}
    system = dl.attach(
        two_links(),
        dl.Tendon(over_the_elbow(), **numbers, name="cord"),
        dl.JointTendon(dl.FixedTendon(("upper", "lower"), (0.3, -0.2)), stiffness=50, damping=2),
        dl.PositionServo(transmission=over_the_elbow(gear=0.5), kp=100.0, kd=2.0),
    )
    parameters = dl.Parameters(system, ["cord/stiffness", "cord/damping", "lower/mass"])
    there = parameters.values_of(system)

    def end(x, dt, method="ConvexContact"):
        run = run_of(parameters.with_values(x), [0.3, -0.2], [1.0, 0.5], dt, 0.3, method=method)
        return run.q[-1]

    exact = end(there, 1e-4, "RKMK4")
    errors = [np.abs(end(there, dt) - exact).max() for dt in (2e-3, 1e-3)]
    np.testing.assert_allclose(errors[0] / errors[1], 2, rtol=0.15)
    slope = lambda x, of: of(lambda x: end(x, 2e-3))(x)  # noqa: E731
    forward, reverse = slope(there, jax.jacfwd), slope(there, jax.jacrev)
    np.testing.assert_allclose(forward, reverse, rtol=1e-9, atol=1e-12)
    step = 1e-5 * there
    for k in range(3):
        d = step[k] * (np.arange(3) == k)
        change = (end(there + d, 2e-3) - end(there - d, 2e-3)) / (2 * step[k])
        np.testing.assert_allclose(forward[:, k], change, rtol=1e-5, atol=1e-10)


@pytest.mark.slow
@pytest.mark.thorough("float32")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_derivatives_of_what_is_taut_and_what_sticks(dtype):
    """By rope and friction, in both modes, against differences; also in single precision."""
    rope = dl.Rope([(None, (0, 0.3, 0.8)), ("lower", (0, 0.1, -0.5))], 1e5, 1.772, name="rope")
    rubs = dl.JointTendon(dl.FixedTendon("lower", [0.3]), friction=3.0, name="rubs")
    limited = dl.Tendon(
        over_the_elbow(), length_range=(0.738, 0.9), stop_stiffness=1e5, name="limited"
    )
    system = dl.attach(two_links(), rope, rubs, limited).astype(dtype)
    paths = ["rope/stiffness", "rope/rest_length", "rubs/friction", "lower/mass"]
    parameters = dl.Parameters(system, paths)
    there = parameters.values_of(system)

    def end(x):
        q = jnp.array([0.3, 0.2], dtype)
        run = dl.simulate(
            parameters.with_values(there * (1 + x)),
            *(q, jnp.array([-1.0, 0.5], dtype)),
            dt=DT,
            steps=12,
            method="ConvexContact",
        )
        return jnp.concatenate((run.q[-1], run.v[-1])), run

    zero = jnp.zeros(4, dtype)
    run = end(zero)[1]
    assert run.result.ok
    assert (np.asarray(run.states.lengths)[:, :2].max(axis=0) > 0).all()
    assert np.abs(run.states.friction[:, 2]).max() > 0
    forward, reverse = (of(lambda x: end(x)[0])(zero) for of in (jax.jacfwd, jax.jacrev))
    size = np.abs(forward).max()
    exact = dtype == "float64"
    np.testing.assert_allclose(forward, reverse, atol=(1e-11 if exact else 1e-3) * size)
    if exact:
        step = 1e-7 * np.eye(4)
        slopes = np.stack([(end(d)[0] - end(-d)[0]) / 2e-7 for d in step], axis=1)
        np.testing.assert_allclose(forward, slopes, atol=1e-6 * size)

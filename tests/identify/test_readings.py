"""Sensors beyond joints: what they read finds the machine and themselves, from both problems."""

import dataclasses
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import identify as di
from difflie import quantities as dq

TIGHT = di.LevenbergMarquardt(tolerance=1e-13)


def found_again(rough, true, paths, problem, rtol=1e-6, atol=1e-9):
    """Fits from the rough machine, and compares with the numbers of the true one."""
    fit = di.fit(dl.Parameters(rough, paths), problem, minimiser=TIGHT)
    assert fit.converged
    truth = dl.Parameters(true, paths).initial
    np.testing.assert_allclose(fit.values, truth, rtol=rtol, atol=atol)
    assert np.isfinite(fit.standard_errors).all()
    return fit


def read(system, q, v=None, a=None, u=None):
    """The readings (n, k) of all sensors of a system by name, along states."""
    v = np.zeros((len(q), system.nv)) if v is None else v
    given = [None if x is None else jnp.asarray(x) for x in (q, v, a, u)]
    axes = [None if x is None else 0 for x in given]
    sensors = [s for s in system.sensors if isinstance(s, di.Sensor)]
    return {
        s.name: np.array(
            jax.vmap(lambda *x, s=s: s.predicted(system, *x, jnp.zeros(())), axes)(*given)
        )
        for s in sensors
    }


# --- kinematic calibration -----------------------------------------------------------------------

MARKER, TURN = (0.33, 0.02, 0.04), (0.3, -0.1, 2.0)


def arm(length=0.5, marker=MARKER, bias=(0.0, 0.0), hand=0.2):
    def body(name, joint, axis, position):
        joint = dl.Revolute(axis=axis, name=joint)
        inertia = 0.01 * np.eye(3)
        return dl.Body(name=name, joint=joint, position=position, mass=1.0, inertia=inertia)

    bodies = [
        body("upper", "shoulder", (0, 0, 1), (0, 0, 0)),
        body("fore", "elbow", (0, 1, 0), (length, 0, 0.02)),
    ]
    return di.with_sensors(
        dl.chain(bodies),
        *(di.Encoder(j, position_bias=b) for j, b in zip(("shoulder", "elbow"), bias, strict=True)),
        di.Sensor("marker", dq.Point("fore", marker)),
        di.Sensor("hand", dq.Pose(dl.Frame("fore", (hand, 0, 0), TURN))),
    )


BIAS = 0.05, -0.1
ARM = arm(0.62, bias=BIAS, hand=0.25)
ANGLES = np.random.default_rng(0).uniform(-3, 3, (40, 2))
SEEN = di.Recording("poses", 0.1 * np.arange(40), ANGLES + BIAS, readings=read(ARM, ANGLES))


@pytest.mark.slow
def test_kinematic_calibration_from_points():
    """Where the elbow is, and the zeros of both encoders, from a marker at a known place."""
    problem = di.Readings.of(arm(), [SEEN], {"marker": 1e-3})
    assert problem.measured.sum() == 120
    fit = found_again(arm(), ARM, ["elbow/position", "*/position_bias"], problem)
    assert fit.parameters.units[:4] == ("m", "m", "m", "rad")


@pytest.mark.slow
def test_kinematic_calibration_from_poses():
    """Also where the marker and the hand's frame are, as the turn of the hand tells the zeros."""
    rough = arm(0.6, (0.3, 0.0, 0.1))
    problem = di.Readings.of(rough, [SEEN], {"marker": 1e-3, "hand": 1e-2})
    assert problem.measured.sum() == 40 * 9
    held = dataclasses.replace(rough, joints=ARM.joints)
    free = ["marker/frame/position", "hand/frame/position", "*/position_bias"]
    found_again(held, ARM, free, problem)


@pytest.mark.slow
def test_poses_beyond_half_a_turn_and_gaps():
    """Quaternions of either sign as motion capture has them; rows with a NaN do not count."""
    turns = SEEN.readings["hand"][:, :3]
    assert np.linalg.norm(turns, axis=1).max() > 3
    quaternions = np.array(jax.vmap(dl.quaternion.exp)(jnp.asarray(turns)))
    quaternions[::2] *= -1
    places = SEEN.readings["hand"][:, 3:].copy()
    places[3, 1] = quaternions[7, 2] = np.nan
    rows = di.pose_readings(quaternions, places)
    assert (np.isnan(rows).all(axis=1) == np.isin(np.arange(40), (3, 7))).all()
    recording = dataclasses.replace(SEEN, readings={"hand": rows})
    rough = dataclasses.replace(arm(0.6), joints=ARM.joints)
    problem = di.Readings.of(rough, [recording], {"hand": 1e-2})
    assert problem.measured.sum() == 38 * 6
    found_again(rough, ARM, ["hand/frame/position", "*/position_bias"], problem)


def test_rotation_vectors_go_on_beyond_half_a_turn():
    """So that resampling does not interpolate through the wrong turn."""
    angle = np.linspace(0, 5.5, 30)
    quaternions = np.column_stack((np.cos(angle / 2), np.zeros((30, 2)), np.sin(angle / 2)))
    rows = di.pose_readings(quaternions, np.zeros((30, 3)))
    np.testing.assert_allclose(rows[:, 2], angle, atol=1e-12)
    recording = di.Recording("turn", 0.1 * np.arange(30), readings={"hand": rows})
    between = recording.resampled(0.05).readings["hand"]
    np.testing.assert_allclose(between[:, 2], np.linspace(0, 5.5, 59), atol=1e-12)
    assert len(recording.between(1.0, 2.0).readings["hand"]) == 10
    with pytest.raises(di.DataError, match="row 2 has the length 2"):
        di.pose_readings([[1, 0, 0, 0], [2, 0, 0, 0]], np.zeros((2, 3)))


# --- an inertial measurement unit ----------------------------------------------------------------

PLACE = dl.Frame("rod", (0.1, 0.02, -0.3), (0.2, 0.5, -0.4))
IMU = {"accelerometer": 0.05, "gyroscope": 0.01}


def pendulum(com=-0.2, bias=0.0, scale=1.0, damping=0.02):
    joint = dl.Revolute(axis=(0.0, 1.0, 0.0), name="hinge", damping=damping)
    body = dl.Body(name="rod", joint=joint, mass=1.0, com=(0, 0, com), inertia=0.02 * np.eye(3))
    return di.with_sensors(
        dl.chain([body]),
        di.Sensor("accelerometer", dq.Accelerometer(PLACE), bias=np.array([1.0, -0.5, 2.0]) * bias),
        di.Sensor("gyroscope", dq.Gyroscope(PLACE), scale=scale, bias=-0.1 * bias),
    )


SWING = pendulum(-0.25, 1.0, 1.1, 0.05)


@pytest.fixture(scope="module")
def swing():
    """A swing whose angle is measured, too."""
    t = 0.01 * np.arange(201)
    tau = 0.5 * np.sin(4 * t)[:, None]
    run = dl.simulate(SWING, [1.2], [0.0], dt=0.01, steps=200, control=jnp.asarray(tau[:-1]))
    force = tau - 0.05 * run.v
    a = jax.vmap(lambda *x: dl.forward_dynamics(SWING, *x))(run.q, run.v, force)
    readings = read(SWING, run.q, run.v, a)
    readings["gyroscope"][50:60] = np.nan
    return di.Recording("swing", t, *(np.asarray(x) for x in (run.q, run.v, a)), tau, readings)


@pytest.mark.slow
def test_imu_along_the_measured_motion(swing):
    """Biases and the scale; with the torques also the centre of mass."""
    problem = di.Readings.of(pendulum(), [swing], IMU)
    assert problem.measured.sum() == 201 * 6 - 30
    paths = ["accelerometer/bias", "gyroscope/bias", "gyroscope/scale"]
    fit = found_again(pendulum(), SWING, paths, problem)
    assert fit.parameters.units == (*["m/s^2"] * 3, *["rad/s"] * 3, "")
    # Where the mass is the torques tell, in the same fit.
    both = problem, di.InverseDynamics.of(pendulum(), [swing])
    found_again(pendulum(), SWING, [*paths, "rod/com_z", "hinge/damping"], both)


@pytest.mark.slow
@pytest.mark.thorough("windows")
@pytest.mark.parametrize("free", [False, True], ids=["windows", "states"])
def test_imu_along_the_simulated_motion(free, swing):
    """The IMU alone finds the machine: angles have no weight, and with free states are wrong."""
    given = dataclasses.replace(swing, q=swing.q + 0.05) if free else swing
    # What the accelerometer misses at the zero of the angle it would read as another bias.
    problem = di.Shooting.of(
        pendulum(), [given], window=50, position=np.inf, free=free, readings=IMU
    )
    layout, windows = problem.layout, problem.windows
    k = len(problem.measured)
    assert {len(x) for x in (*layout, windows, problem.residual(pendulum(), problem.own))} == {k}
    paths = [
        "rod/com_z",
        "hinge/damping",
        "accelerometer/bias",
        "gyroscope/scale",
        "gyroscope/bias",
    ]
    found_again(pendulum(), SWING, paths, problem, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_motion_capture_alone_finds_the_pendulum():
    """Without any measured angle: the states are found from the neutral configuration."""
    point = di.Sensor("marker", dq.Point("rod", (0.0, 0.0, -0.5)))
    true, rough = (di.with_sensors(pendulum(com), point) for com in (-0.25, -0.2))
    run = dl.simulate(true, [0.6], [0.0], dt=0.02, steps=100)
    marker = {"marker": np.asarray(dq.along(true.sensors[2], true, run))}
    recording = di.Recording("film", 0.02 * np.arange(101), readings=marker)
    problem = di.Shooting.of(
        *(rough, [recording]), window=25, position=np.inf, free=True, readings={"marker": 1e-3}
    )
    found_again(rough, true, ["rod/com_z", "hinge/damping"], problem, rtol=1e-5)


@pytest.mark.slow
def test_what_actuators_remember_counts():
    """A delayed drive: an accelerometer feels the torque that arrives, and the delay is found."""
    true, rough = (dl.attach(pendulum(), dl.Drive("hinge", delay=d)) for d in (0.04, 0.025))
    t = 0.01 * np.arange(121)
    tau = 1.5 * np.sin(9 * t)[:, None]
    how = {"dt": 0.01, "steps": 120, "control": jnp.asarray(tau[:-1])}
    run = dl.simulate(true, [0.4], [0.0], **how)
    # Along a run torques are those of the step that ends; here they are of the one that begins.
    given = tau[np.maximum(np.arange(121) - 4, 0)] - 0.02 * run.v
    a = jax.vmap(lambda *x: dl.forward_dynamics(true, *x))(run.q, run.v, given)
    readings = read(true, run.q, run.v, a)
    recording = di.Recording("late", t, np.asarray(run.q), np.asarray(run.v), None, tau, readings)
    of = {"window": 40, "position": np.inf, "readings": IMU}
    problem = di.Shooting.of(true, [recording], **of)
    assert np.abs(problem.residual(true, problem.own)).max() < 1e-6
    found_again(rough, true, ["hinge/delay"], di.Shooting.of(rough, [recording], **of), rtol=1e-4)


@pytest.mark.slow
def test_single_precision_readings(swing):
    """Both problems have residuals in single precision, equal to rounding."""
    machine = pendulum().astype("float32")
    along = di.Readings.of(machine, [swing], IMU)
    simulated = di.Shooting.of(machine, [swing], window=50, readings=IMU)
    for problem in (along, simulated):
        residual = problem.residual(machine, problem.own)
        assert residual.dtype == jnp.float32
    double = di.Readings.of(pendulum(), [swing], IMU).residual(pendulum(), jnp.zeros(0))
    np.testing.assert_allclose(along.residual(machine, along.own), double, rtol=1e-3, atol=1e-2)


# --- force and torque ----------------------------------------------------------------------------


def loaded(mass=1.0, com=(0.0, 0.0, 0.0)):
    """An arm on a force-torque sensor, with a payload."""
    joints = (dl.Revolute(axis=x, name=n) for x, n in (((0, 0, 1), "pan"), ((0, 1, 0), "tilt")))
    pan, tilt = joints
    inertia = 0.01 * np.eye(3)
    bodies = [
        dl.Body(name="plate", joint=dl.Fixed(name="mount"), mass=2.0),
        dl.Body(name="upper", joint=pan, position=(0, 0, 0.2), mass=1.0, inertia=inertia),
        dl.Body(name="fore", joint=tilt, position=(0.1, 0, 0.1), mass=1.0, inertia=inertia),
        dl.Body(
            name="load",
            joint=dl.Fixed(name="grip"),
            position=(0.3, 0, 0),
            mass=mass,
            com=com,
            inertia=inertia,
        ),
    ]
    return di.with_sensors(dl.chain(bodies), di.Sensor("base", dq.JointWrench("mount")))


@pytest.mark.slow
def test_forces_at_the_base_identify_the_payload():
    """Mass and centre of mass of the load, without any torque at the joints."""
    true, rough = loaded(1.7, (0.02, -0.03, 0.05)), loaded()
    random = np.random.default_rng(1)
    q, v, a = random.normal(size=(3, 60, 2)) * np.array([1.0, 2.0, 5.0])[:, None, None]
    readings = read(true, q, v, a)
    recording = di.Recording("moves", 0.1 * np.arange(60), q, v, a, readings=readings)
    problem = di.Readings.of(rough, [recording], {"base": [0.1, 0.1, 0.1, 1.0, 1.0, 1.0]})
    found_again(rough, true, ["load/mass", "load/com"], problem)
    with pytest.raises(di.DataError, match="moves: a is not measured"):
        di.Readings.of(rough, [dataclasses.replace(recording, a=None)], {"base": 1.0})


@pytest.mark.slow
def test_torque_constants_are_found_from_currents():
    """With the currents as commands: the constant of a motor beside the friction of its joint."""

    def motored(constant, damping):
        joint = dl.Revolute(axis=(0, 1, 0), name="hinge", damping=damping)
        system = dl.chain([dl.Body(name="rod", joint=joint, mass=1.0, com=(0, 0, -0.2))])
        return dl.attach(
            system, dl.CurrentMotor("hinge", torque_constant=constant, gear_ratio=20.0)
        )

    true, rough = motored(0.07, 0.1), motored(0.05, 0.02)
    random = np.random.default_rng(2)
    q, v, a = random.normal(size=(3, 50, 1))
    needed = jax.vmap(lambda *x: dl.inverse_dynamics(true, *x))(q, v, a) + 0.1 * v
    recording = di.Recording("currents", 0.1 * np.arange(50), q, v, a, np.asarray(needed) / 1.4)
    problem = di.InverseDynamics.of(rough, [recording], deviation=0.01)
    found_again(rough, true, ["hinge/torque_constant", "hinge/damping"], problem)


# --- input ---------------------------------------------------------------------------------------


def height(system, q, v, u, t):
    return dl.body_poses(system, q)[-1, 2, 3]


@pytest.mark.filterwarnings("ignore:seen changes what it depends on")
def test_a_quantity_is_traced_once():
    """Guards that the number of readings, asked for many times, is not found anew each time."""
    traced = []

    def seen(*state):
        traced.append(state)
        return height(*state)

    sensed = di.with_sensors(pendulum(), di.Sensor("height", seen))
    for mass in (1.0, 2.0, 3.0):
        heavy = sensed.replace(mass=mass + sensed.bodies.mass)
        assert heavy.sensors[-1].columns(heavy) == [("height", "")]
    # Before and after the sensor is a part of the system.
    assert len(traced) <= 2


@pytest.mark.parametrize(
    ("sensor", "said"),
    [
        (di.Sensor("hinge", dq.Point("rod")), "that of a joint"),
        (di.Sensor("rod", dq.Point("rod")), "that of a body"),
        (di.Sensor("gyroscope", dq.Point("rod")), "that of a sensor"),
        (di.Sensor("tau", dq.Point("rod")), "that of something else"),
        (di.Sensor("a/b", dq.Point("rod")), "'a/b'; give it one without"),
        (di.Sensor("x", dq.Point("rud")), "did you mean 'rod'"),
        (di.Sensor("x", dq.JointWrench("hing")), "did you mean 'hinge'"),
        (di.Sensor("x", dq.Point("rod"), scale=0.0), "scale has a zero"),
        (di.Sensor("x", dq.Point("rod"), bias=[1.0, 2.0]), r"bias has shape \(2,\); .* or 3"),
        (di.Sensor("x", dq.Pose("rod"), bias=1.0), "move its frame"),
        (di.Sensor("x", lambda *state: None), "let it return real numbers"),
        (dq.Point("rod"), "is no sensor"),
    ],
)
def test_unfit_sensors_are_refused(sensor, said):
    # Without the checks of annotations that only tests have.
    with pytest.raises(dl.ModelError, match=said):
        inspect.unwrap(di.with_sensors)(pendulum(), sensor)


def test_unfit_readings_are_refused(swing):
    """Unknown sensors, columns that lack, all gaps, and what a sensor needs and is not there."""

    def of(deviation, **changes):
        return di.Readings.of(pendulum(), [dataclasses.replace(swing, **changes)], deviation)

    a, g = swing.readings["accelerometer"], swing.readings["gyroscope"]
    for deviation, changes, said in (
        ({}, {}, "no sensor to compare"),
        ({"gyroskope": 1.0}, {}, "did you mean 'gyroscope'"),
        (IMU, {"readings": {"gyroscope": g}}, "no readings of 'accelerometer'"),
        (IMU, {"readings": {"accelerometer": a[:, :2], "gyroscope": g}}, "2 columns, the sensor 3"),
        (IMU, {"readings": {"accelerometer": a * np.nan, "gyroscope": g}}, "are gaps"),
        (IMU, {"v": None}, "v is not measured"),
        (IMU, {"v": swing.v * np.nan}, "wherever 'accelerometer' was read, q or a or v is a gap"),
        ({"gyroscope": -1.0}, {}, "no standard deviation"),
    ):
        with pytest.raises(di.DataError, match=said):
            of(deviation, **changes)
    of({"gyroscope": 0.1}, a=None, tau=None)
    with pytest.raises(di.DataError, match="has an encoder, whose readings are q"):
        di.Readings.of(ARM, [SEEN], {"elbow": 1.0})
    with pytest.raises(di.DataError, match=r"readings of|imu has shape \(3,\)"):
        di.Recording("r", swing.t, readings={"imu": np.zeros(3)})


@pytest.mark.slow
def test_a_function_is_a_sensor_with_its_own_numbers(swing):
    """A scalar function; its bias is a scalar, and gaps leave gradients finite."""
    system = di.with_sensors(pendulum(), di.Sensor("height", height))
    rows = np.full((201, 1), np.nan)
    rows[::7] = 0.3
    recording = dataclasses.replace(swing, readings={"height": rows})
    problem = di.Readings.of(system, [recording], {"height": 0.1})

    def cost(bias):
        sensor = dataclasses.replace(system.sensors[2], bias=bias)
        changed = dataclasses.replace(system, sensors=(*system.sensors[:2], sensor))
        return jnp.sum(problem.residual(changed, problem.own) ** 2)

    assert problem.measured.sum() == 29
    assert system.sensors[2].bias.shape == ()
    np.testing.assert_allclose(jax.grad(cost)(jnp.zeros(())), 29 * 2 * -0.3 / 0.01, rtol=1e-9)


@pytest.mark.slow
def test_locked_and_absolute_machines_keep_their_sensors():
    """A sensor of a body needs no joint."""
    system = di.with_sensors(pendulum(damping=0.0), di.Sensor("tip", dq.Point("rod", (0, 0, -1))))
    locked = dl.lock(system, {"hinge": 0.3})
    tip = locked.sensors[2](locked, jnp.zeros(0), jnp.zeros(0), None, 0.0)
    np.testing.assert_allclose(tip, [-np.sin(0.3), 0, -np.cos(0.3)], atol=1e-12)
    machine = dl.absolute(system)
    state = dl.absolute_state(machine, system, jnp.array([0.3]), jnp.zeros(1))
    np.testing.assert_allclose(machine.sensors[2](machine, *state, None, 0.0), tip, atol=1e-12)

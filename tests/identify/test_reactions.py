"""Robots that stand, fitted from the torques of their joints: reactions are eliminated."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import identify as di
from difflie.identify.files import read_study, recordings_of, system_of
from difflie.identify.reactions import without_contacts

STATES = 40


def quadruped(actuators=False):
    """A trunk on four legs of three joints with spheres as feet; 18 degrees of freedom."""
    bodies = [dl.Body(name="trunk", joint=dl.Free(), mass=6.0, inertia=np.diag([0.03, 0.09, 0.1]))]
    roll, pitch = (dl.Revolute(axis=axis, damping=0.05) for axis in ((1, 0, 0), (0, 1, 0)))
    link = {"mass": 0.3, "com": (0, 0, -0.075), "inertia": np.diag([6e-4, 6e-4, 5e-5])}
    feet = {}
    for leg, x, y in (("fl", 0.2, 0.1), ("fr", 0.2, -0.1), ("rl", -0.2, 0.1), ("rr", -0.2, -0.1)):
        hip, thigh, shank = (f"{leg}_{part}" for part in ("hip", "thigh", "shank"))
        small = {"mass": 0.2, "inertia": np.eye(3) * 2e-4}
        bodies += [
            dl.Body(name=hip, parent="trunk", joint=roll, position=(x, y, 0), **small),
            dl.Body(name=thigh, parent=hip, joint=pitch, **link),
            dl.Body(name=shank, parent=thigh, joint=pitch, position=(0, 0, -0.15), **link),
        ]
        feet[f"{leg}_foot"] = dl.Sphere(dl.Frame(shank, (0, 0, -0.15)), 0.02)
    robot = dl.tree(bodies).with_shapes({**feet, "ground": dl.Plane()})
    robot = dl.touching(robot, "ground", "*_foot", stiffness=4e3, dissipation=0.5)
    if not actuators:
        return robot
    joints = [name for name in robot.joint_names if name != "trunk"]
    return dl.attach(robot, *(dl.Drive(name, torque_scale=9.0) for name in joints))


ROBOT = quadruped()
FREE = ["trunk/mass", "trunk/com_x", "trunk/com_y"]
TRUTH = np.array([7.2, 0.01, -0.004])
DEVIATION = np.array([*[0.05] * 6, *[0.1] * 12])


def standing(robot, rng, contacts=True):
    """Poses in which the feet are pressed into the ground by about 3 mm, and their velocities."""
    n = STATES
    turn = jax.vmap(dl.so3.exp)(0.05 * rng.normal(size=(n, 3)))
    legs = np.array([0.0, 0.6, -1.2]) + 0.02 * rng.normal(size=(n, 4, 3))
    height = 0.3 * np.cos(0.6) + 0.017
    places = np.column_stack([rng.normal(size=(n, 2)), np.full(n, height)])
    q = np.column_stack([jax.vmap(dl.quaternion.from_matrix)(turn), places, legs.reshape(n, 12)])
    gaps = jax.vmap(lambda q: dl.distance(robot, q, "ground", "*_foot").distance)(q)
    q[:, 6] -= np.asarray(gaps).max(axis=1) + (1e-3 if contacts else -0.5)
    return q, rng.normal(size=(n, 18))


def torques(real, q, v, a):
    """What the joints must do for the motion of a real machine on its compliant feet."""

    def needed(q, v, a):
        return dl.inverse_dynamics(real, q, v, a) - dl.passive_force(real, q, v)

    return np.array(jax.jit(jax.vmap(needed))(q, v, a))


def log_of(robot, rng, **given):
    """A log of accelerations that the joints alone can make: the base has no actuator."""
    real = dl.Parameters(robot, FREE).with_values(TRUTH)
    q, v = standing(robot, rng, **given)
    tau = np.column_stack([np.zeros((STATES, 6)), 3 * rng.normal(size=(STATES, 12))])

    def motion(q, v, tau):
        return dl.forward_dynamics(real, q, v, tau + dl.passive_force(real, q, v))

    a = np.array(jax.jit(jax.vmap(motion))(q, v, tau))
    return di.Recording("stand", 0.01 * np.arange(STATES), q, v, a, tau)


def noisy(log, rng):
    noise = np.append(np.zeros(6), np.full(12, 0.1)) * rng.normal(size=log.tau.shape)
    return dataclasses.replace(log, tau=log.tau + noise)


@pytest.fixture(scope="module")
def log():
    return log_of(ROBOT, np.random.default_rng(0))


@pytest.fixture(scope="module")
def closed(log):
    return di.with_closed_contacts(ROBOT, log)


@pytest.mark.slow
def test_reactions_of_any_size_and_direction_have_no_part_in_the_errors(log, closed):
    """An error of torque by J^T f at the contact points, J that of differences, changes nothing."""
    problem = di.InverseDynamics.of(ROBOT, [closed], DEVIATION)
    k, foot, step = 7, "fl_foot", 1e-6

    def place(q):
        found = dl.distance(ROBOT, q, "ground", foot)
        return np.asarray((found.first + found.second) / 2)[0]

    def shank(q):
        return np.asarray(dl.body_poses(ROBOT, q))[ROBOT.body_names.index("fl_shank")]

    q = jnp.asarray(log.q[k])
    local = np.linalg.inv(shank(q)) @ np.append(place(q), 1)
    moved = [
        (shank(dl.integrate(ROBOT, q, s * e)) @ local)[:3]
        for s in (step, -step)
        for e in np.eye(18)
    ]
    jacobian = (np.array(moved[:18]) - np.array(moved[18:])).T / (2 * step)
    push = np.zeros((STATES, 18))
    push[k] = jacobian.T @ np.array([300.0, -500.0, 800.0])
    assert np.abs(push[k]).max() > 100
    off = problem.in_deviations(ROBOT, jnp.asarray(push))
    np.testing.assert_allclose(off, 0, atol=1e-5)
    assert int(problem.measured.reshape(STATES, 18)[k].sum()) == 6


@pytest.mark.slow
def test_the_truth_is_found_without_noise_whatever_the_ground(closed):
    soft = dl.touching(ROBOT, "ground", "*_foot", stiffness=10.0)
    problem = di.InverseDynamics.of(soft, [closed], DEVIATION)
    found = di.fit(dl.Parameters(soft, FREE), problem)
    np.testing.assert_allclose(found.values, TRUTH, rtol=1e-6, atol=1e-8)
    assert np.nanmax(found.validate([closed])[0].torque_rmse) < 1e-8
    start = di.fit(dl.Parameters(soft, FREE), di.InverseDynamics.of(soft, [closed])).start
    assert start[0] == 6.0


@pytest.mark.slow
def test_intervals_of_a_payload_cover_it(log):
    """Of twenty logs with other noise: within four errors, and 95 % intervals in 50 of 60."""
    rng, covered = np.random.default_rng(1), 0
    for _ in range(20):
        marked = di.with_closed_contacts(ROBOT, noisy(log, rng))
        found = di.fit(
            dl.Parameters(ROBOT, FREE),
            di.InverseDynamics.of(ROBOT, [marked], DEVIATION),
        )
        assert found.converged
        assert (np.abs(found.values - TRUTH) < 4 * found.standard_errors).all()
        lower, upper = found.intervals.T
        covered += int(((lower < TRUTH) & (upper > TRUTH)).sum())
    assert covered >= 50
    assert found.standard_errors[0] < 0.05


@pytest.mark.slow
def test_commands_of_drives_at_the_joints_tell_the_same(log, closed):
    geared = quadruped(actuators=True)
    driven = dataclasses.replace(closed, tau=closed.tau[:, 6:] / 9.0)
    off = np.append(np.full(6, 0.05), np.zeros(12))
    plain = di.InverseDynamics.of(ROBOT, [closed], np.append(off[:6], np.full(12, 0.9)))
    problem = di.InverseDynamics.of(geared, [driven], 0.1, 0.05)
    pairs = [(p.residual(r, jnp.zeros(0))) for p, r in ((plain, ROBOT), (problem, geared))]
    np.testing.assert_allclose(*(jnp.sum(r**2) for r in pairs), rtol=1e-9)


def test_a_column_closes_what_is_nearest_and_survives_cuts(log, closed):
    """Names of feet close their contact with the ground, in rows of their own."""
    feet = {pair[1]: mask for pair, mask in closed.closed.items()}
    named = dataclasses.replace(log, closed={k: m.astype(float) for k, m in feet.items()})
    problems = [di.InverseDynamics.of(ROBOT, [r], DEVIATION) for r in (named, closed)]
    np.testing.assert_array_equal(problems[0].left, problems[1].left)
    lifted = dataclasses.replace(log, closed={"fl_foot": np.arange(STATES) < 20})
    assert lifted.between(0.1, 0.3).closed["fl_foot"].sum() == 10
    assert lifted.resampled(0.005).closed["fl_foot"].sum() == 39


@pytest.mark.slow
def test_rows_in_the_air_are_those_without_contacts():
    """A robot that floats has the same errors with open contacts as with none."""
    flying = log_of(ROBOT, np.random.default_rng(2), contacts=False)
    never = {"fl_foot": np.zeros(STATES, bool)}
    deviation = {"deviation": DEVIATION}
    sums = [
        jnp.sum(di.InverseDynamics.of(ROBOT, [r], **deviation).residual(ROBOT, jnp.zeros(0)) ** 2)
        for r in (flying, dataclasses.replace(flying, closed=never))
    ]
    np.testing.assert_allclose(*sums, rtol=1e-9)
    with pytest.raises(di.DataError, match=r"no contact is ever closed; the least gap is 0\.4"):
        di.with_closed_contacts(ROBOT, flying)


@pytest.mark.slow
def test_base_parameters_are_those_that_the_motions_left_tell(closed):
    """`di.linear` has the same rows: its torques of the truth are those of the log."""
    found = di.linear(ROBOT, di.InverseDynamics.of(ROBOT, [closed], DEVIATION))
    assert found.base.rank > 20
    assert found.deviations.max() < 1e-8


@pytest.mark.slow
def test_what_is_no_contact_is_said(log, closed):
    wrong = dataclasses.replace(log, closed={"fl_fot": np.ones(STATES)})
    with pytest.raises(di.DataError, match=r"'fl_fot' is closed, and touches nothing.*fl_foot"):
        di.InverseDynamics.of(ROBOT, [wrong])
    with pytest.raises(di.DataError, match=r"closed\['a'\] has shape \(3,\) for 40 times"):
        dataclasses.replace(log, closed={"a": np.ones(3)})
    with pytest.raises(di.DataError, match="no shapes are in contact"):
        di.with_closed_contacts(dl.tree([dl.Body(name="a", joint=dl.Free(), mass=1.0)]), log)
    with pytest.raises(di.DataError, match="no motion of which all torques are known"):
        di.InverseDynamics.of(
            quadruped(True), [dataclasses.replace(closed, tau=closed.tau[:, 6:])], 1.0, np.inf
        )


def test_logs_and_configurations_say_what_is_closed(log, closed, tmp_path):
    """A switch of a foot in a CSV file, and a gap in TOML, close the same rows as in Python."""
    feet = [pair[1] for pair in closed.closed]
    quantities = {k: [f"{k}{i}" for i in range(getattr(log, k).shape[1])] for k in "qva"}
    quantities["tau"] = [f"tau{i}" for i in range(18)]
    names = ["t", *(c for columns in quantities.values() for c in columns), *feet]
    values = [log.t[:, None], log.q, log.v, log.a, log.tau, np.stack([*closed.closed.values()], 1)]
    table = tmp_path / "log.csv"
    np.savetxt(table, np.hstack(values), delimiter=",", header=",".join(names), comments="")
    switches = {foot: foot for foot in feet}
    read = di.read_recording(table, closed=switches, **quantities)
    for foot in feet:
        np.testing.assert_array_equal(read.closed[foot], closed.closed["ground", foot])
    config = tmp_path / "stand.toml"
    lists = "\n".join(f"columns.{k} = {names}" for k, names in quantities.items())
    config.write_text(f"""
        [system]
        file = "robot.urdf"
        [shapes.ground]
        type = "Plane"
        [[touching]]
        first = "ground"
        second = "*_foot"
        [data]
        {lists}
        closed_below = 0.002
        [[run]]
        file = "log.csv"
        [[parameter]]
        path = "trunk/mass"
        """)
    feet = {name: shape for name, shape in ROBOT.shapes.items() if name != "ground"}
    dl.save(without_contacts(ROBOT).with_shapes(feet), tmp_path / "robot.urdf")
    study = read_study(config)
    (found,) = recordings_of(study, system_of(study))["fit"]
    assert found.closed.keys() == closed.closed.keys()
    for pair, mask in found.closed.items():
        np.testing.assert_array_equal(mask, closed.closed[pair])
    arm = dl.load(dl.examples.path("arm7"))
    with pytest.raises(di.DataError, match="its contacts are closed; declare parameters"):
        di.identify_arm(arm, [read])

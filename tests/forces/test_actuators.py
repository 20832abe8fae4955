"""Actuators: their laws against closed forms, their memories in motions, and those of one's own."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from methods import three_methods

import difflie as dl
from difflie import identify as di
from difflie.cli.run import run_config
from difflie.forces.actuators.acting import delivered
from difflie.io.config import ConfigError, read_config
from difflie.io.couplings import coupled
from difflie.system.kinematic_tree import Tree

RNG = np.random.default_rng(7)
U, Q, V = RNG.normal(size=(3, 200)) * np.array(((30.0,), (2.0,), (20.0,)))


def clipped(u, v):
    most = np.clip(12 * (1 - v / 25), 0, 8)
    return np.clip(u, -np.clip(12 * (1 + v / 25), 0, 8), most)


LAWS = {
    "drive": (
        dl.Drive("j", torque_scale=0.9, torque_bias=0.1, load_friction=0.3),
        lambda u, q, v: (0.9 * u + 0.1) - 0.3 * np.abs(0.9 * u + 0.1) * np.tanh(v / 0.05),
    ),
    "motor": (
        dl.Motor("j", max_torque=8.0, stall_torque=12.0, no_load_speed=25.0),
        lambda u, q, v: clipped(u, v),
    ),
    "saturated": (dl.Motor("j", max_torque=8.0), lambda u, q, v: np.clip(u, -8, 8)),
    "current": (
        dl.CurrentMotor("j", torque_constant=0.1, gear_ratio=20.0, max_current=15.0),
        lambda u, q, v: 2.0 * np.clip(u, -15, 15),
    ),
    "voltage": (
        dl.VoltageMotor(
            "j", torque_constant=0.1, resistance=0.5, max_voltage=24.0, max_current=30.0
        ),
        lambda u, q, v: 0.1 * np.clip((np.clip(u, -24, 24) - 0.1 * v) / 0.5, -30, 30),
    ),
    "position": (
        dl.PositionServo("j", kp=3.0, kd=0.4, max_torque=40.0),
        lambda u, q, v: np.clip(3 * (u - q) - 0.4 * v, -40, 40),
    ),
    "velocity": (
        dl.VelocityServo("j", kd=0.4, max_torque=9.0),
        lambda u, q, v: np.clip(0.4 * (u - v), -9, 9),
    ),
    "thruster": (dl.Thruster("j", max_thrust=20.0), lambda u, q, v: np.clip(u, 0, 20)),
}


@pytest.mark.parametrize("name", LAWS)
def test_laws(name):
    """Values, and derivatives by everything in both modes, beyond the limits and within."""
    actuator, law = LAWS[name]

    def torque(actuator, u, q, v):
        return actuator.torque(u, q, v, None)[0]

    @jax.jit
    @jax.vmap
    def run(u, q, v):
        given = actuator, u, q, v
        forms = jax.grad, jax.jacfwd
        return torque(*given), *(d(torque, argnums=(0, 1, 2, 3))(*given) for d in forms)

    value, back, ahead = run(U, Q, V)
    np.testing.assert_allclose(value, law(U, Q, V), rtol=1e-13, atol=1e-13)
    for one, other in zip(jax.tree.leaves(ahead), jax.tree.leaves(back), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)
        assert np.isfinite(one).all()
    h = 1e-6
    for i in range(3):
        up, down = ([x + s * h * (k == i) for k, x in enumerate((U, Q, V))] for s in (1, -1))
        slope = (law(*up) - law(*down)) / (2 * h)
        np.testing.assert_allclose(back[i + 1], slope, rtol=2e-5, atol=1e-6)
    single = jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), (actuator, 3.0, 0.2, 1.0))
    assert torque(*single).dtype == jnp.float32


def chain(free=False):
    """Two links behind a ball or a hinge, placed askew."""
    first = dl.Spherical(name="ball") if free else dl.Revolute(name="hip", axis=(0.0, 1.0, 0.0))
    knee = dl.Revolute(name="knee", axis=(0.2, 1.0, 0.0))
    y = {"mass": 1.0, "com": (0.02, 0.0, -0.2), "inertia": np.diag((0.02, 0.025, 0.01))}
    turned = {"position": (0, 0.1, -0.4), "rotation": (0.3, 0.2, 0.0)}
    bodies = [dl.Body(name="upper", joint=first, **y)]
    return dl.chain([*bodies, dl.Body(name="lower", joint=knee, **turned, **y)])


POINT, DIRECTION = (0.05, -0.02, -0.3), (1.0, 2.0, -0.5)
AXIS = dl.Axis("lower", POINT, DIRECTION)


def test_along_an_axis_it_is_the_jacobian():
    """J^T F and the velocity J v, at a state anywhere; the other joints have no entry."""
    bare = chain(free=True)
    system = dl.attach(bare, dl.VelocityServo(axis=AXIS, kd=3.0), dl.Drive("ball[1]"))
    assert system.nu == 2 and system.actuator_names == ("lower", "ball[1]")
    assert bare.nu == bare.nv == 4 and bare.actuator_names == ()
    q = np.array((0.7, -0.1, 0.5, 0.5, 0.6))
    v = np.array((0.4, -1.0, 0.3, 2.0))
    J = np.asarray(dl.body_jacobian(bare, q, "lower"))
    unit = np.array(DIRECTION) / np.linalg.norm(DIRECTION)
    row = np.concatenate((np.cross(POINT, unit), unit)) @ J
    given = (jnp.asarray(x) for x in ((0.8, 0.25), q, v))
    found = delivered(Tree.of(system), *given)
    expected = row * 3 * (0.8 - row @ v) + 0.25 * np.eye(4)[1]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.slow
@three_methods
def test_a_constant_force_along_an_axis_is_a_follower_force(method):
    """To the error of the method, which are not alike for energy and momentum."""
    start = jnp.asarray([0.3, -0.2]), jnp.asarray([0.0, 0.4])
    unit = np.array(DIRECTION) / np.linalg.norm(DIRECTION)
    how = {"dt": 1e-3, "steps": 40, "method": method}
    pushed = dl.attach(chain(), dl.FollowerForce([("lower", POINT)], 4.0 * unit))
    thrown = dl.attach(chain(), dl.Thruster(axis=AXIS))
    a = dl.simulate(pushed, *start, **how)
    b = dl.simulate(thrown, *start, control=jnp.full((40, 1), 4.0), **how)
    np.testing.assert_allclose(a.q, b.q, atol=1e-6 if "Energy" in str(method) else 1e-12)


def mass(*actuators):
    """2 kg on a slide, in weightlessness."""
    slide = dl.Prismatic(name="slide", axis=(0.0, 0.0, 1.0))
    bare = dl.chain([dl.Body(name="hull", joint=slide, mass=2.0)], gravity=(0.0, 0.0, 0.0))
    return dl.attach(bare, *actuators)


LAG, DT = 0.03, 0.02
PUSHES = np.repeat((5.0, -3.0, 30.0, 8.0), 6)


def thrust(lag):
    """The exact thrust at the ends of the steps, and its integral in closed form."""
    f, impulse = [0.0], [0.0]
    for u in np.clip(PUSHES, 0, 12):
        missing = f[-1] - u
        impulse.append(impulse[-1] + u * DT + missing * lag * (1 - np.exp(-DT / lag)))
        f.append(u + missing * np.exp(-DT / lag))
    return np.array(f), np.array(impulse)


@three_methods
def test_impulses_of_a_thruster_with_lag_are_exact(method):
    """In every family of methods: velocities on the grid are those of the closed form."""
    system = mass(dl.Thruster(axis=dl.Axis("hull"), max_thrust=12.0, lag=LAG))
    run = dl.simulate(
        system, [0.0], [0.0], dt=DT, steps=24, method=method, control=jnp.asarray(PUSHES[:, None])
    )
    _, impulse = thrust(LAG)
    np.testing.assert_allclose(run.v[:, 0], impulse / 2, atol=1e-10)
    np.testing.assert_allclose(run.effort(system)[:24, 0], np.diff(impulse) / DT, atol=1e-12)
    assert run.u is not None
    np.testing.assert_array_equal(run.u[:24, 0], PUSHES)


def end(lag, adjoint=None, steps=24):
    system = mass(dl.Thruster("slide", max_thrust=12.0, lag=lag))
    system = system if lag.dtype == jnp.float64 else system.astype(lag.dtype)
    start = jnp.zeros(1, lag.dtype), jnp.zeros(1, lag.dtype)
    control = jnp.asarray(PUSHES[:, None], lag.dtype)
    given = {"dt": jnp.asarray(DT, lag.dtype), "steps": steps, "control": control}
    given |= {} if adjoint is None else {"adjoint": adjoint}
    run = dl.simulate(system, *start, method="SemiImplicitEuler", save_every=steps, **given)
    return run.v[-1, 0]


@pytest.mark.slow
def test_derivatives_by_the_lag():
    """Forward and reverse, in a batch, against the closed form; with few states kept as well."""
    h = 1e-6
    slope = (thrust(LAG + h)[1][-1] - thrust(LAG - h)[1][-1]) / (4 * h)
    lags = jnp.asarray((LAG, 2 * LAG))
    values, back = jax.vmap(jax.value_and_grad(end))(lags)
    np.testing.assert_allclose(values[0], thrust(LAG)[1][-1] / 2, rtol=1e-12)
    np.testing.assert_allclose(back[0], slope, rtol=1e-7)
    ahead = jax.jvp(end, (lags[0],), (jnp.ones(()),))[1]
    few = jax.grad(lambda lag: end(lag, dl.RecursiveCheckpoint(9)))(lags[0])
    np.testing.assert_allclose((ahead, few), back[0], rtol=1e-11)


@pytest.mark.slow
def test_derivatives_in_single_precision_and_forward():
    half = jax.grad(end)(jnp.float32(LAG))
    assert half.dtype == jnp.float32
    exact = jax.grad(end)(jnp.asarray(LAG))
    np.testing.assert_allclose(half, exact, rtol=1e-4)
    ahead = jax.jvp(lambda lag: end(lag, dl.Forward()), (jnp.asarray(LAG),), (jnp.ones(()),))[1]
    np.testing.assert_allclose(ahead, exact, rtol=1e-11)


def test_what_steps_back_has_no_memory():
    with pytest.raises(ValueError, match=r"what Thruster \('slide'\) remembers is not found again"):
        dl.simulate(
            mass(dl.Thruster("slide", lag=0.1)),
            *([0.0], [0.0]),
            steps=4,
            method="StormerVerlet",
            adjoint=dl.Reversible(),
        )


def test_a_function_is_delayed_too():
    """What a controller commands at the start of a step acts two steps later."""
    system = mass(dl.Drive("slide", delay=2 * DT), dl.PositionServo("slide", kp=0.0, name="none"))

    def control(t, q, v):
        return jnp.stack((jnp.sin(9 * t) - 3 * q[0], t))

    run = dl.simulate(system, [0.1], [0.0], dt=DT, steps=12, control=control)
    assert run.u is not None
    told = np.asarray(run.u[:, 0])
    np.testing.assert_allclose(run.effort(system)[2:12, 0], told[:10], atol=1e-14)
    np.testing.assert_allclose(np.diff(run.v[:, 0])[2:] * 2 / DT, told[:10], atol=1e-12)


def test_a_motion_with_a_memory_stops_at_an_event():
    """In the step cut short the mean of the thrust is that of the shorter time."""
    system = mass(dl.Thruster("slide", lag=LAG))
    push = jnp.full((24, 1), 5.0)

    def speed(t, q, v):
        return 0.5 - v[0]

    run = dl.simulate(system, [0.0], [0.0], dt=DT, steps=24, control=push, until=speed)
    assert run.result.ending is not None
    t = float(run.result.ending.t)
    reached = 5 / 2 * (t - LAG * (1 - np.exp(-t / LAG)))
    np.testing.assert_allclose(reached, 0.5, rtol=1e-9)
    np.testing.assert_allclose(run.v[-1], 0.5, rtol=1e-9)
    # The mean of the thrust over the shorter step, also in the row at which that begins.
    begun = int(t / DT)
    share = 2 * (0.5 - float(run.v[begun, 0])) / (t - begun * DT)
    np.testing.assert_allclose(run.torques[begun:, 0], share, rtol=1e-8)


class Counter(dl.Actuator):
    """Its command, every second step; what it keeps is a whole number."""

    def init(self, command, q, v):
        return jnp.zeros((), jnp.int32)

    def torque(self, command, q, v, memory):
        even = memory.kept % 2 == 0
        return jnp.where(even, command, 0.0), memory._replace(kept=memory.kept + 1)


def test_a_memory_may_be_a_whole_number():
    system = mass(Counter(joint="slide"))
    run = dl.simulate(system, [0.0], [0.0], dt=DT, steps=6, control=jnp.ones((6, 1)))
    np.testing.assert_allclose(np.diff(run.v[:, 0]) * 2 / DT, [1, 0, 1, 0, 1, 0], atol=1e-12)


def pushed_arm():
    hinge = dl.Revolute(name="hinge", axis=(0.0, 1.0, 0.0), max_effort=1.0)
    arm = dl.chain([dl.Body(name="arm", joint=hinge, mass=1.0, com=(0.0, 0.0, -1.0))])
    jet = dl.Thruster(axis=dl.Axis("arm", (0.0, 0.0, -1.0), (1.0, 0.0, 0.0)))
    return dl.attach(arm, dl.Drive("hinge"), jet)


def test_a_force_along_an_axis_leaves_no_joint_its_limit():
    """The limit of effort is that of the joint's own actuator."""
    push = jnp.array([[0.0, 5.0]] * 2)
    run = dl.simulate(pushed_arm(), [0.0], [0.0], dt=DT, steps=2, control=push)
    assert run.result.ok and run.result.within_limits


def test_measurements_of_a_force_along_an_axis():
    """Where it was not measured no effort is known; motions are not designed for it."""
    system = pushed_arm()
    t = np.arange(6) * DT
    tau = np.ones((6, 2))
    tau[2:4, 1] = np.nan
    q = v = a = np.zeros((6, 1))
    problem = di.InverseDynamics.of(system, [di.Recording("run", t, q, v, a=a, tau=tau)])
    np.testing.assert_array_equal(problem.there[:, 0], [True, True, False, False, True, True])
    with pytest.raises(ValueError, match="one actuator at each joint"):
        di.excitation(dl.Parameters(system, ["arm/mass"]), duration=1.0)


class Lagged(dl.Actuator):
    """A gain behind a lag, of one's own."""

    gain: jax.Array = eqx.field(converter=dl.number(unit="N/V", positive=True))
    constant: jax.Array = eqx.field(converter=dl.number(unit="s", positive=True))

    def init(self, command, q, v):
        return jnp.zeros(())

    def torque(self, command, q, v, memory):
        share = 1 - jnp.exp(-memory.dt / self.constant)
        kept = memory.kept + share * (command - memory.kept)
        return self.gain * kept, memory._replace(kept=kept)


OWN = """
import equinox as eqx
import jax.numpy as jnp
import difflie as dl

class Spindle(dl.Actuator):
    gain: object = eqx.field(converter=dl.number(unit="N/V^2", positive=True))

    def torque(self, command, q, v, memory):
        return self.gain * command * jnp.abs(command), memory
"""
TOML = """
[system]
file = "package:arm7"
[[actuator]]
type = "spindle:Spindle"
joint = "joint2"
gain = 0.5
[[thruster]]
axis = {body = "link7", position = [0.0, 0.0, 0.1], direction = [0.0, 0.0, 2.0]}
max_thrust = 20.0
name = "jet"
[control]
command = [3.0, 40.0]
"""


def test_one_of_ones_own(tmp_path):
    """With a memory, in a motion; named in a file; its numbers have paths and units."""
    system = mass(Lagged(2.0, 0.1, joint="slide"))
    run = dl.simulate(system, [0.0], [0.0], dt=DT, steps=10, control=jnp.ones((10, 1)))
    expected = 2 * (1 - np.exp(-DT / 0.1 * np.arange(1, 11)))
    np.testing.assert_allclose(run.effort(system)[:10, 0], expected, rtol=1e-12)
    parameters = dl.Parameters(system, ["slide/gain", "slide/constant"])
    assert parameters.units == ("N/V", "s")
    (tmp_path / "spindle.py").write_text(OWN)
    (tmp_path / "run.toml").write_text(TOML)
    config = read_config(tmp_path / "run.toml", allow_code=True)
    arm = coupled(dl.load("difflie/data/arm7.urdf"), config.couplings, config.path)
    assert arm.actuator_names == ("joint2", "jet") and config.control.command == [3.0, 40.0]
    paths = ["joint2/gain", "jet/max_thrust", "jet/axis/position"]
    assert dl.Parameters(arm, paths).units == ("N/V^2", "N", "m", "m", "m")
    torque = arm.actuators[0].torque(jnp.asarray(-3.0), 0.0, 0.0, None)[0]
    np.testing.assert_allclose(torque, -4.5)


SERVO = """
[system]
file = "FOLDER/simple_pendulum.urdf"
[simulation]
steps = 3
[[position_servo]]
joint = "hinge"
kp = 300.0
kd = 20.0
[control]
command = [0.5]
"""


def test_a_described_motion_with_a_servo(tmp_path):
    """Its control is the command; an effort beside it is refused."""
    path, folder = tmp_path / "servo.toml", Path(__file__).parents[2] / "configs"
    text = SERVO.replace("FOLDER", folder.as_posix())
    path.write_text(text.replace("command", "effort"))
    with pytest.raises(ConfigError, match=r"control.effort: .* give control.command"):
        run_config(read_config(path), None)
    path.write_text(text)
    results, _ = run_config(read_config(path), None)
    assert results.ok and 0 < results.final.q[0] < 0.5


class Wide(Lagged):
    def torque(self, command, q, v, memory):
        return jnp.stack((command, command)), memory


class Forgetful(Lagged):
    def torque(self, command, q, v, memory):
        return command, None


class Single(Lagged):
    def torque(self, command, q, v, memory):
        return command


class Damped(dl.Actuator):
    damping: jax.Array = eqx.field(converter=dl.number(unit="N s/m"))

    def torque(self, command, q, v, memory):
        return command, memory


@pytest.mark.parametrize(
    ("actuator", "said"),
    [
        (Wide(1.0, 0.1, joint="slide"), "let torque return one number"),
        (Forgetful(1.0, 0.1, joint="slide"), "let init and torque return what is alike"),
        (Single(1.0, 0.1, joint="slide"), "let torque return the torque and the memory"),
        (Lagged(-1.0, 0.1, joint="slide"), "gain is -1.0 N/V; it must be positive"),
        (Lagged(1.0, [0.1], joint="slide"), "constant has shape"),
        (Lagged(1.0, 0.1), "it has neither a joint nor an axis nor a transmission; give one"),
        (dl.Drive("slide", axis=AXIS), "it has a joint and an axis; give one of them"),
        (dl.Drive("slid"), "no joint that moves by itself is named 'slid'; did you mean 'slide'"),
        (dl.Thruster(axis=dl.Axis("hul")), "its axis is on 'hul'; .* did you mean 'hull'"),
        (dl.Thruster(axis=dl.Axis(None)), "on the world, which does not move"),
        (dl.Thruster(axis=dl.Axis("hull", (0, 0))), "its axis: position has shape"),
        (dl.Thruster("slide", lag=0.0), "lag is 0.0 s; it must be positive, or leave it out"),
        (dl.Motor("slide", max_torque=1.0, stall_torque=2.0), "no_load_speed is missing"),
        (dl.Motor("slide", max_torque=1.0, name="jet"), "an actuator named 'jet' is there already"),
        (Damped(1.0, joint="slide"), "damping has the path slide/damping of another"),
        (dl.PositionServo(axis=dl.Axis("hull"), kp=1.0, name="p"), "take a VelocityServo"),
    ],
)
def test_what_is_no_actuator_is_named(actuator, said):
    with pytest.raises(dl.ModelError, match=said):
        dl.attach(mass(dl.Drive("slide", name="jet")), actuator)


def test_commands_have_one_number_for_each():
    system = dl.attach(chain(), dl.Drive("knee"))
    with pytest.raises(
        ValueError, match=r"\(4, 2\), needed is \(4, 1\), for 'knee' in this order$"
    ):
        dl.simulate(system, [0.0, 0.0], [0.0, 0.0], steps=4, control=jnp.zeros((4, 2)))
    with pytest.raises(dl.ModelError, match="URDF has no words for its actuators: Drive"):
        dl.save(system, "nowhere.urdf")


@pytest.mark.slow
def test_numbers_are_found_in_torques_and_motions():
    """A servo's gain from what it is told, with a joint that nothing moves; a lag from windows."""
    bare = chain().replace(damping=[0.1, 0.2])
    true = dl.attach(bare, dl.PositionServo("hip", kp=4.0, kd=0.3))
    t = 0.01 * np.arange(200)
    rough = dl.attach(bare.replace(damping=[0.1, 0.1]), dl.PositionServo("hip", kp=3.0, kd=0.1))

    def control(t, q, v):
        return jnp.sin(7 * t)[None]

    run = dl.simulate(true, [0.1, 0.2], [0.0, 0.0], dt=0.01, steps=199, control=control)

    def acceleration(q, v, u):
        effort = delivered(Tree.of(true), u, q, v) + dl.passive_force(true, q, v)
        return dl.forward_dynamics(true, q, v, effort)

    a = jax.vmap(acceleration)(run.q, run.v, run.u)
    q, v, a, u = (np.asarray(x) for x in (run.q, run.v, a, run.u))
    data = di.Recording("sine", t, q, v, a, u)
    exact = di.LevenbergMarquardt(tolerance=1e-12)
    problem = di.InverseDynamics.of(rough, [data], unactuated=0.1)
    paths = ["hip/kp", "hip/kd", "knee/damping"]
    found = di.fit(dl.Parameters(rough, paths), problem, minimiser=exact)
    np.testing.assert_allclose(found.values, (4.0, 0.3, 0.2), rtol=1e-7)
    # Where nothing acts nothing is told of it without a deviation.
    assert int(di.InverseDynamics.of(rough, [data]).measured.sum()) == 200
    lagging = mass(dl.Thruster("slide", max_thrust=12.0, lag=LAG))
    t = DT * np.arange(25)
    pushes = np.append(PUSHES, 0.0)[:, None]
    run = dl.simulate(lagging, [0.0], [0.0], dt=DT, steps=24, control=jnp.asarray(pushes[:-1]))
    data = di.Recording("pushes", t, np.asarray(run.q), np.asarray(run.v), tau=pushes)
    rough = mass(dl.Thruster("slide", max_thrust=12.0, lag=0.1))
    problem = di.Shooting.of(rough, [data, data], window=5, velocity=1.0)
    found = di.fit(dl.Parameters(rough, ["slide/lag"]), problem, minimiser=exact)
    np.testing.assert_allclose(found.values, LAG, rtol=1e-7)

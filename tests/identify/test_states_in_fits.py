"""Fits of machines with internal states: windows, torque errors, readings and arms."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
import difflie.identify as di
import difflie.quantities as dq


class Maxwell(dl.StatefulJointForce):
    """A spring and a damper in series."""

    joint: str = eqx.field(static=True)
    stiffness: jax.Array = eqx.field(converter=dl.number(unit="N m/rad", positive=True))
    relaxation: jax.Array = eqx.field(converter=dl.number(unit="s", positive=True))
    states = (("stretch", "rad"),)

    def law(self, x, v, z):
        return -self.stiffness * z[0], v - z / self.relaxation


class Lag(dl.Stateful, dl.Actuator):
    """A torque that follows its command."""

    gain: jax.Array = eqx.field(converter=dl.number(unit="", positive=True))
    lag: jax.Array = eqx.field(converter=dl.number(unit="s", positive=True))
    states = (("torque", "N m"),)

    def torque(self, command, q, v, z):
        return z[0], (self.gain * command - z) / self.lag


class LuGre(dl.StatefulJointForce):
    """Friction of bristles. Canudas de Wit, Olsson, Astrom and Lischinsky 1995."""

    joint: str = eqx.field(static=True)
    stiffness: jax.Array = eqx.field(converter=dl.number(unit="N m/rad", positive=True))
    damping: jax.Array = eqx.field(converter=dl.number(unit="N m s/rad", positive=True))
    coulomb: jax.Array = eqx.field(converter=dl.number(unit="N m", positive=True))
    breakaway: jax.Array = eqx.field(converter=dl.number(unit="N m", positive=True))
    fading: jax.Array = eqx.field(converter=dl.number(unit="rad/s", positive=True))
    states = (("deflection", "rad"),)

    def law(self, x, v, z):
        level = self.coulomb + self.breakaway * jnp.exp(-((v / self.fading) ** 2))
        rate = v - self.stiffness * jnp.sqrt(v * v + 1e-12) / level * z
        return -self.stiffness * z[0] - self.damping * rate[0], rate


class Acceleration(dq.AccelerationQuantity):
    name = "acceleration"

    def labels(self, system):
        return (("upper", "rad/s^2"), ("lower", "rad/s^2"))

    def at(self, system, q, v, a, u, t):
        return a


def rods():
    names = ("upper", (1, 0, 0)), ("lower", (0, 1, 0))
    given = {"mass": 1.0, "com": (0, 0, -0.5), "inertia": np.diag([0.1, 0.1, 0.02])}
    return dl.chain([dl.Body(name=n, joint=dl.Revolute(axis=a), **given) for n, a in names])


def element(stiffness=30.0, relaxation=0.1, lag=0.05):
    motors = dl.Motor("upper", max_torque=100.0), Lag(1.0, lag, joint="lower")
    return dl.attach(
        rods(), Maxwell("upper", stiffness, relaxation, z0=[0.05], name="rubber"), *motors
    )


def bristles(stiffness=2000.0, coulomb=0.8):
    return dl.attach(rods(), LuGre("upper", stiffness, 1.0, coulomb, 0.4, 0.1, name="grit"))


TRUE, ROUGH = element(), element(18.0, 0.17, 0.08)
PATHS = ["rubber/stiffness", "rubber/relaxation", "lower/lag"]
NOISE_Q, NOISE_V, NOISE_A = 1e-4, 1e-3, 0.1


def logged(system, seconds=3.0, dt=0.005, gain=8.0, noise=1.0, held=1, seed=0):
    """A recording of a motion under commands that are held for some rows, with noise; the run."""
    n, fine = round(seconds / dt), 5
    t = dt * np.arange(n + 1)
    begun = dt * held * (np.arange(n + 1) // held)
    u = gain * np.stack((np.sin(3.8 * begun), np.cos(5.6 * begun)), axis=1)
    run = dl.simulate(
        system,
        jnp.array([0.2, -0.1]),
        jnp.zeros(2),
        dt=dt / fine,
        steps=n * fine,
        control=dl.ZeroOrderHold(np.repeat(u[:-1], fine, axis=0)),
        method="GaussLegendre4",
        save_every=fine,
    )
    rng = np.random.default_rng(seed)

    def noisy(x, deviation):
        return np.asarray(x) + noise * deviation * rng.normal(size=x.shape)

    a = noisy(dq.along(Acceleration(), system, run), NOISE_A)
    return di.Recording("log", t, noisy(run.q, NOISE_Q), noisy(run.v, NOISE_V), a, u), run


@pytest.fixture(scope="module")
def log():
    return logged(TRUE)


def within_errors(fit, system, paths, most=3.0):
    truth = dl.Parameters(system, paths).initial
    errors = np.abs(fit.values - truth) / fit.standard_errors
    assert fit.converged
    assert (errors < most).all(), (fit.values, truth, errors)
    assert (fit.standard_errors < 0.2 * truth).all(), fit.standard_errors


@pytest.mark.slow
def test_states_along_the_rows():
    """Guards z along measured rows: to order 2 that of the motion which made them."""
    recording, run = logged(TRUE, seconds=0.6, noise=0.0, held=4)
    errors = []
    for every in (2, 1):
        rows = {k: getattr(recording, k)[::every] for k in ("t", "q", "v", "a", "tau")}
        found = di.InverseDynamics.of(TRUE, [di.Recording("rows", **rows)]).states(TRUE)
        errors.append(np.abs(found - run.z[::every]).max(axis=0))
    assert (np.log2(errors[0] / errors[1]) > 1.8).all()


WORKFLOWS = pytest.mark.parametrize("workflow", ["windows", "torques"])


def problem_of(workflow, system, recordings, deviation=0.05, **more):
    if workflow == "torques":
        return di.InverseDynamics.of(system, recordings, deviation=deviation)
    given = {"position": NOISE_Q, "velocity": NOISE_V, **more}
    return di.Shooting.of(system, recordings, window=20, free=True, **given)


@pytest.mark.slow("windows")
@WORKFLOWS
def test_numbers_of_elements(log, workflow):
    """Guards that fits find stiffness, time constants and the start of z, within their errors."""
    paths = [*PATHS, "rubber/z0"]
    fit = di.fit(dl.Parameters(ROUGH, paths), problem_of(workflow, ROUGH, [log[0]]))
    within_errors(fit, TRUE, paths)


@pytest.mark.slow
@pytest.mark.thorough("windows")
@WORKFLOWS
def test_bristles(workflow):
    """Guards stiff states: bristles that follow a turning motion, by both workflows."""
    true, rough = bristles(), bristles(stiffness=700.0, coulomb=1.2)
    paths = ["grit/stiffness", "grit/coulomb"]
    recording, _ = logged(true, gain=3.0)
    problem = problem_of(workflow, rough, [recording], method=dl.GaussLegendre4(), substeps=2)
    fit = di.fit(dl.Parameters(rough, paths), problem)
    within_errors(fit, true, paths)


@pytest.mark.slow("windows")
@WORKFLOWS
def test_gradients(log, workflow):
    """Guards derivatives of the loss by numbers of parts and by z0, in both modes."""
    parts = {k: getattr(log[0], k)[:60] for k in ("t", "q", "v", "a", "tau")}
    problem = problem_of(workflow, ROUGH, [di.Recording("part", **parts)])
    parameters = dl.Parameters(ROUGH, [*PATHS, "rubber/z0"])
    own = problem.own + 0.1

    @jax.jit
    def loss(x):
        return jnp.mean(problem.residual(parameters.system_at(x), own) ** 2)

    x, along = parameters.start, jnp.array([1.0, -0.5, 0.3, 0.02])
    gradient = jax.jit(jax.grad(loss))(x)
    forward = jax.jit(lambda x: jax.jvp(loss, (x,), (along,))[1])(x)
    np.testing.assert_allclose(gradient @ along, forward, rtol=1e-9)
    h = 1e-4
    np.testing.assert_allclose(
        forward, (loss(x + h * along) - loss(x - h * along)) / (2 * h), rtol=1e-6
    )


@pytest.mark.slow
def test_several_recordings_and_gaps(log):
    """Guards that each recording begins with z0, and that z goes on through gaps."""
    parts = {k: getattr(log[0], k)[:80].copy() for k in ("t", "q", "v", "a", "tau")}
    whole = di.Recording("whole", **{k: x.copy() for k, x in parts.items()})
    both = di.InverseDynamics.of(TRUE, [whole, whole]).states(TRUE)
    alone = di.InverseDynamics.of(TRUE, [whole]).states(TRUE)
    np.testing.assert_allclose(both, np.concatenate((alone, alone)), rtol=1e-9)
    for k in "qva":
        parts[k][40:42] = np.nan
    lost = di.Recording("lost", **parts)
    found = di.InverseDynamics.of(TRUE, [lost]).states(TRUE)
    np.testing.assert_allclose(found, alone, atol=2e-2)
    assert np.abs(found - alone).max() > 1e-5
    windows = di.Shooting.of(TRUE, [lost, whole], window=30)
    starts = windows.first_states(TRUE)
    np.testing.assert_allclose(starts, np.stack((*found[::30], *alone[::30])), rtol=1e-9)


@pytest.mark.slow
def test_readings_of_what_depends_on_states(log):
    """Guards sensors of forces with states: along the measured motion, and along windows."""
    sensed = di.with_sensors(TRUE, di.Sensor("cell", dq.Passive()))
    recording, run = log
    read = -30.0 * run.z[:, 1]
    read = np.stack((read, 0 * read), axis=1)
    recording = dataclasses.replace(recording, readings={"cell": read})
    along = di.Readings.of(sensed, [recording], {"cell": 0.01})
    assert np.abs(along.errors(sensed)).max() < 5e-3
    found = di.Trial.of(sensed, recording, readings={"cell": 0.01}).validation(sensed)
    assert np.nanmax(np.abs(found.readings.simulated)) < 2e-2
    short = di.Recording("short", recording.t, recording.q, readings={"cell": read})
    with pytest.raises(di.DataError, match="v is not measured"):
        di.Readings.of(sensed, [short], {"cell": 0.01})


@pytest.mark.slow
def test_single_precision(log):
    """Guards that errors of a machine in single precision are single, and near the others."""
    parts = {k: getattr(log[0], k)[:60] for k in ("t", "q", "v", "a", "tau")}
    recording = di.Recording("part", **parts)
    for workflow in ("windows", "torques"):
        found = [
            jax.jit(lambda s, p=problem: p.residual(s, p.own))(system)
            for system in (TRUE, TRUE.astype("float32"))
            for problem in [problem_of(workflow, system, [recording], 1.0)]
        ]
        assert found[1].dtype == jnp.float32
        np.testing.assert_allclose(found[1], found[0], atol=2e-2)


@pytest.mark.slow
def test_arms_know_their_elements():
    """Guards that identify_arm takes off the torque of an element at its states along the log."""
    t = 0.004 * np.arange(5000)[:, None]
    rate = np.array([[1.3, 2.9, 4.7], [1.7, 2.3, 5.3]])
    size = np.array([[0.7, 0.4, 0.2], [0.6, -0.5, 0.2]])
    waves = [f(t[:, :, None] * rate) for f in (np.sin, np.cos)]
    q, v, a = (
        np.sum(size * wave, axis=2) for wave in (waves[0], rate * waves[1], -(rate**2) * waves[0])
    )
    # z without a transient: dz/dt + z / relaxation = v in closed form.
    turn = 0.1 * rate[0]
    z = np.sum(size[0] * turn * (waves[1] + turn * waves[0])[:, 0] / (1 + turn**2), axis=1)
    bare = rods().replace(damping=jnp.array([0.5, 0.3]))

    def needed(q, v, a):
        return dl.inverse_dynamics(bare, q, v, a) - dl.passive_force(bare, q, v)

    tau = np.array(jax.vmap(needed)(*map(jnp.asarray, (q, v, a))))
    tau[:, 0] += 30.0 * z
    tau += 0.02 * np.random.default_rng(0).normal(size=tau.shape)
    log = di.Recording("log", t[:, 0], q, tau=tau)
    machine = dl.attach(rods(), Maxwell("upper", 30.0, 0.1, z0=z[:1], name="rubber"))
    fit = di.identify_arm(machine, log)
    for joint, true in (("upper", 0.5), ("lower", 0.3)):
        estimate = fit.estimates[f"{joint}/damping"]
        assert abs(estimate.value - true) < max(3 * estimate.std_error, 2e-3)
    assert all(score.rmse < 0.03 for score in fit.assessment.scores)
    plain = di.identify_arm(rods(), log)
    assert plain.assessment.scores[0].rmse > 0.1


class Late(dl.Actuator):
    """A command that acts a step later: a memory."""

    def init(self, command, q, v):
        return command

    def torque(self, command, q, v, memory):
        return memory.kept, memory._replace(kept=command)


@pytest.mark.slow
def test_memories_beside_states(log):
    """Guards the efforts of a delayed command and of a lagging one in one machine."""
    parts = {k: getattr(log[0], k)[:40] for k in ("t", "q", "v", "a", "tau")}
    recording = di.Recording("part", **parts)
    late = dl.attach(rods(), Late(joint="upper"), Lag(1.0, 0.05, joint="lower"))
    problem = di.InverseDynamics.of(late, [recording])
    efforts, u = np.asarray(problem.efforts(late)), parts["tau"]
    np.testing.assert_allclose(efforts[1:, 0], u[:-1, 0], rtol=1e-12)
    expected = np.zeros(40)
    for k in range(39):
        decay = np.exp(-0.005 / 0.05)
        expected[k + 1] = decay * expected[k] + (1 - decay) * u[k, 1]
    np.testing.assert_allclose(efforts[:, 1], expected, atol=1e-4 * np.abs(expected).max())
    starts = di.Shooting.of(late, [recording], window=10).first_states(late)
    np.testing.assert_allclose(starts[:, 0], efforts[[0, 10, 20, 30], 1], rtol=1e-9)


@pytest.mark.slow
def test_windows_without_velocities(log):
    """Guards states of windows whose velocities are differences, centred on the row."""
    recording, run = log
    bare = di.Recording("positions", recording.t, np.asarray(run.q), tau=recording.tau)
    problem = di.Shooting.of(TRUE, [bare], window=50, free=True)
    starts = problem.first_states(TRUE)
    np.testing.assert_allclose(starts, run.z[:-1:50], atol=2e-3 * float(jnp.abs(run.z).max()))

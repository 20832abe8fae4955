"""Sampled feedback: the numbers of a hand-written loop, derivatives, events, errors."""

import importlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pendulums import pendulum

import difflie as dl

PENDULUM = pendulum(damping=0.1)
RATE, HOW = 50.0, {"dt": 5e-3, "steps": 40}  # four steps in a sample


class PID(eqx.Module):
    """It differences and sums what it sees, so that its memory is a pair, and counts."""

    gains: jax.Array

    def init(self, t, q, v):
        return jnp.zeros(1), q, 0

    def __call__(self, memory, t, q, v):
        total, last, count = memory
        kp, ki, kd = self.gains
        total = total + (0.5 - q) / RATE
        return kp * (0.5 - q) + ki * total - kd * (q - last) * RATE, (total, q, count + 1)


GAINS = jnp.array([20.0, 5.0, 3.0])


def run(gains, q0=0.3, **how):
    how = {**HOW, "control": dl.Sampled(PID(gains), RATE)} | how
    return dl.simulate(PENDULUM, jnp.reshape(q0, 1), 0 * jnp.reshape(q0, 1), **how)


def test_a_controller_is_called_at_its_sample_times_only():
    """State and command are those of a loop of `step` with a held command."""
    made, pid = run(GAINS), PID(GAINS)
    q, v = jnp.array([0.3]), jnp.zeros(1)
    memory, commands = pid.init(0.0, q, v), []
    for k in range(40):
        if k % 4 == 0:
            u, memory = pid(memory, k * 5e-3, q, v)
        commands.append(u)
        q, v, _ = dl.step(PENDULUM, q, v, 5e-3, control=u)
    np.testing.assert_allclose((made.q[-1], made.v[-1]), (q, v), rtol=1e-13)
    np.testing.assert_allclose(made.u, [*commands, u], rtol=1e-13)


def test_a_function_without_memory_is_held():
    """With a sample at every step it is what samples of its values are."""

    def spring(t, q, v):
        return 2 * jnp.cos(t) - 3 * q

    made = dl.simulate(PENDULUM, [1.0], [0.0], control=dl.Sampled(spring, 100), dt=5e-3, steps=7)
    seen = np.array([spring(made.t[k], made.q[k], made.v[k]) for k in (0, 2, 4, 6)])
    np.testing.assert_allclose(made.u[:7], np.repeat(seen, 2, axis=0)[:7], rtol=1e-14)
    held = dl.simulate(PENDULUM, [1.0], [0.0], control=dl.ZeroOrderHold(seen, 2), dt=5e-3, steps=7)
    np.testing.assert_allclose(held.q, made.q, rtol=1e-14)


@pytest.mark.slow
def test_derivatives_under_every_adjoint():
    """Through command and memory, against central differences; with respect to dt as well."""

    def end(x, adjoint):
        made = run(x[:3], x[3], dt=x[4], adjoint=adjoint)
        return jnp.concatenate((made.q[-1], made.v[-1], made.u[-1]))

    x, direct = jnp.append(GAINS, jnp.array([0.3, 5e-3])), dl.Direct()
    exact, traced = jax.jacfwd(end)(x, direct), jax.jit(lambda x: end(x, direct))
    for k, e in enumerate(np.diag([1e-4, 1e-4, 1e-4, 1e-6, 1e-8])):
        difference = (traced(x + e) - traced(x - e)) / (2 * e[k])
        np.testing.assert_allclose(exact[:, k], difference, rtol=1e-6, atol=1e-6)
    for adjoint in (direct, dl.RecursiveCheckpoint()):
        np.testing.assert_allclose(jax.jacrev(end)(x, adjoint), exact, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(jax.jacfwd(end)(x, dl.Forward()), exact, rtol=1e-12)


@pytest.mark.slow
def test_batches_and_single_precision():
    """Gains of a batch are leaves of the controller; the memory has the precision of the state."""
    gains = jnp.stack((GAINS, 2 * GAINS))
    batch = jax.vmap(run)(gains)
    np.testing.assert_allclose(batch.q[1], run(gains[1]).q, rtol=1e-12)
    control = dl.Sampled(PID(GAINS.astype("float32")), RATE)
    single = dl.simulate(PENDULUM.astype("float32"), [0.3], [0.0], control=control, **HOW)
    assert single.u is not None and single.u.dtype == single.q.dtype == "float32"
    np.testing.assert_allclose(single.q, batch.q[0], atol=1e-5)


@pytest.mark.slow
def test_the_clock_stays_with_finer_steps_and_where_an_event_stops():
    """The estimate repeats the run with as many samples, and the last, shorter step holds on."""
    made = run(GAINS)
    close = run(GAINS, dt=2.5e-3, steps=80, save_every=2)
    assert jnp.abs(made.error_estimate().q).max() < 1e-9
    np.testing.assert_allclose(close.q, made.q, atol=1e-9)
    stopped = run(GAINS, until=lambda t, q, v: 0.311 - q[0])
    assert stopped.result.ending.event == 0 and stopped.t[-1] % 0.02 > 1e-3
    np.testing.assert_allclose(made.at(stopped.t[-1])[0], 0.311, atol=1e-8)
    assert stopped.u[-1] == made.u[int(stopped.t[-1] / 5e-3)]


def test_a_run_in_pieces_keeps_the_memory(monkeypatch):
    """A piece may end between two samples."""
    whole = run(GAINS)
    monkeypatch.setattr(importlib.import_module("difflie.simulate.loop"), "_PIECE", 6)
    np.testing.assert_array_equal(run(GAINS).q, whole.q)


def test_actuators_with_memory_get_the_held_command():
    """A delay of one sample shifts the commands by one."""
    drive = dl.Drive(PENDULUM.joint_names[0], delay=0.02)
    late = dl.attach(PENDULUM, drive)
    control = dl.Sampled(lambda t, q, v: jnp.sin(10 * t)[None], RATE)
    made = dl.simulate(late, [0.3], [0.0], control=control, **HOW)
    np.testing.assert_allclose(made.torques[8:40], made.u[4:36], atol=1e-12)


def wide(t, q, v):
    return jnp.zeros(2)


class Grows(PID):
    def __call__(self, memory, t, q, v):
        return q, (*memory, q)


class Alone(PID):
    def __call__(self, memory, t, q, v):
        return q


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda: run(GAINS, dt=3e-3), ValueError, r"takes 6.66667 steps .* with dt = 0.00285714"),
        (lambda: dl.Sampled(PID, RATE), TypeError, r"is the class PID; write PID\(...\)"),
        (lambda: dl.Sampled(3.0, RATE), TypeError, "the controller is 3.0; give a function"),
        (lambda: dl.Sampled(wide, 0.0), ValueError, "the rate is 0.0; give a positive number"),
        (lambda: run(GAINS, control=dl.Sampled(wide, RATE)), ValueError, r"\(2,\), needed is \(1,"),
        (lambda: run(GAINS, control=dl.Sampled(Grows(GAINS), RATE)), TypeError, "makes the memory"),
        (lambda: run(GAINS, control=dl.Sampled(Alone(GAINS), RATE)), TypeError, "two things"),
        (lambda: run(GAINS, wrench=dl.Sampled(wide, RATE)), TypeError, "wrench is a Sampled"),
        (
            lambda: run(GAINS, adjoint=dl.Reversible(), method="ImplicitMidpoint"),
            ValueError,
            "what the sampled control remembers is not found again",
        ),
        (
            lambda: dl.step(PENDULUM, [0.0], [0.0], 0.1, control=dl.Sampled(wide, RATE)),
            TypeError,
            "one step knows neither its last sample nor its memory",
        ),
    ],
)
def test_bad_input_is_one_clear_error(change, error, words):
    with pytest.raises(error, match=words):
        change()

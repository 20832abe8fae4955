"""What the control commands and what arrives, in runs: exactly what acted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pendulums import pendulum

import difflie as dl
from difflie import quantities as dq

RNG = np.random.default_rng(4)
DT = 2e-3


def chain(**numbers):
    """Two links with damping, and drives where the second has numbers."""
    inertia = np.diag((0.02, 0.02, 0.002))
    y = {"mass": 1.0, "com": (0, 0, -0.2), "inertia": inertia}
    joints = [
        dl.Revolute(name=name, axis=(0.0, 1.0, 0.0), damping=0.05) for name in ("hip", "knee")
    ]
    bare = dl.chain(
        [
            dl.Body(name="upper", joint=joints[0], **y),
            dl.Body(name="lower", joint=joints[1], position=(0, 0, -0.4), **y),
        ]
    )
    drives = dl.Drive("hip"), dl.Drive("knee", **numbers)
    return dl.attach(bare, *drives) if numbers else bare


BARE = chain()
DRIVEN = chain(torque_scale=0.9, torque_bias=0.1, load_friction=0.3, slip_velocity=0.5)
SWING = pendulum(0.2)
DIRECT = dl.Direct()
START = [0.3, -0.2], [0.0, 0.4]
COMMANDS = RNG.normal(size=(10, 2))


def ran(control, system=BARE, steps=10, **given):
    given = {"dt": DT, "method": "SemiImplicitEuler", **given}
    return dl.simulate(system, *START, steps=steps, control=control, **given)


@pytest.mark.parametrize("every", [1, 3])
def test_without_drives_the_command_arrives(every):
    """Bit by bit, at every saved time that of the step that begins there; the last at the end."""
    run = ran(COMMANDS, save_every=every)
    rows = [*range(0, 10, every), 9] if every == 1 else [0, 3, 6, 8]
    np.testing.assert_array_equal(run.u, COMMANDS[rows])
    np.testing.assert_array_equal(run.effort(BARE), run.u)


@pytest.mark.slow
def test_other_inputs():
    """Lines between samples, functions of the state, late commands, and none."""
    lines = dl.FirstOrderHold(COMMANDS[:6], 2)
    at = np.arange(10) / 2
    expected = np.stack([np.interp(at, np.arange(6), column) for column in COMMANDS[:6].T], 1)
    run = ran(lines)
    np.testing.assert_allclose(run.u, expected[[*range(10), 9]], atol=1e-15)

    def pulled(t, q, v):
        return t - 2 * q + 0.1 * v

    run = ran(pulled, save_every=5, method="RKMK4")
    here = pulled(run.t[:, None], run.q, run.v)
    # Products and sums may be rounded once or twice.
    np.testing.assert_allclose(run.u[:-1], here[:-1], rtol=0, atol=1e-15)
    np.testing.assert_allclose(run.u[-1], here[-1], atol=0.1)
    slow = chain(delay=2 * DT)
    late = ran(COMMANDS, slow)
    effort = late.effort(slow)
    np.testing.assert_array_equal(late.u[:10], COMMANDS)
    np.testing.assert_allclose(effort[2:10, 1], COMMANDS[:8, 1], atol=1e-12)
    np.testing.assert_allclose(effort[:2, 1], COMMANDS[0, 1], atol=1e-12)
    np.testing.assert_array_equal(effort[:10, 0], COMMANDS[:, 0])
    free = ran(None, DRIVEN)
    assert free.u is None
    v = np.asarray(free.v[:, 1])
    expected = 0.1 - 0.03 * np.tanh(v / 0.5)
    np.testing.assert_allclose(free.effort(DRIVEN), np.stack((0 * v, expected), 1), atol=1e-15)


@pytest.mark.slow
def test_inverse_dynamics_give_effort_and_passive():
    """Of a run with a drive and damping, to the error of differences; and the power is theirs."""

    def swung(t, q, v):
        return jnp.stack((jnp.sin(5 * t), 2 * jnp.cos(3 * t))) - 0.5 * q

    dt = 5e-4
    run = ran(swung, DRIVEN, steps=200, method="RKMK4", dt=dt)
    effort, passive = run.effort(DRIVEN), run.passive(DRIVEN)
    np.testing.assert_allclose(passive, -0.05 * run.v, atol=1e-15)
    a = (run.v[2:] - run.v[:-2]) / (2 * dt)
    needed = jax.vmap(lambda *x: dl.inverse_dynamics(DRIVEN, *x))(run.q[1:-1], run.v[1:-1], a)
    np.testing.assert_allclose(needed, (effort + passive)[1:-1], atol=2e-3)
    assert np.abs(effort - run.u).max() > 0.1
    power = dq.along(dq.Power(), DRIVEN, run)
    total = dq.along(dq.Energy(), DRIVEN, run)[:, -1]
    gained = (total[2:] - total[:-2]) / (2 * dt)
    lost = jnp.sum(passive * run.v, axis=1)
    np.testing.assert_allclose(gained, (power.sum(axis=1) + lost)[1:-1], atol=2e-3)


def cost(gain, adjoint=DIRECT):
    """Of the effort that holds a pendulum by a spring of its control (gain in N m/rad)."""

    def control(t, q, v):
        return -gain * q

    given = {"dt": jnp.asarray(0.05, gain.dtype), "steps": 6, "save_every": 2}
    start = jnp.full((1,), 0.3, gain.dtype), jnp.zeros(1, gain.dtype)
    system = SWING.astype(gain.dtype)
    given |= {"control": control, "adjoint": adjoint, "method": "StormerVerlet"}
    return jnp.sum(dl.simulate(system, *start, **given).effort(system) ** 2)


@pytest.mark.slow
def test_effort_costs_are_differentiable():
    """A batch of them, in reverse mode against differences and forward mode."""
    h, gains = 1e-4, jnp.asarray((1.3 - 1e-4, 1.3, 1.3 + 1e-4))
    values, slopes = jax.vmap(jax.value_and_grad(cost))(gains)
    np.testing.assert_allclose(slopes[1], (values[2] - values[0]) / (2 * h), rtol=1e-7)
    ahead = jax.jvp(cost, (gains[1],), (jnp.ones(()),))[1]
    np.testing.assert_allclose(ahead, slopes[1], rtol=1e-12)


@pytest.mark.slow
def test_every_adjoint_differentiates_effort_costs():
    """Also the one that steps back, and in single precision."""
    gain = jnp.asarray(1.3)
    slope = jax.jvp(cost, (gain,), (jnp.ones(()),))[1]
    np.testing.assert_allclose(jax.grad(cost)(gain, dl.Reversible()), slope, rtol=1e-9)
    rough = jax.grad(cost)(gain.astype(jnp.float32), dl.RecursiveCheckpoint())
    assert rough.dtype == jnp.float32
    np.testing.assert_allclose(rough, slope, rtol=1e-4)

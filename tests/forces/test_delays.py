"""Efforts that arrive later than they are told."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import identify as di
from difflie import quantities as dq
from difflie.forces.actuators.delayed import DelayLine

DT, DELAY = 0.02, 0.033


def pendulum(**numbers):
    joint = dl.Revolute(axis=(0.0, 1.0, 0.0), name="hinge", damping=0.1)
    bare = dl.chain([dl.Body(name="arm", joint=joint, mass=1.0, com=(0, 0, -0.2))])
    return dl.attach(bare, dl.Drive("hinge", **numbers)) if numbers else bare


LATE = pendulum(delay=DELAY, torque_scale=0.9)


def means(t, told, delay, first=0):
    """The definition, interval by interval, in another way: a sum over all of them."""
    found = []
    for k in range(len(told)):
        own = first if np.isscalar(first) else first[k]
        knots = np.concatenate(([-1e3], t[own + 1 :]))
        start = np.maximum(knots[:-1], t[k] - delay)
        end = np.minimum(knots[1:], t[k + 1] - delay)
        end[-1] = max(end[-1], t[k + 1] - delay)
        found.append(np.sum(told[own:] * np.maximum(end - start, 0)) / (t[k + 1] - t[k]))
    return np.array(found)


@pytest.mark.parametrize(("dtype", "dt"), [(np.float32, 0.01), (np.float64, 1e-4)])
def test_a_delay_as_long_as_its_line(dtype, dt):
    """Rounding of what the line has summed up is not taken for a line that is too short."""
    system = pendulum(delay=32 * dt).astype(dtype)
    run = dl.simulate(system, [0.0], [0.0], dt=dt, steps=50, control=jnp.ones((50, 1), dtype))
    assert run.result.ok, run.result


def test_a_line_that_is_too_short_is_named():
    with pytest.raises(ValueError, match=r"Drive \('hinge'\).* is 50 steps .*most_steps=50"):
        dl.simulate(pendulum(delay=0.05), [0.0], [0.0], dt=1e-3, steps=60)


UNEVEN = np.cumsum(np.random.default_rng(2).uniform(0.1, 2.0, 13))
TOLD = np.random.default_rng(3).normal(size=12)


@jax.jit
def delivered(t, told, delay):
    """What comes out of a line of 12 steps."""

    def turn(line, row):
        command, h = row
        return line.after(command, h), line.delayed(command, delay, h)

    start = DelayLine.filled(told[0], 12)
    return jax.lax.scan(turn, start, (told, jnp.diff(t)))[1]


@pytest.mark.parametrize("delay", [0.0, 0.05, 1.3, 7.0, 100.0])
def test_means_of_what_is_held(delay):
    """On uneven steps, and as samples arrive that are linear in between on even ones."""
    found = delivered(UNEVEN, TOLD, delay)
    np.testing.assert_allclose(found, means(UNEVEN, TOLD, delay), atol=1e-13)
    if delay == 0:
        np.testing.assert_allclose(found, TOLD, atol=1e-15)
    t = 0.5 * np.arange(13)
    expected = np.interp(t[:-1] - delay, t[:-1], TOLD)
    np.testing.assert_allclose(delivered(t, TOLD, delay), expected, atol=1e-13)


def test_a_line_that_is_too_short_is_no_number():
    line = DelayLine.filled(jnp.asarray(1.0), 2)
    for _ in range(2):
        line = line.after(jnp.asarray(2.0), jnp.asarray(0.5))
    given = jnp.asarray(3.0), jnp.asarray(1.0), jnp.asarray(0.5)
    assert line.delayed(*given) == 2.0
    line = line.after(given[0], given[2])
    assert np.isnan(line.delayed(given[0], jnp.asarray(1.1), given[2]))


def test_derivatives_by_the_delay():
    """In both modes against differences, one-sided where there is none: at zero and at kinks."""

    def late(delay):
        return delivered(jnp.asarray(UNEVEN), jnp.asarray(TOLD), delay)

    for delay in (0.0, 0.31, 0.5):
        ahead, back = (f(late)(jnp.asarray(delay)) for f in (jax.jacfwd, jax.jacrev))
        np.testing.assert_allclose(ahead, back, rtol=1e-12, atol=1e-14)
        off = (late(jnp.asarray(delay + 1e-6)) - late(jnp.asarray(delay))) / 1e-6
        np.testing.assert_allclose(ahead, off, rtol=1e-6, atol=1e-7)
    half = delivered(jnp.asarray(UNEVEN, jnp.float32), jnp.asarray(TOLD, jnp.float32), 0.3)
    assert half.dtype == jnp.float32
    np.testing.assert_allclose(half, late(jnp.asarray(0.3)), atol=1e-5)


LAWS = {
    "activated": [
        dl.ActivatedActuator("hinge", gain=(2, 0, 0), bias=(0, -1, -0.1), time_constant=0.05)
    ],
    "muscle": [dl.Muscle("hinge", length_range=(-1, 1), peak_force=3.0)],
    "servo": [
        dl.PIDServo("hinge", kp=3.0, ki=2.0, slew_rate=3.0, further=[("velocity", "v")]),
        dl.ExtraCommand("hinge", name="v"),
    ],
}


@pytest.mark.slow("muscle-RKMK4", "activated-*")
@pytest.mark.parametrize("method", ["RKMK4", "GeneralizedAlpha"])
@pytest.mark.parametrize("law", LAWS)
def test_parts_with_internal_states(law, method):
    """They move by the means of what was told, and quantities of their runs know their states."""
    late = dl.attach(pendulum(), *(dataclasses.replace(a, delay=DELAY) for a in LAWS[law]))
    prompt, t = dl.attach(pendulum(), *LAWS[law]), 0.01 * np.arange(41)
    control = np.abs(np.random.default_rng(4).normal(size=(40, late.nu)))
    arrived = np.stack([means(t, u, DELAY) for u in control.T], axis=1)

    def run(system, control):
        how = {"method": method, "dt": 0.01, "steps": 40}
        return dl.simulate(system, [0.6], [0.0], control=jnp.asarray(control), **how)

    one, other = run(late, control), run(prompt, arrived)
    np.testing.assert_allclose(one.q, other.q, atol=1e-13)
    np.testing.assert_allclose(one.z, other.z, atol=1e-13)
    effort = dq.ActuatorEffort("hinge")
    along = [dq.along(effort, late, one), dq.along(effort, prompt, other)]
    # At the end no step begins that would have another mean.
    np.testing.assert_allclose(along[0][:-1], along[1][:-1], atol=1e-12)


@pytest.mark.slow
def test_fits_of_parts_with_internal_states_know_the_delay():
    """Windows and torques are those of the motion, and the delay is found."""
    law = dataclasses.replace(LAWS["activated"][0], delay=DELAY)
    late, control = dl.attach(pendulum(), law), told(120)
    run = dl.simulate(late, [0.6], [0.0], control=jnp.asarray(control), dt=DT, steps=120)
    tau = np.append(control, control[-1:], axis=0)
    data = di.Recording("swing", DT * np.arange(121), np.asarray(run.q), np.asarray(run.v), tau=tau)
    rough = dl.attach(pendulum(), dataclasses.replace(law, delay=0.025))
    free = dl.Parameters(rough, ["hinge/delay"])
    fit = di.fit(free, di.Shooting.of(rough, [data], window=7, velocity=1.0))
    assert float(fit.system.actuators[0].delay) == pytest.approx(DELAY, abs=2e-4)


def told(n):
    rng = np.random.default_rng(5)
    return np.repeat(rng.normal(size=(n // 6 + 1, 1)), 6, axis=0)[:n]


@pytest.fixture(scope="module")
def swing():
    """A motion, simulated with what arrives: the mean of what is held, step by step."""
    t, tau = DT * np.arange(121), told(121)
    delivered = 0.9 * means(t, tau[:-1, 0], DELAY)[:, None]
    how = {"dt": DT, "steps": 120}
    run = dl.simulate(pendulum(), [0.6], [0.0], control=jnp.asarray(delivered), **how)
    return t, tau, run, how


@pytest.mark.slow
def test_a_simulation(swing):
    _, tau, run, how = swing
    control = jnp.asarray(tau[:-1])
    for each in (control, dl.ZeroOrderHold(jnp.asarray(tau[:-1:6]), 6)):
        found = dl.simulate(LATE, [0.6], [0.0], control=each, **how)
        np.testing.assert_allclose(found.q, run.q, atol=1e-13)
    *start, half = (jnp.asarray(x, jnp.float32) for x in ([0.6], [0.0], control))
    found = dl.simulate(LATE.astype(jnp.float32), *start, control=half, **how)
    assert found.q.dtype == jnp.float32
    np.testing.assert_allclose(found.q, run.q, atol=1e-4)

    def end(delay):
        system = pendulum(delay=delay, torque_scale=0.9)
        return dl.simulate(system, [0.6], [0.0], control=control, **how).q[-1, 0]

    ahead, back = (float(jax.jit(f(end))(jnp.asarray(DELAY))) for f in (jax.jacfwd, jax.grad))
    off = float(end(DELAY + 1e-5) - end(DELAY - 1e-5)) / 2e-5
    assert ahead == pytest.approx(back, rel=1e-10) and ahead == pytest.approx(off, rel=1e-6)


@pytest.mark.slow
def test_it_is_found_in_motions(swing):
    """From windows, the torques before which are those of the windows before."""
    t, tau, run, _ = swing
    data = di.Recording("swing", t, np.asarray(run.q), np.asarray(run.v), tau=tau)
    cut = dataclasses.replace(data.between(0.0, 1.01), name="again")
    rough = pendulum(delay=0.008)
    free = dl.Parameters(rough, ["hinge/delay", "hinge/torque_scale"])
    problem = di.Shooting.of(rough, [cut, data], window=7, velocity=1.0)
    found = di.fit(free, problem, minimiser=di.LevenbergMarquardt(tolerance=1e-12))
    assert found.converged and found.parameters.names[0] == "hinge/delay"
    np.testing.assert_allclose(found.values, (DELAY, 0.9), rtol=1e-8)
    assert found.standard_errors[0] < 1e-8


def test_it_is_found_in_torques():
    """Over gaps and two recordings; linear in between."""
    bare, rough = pendulum(), pendulum(delay=0.012)
    t = DT * np.arange(60)
    q, v = np.sin(4 * t), 4 * np.cos(4 * t)
    recordings = []
    for begin in (0.0, 100.0):
        tau = np.cos(t**2 + begin)
        gap = tau.copy()
        gap[30] = np.nan
        tau[30] = (tau[29] + tau[31]) / 2
        delivered = np.interp(t - DELAY, t, tau)
        force = jax.vmap(lambda *x: dl.forward_dynamics(bare, *x))
        a = force(*(jnp.asarray(x)[:, None] for x in (q, v, delivered - 0.1 * v)))
        lost = np.where(np.arange(60) == 45, np.nan, q)
        columns = lost[:, None], v[:, None], a, gap[:, None]
        recordings.append(di.Recording(f"from {begin}", t + begin, *columns))
    problem = di.InverseDynamics.of(rough, recordings[::-1])
    assert int(problem.measured.sum()) == 2 * 58
    found = di.fit(
        dl.Parameters(rough, ["hinge/delay"]),
        problem,
        minimiser=di.LevenbergMarquardt(tolerance=1e-12),
    )
    assert found.converged
    np.testing.assert_allclose(found.values, DELAY, rtol=1e-8)


def test_what_has_no_delay_is_named():
    with pytest.raises(dl.ModelError, match=r"delay is -0.1 s; it must not be negative"):
        pendulum(delay=-0.1)
    with pytest.raises(dl.ModelError, match="delay has shape"):
        pendulum(delay=[0.1, 0.2])
    with pytest.raises(dl.ModelError, match="most_steps is 0; it must be a whole number"):
        pendulum(delay=0.1, most_steps=0)
    with pytest.raises(ValueError, match="no parameter matches 'hinge/delay'"):
        dl.Parameters(pendulum(torque_scale=0.9), ["hinge/delay"])


@pytest.mark.slow
def test_servos_are_delayed():
    """By whole steps: as if the command had come so many steps later, exactly."""
    dt, late, steps = 0.01, 3, 40
    told = np.sin(np.arange(steps))[:, None]
    shifted = np.concatenate((np.repeat(told[:1], late, axis=0), told[:-late]))
    wheel = dl.Body(
        name="wheel",
        joint=dl.Revolute(axis=(0.0, 1.0, 0.0), name="axle"),
        mass=1.0,
        com=(0.1, 0, 0),
    )
    for servo, gains in (
        (dl.PositionServo, {"kp": 8.0, "kd": 0.3}),
        (dl.VelocityServo, {"kd": 0.8}),
    ):
        delayed, prompt = (
            dl.attach(dl.chain([wheel]), servo("axle", delay=delay, **gains))
            for delay in (late * dt, None)
        )
        runs = [
            dl.simulate(system, [0.1], [0.0], dt=dt, steps=steps, control=jnp.asarray(commands))
            for system, commands in ((delayed, told), (prompt, shifted))
        ]
        np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-12)

"""Efforts that arrive later than they are told."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import identify as di
from difflie.forces.delays import held, sampled

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


UNEVEN = np.cumsum(np.random.default_rng(2).uniform(0.1, 2.0, 13))
TOLD = np.random.default_rng(3).normal(size=12)


@pytest.mark.parametrize("delay", [0.0, 0.05, 1.3, 7.0, 100.0])
def test_means_of_what_is_held(delay):
    first = np.repeat([0, 5], (5, 7))
    for own in (0, first):
        found = held(jnp.asarray(UNEVEN), jnp.asarray(TOLD), jnp.asarray(delay), own)
        np.testing.assert_allclose(found, means(UNEVEN, TOLD, delay, own), atol=1e-13)
    if delay == 0:
        np.testing.assert_array_equal(found, TOLD)


@pytest.mark.parametrize("delay", [0.0, 0.05, 1.3, 7.0, 100.0])
def test_values_in_between(delay):
    t, first = UNEVEN[:-1], np.repeat([0, 5], (5, 7))
    found = sampled(jnp.asarray(t), jnp.asarray(TOLD), jnp.asarray(delay), jnp.asarray(first))
    for part in (slice(0, 5), slice(5, 12)):
        expected = np.interp(t[part] - delay, t[part], TOLD[part])
        np.testing.assert_allclose(found[part], expected, atol=1e-13)
    if delay == 0:
        np.testing.assert_array_equal(found, TOLD)


@pytest.mark.parametrize("rule", [held, sampled])
def test_derivatives_by_the_delay(rule):
    """In both modes against differences, one-sided where there is none: at zero."""
    t = UNEVEN if rule is held else UNEVEN[:-1]
    first = np.zeros(12, int)

    def late(delay):
        return rule(jnp.asarray(t), jnp.asarray(TOLD), delay, first)

    for delay in (0.0, 0.31):
        ahead, back = (f(late)(jnp.asarray(delay)) for f in (jax.jacfwd, jax.jacrev))
        np.testing.assert_allclose(ahead, back, rtol=1e-12, atol=1e-14)
        off = (late(jnp.asarray(delay + 1e-6)) - late(jnp.asarray(delay))) / 1e-6
        np.testing.assert_allclose(ahead, off, rtol=1e-7, atol=1e-8)
    half = rule(jnp.asarray(t, jnp.float32), jnp.asarray(TOLD, jnp.float32), jnp.float32(0.3), 0)
    assert half.dtype == jnp.float32
    np.testing.assert_allclose(half, late(jnp.asarray(0.3)), atol=1e-5)


def told(n):
    rng = np.random.default_rng(5)
    return np.repeat(rng.normal(size=(n // 6 + 1, 1)), 6, axis=0)[:n]


@pytest.fixture(scope="module")
def swing():
    """A motion, simulated with what arrives: the mean of what is held, step by step."""
    t, tau = DT * np.arange(121), told(121)
    arriving = 0.9 * means(t, tau[:-1, 0], DELAY)[:, None]
    how = {"dt": DT, "steps": 120}
    run = dl.simulate(pendulum(), [0.6], [0.0], control=jnp.asarray(arriving), **how)
    return t, tau, run, how


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
        arriving = np.interp(t - DELAY, t, tau)
        force = jax.vmap(lambda *x: dl.forward_dynamics(bare, *x))
        a = force(*(jnp.asarray(x)[:, None] for x in (q, v, arriving - 0.1 * v)))
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
    values = dl.FirstOrderHold(jnp.zeros((6, 1)))
    for control, said in ((lambda t, q, v: q, "a function"), (values, "a FirstOrderHold")):
        with pytest.raises(ValueError, match=f"Drive .'hinge'. has a delay, .* control is {said}"):
            dl.simulate(LATE, [0.6], [0.0], steps=5, control=control)
    with pytest.raises(ValueError, match="no parameter matches 'hinge/delay'"):
        dl.Parameters(pendulum(torque_scale=0.9), ["hinge/delay"])

"""Motions that stop at events: against closed form, in all derivatives, in batches, in words."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pendulums import pendulum
from scipy.special import ellipe, ellipk

import difflie as dl

G = 9.81
BALL = dl.chain([dl.Body(name="ball", joint=dl.Prismatic(axis=(0.0, 0.0, 1.0)), mass=2.0)])
PENDULUM = pendulum()


def ground(t, q, v):
    return q[0]


def late(t, q, v):
    return 1e3 - t


def landing(x, **how):
    """When a ball at height x[0] with velocity x[1] lands, and its height and velocity then."""
    run = dl.simulate(BALL, x[:1], x[1:], dt=0.05, steps=20, until=(late, ground), **how)
    return jnp.stack((run.result.ending.t, run.q[-1, 0], run.v[-1, 0])), run.result


def landed(x):
    """The same in closed form."""
    speed = jnp.sqrt(x[1] ** 2 + 2 * G * x[0])
    return jnp.stack(((x[1] + speed) / G, 0 * speed, -speed))


@pytest.mark.slow
def test_time_and_state_are_those_of_closed_form():
    """And their derivatives in both modes, in a batch of which one ball does not land in time."""
    x = jnp.array([[1.3, 0.7], [0.2, 0.0], [1e-3, -2.0], [5.0, 3.0]])

    def all_of(x):
        return landing(x), *(jac(lambda x: landing(x)[0])(x) for jac in (jax.jacfwd, jax.jacrev))

    (state, result), forward, reverse = jax.jit(jax.vmap(all_of))(x)
    np.testing.assert_allclose(state[:3], jax.vmap(landed)(x[:3]), atol=1e-13)
    wanted = jax.vmap(jax.jacfwd(landed))(x[:3])
    np.testing.assert_allclose(forward[:3], wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(reverse, forward, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(result.ending.event, (1, 1, 1, -1))
    np.testing.assert_array_equal(result.ok, True)
    # The last one is in the air.
    np.testing.assert_allclose(state[3], (1.0, 5 + 3 - G / 2, 3 - G), rtol=1e-13)
    np.testing.assert_allclose(reverse[3], ((0, 0), (1, 1), (0, 1)), atol=1e-12)


def quarter(angle):
    """When a pendulum of 1 m passes the bottom, and how fast, and the derivatives of both."""
    k = np.sin(angle / 2)
    m, dk = k**2, np.cos(angle / 2) / 2
    slope = (ellipe(m) - (1 - m) * ellipk(m)) / (k * (1 - m))
    scale = np.sqrt(G)
    return (ellipk(m) / scale, -2 * k * scale), (slope * dk / scale, -2 * dk * scale)


@pytest.mark.slow
@pytest.mark.thorough("Direct()")
@pytest.mark.parametrize(
    "adjoint", [dl.Direct(), dl.RecursiveCheckpoint(12), dl.Reversible()], ids=str
)
def test_a_pendulum_at_the_bottom(adjoint):
    """A quarter of its period, by elliptic integrals, with every adjoint of reverse mode."""

    def bottom(angle):
        how = {"method": "GaussLegendre6", "until": ground, "adjoint": adjoint}
        run = dl.simulate(PENDULUM, angle, jnp.zeros(1), dt=0.02, steps=40, save_every=4, **how)
        return jnp.stack((run.result.ending.t, run.v[-1, 0]))

    x = jnp.array([1.9])
    values, slopes = quarter(1.9)
    value, pull = jax.vjp(jax.jit(bottom), x)
    np.testing.assert_allclose(value, values, atol=1e-10)
    rows = [pull(e)[0][0] for e in jnp.eye(2)]
    np.testing.assert_allclose(rows, slopes, atol=1e-9)


@pytest.mark.slow
def test_the_trajectory_ends_there():
    """Rows after the end repeat it; between them the motion is interpolated up to it."""
    run = dl.simulate(BALL, [1.3], [0.7], dt=0.05, steps=20, save_every=2, until=ground)
    end = landed(jnp.array([1.3, 0.7]))[0]
    np.testing.assert_allclose(run.t, np.minimum(np.arange(11) * 0.1, end), rtol=1e-14)
    height, _ = run.at(end - 0.004)
    t = end - 0.004
    np.testing.assert_allclose(height, [1.3 + 0.7 * t - G / 2 * t**2], atol=1e-12)
    np.testing.assert_array_equal(run.q[-5:], np.broadcast_to(run.q[-1], (5, 1)))
    assert (
        str(run.result) == "stopped: the event 'ground' came at t = 0.5910935032 s (step 12 of 20)"
    )
    never = dl.simulate(BALL, [1.3], [0.7], dt=0.05, steps=2, until=ground)
    assert never.result.ok
    assert str(never.result) == "completed: 2 steps, 0.1 s; no event came"
    assert never.result.ending.event == -1 and never.result.ending.t == never.t[-1]


@pytest.mark.slow
def test_what_acts_in_the_last_step_is_its_own_sample():
    """A force that differs from step to step."""
    force = np.linspace(2.0, 12.0, 20)[:, None]
    z, v, t, h = 1.3, 0.7, 0.0, 0.05
    for u in force[:, 0]:
        a = u / 2 - G
        h = min([x.real for x in np.roots((a / 2, v, z)) if not x.imag and x > 0] + [0.05])
        z, v, t = z + h * v + h**2 * a / 2, v + h * a, t + h
        if h < 0.05:
            break
    state, result = landing(jnp.array([1.3, 0.7]), control=force)
    np.testing.assert_allclose(state, (t, 0, v), atol=1e-13)
    # The trajectory tells of the commands of the steps that were made, and of no others.
    run = dl.simulate(BALL, [1.3], [0.7], dt=0.05, steps=20, control=force, until=ground)
    made = np.minimum(np.arange(21), result.ending.step - 1)
    np.testing.assert_array_equal(run.u, force[made])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["BDF2", "VariationalMidpoint", "DormandPrince54"])
def test_methods_with_a_memory(method):
    """The last, shorter step begins anew, and loses no order."""
    how = {"dt": 2e-3, "steps": 500, "until": ground, "method": method}
    run = dl.simulate(PENDULUM, [1.0], [0.0], **how)
    assert run.result.ok
    (t, v), _ = quarter(1.0)
    np.testing.assert_allclose((run.result.ending.t, run.v[-1, 0]), (t, v), atol=1e-5)
    assert abs(run.q[-1, 0]) < 1e-12


@pytest.mark.slow("1")
@pytest.mark.parametrize("save_every", [1, 45, 90])
def test_pieces_have_the_same_numbers(monkeypatch, save_every):
    """A long run is made in pieces, and after the event there are no more of them.

    Also where the event comes within a row, of which the command is known.
    """

    def run(progress=None):
        how = {"dt": 1e-2, "steps": 90, "until": ground, "method": "SemiImplicitEuler"}
        how |= {"control": lambda t, q, v: 0.1 + 0 * v + t, "save_every": save_every}
        return dl.simulate(PENDULUM, [1.0], [0.0], progress=progress, **how)

    whole, told = run(), []
    monkeypatch.setattr(importlib.import_module("difflie.simulate.loop"), "_PIECE", 10)
    pieces = run(lambda *done: told.append(done))
    assert told[-1][0] < 80
    # The end is found in another program.
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-14), pieces, whole)


@pytest.mark.slow
def test_an_event_that_is_no_number_has_come():
    """A root of what is negative, one step after the zero."""
    state, result = landing(jnp.array([1.3, 0.7]))

    def near(t, q, v):
        return jnp.sqrt(q[0]) - 1e-7

    run = dl.simulate(BALL, [1.3], [0.7], dt=0.05, steps=20, until=near)
    assert run.result.ok and run.result.ending.step == result.ending.step
    np.testing.assert_allclose(run.t[-1], state[0], atol=1e-13)


def test_single_precision_stays_single():
    ball = BALL.astype(jnp.float32)
    run = dl.simulate(ball, np.float32([1.3]), np.float32([0.7]), dt=0.05, steps=20, until=ground)
    assert {x.dtype for x in (run.t, run.q, run.v, run.result.ending.t)} == {jnp.dtype("float32")}
    np.testing.assert_allclose(run.t[-1], 0.5910935032, rtol=1e-6)


@pytest.mark.slow
def test_a_traced_start_at_which_an_event_has_come_is_not_ok():
    """A batch, where no error can be raised."""
    run = jax.vmap(lambda z: dl.simulate(BALL, z, [0.0], dt=0.05, steps=3, until=ground))(
        jnp.array([[1.0], [-1.0]])
    )
    np.testing.assert_array_equal(run.result.ok, (True, False))
    one = jax.tree.map(lambda a: a[1], run)
    np.testing.assert_array_equal(one.t, 0.0)
    assert "has come at the start already" in str(one.result)


@pytest.mark.parametrize(
    ("until", "error", "words"),
    [
        (ground, ValueError, "the event 'ground' has come at the start already, where it is 0.0"),
        (lambda t, q, v: jnp.log(-v[0]), ValueError, "come at the start already, where it is nan"),
        ([late, 3], TypeError, "until is 3; give a function of"),
        (lambda t, q, v: q, ValueError, "what the event 0 returns"),
        (lambda t, q, v: "now", TypeError, "what the event 0 returns"),
    ],
)
def test_bad_events_are_one_clear_error(until, error, words):
    with pytest.raises(error, match=words):
        dl.simulate(BALL, [0.0], [1.0], until=until)

"""Reductions in the time loop: against whole trajectories, closed forms and differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pendulums import pendulum

import difflie as dl
from difflie import quantities as dq

G = 9.81
BALL = dl.chain([dl.Body(name="ball", joint=dl.Prismatic(axis=(0.0, 0.0, 1.0)), mass=2.0)])
PENDULUM = pendulum()
KEPT = {
    "final": dq.Final(dq.Coordinates()),
    "peak": dq.Peak(dq.Effort()),
    "least": dq.Least(dq.Velocities()),
    "greatest": dq.Greatest(dq.Velocities()),
    "drift": dq.Drift(dq.Energy()),
    "mean": dq.Mean(dq.Velocities()),
    "square": dq.RootMeanSquare(dq.Origin("bob")),
    "time": dq.TimeTo(dq.Function(lambda s, q, v, u, t: 0.2 - q[0], "to 0.2 rad", "rad")),
}


def swing(x, kept=KEPT, **how):
    """A pendulum with a brake, from the angle x[0] and the rate x[1]."""
    how = {"dt": 1e-2, "steps": 50, "save_every": 50, **how}
    return dl.simulate(
        PENDULUM, x[:1], x[1:], control=lambda t, q, v: -0.1 * v, reductions=kept, **how
    )


X = jnp.asarray([-0.3, 1.5])


def reduced(run, quantity):
    return np.asarray(dq.along(quantity, PENDULUM, run))


@pytest.mark.slow
def test_they_are_those_of_the_whole_motion():
    """Guards every reduction against numpy's of all saved rows."""
    run = swing(X, save_every=1)
    kept, t = swing(X).reduced, np.asarray(run.t)
    v, place = reduced(run, dq.Velocities()), reduced(run, dq.Origin("bob"))
    energy, effort = reduced(run, dq.Energy()), reduced(run, dq.Effort())
    expected = {
        "final": run.q[-1],
        "peak": np.abs(effort).max(axis=0),
        "least": v.min(axis=0),
        "greatest": v.max(axis=0),
        "drift": np.abs(energy - energy[0]).max(axis=0),
        "mean": np.trapezoid(v, t, axis=0) / t[-1],
        "square": np.sqrt(np.trapezoid(place**2, t, axis=0) / t[-1]),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(kept[name], value, rtol=1e-12, atol=1e-14, err_msg=name)
    k = int(np.flatnonzero(np.asarray(run.q[:, 0]) >= 0.2)[0])
    between = np.interp(0.2, np.asarray(run.q[k - 1 : k + 1, 0]), t[k - 1 : k + 1])
    np.testing.assert_allclose(kept["time"], between, rtol=1e-12)


@pytest.mark.slow
def test_derivatives():
    """Guards forward and reverse mode against each other and against differences."""

    def numbers(x):
        kept = swing(x).reduced
        return jnp.concatenate([jnp.ravel(kept[name]) for name in KEPT])

    forward, reverse = jax.jacfwd(numbers)(X), jax.jacrev(numbers)(X)
    np.testing.assert_allclose(forward, reverse, rtol=1e-9, atol=1e-12)
    step = 1e-6
    for i, row in enumerate(np.eye(2) * step):
        difference = (numbers(X + row) - numbers(X - row)) / (2 * step)
        np.testing.assert_allclose(reverse[:, i], difference, rtol=1e-6, atol=1e-8)


def test_a_batch_in_single_precision_is_its_rows():
    """Guards rows of a batch, bit for bit, and the precision of their values."""
    single = jax.tree.map(lambda a: a.astype(jnp.float32) if a.dtype == float else a, PENDULUM)

    def motion(x):
        return dl.simulate(
            single,
            x[:1],
            x[1:],
            dt=1e-2,
            steps=20,
            save_every=20,
            reductions={"drift": dq.Drift(dq.Energy())},
        ).reduced["drift"]

    rows = jnp.asarray([[0.1, 0.2], [-0.4, 1.0], [2.0, -3.0]], jnp.float32)
    together = jax.jit(jax.vmap(motion))(rows)
    assert together.dtype == jnp.float32
    fewer = jax.jit(jax.vmap(motion))(rows[1:])
    np.testing.assert_array_equal(together[1:], fewer)


def test_after_an_event_nothing_counts():
    """Guards the end of a motion that an event stops: a ball that lands after sqrt(2 h / g)."""
    kept = {"mean": dq.Mean(dq.Velocities()), "final": dq.Final(dq.Coordinates())}
    run = dl.simulate(
        BALL,
        jnp.asarray([1.0]),
        jnp.zeros(1),
        dt=0.05,
        steps=40,
        save_every=40,
        until=lambda t, q, v: q[0],
        reductions=kept,
    )
    fallen = np.sqrt(2 / G)
    np.testing.assert_allclose(run.reduced["mean"], -G * fallen / 2, rtol=1e-9)
    np.testing.assert_allclose(run.reduced["final"], 0, atol=1e-9)


def test_a_failed_motion_counts_up_to_its_failure():
    """Guards the values of a run whose state stops being finite."""
    blast = dl.simulate(
        BALL,
        jnp.zeros(1),
        jnp.ones(1),
        dt=0.1,
        steps=10,
        save_every=10,
        control=lambda t, q, v: jnp.where(t > 0.55, jnp.inf, 2.0 * G) * jnp.ones(1),
        reductions={"final": dq.Final(dq.Coordinates()), "mean": dq.Mean(dq.Coordinates())},
    )
    assert not blast.result.ok
    np.testing.assert_allclose(blast.reduced["final"], 0.5, rtol=1e-12)
    np.testing.assert_allclose(blast.reduced["mean"], 0.25, rtol=1e-12)


def test_a_long_run_in_pieces():
    """Guards what is carried from one piece of a long run to the next."""
    kept = {"mean": dq.Mean(dq.Velocities())}
    run = dl.simulate(
        BALL, jnp.zeros(1), jnp.zeros(1), dt=1e-3, steps=25_000, save_every=25_000, reductions=kept
    )
    np.testing.assert_allclose(run.reduced["mean"], -G * 12.5, rtol=1e-9)


def test_wrong_arguments():
    """Guards the sentences for what is no reduction, and for an adjoint that steps back."""
    with pytest.raises(TypeError, match=r"reductions\['drift'\] is Energy.*Peak\(quantity\)"):
        swing(X, {"drift": dq.Energy()})
    with pytest.raises(ValueError, match="steps back, and what reductions keep"):
        swing(X, method=dl.Rattle(), adjoint=dl.Reversible())

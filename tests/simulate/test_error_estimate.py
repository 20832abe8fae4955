"""The error that a run reports of itself, against the error that it has."""

import dataclasses
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import difflie as dl
from difflie.integrators import METHODS
from difflie.reproduce.mechanisms.bodies import heavy_top
from difflie.reproduce.mechanisms.linkages import bricard, four_bars, slider_crank, squeezer
from difflie.reproduce.mechanisms.pendulums import pendulum

GRAVITY = 9.81


def swing(**more) -> dl.System:
    """A point mass at 1 m from a hinge."""
    hinge = dl.Revolute(axis=(0.0, 1.0, 0.0), **more)
    return dl.chain([dl.Body(name="bob", joint=hinge, mass=1.0, com=(0.0, 0.0, -1.0))])


def cart() -> dl.System:
    """1 kg on a rail, pushed by what is commanded in N."""
    return dl.chain([dl.Body(name="cart", joint=dl.Prismatic(axis=(1.0, 0.0, 0.0)), mass=1.0)])


def honest(run, q, v, rows=False):
    """That the largest errors of a run are estimated within a factor of 3; or those of each row."""
    found, manifold = run.error_estimate(), run.result.topology.manifold
    true = jax.vmap(manifold.difference)(run.q, jnp.asarray(q)), run.v - jnp.asarray(v)
    assert found.q.shape == found.v.shape == run.v.shape and found.t.shape == run.t.shape
    for estimate, error in zip(found[1:], true, strict=True):
        assert not np.any(estimate[0])
        estimate, error = (np.abs(np.asarray(a)).max(1)[1:] for a in (estimate, error))
        if not rows:
            estimate, error = estimate.max(), error.max()
        ratio = estimate / error
        assert np.all((ratio > 1 / 3) & (ratio < 3)), ratio


_FAST = "SemiImplicitEuler RKMK4 DormandPrince54 GaussLegendre4 VariationalMidpoint".split()


@pytest.mark.slow("VariationalMidpoint", "SemiImplicitEuler")
@pytest.mark.parametrize(
    "method",
    [
        pytest.param(m, id=m.name, marks=[] if m.name in _FAST else pytest.mark.slow)
        for m in METHODS
    ],
)
def test_of_a_pendulum_by_every_method(method):
    """Guards the order in the estimate, row by row, against the equation y'' = -g sin y."""
    steps = 32 if method.order <= 4 else 4  # so that errors are larger than rounding
    run = dl.simulate(
        swing(), [1.2], [0.0], dt=0.4 / steps, steps=steps, method=method, save_every=2
    )
    exact = solve_ivp(
        lambda t, y: (y[1], -GRAVITY * np.sin(y[0])),
        *((0.0, 0.4), (1.2, 0.0), "DOP853", np.asarray(run.t)),
        rtol=1e-13,
        atol=1e-15,
    ).y
    honest(run, exact[:1].T, exact[1:].T, rows=True)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["RKMK4", "CF3"])
def test_attitudes_are_compared_on_their_manifold(method):
    """Guards tangents where q has another size than v, and turns beyond pi."""
    top = dl.Body(name="top", joint=dl.Spherical(), mass=1.0, inertia=np.diag([0.8, 1.0, 1.3]))
    system = dl.chain([top])
    given = system, system.neutral(), jnp.array([2.0, 5.0, -3.0])
    run = dl.simulate(*given, dt=0.05, steps=40, method=method, save_every=10)
    exact = dl.simulate(*given, dt=0.0125, steps=160, method="RKMK8", save_every=40)
    honest(run, exact.q, exact.v, rows=True)


@pytest.mark.slow
def test_an_event_has_an_error_in_time():
    """Guards the time of the end, and rows behind it: a quarter of a period by its integral."""
    run = dl.simulate(
        *(swing(), [1.2], [0.0]),
        dt=0.05,
        steps=20,
        method="StormerVerlet",
        until=lambda t, q, v: q[0],
    )
    found = run.error_estimate()
    m = np.sin(0.6) ** 2
    x = (np.arange(100) + 0.5) * np.pi / 200
    exact = np.mean(1 / np.sqrt(1 - m * np.sin(x) ** 2)) * np.pi / 2 / np.sqrt(GRAVITY)
    error = abs(float(run.result.ending.t) - exact)
    assert 1 / 3 < float(found.t[-1]) / error < 3
    assert not np.any(np.asarray(found.t)[np.asarray(run.t) < run.t[-1]])


@pytest.mark.parametrize("kind", ["array", dl.ZeroOrderHold, dl.FirstOrderHold])
def test_samples_are_held_as_long_as_before(kind):
    """Guards sampled inputs: with samples in other places the estimate would be far too large."""
    steps, every, h = 24, 3, 0.05
    u = np.random.default_rng(3).normal(size=(steps, 1))
    control = u if kind == "array" else kind(u[: steps // every + 1], every)
    run = dl.simulate(
        *(cart(), [0.0], [1.0]), dt=h, steps=steps, control=control, method="SemiImplicitEuler"
    )
    force = u if kind == "array" else np.asarray(control.rows(steps)[0])
    slope = 0 * u if kind == "array" else np.asarray(control.rows(steps)[1])
    dv = h * (force + slope / 2)
    v = 1.0 + np.concatenate((np.zeros((1, 1)), np.cumsum(dv, 0)))
    dq = h * v[:-1] + h**2 * (force / 2 + slope / 6)
    q = np.concatenate((np.zeros((1, 1)), np.cumsum(dq, 0)))
    found = run.error_estimate()
    for estimate, error in ((found.q, q - run.q), (found.v, v - run.v)):
        estimate, error = np.max(estimate), np.max(np.abs(error))
        assert estimate < 1e-13 if error < 1e-13 else 1 / 3 < estimate / error < 3


def actuated(actuator, steps):
    """A swing that a controller with a memory damps, in so many steps; 12 rows."""
    system = dl.attach(swing(), actuator)
    return dl.simulate(
        *(system, [1.0], [0.0]),
        dt=0.6 / steps,
        steps=steps,
        save_every=steps // 12,
        control=lambda t, q, v: jnp.array([4.0 - 3.0 * q[0] - v[0]]),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "actuator",
    [dl.Drive("bob_joint", delay=0.043, most_steps=4), dl.Thruster("bob_joint", lag=0.05)],
    ids=["delay", "lag"],
)
def test_actuators_with_a_memory(actuator):
    """Guards a lower order than the method's, and delay lines, which get as many more places."""
    actuator = dataclasses.replace(actuator, joint=swing().joint_names[0])
    longer = actuator.refined(64)
    exact = actuated(longer, 24 * 64)
    honest(actuated(actuator, 24), exact.q, exact.v)


@pytest.mark.slow("RKMK4")
@pytest.mark.parametrize("method", ["RKMK4", "SemiImplicitEuler"])
def test_against_a_stop(method):
    """Guards runs whose order is not the method's: a stiff spring that is met within a step."""
    system = dl.attach(swing(lower=-0.2, upper=0.8), dl.JointStop(2000.0))
    given = system, [0.5], [3.0]
    run = dl.simulate(*given, dt=5e-3, steps=200, method=method, save_every=20)
    exact = dl.simulate(*given, dt=1e-4, steps=10_000, method="RKMK4", save_every=1000)
    honest(run, exact.q, exact.v)


@pytest.mark.slow
def test_in_single_precision():
    """Guards the precision, and that the estimate is no less than what rounding does."""
    system = swing().astype(jnp.float32)
    q, v = jnp.array([1.2], jnp.float32), jnp.zeros(1, jnp.float32)
    run = dl.simulate(system, q, v, dt=jnp.float32(0.05), steps=8)
    found = run.error_estimate()
    assert {a.dtype for a in found} == {jnp.dtype("float32")}
    exact = dl.simulate(swing(), [1.2], [0.0], dt=0.00625, steps=64, save_every=8)
    error = np.abs(np.asarray(exact.q) - np.asarray(run.q, float)).max()
    assert 1 / 3 < float(found.q.max()) / error < 3


@pytest.mark.slow
def test_within_a_transformation():
    """Guards batches, which estimate beside simulate; a batch by itself knows no system."""

    def estimated(q):
        return dl.simulate(swing(), q, [0.0], dt=0.05, steps=8).error_estimate().q

    starts = jnp.array([[1.2], [0.4]])
    batch = jax.jit(jax.vmap(estimated))(starts)
    np.testing.assert_allclose(batch, [estimated(q) for q in starts], rtol=1e-6, atol=1e-15)


def test_a_run_that_does_not_know_how_it_was_made():
    """Guards the refusal: an estimate with another system or other inputs would be none."""
    run = dl.simulate(swing(), [1.2], [0.0], dt=0.05, steps=8, control=lambda t, q, v: -v)
    kept = pickle.loads(pickle.dumps(run))
    mapped = jax.tree.map(lambda a: a, run)
    for other in (kept, mapped, jax.jit(lambda run: run)(run)):
        np.testing.assert_array_equal(other.q, run.q)
        with pytest.raises(
            ValueError, match=r"does not know its system .* call simulate with them"
        ):
            other.error_estimate()


def test_a_run_that_failed():
    """Guards against an estimate between states that stand still."""

    def breaks(t, q, v):
        return jnp.where(t > 0.2, jnp.inf, q)

    run = dl.simulate(swing(), [1.2], [0.0], dt=0.05, steps=8, control=breaks)
    with pytest.raises(ValueError, match=r"the run failed, .* no error to estimate: failed: the s"):
        run.error_estimate()


@pytest.mark.slow
@pytest.mark.thorough(
    "heavy_top-RKMK4", "heavy_top-SemiImplicitEuler", "pendulum-RKMK4", "bricard-RKMK4"
)
@pytest.mark.parametrize(
    ("problem", "method"),
    [
        *((heavy_top, method) for method in ("SemiImplicitEuler", "RKMK4", "GeneralizedAlpha")),
        (pendulum, "RKMK4"),
        pytest.param(four_bars, "GeneralizedAlpha", marks=pytest.mark.thorough),
        (slider_crank, "SemiImplicitEuler"),
        (bricard, "RKMK4"),
        pytest.param(squeezer, "GeneralizedAlpha", marks=pytest.mark.thorough),
    ],
)
def test_of_published_mechanisms(problem, method):
    """Guards closed loops: against a run that ends at the published values."""
    p = problem()
    # Of order 1 the errors are as large as the motion over the whole time.
    part, steps = (1 / 16, p.steps // 2) if method == "SemiImplicitEuler" else (1.0, 2 * p.steps)

    def run(method, part, steps):
        return dl.simulate(
            *(p.system, p.q, p.v),
            dt=part * p.time / steps,
            steps=steps,
            save_every=steps // 8,
            method=method,
            control=None if p.drive is None else lambda t, q, v: p.drive,
        )

    if part == 1.0:
        exact = run("RKMK8", part, 4 * steps)
        off = np.abs(p.measured(exact.q[-1], exact.v[-1]) - p.values) / p.scales
        assert off.max() < p.target
    else:
        exact = run("RKMK4", part, 8 * steps)
    honest(run(method, part, steps), exact.q, exact.v)

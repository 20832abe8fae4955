"""Backward differences: the heavy top with one and two steps, and their start."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from heavy_top import HeavyTop, errors, run

import difflie as dl

PRINTED = {  # err(2.5e-4) of pose, velocity and multipliers
    (3, False): (7.8e-5, 3.2e-3, 2.6e-1),
    (2, False): (2.2e-5, 4.3e-4, 7.2e-2),
    (3, True): (1.4e-3, 2.9e-2, 2.2),
    (2, True): (1.4e-3, 2.9e-2, 2.2),
}


@pytest.mark.slow
@pytest.mark.parametrize(("index", "se3"), PRINTED)
def test_errors_of_two_steps(index, se3):
    found, orders, position, velocity = errors(dl.BDF2(index=index), se3)
    np.testing.assert_allclose(found, PRINTED[index, se3], rtol=0.08)
    np.testing.assert_allclose(orders, 2, atol=0.05)
    assert position < 1e-15
    assert velocity < (1e-13 if index == 2 else 1e-10 if se3 else 4e-3)


@pytest.mark.slow
def test_with_exact_velocities_at_the_start_multipliers_are_of_first_order():
    top = HeavyTop(False)
    exact = top.start[1]

    def fix(state):
        increment, before, euler = state.memory
        return state._replace(v=exact, memory=(increment, before + exact - state.v, euler))

    found, orders, _, _ = errors(dl.BDF2(index=3), False, fix)
    assert found[2] == pytest.approx(3.4, rel=0.07)
    np.testing.assert_allclose(orders, (2, 2, 1), atol=0.05)


@pytest.mark.slow("3-printed0")
@pytest.mark.parametrize(("index", "printed"), [(3, (3.0e-3, 1e-1, 13.0)), (2, (1e-3, 2e-2, 4.5))])
def test_errors_of_one_step(index, printed):
    found, orders, position, velocity = errors(dl.BDF1(index=index), False)
    np.testing.assert_allclose(found, printed, rtol=0.1)
    np.testing.assert_allclose(orders, 1, atol=0.04)
    assert position < 1e-15 and velocity < (1e-13 if index == 2 else 0.1)


@pytest.mark.slow
@pytest.mark.thorough("BDF1")
@pytest.mark.parametrize("method", [dl.BDF1(), dl.BDF2()], ids=lambda m: m.name)
def test_derivatives_in_both_modes(method):
    def moved(mass, spin):
        top = HeavyTop(False, mass=mass, rate=jnp.stack((0.0, spin, -4.6)))
        states, _ = run(method, top, method.init(top, jnp.zeros(()), top.start, 1e-3), 1e-3, 10)
        last = jax.tree.map(lambda a: a[-1], states)
        return jnp.sum(jnp.sin(last.q)) + 1e-2 * last.v[2] + 1e-4 * jnp.sum(last.multipliers)

    at = 15.0, 150.0
    f = jax.jit(moved)
    forward = jax.jit(jax.jacfwd(f, (0, 1)))(*at)
    backward = jax.jit(jax.grad(f, (0, 1)))(*at)
    np.testing.assert_allclose(forward, backward, rtol=1e-9)
    for k, x in enumerate(at):
        up, down = (f(*at[:k], x * (1 + d), *at[k + 1 :]) for d in (1e-5, -1e-5))
        assert float(forward[k]) == pytest.approx(float(up - down) / (2e-5 * x), rel=1e-6)


@pytest.mark.parametrize(
    ("method", "off"), [(dl.BDF1(), 1e-3), (dl.BDF2(), 1e-3), (dl.GeneralizedAlpha(), 0.2)]
)
def test_damping_that_the_step_does_not_resolve(method, off):
    """A link goes v J / d and stops, for the first step is one of implicit Euler."""
    inertia, damping = 1e-3, 5.0
    joint = dl.Revolute(axis=(0, 1.0, 0))
    rod = dl.Body(name="rod", joint=joint, mass=1e-6, inertia=inertia * np.eye(3))
    rod = dl.chain([rod]).replace(gravity=jnp.zeros(3), damping=jnp.array([damping]))
    run = dl.simulate(rod, jnp.zeros(1), jnp.ones(1), dt=1e-2, steps=50, method=method)
    np.testing.assert_allclose(run.q[-1, 0], inertia / damping, rtol=off)

"""Methods in descriptor form on machines: a redundant loop in joint coordinates, and a chain."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl

STILL = jnp.zeros(3)
METHODS = [dl.GeneralizedAlpha(), dl.GeneralizedAlpha(index=3), dl.BDF2(), dl.BDF1()]
BAR = {"inertia": np.diag([0.02, 0.02, 0.001]), "com": (0.0, 0.0, -0.25)}


def bar(name, joint, parent=None, **given):
    return dl.Body(name=name, joint=joint, parent=parent, **{"mass": 1.0, **BAR, **given})


def parallelogram(mass=1.0, shift=0.0, dtype=jnp.float64):
    """Two cranks and a rod between them, closed by a revolute joint: 5 equations of rank 2.

    The ground pivot of the second crank is `shift` further to the side.
    """
    y = dl.Revolute(axis=(0.0, 1.0, 0.0))
    system = dl.chain(
        [
            bar("crank", y),
            bar("rod", y, position=(0, 0, -0.5), com=(0.5, 0, 0), mass=2.0),
            bar("rocker", y, position=(1, 0, 0), com=(0, 0, 0.25)),
        ]
    ).astype(dtype)
    pivot = jnp.stack((1.0 + jnp.asarray(shift, dtype), *jnp.zeros(2, dtype)))
    ground = dl.Frame(None, pivot, axis=(0, 1, 0))
    end = dl.Frame("rocker", (0.0, 0.0, 0.5), axis=(0, 1, 0))
    system = dl.constrain(system, dl.constraints.RevoluteConstraint(ground, end))
    return system.replace(mass=system.bodies.mass.at[0].set(mass))


LOOP = parallelogram()
Q0, V0 = jnp.asarray([0.6, -0.6, 0.6]), jnp.asarray([2.0, -2.0, 2.0])  # on the constraints


@pytest.fixture(scope="module")
def exact():
    return dl.simulate(LOOP, Q0, V0, dt=1e-3, steps=500, save_every=5)


@pytest.mark.slow
@pytest.mark.thorough("GeneralizedAlpha2")
@pytest.mark.parametrize(
    "method",
    METHODS,
    ids=lambda m: f"{m.name}{m.index}",
)
def test_a_redundant_loop(method, exact):
    off = []
    for h in (1e-2, 5e-3):
        run = dl.simulate(LOOP, Q0, V0, dt=h, steps=50, method=method)
        assert bool(run.result.ok)
        g = jax.vmap(lambda q: dl.constraint_residual(LOOP, q))(run.q)
        rate = jax.vmap(lambda q, v: dl.constraint_jacobian(LOOP, q) @ v)(run.q, run.v)
        assert float(jnp.abs(g).max()) < 1e-14
        assert float(jnp.abs(rate[1:]).max()) < (1e-12 if method.index == 2 else 2e-3)
        every = round(h / 5e-3)
        q, v = exact.q[: 50 * every + 1 : every], exact.v[: 50 * every + 1 : every]
        _, multipliers = jax.vmap(lambda q, v: dl.constrained_dynamics(LOOP, q, v, STILL))(q, v)
        n = 50 // every + 1  # The same time.
        off.append(
            [
                float(jnp.abs(x[:n]).max())
                for x in (run.q - q, run.v - v, run.states.multipliers - multipliers)
            ]
        )
    np.testing.assert_allclose(np.log2(np.divide(*off)), method.order, atol=0.3)


@pytest.mark.slow
def test_a_chain_without_constraints():
    y = dl.Revolute(axis=(0.0, 1.0, 0.0))
    chain = dl.chain([bar("a", y), bar("b", dl.Spherical(), position=(0, 0, -0.5))])
    q = dl.integrate(chain, chain.neutral(), jnp.asarray([0.5, 0.3, -0.2, 0.4]))
    v = jnp.asarray([1.0, -2.0, 1.0, 3.0])

    def push(t, q, v):
        return jnp.stack((jnp.cos(5 * t), *jnp.zeros(3))) - 0.1 * v

    exact = dl.simulate(chain, q, v, dt=1e-3, steps=200, control=push)
    off = []
    for h in (4e-3, 2e-3):
        run = dl.simulate(
            chain, q, v, dt=h, steps=100, control=push, method=dl.GeneralizedAlpha(rho=0.5)
        )
        n = round(0.2 / h)
        assert bool(run.result.ok) and run.states.multipliers.shape == (101, 0)
        off.append(float(jnp.abs(run.q[n] - exact.q[-1]).max()))
    assert np.log2(off[0] / off[1]) == pytest.approx(2, abs=0.2)
    start = dl.forward_dynamics(chain, q, v, push(0.0, q, v))
    np.testing.assert_allclose(run.states.acceleration[0], start, rtol=1e-12)


@pytest.mark.slow
def test_derivatives_with_respect_to_a_machine():
    guess, _ = dl.assemble(parallelogram(1.0, 0.02), jnp.asarray([0.6, -0.6, 0.6]))

    def reached(x):
        system = parallelogram(*x[:2])
        q, v = dl.assemble(system, guess, V0 * x[2])
        run = dl.simulate(system, q, v, dt=5e-3, steps=10, method=dl.GeneralizedAlpha())
        return jnp.sum(jnp.sin(run.q[-1])) + 0.1 * run.v[-1, 0]

    f, at = jax.jit(reached), jnp.asarray([1.0, 0.02, 1.0])
    forward, backward = jax.jit(jax.jacfwd(f))(at), jax.jit(jax.grad(f))(at)
    np.testing.assert_allclose(forward, backward, rtol=1e-9)
    for k in range(3):
        step = 1e-5 * jnp.eye(3)[k]
        difference = (f(at + step) - f(at - step)) / 2e-5
        assert float(forward[k]) == pytest.approx(float(difference), rel=1e-6)


@pytest.mark.slow
def test_single_precision():
    loop = parallelogram(dtype=jnp.float32)
    q, v = (jnp.asarray(x, jnp.float32) for x in (Q0, V0))
    run = dl.simulate(loop, q, v, dt=5e-3, steps=20, method=dl.GeneralizedAlpha())
    assert bool(run.result.ok)
    assert all(a.dtype == jnp.float32 for a in (run.q, run.v, *jax.tree.leaves(run.states)))
    exact = dl.simulate(LOOP, Q0, V0, dt=5e-3, steps=20, method=dl.GeneralizedAlpha())
    assert float(jnp.abs(run.q - exact.q).max()) < 1e-4

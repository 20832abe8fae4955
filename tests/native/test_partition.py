"""Partitioned loops: products with large matrices are XLA's, and all is as in the ordinary loop."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from transformations import assert_same

import difflie as dl
from difflie.native import kernel, scan

LENGTH, HIDDEN = 6, 64
ROWS = jnp.sin(jnp.arange(3.0 * LENGTH)).reshape(LENGTH, 3)


def weights(hidden=HIDDEN, dtype=np.float64):
    shapes = (hidden, 3 + hidden), (hidden, hidden), (3, hidden)
    keys = jax.random.split(jax.random.key(0), len(shapes))
    pairs = zip(keys, shapes, strict=True)
    return [jax.random.normal(k, s, dtype) / s[1] ** 0.5 for k, s in pairs]


def dynamics(x, force):
    """More operations than what is between two layers has."""
    for k in range(5):
        x = x + 0.02 * x[::-1] * (x + k * force)
    return jnp.sin(x)


def ordinary(f, start, rows, length, reverse=False, every=1, forward_only=False):
    end, out = lax.scan(f, start, rows, length, reverse)
    return end, jax.tree.map(lambda y: y[every - 1 :: every], out)


def recurrent(scan, **how):
    """A loop with a recurrent network, whose hidden state is carried."""

    def run(weights, x):
        inside, own, out = weights

        def body(state, row):
            x, h, n = state
            h = jnp.tanh(inside @ jnp.concatenate((x + row, h)) + own @ h)
            x = dynamics(x, out @ h)
            return (x, h, n + 1), (x * n, h[:2])

        h = jnp.zeros(weights[1].shape[0], x.dtype)
        (x, h, _), out = scan(body, (x, h, 1), ROWS.astype(x.dtype), LENGTH, **how)
        return x, h, out

    return run


def loss(f):
    return lambda *args: sum(jnp.sum(jnp.sin(y)) for y in jax.tree.leaves(f(*args)))


def calls(f, *args):
    """How many native calls the program of a function has, and how many loops of XLA."""
    text = jax.jit(f).lower(*args).as_text()
    return text.count("custom_call @difflie_"), text.count("stablehlo.while")


X, BATCH = jnp.array([0.3, -1.2, 2.0]), jnp.linspace(-1.0, 1.0, 15).reshape(5, 3)
ALL = {
    "value": lambda f: lambda w: f(w, X),
    "gradient": lambda f: lambda w: jax.grad(loss(f), (0, 1))(w, X),
    "batch": lambda f: lambda w: jax.vmap(f, (None, 0))(w, BATCH),
    "gradient of a batch": lambda f: (
        lambda w: jax.grad(lambda w: jnp.sum(jax.vmap(loss(f), (None, 0))(w, BATCH)))(w)
    ),
    "batch of gradients": lambda f: lambda w: jax.vmap(jax.grad(loss(f)), (None, 0))(w, BATCH),
    "one network each": lambda f: (
        lambda w: jax.vmap(jax.grad(loss(f)))(
            jax.tree.map(lambda a: jnp.stack([a * s for s in (1.0, 0.9, 0.8, 0.7, 0.6)]), w), BATCH
        )
    ),
    "direction": lambda f: lambda w: jax.jvp(loss(f), (w, X), (w, X)),
    "gradient along a direction": lambda f: lambda w: jax.jvp(jax.grad(loss(f)), (w, X), (w, X)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_transformations(name):
    """Values and derivatives of a loop with large weights, one and in batches, both modes."""
    f, g = (ALL[name](recurrent(s)) for s in (scan, ordinary))
    native, loops = calls(f, weights())
    assert native > 0 and loops > 0
    assert_same(jax.jit(f)(weights()), jax.jit(g)(weights()), 1e-9)


@pytest.mark.slow("how0")
@pytest.mark.parametrize("how", [{"every": 3}, {"reverse": True}, {"every": 2, "reverse": True}])
def test_ways(how):
    """Outputs of every n-th iteration, and from the last row to the first."""
    f, g = (ALL["gradient of a batch"](recurrent(s, **how)) for s in (scan, ordinary))
    assert_same(jax.jit(f)(weights()), jax.jit(g)(weights()), 1e-9)
    assert_same(
        recurrent(scan, **how)(weights(), X), recurrent(ordinary, **how)(weights(), X), 1e-9
    )


def test_single_precision():
    """Stays so, gradient included."""
    w, batch = weights(dtype=np.float32), BATCH.astype(np.float32)

    def program(scan):
        total = lambda w: jnp.sum(jax.vmap(loss(recurrent(scan)), (None, 0))(w, batch))  # noqa: E731
        return jax.jit(jax.grad(total))(w)

    assert_same(program(scan), program(ordinary), 1e-4)


def test_few_weights():
    """A small network is part of one native loop, as it was."""
    assert calls(recurrent(scan), weights(8), X) == (1, 0)


def test_forward_only():
    """Directions of a loop that keeps nothing for a way back."""
    f, g = recurrent(scan, forward_only=True), recurrent(ordinary)
    w = weights()
    assert_same(jax.jvp(f, (w, X), (w, X)), jax.jvp(g, (w, X), (w, X)), 1e-9)


def test_what_a_gradient_keeps():
    """The states of the iterations, but not what stands between the layers of a network."""

    def kept(iterations):
        def run(w, x):
            def body(x, _):
                return dynamics(x, w[2] @ jnp.tanh(w[1] @ jnp.tanh(w[0][:, :3] @ x))), None

            return jnp.sum(scan(body, x, None, iterations)[0])

        found = jax.jit(jax.grad(run)).lower(weights(), X).compile().memory_analysis()
        return found.temp_size_in_bytes

    assert kept(2000) - kept(1000) < 1000 * 8 * (3 + 10)


@pytest.mark.slow
def test_calls_and_loops_inside_a_turn():
    """Calls are opened, branches and loops split in place, derivatives of one's own kept."""

    @jax.custom_jvp
    def layer(w, x):
        return jnp.tanh(w @ x)

    layer.defjvp(lambda at, along: (layer(*at), 3.0 * along[1] + at[0] @ along[1]))

    def program(scan):
        def run(w, x, on):
            _, square, out = w

            def body(state, _):
                x, n = state
                h = jnp.zeros(HIDDEN).at[:3].set(x)
                h = lax.fori_loop(0, 3, lambda _, h: jax.jit(layer)(square, h), h)
                h = lax.cond(on & (n < 3), lambda h: dynamics(square @ h, h), lambda h: h, h)
                return (dynamics(x, out @ h), n + 1), None

            return jnp.sum(scan(body, (x, 0), None, 4)[0][0])

        each = jax.vmap(jax.value_and_grad(run, (0, 1)), (None, 0, None))
        return lambda w, on: each(w, BATCH, on)

    assert calls(program(scan), weights(), True)[0] > 0
    for on in (True, False):
        found, expected = (jax.jit(program(s))(weights(), on) for s in (scan, ordinary))
        assert_same(found, expected, 1e-9)


def test_kernels():
    """A single call with large matrices among its arguments is partitioned as well."""
    f = lambda w, x: dynamics(x, w[2] @ jnp.tanh(w[1] @ jnp.tanh(w[0][:, :3] @ x)))  # noqa: E731
    assert calls(kernel(f), weights(), X)[0] == 1
    text = jax.jit(kernel(f)).lower(weights(), X).as_text()
    assert text.count("dot_general") == 2
    assert_same(jax.grad(loss(kernel(f)))(weights(), X), jax.grad(loss(f))(weights(), X), 1e-12)
    assert_same(kernel(f)(weights(), X), f(weights(), X), 1e-12)


def test_kernels_inside_a_turn():
    """Native calls that are each small are opened where together they are not."""

    def program(scan, layer):
        def run(w, x):
            def body(x, _):
                h = w[0][:, :3] @ x
                for _ in range(3):
                    h = layer(w[1], h)
                return dynamics(x, w[2] @ h), None

            return scan(body, x, None, 4)

        return jax.value_and_grad(loss(run))

    layer = lambda w, h: jnp.tanh(w @ h)  # noqa: E731
    found, expected = program(scan, kernel(layer)), program(ordinary, layer)
    assert calls(found, weights(30), X)[1] > 0
    assert_same(jax.jit(found)(weights(30), X), jax.jit(expected)(weights(30), X), 1e-10)


def test_large_tables():
    """A table of many entries, read at dynamic indices, stays an array."""
    table = jnp.sin(jnp.arange(50_000.0))

    def program(scan):
        def run(table, x):
            def body(x, _):
                at = jnp.clip((jnp.abs(x) * 1e4).astype(int), 0, 49_998)
                low, high = table[at], table[at + 1]
                return dynamics(x, low + (high - low) * x), low

            return scan(body, x, None, 4)

        return lambda t: (run(t, X), jax.vmap(jax.grad(loss(run), 1), (None, 0))(t, BATCH))

    assert calls(program(scan), table)[0] > 0
    assert_same(jax.jit(program(scan))(table), jax.jit(program(ordinary))(table), 1e-12)


# Simulations


def pendulum():
    rods = [
        dl.Body(name=f"rod{i}", joint=dl.Revolute(axis=axis), mass=1.0, com=(0.0, 0.1, -0.3))
        for i, axis in enumerate([(0.0, 1.0, 0.0), (1.0, 0.0, 0.0)])
    ]
    return dl.chain(rods)


STATES = [jnp.linspace(a, 0.5, 6).reshape(3, 2) for a in (-0.4, 0.1)]


def network(hidden=48):
    return eqx.nn.MLP(4, 2, hidden, 2, jnp.tanh, key=jax.random.key(1))


def gradient(method, adjoint, **how):
    """Of a batch of motions under a policy, with respect to its weights and the machine."""

    def total(policy, system, q, v):
        def moved(q, v):
            control = lambda t, q, v: policy(jnp.concatenate((q, v)))  # noqa: E731
            options = {"dt": 0.02, "steps": 6, "method": method, "control": control} | how
            run = dl.simulate(system, q, v, adjoint=adjoint, **options)
            return jnp.sum(run.q**2) + jnp.sum(run.v**2)

        return jnp.sum(jax.vmap(moved)(q, v))

    return lambda *args: eqx.filter_grad(lambda both, *rest: total(*both, *rest))(*args)


thorough = functools.partial(pytest.param, marks=pytest.mark.thorough)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "adjoint", "how"),
    [
        ("SemiImplicitEuler", dl.Direct(), {"save_every": 2}),
        ("RKMK4", dl.Direct(), {}),
        ("RKMK4", dl.RecursiveCheckpoint(6), {"steps": 7}),
        thorough("StormerVerlet", dl.Reversible(), {}),
        thorough("ImplicitMidpoint", dl.Direct(), {}),
        thorough("RKMK4", dl.Direct(), {"until": lambda t, q, v: 0.35 - q[0]}),
    ],
)
def test_simulations(method, adjoint, how, monkeypatch):
    """Gradients through policies are those of the ordinary way, with every way to take them."""
    args = (network(), pendulum()), *STATES
    lowered = eqx.filter_jit(gradient(method, adjoint, **how)).lower(*args)
    assert lowered.as_text().count("custom_call @difflie_") > 1
    found = lowered.compile()(*args)
    monkeypatch.setenv("DIFFLIE_NATIVE", "0")
    jax.clear_caches()
    assert_same(found, eqx.filter_jit(gradient(method, adjoint, **how))(*args), 1e-8)


@pytest.mark.slow
def test_forward_simulation():
    """Along a direction of the weights, with the adjoint that has forward mode alone."""
    policy, (q, v), system = network(), (a[0] for a in STATES), pendulum()
    weights, rest = eqx.partition(policy, eqx.is_inexact_array)

    def end(adjoint):
        def run(weights):
            policy = eqx.combine(weights, rest)
            control = lambda t, q, v: policy(jnp.concatenate((q, v)))  # noqa: E731
            options = {"dt": 0.02, "steps": 5, "control": control, "adjoint": adjoint}
            return dl.simulate(system, q, v, **options).q

        return jax.jvp(run, (weights,), (weights,))

    assert_same(end(dl.Forward()), end(dl.Direct()), 1e-12)


@pytest.mark.slow
def test_known_weights_and_steps():
    """Weights that no one traces, in a simulation without jit, and in single steps."""
    policy, (q, v), system = network(), (a[0] for a in STATES), pendulum()
    control = lambda t, q, v: policy(jnp.concatenate((q, v)))  # noqa: E731
    run = dl.simulate(system, q, v, dt=0.02, steps=3, control=control)
    traced = jax.jit(lambda q: dl.simulate(system, q, v, dt=0.02, steps=3, control=control).q)
    assert_same(run.q, traced(q), 1e-13)
    for _ in range(3):
        q, v, _ = dl.step(system, q, v, 0.02, control=control)
    assert_same(run.q[-1], q, 1e-12)

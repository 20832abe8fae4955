"""A marked program gives the same numbers as the unmarked one, under every transformation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from transformations import GAIN, TRANSFORMATIONS, X, assert_same, batch, scalar

import difflie as dl
from difflie import native

cpu_only = pytest.mark.skipif(jax.default_backend() != "cpu", reason="programs are marked on CPUs")


def hot_loop(x, gain):
    """Fifty turns of a small loop over a vector (3,)."""

    def turn(carry, _):
        x, sum_of = carry
        x = x + 0.01 * gain * jnp.sin(jnp.roll(x, 1))
        return (x, sum_of + x), x[0]

    (x, total), seen = jax.lax.scan(turn, (x, jnp.zeros_like(x)), None, length=50)
    return x, total, seen


def is_marked(f, *args):
    return "xla_cpu_small_call" in jax.jit(f).lower(*args).as_text()


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_same_numbers(name):
    transform = TRANSFORMATIONS[name]
    assert_same(jax.jit(transform(native.mark(hot_loop)))(), jax.jit(transform(hot_loop))())


@cpu_only
def test_marked_forwards_and_differentiated_but_not_in_batches():
    f = native.mark(hot_loop)
    assert is_marked(f, X, GAIN)
    assert is_marked(jax.grad(scalar(f)), X, GAIN)
    assert not is_marked(jax.vmap(f), *batch())
    assert not is_marked(hot_loop, X, GAIN)


def test_arguments_and_results_of_several_types_and_structures():
    def f(tree, n, flag):
        x = jnp.where(flag, tree["a"], -tree["a"])
        return {"x": x * n, "n": n + 1, "flag": ~flag, "half": tree["b"] + tree["b"]}

    tree = {"a": X, "b": jnp.ones((2, 2), jnp.float32), "unused": jnp.zeros(4)}
    args = (tree, jnp.int32(3), jnp.array(True))
    assert_same(jax.jit(native.mark(f))(*args), f(*args))


@cpu_only
@pytest.mark.parametrize(
    "f",
    [
        pytest.param(lambda x, gain: jnp.sort(x) * gain, id="an operation not known to compile"),
        pytest.param(lambda x, gain: x[jnp.arange(3)[::-1]] * gain, id="a gather"),
    ],
)
def test_other_programs_run_the_ordinary_way(f):
    assert not is_marked(native.mark(f), X, GAIN)
    assert_same(jax.jit(native.mark(f))(X, GAIN), f(X, GAIN))


@cpu_only
def test_a_loop_may_stack_more_than_other_operations_may_return():
    def f(x, gain):
        return jax.lax.scan(lambda x, _: (gain * x, x), x, None, length=native.LARGEST)

    def total(f):
        return lambda x, gain: jnp.sum(jnp.square(f(x, gain)[0]))

    gain = jnp.float64(1 + 1e-6)
    assert is_marked(native.mark(f), X, gain)
    assert not is_marked(native.mark(lambda x, gain: jnp.tile(x, native.LARGEST)), X, gain)
    assert_same(jax.jit(native.mark(f))(X, gain), jax.jit(f)(X, gain))
    one, two = (jax.jit(jax.grad(total(g), (0, 1)))(X, gain) for g in (native.mark(f), f))
    assert_same(one, two)


@cpu_only
def test_sums_of_many_numbers_run_the_ordinary_way():
    # XLA splits them among threads.
    many = jnp.ones(4096)
    assert_same(jax.jit(native.mark(total))(many), total(many))
    assert not is_marked(native.mark(total), many)
    assert is_marked(native.mark(total), many[1:])


def total(x):
    return jnp.sum(x * x)


def test_unused_arguments_and_constant_arguments_do_no_harm():
    f = native.mark(lambda x, y, z: (x * 2.0, z + 0.0 * x))
    assert_same(jax.jit(f)(X, GAIN, 1.0), (2 * X, 1 + 0 * X))
    assert_same(
        jax.jit(lambda: f(jnp.ones(3), GAIN, jnp.zeros(3)))(), (2 * np.ones(3), np.zeros(3))
    )


def test_control_as_a_callable_with_an_unsupported_operation():
    system = dl.chain([dl.Body(name="rod", joint=dl.Revolute(), mass=1.0, com=(0.0, 0.3, 0.0))])
    q, v = jnp.array([0.3]), jnp.array([0.0])

    def sorted_control(t, q, v):
        return -jnp.sort(q)

    one = dl.simulate(system, q, v, dt=0.01, steps=20, control=sorted_control)
    two = dl.simulate(system, q, v, dt=0.01, steps=20, control=lambda t, q, v: -q)
    np.testing.assert_allclose(one.q, two.q, rtol=1e-13)

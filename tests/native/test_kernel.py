"""A kernel gives the same numbers as the function, under every transformation."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from transformations import GAIN, TRANSFORMATIONS, X, assert_same, batch, scalar

from difflie.native import call, kernel, mark

cpu_only = pytest.mark.skipif(jax.default_backend() != "cpu", reason="kernels are for CPUs")


def small_loop(x, gain):
    """Five turns of a loop over a vector (3,), with results of several shapes."""

    def turn(carry, row):
        x, total = carry
        x = x + 0.1 * gain * jnp.sin(x[::-1]) * row
        return (x, total + jnp.outer(x, x)), x[0] * x[1]

    rows = np.arange(5.0).astype(x.dtype)
    (x, total), seen = jax.lax.scan(turn, (x, jnp.zeros((3, 3), x.dtype)), rows)
    return x, total, seen, jnp.sum(x)


def is_kernel(f, *args):
    return "mhlo.fusion" in jax.jit(f).lower(*args).as_text()


ALL = TRANSFORMATIONS | {
    "single precision": lambda f: lambda: f(X.astype(np.float32), GAIN.astype(np.float32)),
    "the same argument twice": lambda f: lambda: f(X, X),
    "third derivative": lambda f: lambda: jax.jacrev(jax.hessian(scalar(f), 1), 1)(X, GAIN),
    "vmap of vmap": lambda f: (
        lambda: jax.vmap(jax.vmap(f, (0, None)), (None, 0))(batch()[0], batch()[1])
    ),
    "a large batch": lambda f: lambda: jax.vmap(f)(*batch(20_000)),
    "checkpoint": lambda f: lambda: jax.grad(jax.checkpoint(scalar(f)))(X, GAIN),
    "within a native call": lambda f: lambda: mark(lambda x: f(x, GAIN))(X),
    "gradient through a native call": lambda f: (
        lambda: jax.grad(lambda x: mark(scalar(f))(x, GAIN))(X)
    ),
}


@pytest.mark.parametrize("name", ALL)
def test_same_numbers(name):
    transform = ALL[name]
    tolerance = 3e-6 if name == "single precision" else 1e-12
    one, two = jax.jit(transform(kernel(small_loop)))(), jax.jit(transform(small_loop))()
    assert_same(one, two, tolerance)


@cpu_only
def test_derivatives_and_batches_are_kernels_too():
    f = kernel(small_loop)
    assert is_kernel(f, X, GAIN)
    assert is_kernel(jax.grad(scalar(f)), X, GAIN)
    assert is_kernel(jax.vmap(f), *batch())
    assert not is_kernel(small_loop, X, GAIN)


OPERATIONS = {
    "elementary": lambda x: (
        jnp.exp(x), jnp.expm1(x), jnp.log(x), jnp.log1p(x), jnp.sqrt(x), jax.lax.rsqrt(x),
        jnp.tanh(x), jnp.sin(x), jnp.cos(x), jnp.arctan2(x, 1 + x), x**2.5, x**-3, jnp.square(x),
    ),
    "rounding and sign": lambda x: (
        jnp.floor(x), jnp.ceil(x), jnp.round(x), jnp.sign(x - 1), jnp.abs(x - 1), -x,
        jnp.clip(x, 0.5, 1.0), jnp.maximum(x, 1.0), jnp.minimum(x, 1.0),
    ),
    "logic": lambda x: (
        (x > 1) & (x < 2), (x >= 1) | (x == 2), ~(x <= 1), x != 1, jnp.isfinite(x / (x - x[0])),
        jnp.where(x > 1, x, -x), (x > 1).astype(x.dtype), jnp.all(x > 0), jnp.any(x > 1),
    ),
    "shape": lambda x: (
        jnp.stack([x, 2 * x], axis=1), jnp.concatenate([x, x[1:]]), jnp.pad(x, (1, 2)), x[::-1],
        jnp.broadcast_to(x, (2, 3)).T, x[None], jax.lax.dynamic_slice(x, (1,), (2,)),
        x[jnp.array(1)] if False else jax.lax.dynamic_update_slice(x, x[:1], (2,)),
        jnp.arange(3) * x, jnp.split(x, 3)[1],
    ),
    "reductions": lambda x: (jnp.sum(x), jnp.max(x), jnp.min(x), jnp.sum(jnp.outer(x, x), 1)),
    "whole numbers": lambda x: (jnp.int32(3) + (x > 1).astype(jnp.int32), jnp.arange(3) + 1),
    "nothing computed": lambda x: (x, jnp.zeros(2), x[1]),
    "one result": lambda x: x[0] * x[1],
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name):
    f = OPERATIONS[name]
    x = jnp.array([0.7, 1.3, 2.0])
    assert_same(jax.jit(kernel(f))(x), f(x), 1e-15)


def test_what_is_known_is_computed_at_once():
    """A product with a zero of the structure is zero, whatever the other factor."""
    f = kernel(lambda x: x + np.array([0.0, 1.0]) * (1 / x[0]))
    np.testing.assert_array_equal(jax.jit(f)(jnp.zeros(2)), [0.0, np.inf])


def test_an_argument_that_structure_makes_useless_does_no_harm():
    def f(x, y):
        return x * 2, np.zeros(2) * y

    for g in (kernel(f), mark(kernel(f)), jax.vmap(kernel(f), (0, None))):
        for y, zero in ((np.inf, 0.0), (np.nan, np.nan)):
            first, second = jax.jit(g)(jnp.ones(2), jnp.full(2, y))
            np.testing.assert_array_equal(first, 2 * np.ones(2))
            np.testing.assert_array_equal(second, np.full(second.shape, zero))


def test_what_is_not_a_number_does_not_vanish():
    """Where the structure makes an entry useless, results are not numbers as the ordinary way."""

    def f(x, y):
        pattern = np.diag([1.0, 0.0, 0.0])
        turned = jnp.sin(pattern @ y) * x + 0.0 / (1 + y**2)
        held = jnp.where(x > 0.5, turned - turned * 0.0, jnp.stack((y[0], x[0], 0 * x[1])))
        return turned, -held, jnp.sum(0.0 * held[1:]), x[1] * 2.0, jnp.asarray([0.0, 1.0]) * 3

    programs = [jax.jit(g) for g in (kernel(f), f, jax.vmap(kernel(f)), jax.vmap(f))]
    for k in range(6):
        x, y = jnp.linspace(0.2, 1.0, 6).at[k].set(np.nan).reshape(2, 3)
        for one, two in zip(programs[0](x, y), programs[1](x, y), strict=True):
            np.testing.assert_array_equal(np.isnan(one), np.isnan(two))
        both = jnp.stack((x, jnp.ones(3))), jnp.stack((y, jnp.ones(3)))
        for one, two in zip(programs[2](*both), programs[3](*both), strict=True):
            np.testing.assert_array_equal(np.isnan(one), np.isnan(two))


@pytest.mark.parametrize("dtype", [np.float32, np.int32, bool])
def test_a_useless_argument_beside_a_known_result_of_any_type(dtype):
    f = kernel(lambda x: np.ones(2, dtype) + np.zeros(2, dtype) * x.astype(dtype)[0])
    for g in (kernel(lambda x: (jnp.ones(2, dtype), 0.0 * x)), f):
        assert_same(jax.jit(g)(X), jax.jit(g.__wrapped__)(X))


def test_known_whole_numbers_and_signs_of_zero():
    def f(x):
        bits = jnp.int32(6) & jnp.int32(3), jnp.int32(4) | jnp.int32(1), ~jnp.int32(5)
        return *bits, jnp.arctan2(x, -0.0), jnp.arctan2(x, 0.0)

    x = jnp.array([0.0, 1.0, -1.0])
    assert_same(jax.jit(kernel(f))(x), jax.jit(f)(x))


@cpu_only
@pytest.mark.parametrize(
    "f",
    [
        pytest.param(lambda x, gain: jnp.sort(x) * gain, id="an operation without a program"),
        pytest.param(lambda x, gain: x[jnp.argmax(x)] * gain, id="an index from run time"),
        pytest.param(lambda x, gain: jnp.outer(x, jnp.ones(10**6)) * gain, id="too long"),
    ],
)
def test_other_functions_run_the_ordinary_way(f):
    assert not is_kernel(kernel(f), X, GAIN)
    assert_same(jax.jit(kernel(f))(X, GAIN), f(X, GAIN))
    assert_same(jax.jit(jax.vmap(kernel(f)))(*batch()), jax.vmap(f)(*batch()))


@pytest.mark.parametrize("transform", [lambda f: f, jax.grad, jax.vmap])
def test_prints_within(transform):
    """A callback runs, in a kernel, in a kernel within one and in a native call."""
    seen = []

    def f(x):
        jax.debug.callback(lambda x: seen.append(float(x)), x)
        return x * x

    x = jnp.ones(2) if transform is jax.vmap else jnp.ones(())
    for g in (kernel(f), kernel(kernel(f)), mark(kernel(f))):
        assert_same(jax.jit(transform(g))(x), transform(lambda x: x * x)(x))
        jax.effects_barrier()
        assert seen and set(seen) == {1.0}
        seen.clear()


def test_an_empty_batch_and_without_jit():
    f = kernel(lambda x: x * x)
    assert jax.jit(jax.vmap(f))(X[None][:0]).shape == (0, 3)
    with jax.disable_jit():
        assert_same(f(X), X * X)


def test_an_untested_version_is_told_of_once(monkeypatch):
    call._tested.cache_clear()
    monkeypatch.setattr(jax, "__version_info__", (0, 99, 0))
    with pytest.warns(UserWarning, match="take a jax from 0.8 to 0.12") as told:
        assert not call.switched_on() and not call.switched_on()
    assert len(told) == 1
    call._tested.cache_clear()


@cpu_only
def test_can_be_switched_off():
    code = (
        "import jax, jax.numpy as jnp\n"
        "from difflie.native import kernel, mark\n"
        "f = jax.jit(mark(kernel(lambda x: jnp.sin(x) * x)))\n"
        "text = f.lower(jnp.ones(3)).as_text()\n"
        "print('fusion' in text or 'small_call' in text, float(f(jnp.ones(3))[0]))\n"
    )
    seen = {}
    for switch in ("0", "1"):
        run = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "DIFFLIE_NATIVE": switch},
            capture_output=True,
            text=True,
            check=True,
        )
        seen[switch] = run.stdout.split()
    assert [seen["0"][0], seen["1"][0]] == ["False", "True"]
    assert float(seen["0"][1]) == pytest.approx(float(seen["1"][1]), rel=1e-6)


@pytest.mark.slow
@cpu_only
def test_long_batches_in_vector_instructions():
    limits = "runtime-memory-check", "memory-check-merge", "vectorize-memory-check"
    options = ",".join(f"-{name}-threshold=100000" for name in limits)
    run = subprocess.run(
        [sys.executable, Path(__file__).with_name("long_batches.py")],
        env={**os.environ, "XLA_FLAGS": f"--xla_backend_extra_options={options}"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-2000:]


def test_what_is_not_a_number_shows_only_where_it_belongs():
    """In no result from which it has not vanished, and in no choice; other results may be ill."""
    zeros = np.zeros(12)

    def vanishing(m, x, y):
        nothing = jnp.sum(zeros * m)
        many = jnp.full(20, x + nothing)
        return many, jnp.where(x > 0, y, -y), x * y, y + nothing, jnp.sum(m) + jnp.log(x)

    ordinary, native = jax.jit(vanishing), jax.jit(kernel(vanishing))
    for first, x in ((np.nan, 1.0), (1.0, -1.0), (1.0, np.nan)):
        given = np.append(first, np.ones(11)), x, 2.0
        for one, two in zip(ordinary(*given), native(*given), strict=True):
            np.testing.assert_array_equal(one, two)

"""A kernel gives the same numbers as the function, under every transformation."""

import os
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from transformations import GAIN, TRANSFORMATIONS, X, assert_same, batch, natively

import difflie as dl
from difflie.native import attempts, kernel, scan
from difflie.native.cpu import ffi, functions, object_code, vectorized_loop
from difflie.native.loop import Loop
from difflie.native.loop_body import Traced
from difflie.native.program import instructions


def small_loop(x, gain):
    """Five iterations of a loop over a vector (3,), with results of several shapes."""

    def body(carry, row):
        x, total = carry
        x = x + 0.1 * gain * jnp.sin(x[::-1]) * row
        return (x, total + jnp.outer(x, x)), x[0] * x[1]

    rows = np.arange(5.0).astype(x.dtype)
    (x, total), seen = jax.lax.scan(body, (x, jnp.zeros((3, 3), x.dtype)), rows)
    return x, total, seen, jnp.sum(x)


ONCE = ("value", "vmap", "vmap of one argument", "loop", "single precision", "vmap of vmap")


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_same_numbers(name):
    """Values, derivatives and batches, each by native code."""
    transform = TRANSFORMATIONS[name]
    tolerance = 3e-6 if name == "single precision" else 1e-12
    lowered = jax.jit(transform(kernel(small_loop))).lower()
    calls = lowered.as_text().count("custom_call @difflie_")
    if jax.default_backend() == "cpu":
        assert calls == 1 if name in ONCE else calls >= 1
    assert_same(lowered.compile()(), jax.jit(transform(small_loop))(), tolerance)


def test_a_large_batch():
    """As many environments as there may be, by all threads."""
    args = batch(20_000)
    found = natively(1, jax.vmap(kernel(small_loop)), *args)
    assert_same(found, jax.jit(jax.vmap(small_loop))(*args), 1e-12)


def test_arguments_and_results_of_several_types_and_structures():
    """Pytrees, whole numbers, truths and single precision in one function."""

    def f(tree, n, flag):
        x = jnp.where(flag, tree["a"], -tree["a"])
        return {"x": x * n, "n": n + 1, "flag": ~flag, "half": tree["b"] + tree["b"], "no": None}

    tree = {"a": X, "b": jnp.ones((2, 2), jnp.float32), "unused": jnp.zeros((0, 4))}
    args = (tree, jnp.int32(3), jnp.array(True))
    assert_same(natively(1, kernel(f), *args), f(*args))


def test_arguments_that_are_no_arrays_of_jax_are_known():
    """They may choose shapes, and what is computed from them alone costs nothing."""

    def f(x, n, row):
        assert isinstance(row, np.ndarray) and isinstance(n, int)
        return x * row + np.ones(n), jnp.zeros(n) * row

    assert_same(kernel(f)(X, 3, np.arange(3.0)), f(X, 3, np.arange(3.0)))
    assert_same(kernel(lambda n: (jnp.ones(n), n))(2), (jnp.ones(2), jnp.asarray(2)))


def test_what_a_function_closes_over():
    """Known arrays, and traced ones with respect to which it is differentiated and batched."""
    known = jnp.array([1.0, 0.0, 2.0])

    def through(wrap):
        return lambda y: wrap(lambda x: jnp.sum(jnp.sin(x * y) * known) * y[0])(X)

    for transform in (
        lambda f: f,
        jax.grad,
        lambda f: lambda y: jax.vmap(f)(jnp.stack([y, 2 * y])),
    ):
        found = (
            natively(1, transform(through(kernel)), X + 1) if transform is not jax.grad else None
        )
        expected = transform(through(lambda f: f))(X + 1)
        assert_same(found if found is not None else transform(through(kernel))(X + 1), expected)


def test_what_is_known_is_computed_at_once():
    """A product with a zero of the structure is zero, whatever the other factor."""
    f = kernel(lambda x: x + np.array([0.0, 1.0]) * (1 / x[0]))
    np.testing.assert_array_equal(jax.jit(f)(jnp.zeros(2)), [0.0, np.inf])


def test_known_numbers_alone():
    """A function of nothing that is traced has a value while something is traced, too."""

    def f(x):
        with jax.ensure_compile_time_eval():
            known = kernel(lambda y: jnp.full((2,), 3.0))(jnp.ones(2))
        return x * np.asarray(known)

    assert_same(jax.jit(f)(X[:2]), 3.0 * X[:2])


def test_an_argument_that_structure_makes_useless_does_no_harm():
    """A known zero hides an infinite number, but none that is not a number."""

    def f(x, y):
        return x * 2, np.zeros(2) * y

    for g in (kernel(f), jax.vmap(kernel(f), (0, None))):
        for y, zero in ((np.inf, 0.0), (np.nan, np.nan)):
            first, second = jax.jit(g)(jnp.ones(2), jnp.full(2, y))
            np.testing.assert_array_equal(first, 2 * np.ones(2))
            np.testing.assert_array_equal(second, np.full(second.shape, zero))


def assert_ill_alike(one, two):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))


def test_what_is_not_a_number_does_not_vanish():
    """Where the structure makes an entry useless, results are not numbers as the ordinary way."""

    def f(x, y):
        pattern = np.diag([1.0, 0.0, 0.0])
        turned = jnp.sin(pattern @ y) * x + 0.0 / (1 + y**2)
        held = turned - turned * 0.0 + jnp.stack((y[0], x[0], 0 * x[1]))
        return turned, -held, jnp.sum(0.0 * held[1:]), x[1] * 2.0, jnp.asarray([0.0, 1.0]) * 3

    def both(f):
        return lambda x, y: (f(x, y), jax.grad(lambda x, y: jnp.sum(f(x, y)[0] ** 2), (0, 1))(x, y))

    programs = [jax.jit(g) for g in (both(kernel(f)), both(f), jax.vmap(kernel(f)), jax.vmap(f))]
    for k in range(6):
        x, y = jnp.linspace(0.2, 1.0, 6).at[k].set(np.nan).reshape(2, 3)
        (one, one_back), (two, two_back) = programs[0](x, y), programs[1](x, y)
        assert_ill_alike(one, two)
        for a, b in zip(one_back, two_back, strict=True):
            # A derivative shows no less.
            assert np.all(np.isnan(a) | ~np.isnan(b))
        pair = jnp.stack((x, jnp.ones(3))), jnp.stack((y, jnp.ones(3)))
        assert_ill_alike(programs[2](*pair), programs[3](*pair))


def test_what_is_not_a_number_shows_only_where_it_belongs():
    """In no result from which it has not vanished, and in no choice; other results may be ill."""
    zeros = np.zeros(12)

    def vanishing(m, x, y):
        nothing = jnp.sum(zeros * m)
        many = jnp.full(20, x + nothing)
        return many, jnp.where(x > 0, y, -y), x * y, y + nothing, jnp.sum(m) + jnp.log(x)

    ordinary, native = jax.jit(vanishing), jax.jit(kernel(vanishing))
    for first, x in ((np.nan, 1.0), (1.0, -1.0), (1.0, np.nan)):
        given = jnp.append(first, jnp.ones(11)), jnp.float64(x), jnp.float64(2.0)
        for one, two in zip(ordinary(*given), native(*given), strict=True):
            np.testing.assert_array_equal(one, two)


def test_what_is_not_a_number_in_a_loop_inside():
    """What a loop of unknown length makes vanish shows at its end."""

    def f(x, n):
        zero = np.array([0.0, 1.0, 1.0])
        return lax.fori_loop(0, n, lambda i, c: zero * jnp.sin(c) + 0.1, x), zero * x

    for k in range(3):
        for n in (0, 1, 3):
            args = X.at[k].set(np.nan), jnp.int32(n)
            assert_ill_alike(natively(1, kernel(f), *args), jax.jit(f)(*args))


@pytest.mark.parametrize("dtype", [np.float32, np.int32, bool])
def test_a_useless_argument_beside_a_known_result_of_any_type(dtype):
    """Results that are known, whole numbers among them, stay what they are."""
    f = kernel(lambda x: np.ones(2, dtype) + np.zeros(2, dtype) * x.astype(dtype)[0])
    for g in (kernel(lambda x: (jnp.ones(2, dtype), 0.0 * x)), f):
        assert_same(jax.jit(g)(X), jax.jit(g.__wrapped__)(X))


def test_known_whole_numbers_and_signs_of_zero():
    """Constants are computed as at run time."""

    def f(x):
        bits = jnp.int32(6) & jnp.int32(3), jnp.int32(4) | jnp.int32(1), ~jnp.int32(5)
        return *bits, jnp.arctan2(x, -0.0), jnp.arctan2(x, 0.0)

    x = jnp.array([0.0, 1.0, -1.0])
    assert_same(jax.jit(kernel(f))(x), jax.jit(f)(x))


@pytest.mark.parametrize(
    "f",
    [
        pytest.param(
            lambda x, gain: jnp.linalg.eigh(jnp.outer(x, x) + gain * jnp.diag(x))[0], id="lapack"
        ),
        pytest.param(
            lambda x, gain: x * gain * jax.random.uniform(jax.random.key(1), (3,)), id="random"
        ),
        pytest.param(lambda x, gain: jnp.outer(x, jnp.ones(10**5)) * gain, id="too long"),
        pytest.param(lambda x, gain: jnp.real(jnp.fft.fft(x)) * gain, id="complex"),
        pytest.param(
            lambda x, gain: (x * 9).astype(jnp.int8) * gain, id="a type without a program"
        ),
    ],
)
def test_other_functions_run_the_ordinary_way(f):
    """What has no program gives the same results and gradients, in batches too, and no warning."""

    def program(f):
        gradient = jax.grad(lambda x, gain: jnp.sum(jnp.sin(f(x, gain)[:3])), (0, 1))
        return lambda *args: (
            f(X, GAIN)[:3], gradient(X, GAIN), jax.vmap(gradient)(*args), jax.vmap(f)(*args)
        )  # fmt: skip

    args = tuple(a + 0.01 for a in batch(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = natively(0, program(kernel(f)), *args)
    assert_same(found, jax.jit(program(f))(*args), 1e-10)


def test_why_there_is_no_program_is_told(monkeypatch, capfd):
    """DIFFLIE_NATIVE=explain names the operation or the type."""
    monkeypatch.setenv("DIFFLIE_NATIVE", "explain")
    jax.jit(kernel(lambda x: jnp.abs(jnp.fft.fft(x)) + 0.125))(X)
    assert "native: the type complex128" in capfd.readouterr().out


@pytest.mark.parametrize("transform", [lambda f: f, jax.grad, jax.vmap])
def test_prints_within(transform):
    """A callback runs, in a kernel, in a kernel within one and in a native loop."""
    seen = []

    def f(x):
        jax.debug.callback(lambda x: seen.append(float(x)), x)
        return x * x

    def looped(x):
        return scan(lambda c, _: (c, f(c)), x, None, 2)[1][1]

    x = jnp.ones(2) if transform is jax.vmap else jnp.ones(())
    for g in (kernel(f), kernel(kernel(f)), looped):
        assert_same(jax.jit(transform(g))(x), transform(lambda x: x * x)(x))
        jax.effects_barrier()
        assert seen and set(seen) == {1.0}
        seen.clear()


def test_empty_arrays_and_batches():
    """Left out of native calls, they are there as results; without jit nothing is native."""
    f = kernel(lambda x: x * x)
    assert jax.jit(jax.vmap(f))(X[None][:0]).shape == (0, 3)
    grads = jax.jit(jax.vmap(jax.grad(lambda x: jnp.sum(f(x)))))(X[None][:0])
    assert grads.shape == (0, 3)
    g = kernel(lambda x, y: (x * x, y, y[:, :1], jnp.sum(y)))
    assert_same(g(X, jnp.zeros((0, 2))), g.__wrapped__(X, jnp.zeros((0, 2))))
    h = kernel(lambda x, y: (x * x, y[:, :1]))
    assert_same(natively(0, h, X[:0], jnp.zeros((0, 2))), (X[:0], jnp.zeros((0, 1))))
    with jax.disable_jit():
        assert_same(f(X), X * X)


def test_results_nobody_asks_for_are_not_computed(monkeypatch):
    """Nor what only they need; an operation without a program among them does no harm."""
    f = kernel(lambda x, y: (jnp.sin(x), jnp.abs(jnp.fft.fft(y))))
    assert_same(natively(1, lambda x, y: f(x, y)[0], X, X), jnp.sin(X))
    assert_same(natively(1, jax.grad(lambda x, y: jnp.sum(f(x, y)[0])), X, X), jnp.cos(X), 1e-15)

    def body(c, _):
        return (jnp.sin(c[0]), jnp.abs(jnp.fft.fft(c[1]))), c[0] * c[1]

    found = natively(1, lambda x: scan(body, (x, x), None, 3)[0][0], X)
    assert_same(found, jnp.sin(jnp.sin(jnp.sin(X))), 1e-15)


@pytest.mark.slow
def test_functions_with_rules_of_their_own():
    """They keep their derivatives, in the second derivative as well."""

    @jax.custom_jvp
    def forwards(x):
        return jnp.abs(x)

    @forwards.defjvp
    def _(primals, tangents):
        (x,), (t,) = primals, tangents
        return forwards(x), forwards(x) ** 2 * t * 3

    @jax.custom_vjp
    def backwards(x):
        return x * x

    backwards.defvjp(lambda x: (x * x, jnp.sin(x)), lambda kept, c: (7 * c * kept,))

    def second(f):
        gradient = jax.grad(f)
        return lambda x: (
            gradient(x), jax.jacrev(gradient)(x), jax.jacfwd(gradient)(x),
            jax.vmap(gradient)(jnp.stack([x, 2 * x])),
        )  # fmt: skip

    x = X + 0.5
    for f in (forwards, backwards):

        def written_out(x, f=f):
            return f(f(f(x[0]) + x[1] * x[0]) + x[2] * x[0])

        def looped(x, f=f):
            def body(c, r):
                return f(c) + r * x[0], None

            return f(scan(body, x[0], x[1:], 2)[0])

        expected = jax.jit(second(written_out))(x)
        assert_same(jax.jit(second(kernel(written_out)))(x), expected, 1e-10)
        assert_same(jax.jit(second(looped))(x), expected, 1e-10)


def test_singular_points():
    """Guarded square roots, norms and quotients have the derivatives of the ordinary way there."""

    def f(x):
        square = x @ x
        safe = jnp.where(square > 0, square, 1.0)
        root = jnp.where(square > 0, jnp.sqrt(safe), 0.0)
        ratio = jnp.where(
            square < 1e-8, 1 - square / 6, jnp.sin(root) / jnp.where(root > 0, root, 1.0)
        )
        careless = jnp.where(x > 0, jnp.sqrt(x), 0.0)
        return root, ratio, x * ratio, careless, jnp.maximum(x, 0.0) ** 2, jnp.abs(x), jnp.sign(x)

    def program(f):
        def total(x):
            return sum(jnp.sum(y) * (k + 1) for k, y in enumerate(f(x)))

        return lambda x: (f(x), jax.jacfwd(f)(x), jax.jacrev(f)(x), jax.hessian(total)(x))

    for x in (jnp.zeros(3), X, 1e-6 * X):
        assert_same(jax.jit(program(kernel(f)))(x), jax.jit(program(f))(x), 1e-10)


def chain(numpy, x, iterations):
    """Some hundred instructions, all of which depend on those before."""
    for k in range(iterations):
        x = numpy.sin(x[::-1] * (1 + 0.01 * k)) * x + 0.3 * numpy.roll(x, 1)
    return x


def test_long_iterations_with_loops_inside(monkeypatch):
    """Programs are divided into functions, in loops inside as well; lanes end at their own time."""
    monkeypatch.setattr(functions, "_CHUNK", 50)

    def f(x, n):
        def body(c):
            i, y = c
            return i + 1, chain(jnp, y, 40) + 0.1 * (x @ x)

        def inner(i, c):
            return chain(jnp, c, 2) + lax.fori_loop(0, i, lambda j, d: jnp.cos(d), c)

        first = chain(jnp, x, 12)
        _, y = lax.while_loop(lambda c: c[0] < n, body, (jnp.int32(0), first))
        return y + first, chain(jnp, lax.fori_loop(0, n // 2, inner, x), 12)

    def expected(x, n):
        first = y = chain(np, x, 12)
        z = x
        for _ in range(n):
            y = chain(np, y, 40) + 0.1 * (x @ x)
        for i in range(n // 2):
            d = z
            for _ in range(i):
                d = np.cos(d)
            z = chain(np, z, 2) + d
        return y + first, chain(np, z, 12)

    traced = Traced(jax.make_jaxpr(f)(X, jnp.int32(3)))
    program = Loop(traced, 0, 0, (1, 1), (1, 1), 1).program()
    assert max(len(loop.body.operations) for loop in program.loops.values()) > 500
    assert_same(natively(1, kernel(f), X, jnp.int32(3)), expected(np.asarray(X), 3), 1e-11)
    xs, ns = batch(21)[0], jnp.arange(21, dtype=np.int32) % 7
    found = natively(1, jax.vmap(kernel(f)), xs, ns)
    pairs = [expected(x, n) for x, n in zip(np.asarray(xs), ns.tolist(), strict=True)]
    assert_same(found, tuple(map(np.stack, zip(*pairs, strict=True))), 1e-11)


def test_frames_too_large_for_the_stack():
    """States of thousands of numbers, in batches with gradients, lie on the heap."""

    def run(scan, x):
        def body(c, _):
            return 0.5 * c + 0.1 * jnp.sin(c[::-1]), None

        return scan(body, x, None, 3)[0]

    x = jnp.linspace(0.0, 9.0, 9 * 700).reshape(9, 700)
    native, other = (
        lambda x, s=s: run(s, x) for s in (scan, lambda f, x, _, n: lax.scan(f, x, None, n))
    )
    for f, calls in (
        (lambda g: jax.vmap(g), 1),
        (lambda g: jax.grad(lambda x: jnp.sum(jax.vmap(g)(x) ** 2)), 2),
    ):
        assert_same(natively(calls, f(native), x), jax.jit(f(other))(x), 1e-12)
    assert_same(natively(1, native, x[0]), other(x[0]), 1e-12)


def test_threads_of_python():
    """Calls, and compilations of the same function, at the same time do not mix."""
    f = jax.jit(jax.vmap(kernel(small_loop)))
    expected = [jax.jit(jax.vmap(small_loop))(*(a * k for a in batch(40))) for k in range(1, 5)]
    ready = threading.Barrier(4)

    def run(k):
        ready.wait(60)
        args = [a * (k + 1) for a in batch(40)]
        own = jax.jit(lambda *a: jax.vmap(kernel(small_loop))(*a))
        for g in [own] + 30 * [f]:
            assert_same(g(*args), expected[k], 1e-12)
        return k

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(run, range(4))) == [0, 1, 2, 3]


def test_an_untested_version_is_told_of_once(monkeypatch):
    """And runs the ordinary way."""
    attempts._tested.cache_clear()
    monkeypatch.setattr(jax, "__version_info__", (0, 99, 0))
    with pytest.warns(UserWarning, match=r"take a jax from 0\.8 to 0\.12") as told:
        assert_same(natively(0, lambda x: kernel(kernel(jnp.sin))(x), X), jnp.sin(X))
    assert len(told) == 1
    attempts._tested.cache_clear()


def test_a_program_too_long_is_told_of_once(monkeypatch):
    """And runs the ordinary way, with the same numbers."""
    monkeypatch.setattr(instructions, "LONGEST", 60)
    attempts.warn_once.cache_clear()

    def long(x):
        for _ in range(30):
            x = jnp.sin(x) * X
        return x

    with pytest.warns(UserWarning, match="has more than 60 instructions") as told:
        found = [natively(0, lambda x: kernel(long)(x), X) for _ in range(2)]
    assert len(told) == 1
    assert_same(found, [long(X)] * 2)


CODE = """
import jax, jax.numpy as jnp
from difflie.native import kernel, scan
f = jax.jit(jax.grad(lambda x: scan(kernel(lambda c, _: (jnp.sin(c) * c, c)), x, None, 5)[0]))
"""


def test_another_process_finds_the_code_on_the_disk(tmp_path, monkeypatch):
    """What one process compiled is loaded in another, which writes no program."""
    monkeypatch.setenv("DIFFLIE_CACHE", str(tmp_path / "cache"))
    environment = {**os.environ, "JAX_ENABLE_X64": "1"}
    code = CODE + "print(float(f(1.25)))"
    run = [sys.executable, "-c", code]
    first = subprocess.run(
        run, env=environment, capture_output=True, text=True, check=True, timeout=900
    )
    files = sorted((tmp_path / "cache").glob("*.difflie"))
    assert files or jax.default_backend() != "cpu"
    monkeypatch.setattr(vectorized_loop, "text_of", None)
    monkeypatch.setattr(object_code, "_handlers", {})
    monkeypatch.setattr(ffi, "_registered", dict(ffi._registered))
    here: dict = {}
    exec(CODE, here)
    assert float(here["f"](1.25)) == float(first.stdout)
    assert sorted((tmp_path / "cache").glob("*.difflie")) == files


def test_switched_off(monkeypatch):
    """DIFFLIE_NATIVE=0 leaves the ordinary way, for kernels and loops."""
    monkeypatch.setenv("DIFFLIE_NATIVE", "0")
    f = lambda x: scan(kernel(lambda c, _: (jnp.sin(c) * c, c)), x, None, 4, False, 2)  # noqa: E731
    off = natively(0, f, X)
    off_gradient = natively(0, jax.grad(lambda x: jnp.sum(f(x)[1])), X)
    monkeypatch.setenv("DIFFLIE_NATIVE", "1")
    g = lambda x: f(x)  # noqa: E731
    assert_same(natively(1, g, X), off)
    assert_same(natively(2, jax.grad(lambda x: jnp.sum(f(x)[1])), X), off_gradient)


def test_a_simulation_with_a_control_that_has_no_program():
    """Its motion is that of an equal control with one."""
    system = dl.chain([dl.Body(name="rod", joint=dl.Revolute(), mass=1.0, com=(0.0, 0.3, 0.0))])
    q, v = jnp.array([0.3]), jnp.array([0.0])
    one, two = (
        dl.simulate(system, q, v, dt=0.01, steps=20, control=control)
        for control in (lambda t, q, v: -jnp.real(jnp.fft.fft(q)), lambda t, q, v: -q)
    )
    np.testing.assert_allclose(one.q, two.q, rtol=1e-13)


WITHOUT_64_BITS = """
import warnings
warnings.simplefilter("error")
import jax, jax.numpy as jnp
from difflie.native import kernel

def chosen(x):
    return jnp.where(x > jnp.arange(2), 1, 0)  # both known, and vectors

x = jnp.asarray([[0.5], [1.5], [-1.0]])
ways = [jax.jit(jax.vmap(f))(x) for f in (kernel(chosen), chosen)]
assert ways[0].dtype == jnp.int32, ways[0].dtype
assert (ways[0] == ways[1]).all(), ways
"""


def test_known_integers_without_64_bits():
    """Guards the width of integers that are known, in a process that has 32 bits only."""
    environment = {k: v for k, v in os.environ.items() if k != "JAX_ENABLE_X64"}
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_64_BITS], env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr

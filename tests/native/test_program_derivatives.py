"""Derivatives, which are taken on programs, are as jax has them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from difflie.native import scan
from difflie.native.loop_body import Traced, Transposed, differentiable, written
from difflie.native.program import Program
from difflie.native.rules.writing import Operation

X = jnp.array([0.3, -1.2, 2.0])
LENGTH = 4


@jax.custom_jvp
def doubled_slope(x):
    return jnp.sin(x)


doubled_slope.defjvp(lambda p, t: (doubled_slope(*p), 2 * doubled_slope(p[0] + 1) * t[0]))


@jax.custom_jvp
def itself(x, unread):
    return x


itself.defjvp(lambda p, t: (itself(*p), 3 * p[0] * t[0] + p[0] * p[1] ** 2 * t[1]))


@jax.custom_jvp
def nothing(x):
    return jnp.zeros_like(x)


nothing.defjvp(lambda p, t: (nothing(*p), p[0] ** 2 * t[0]))


def solved(x):
    a = jnp.outer(x, x) + jnp.diag(3 + jnp.cos(x))
    return jnp.linalg.solve(a, x) + jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(a), True), x)


def cond(x):
    return lax.cond(jnp.sum(x) > 1, lambda y: y**3, lambda y: jnp.exp(-(y**2)), x)


# Each of (3,) to (3,); those that end in a kink are tried there.
FUNCTIONS = {
    "arithmetic": lambda x: x[::-1] * jnp.sin(x) / (2 + jnp.cos(x)) - jnp.outer(x, x) @ x / 4,
    "powers": lambda x: x**3 + (3 + x) ** -2 + jnp.abs(x) ** 2.5 + jnp.exp(-(x**2)),
    "elementary": lambda x: jnp.tanh(x) * jnp.log1p(x**2) + jnp.arctan2(x, 1 + x[::-1] ** 2),
    "rule": lambda x: doubled_slope(x) * x[::-1],
    "rule of its argument": lambda x: itself(x, x[::-1]) * x + nothing(x * x[::-1]),
    "stopped": lambda x: lax.stop_gradient(x * jnp.sin(x)) * x**2,
    "alias": lambda x: jnp.sin(x + 0.0 * x[::-1]) * (0.0 * x + x),
    "systems": solved,
    "branches": cond,
    "sorted": lambda x: jnp.sort(x) * jnp.arange(3) * x + jnp.cumprod(x) ** 2,
    "where": lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), x**2) ** 2,
    "extremes": lambda x: jnp.maximum(x, x[::-1] ** 2) * jnp.minimum(x, 0.5) + jnp.max(x) * x,
    "indices": lambda x: x[jnp.argmax(x)] * x.at[1].add(x[0] ** 2),
}
KINKS = {
    "abs": lambda x: jnp.abs(x) * x,
    "ties": lambda x: jnp.maximum(x, 0.0) * x + jnp.minimum(x, 0.0) ** 2 + jnp.max(x) * (1 + x),
    "clip": lambda x: jnp.clip(x, 0.0, 1.0) * (x + 1),
    "root": lambda x: jnp.sqrt(jnp.sum(x**2) + 1e-3) * x + jnp.where(x > 0, jnp.sqrt(x), 0.0),
    "negative power": lambda x: jnp.where(x == 0, x, (x + (x == 0)) ** -2) * x,
    "angle": lambda x: jnp.arctan2(x, x + 1.0) * x,
}


def test_a_function_is_differentiated_once_for_all_its_calls(monkeypatch):
    """What jax has the derivative of is traced once where a compiled function is called twice."""
    twice = jax.jit(lambda x: doubled_slope(x) * x)
    traced, made = Operation._traced, []

    def counted(self, varied):
        made.append(self.equation.primitive.name)
        return traced(self, varied)

    monkeypatch.setattr(Operation, "_traced", counted)
    run = loss(scan, lambda x: twice(twice(x)) + lax.stop_gradient(x))
    plain = loss(lax.scan, lambda x: twice(twice(x)) + lax.stop_gradient(x))
    np.testing.assert_allclose(jax.grad(run)(X), jax.grad(plain)(X), rtol=1e-12)
    assert made.count("custom_jvp_call") == 1 and "stop_gradient" not in made


def loss(scan, f, dtype=np.float64):
    """A function of (3,), whose loop carries, reads constants and saves rows."""

    def run(x):
        def body(state, _):
            y, total = state
            y = 0.5 * y + 0.2 * f(y) * x
            return (y, total + jnp.sum(y**2)), jnp.cos(y) * x

        start = x * 1.0, jnp.zeros((), x.dtype)
        (y, total), rows = scan(body, start, None, LENGTH)
        return total + jnp.sum(jnp.sin(y)) + jnp.sum(rows**2 * jnp.arange(3, dtype=x.dtype))

    return run


def unrolled(body, state, rows, length):
    """A loop of Python: within loops of jax, second derivatives forget the rules of functions."""
    saved = []
    for _ in range(length):
        state, row = body(state, rows)
        saved.append(row)
    return state, jnp.stack(saved)


def along(f, d):
    return lambda x: jax.jvp(f, (x,), (d,))[1]


def derivatives(f, d):
    gradient = jax.grad(f)
    product = along(gradient, d)
    return {
        "gradient": gradient,
        "tangent": along(f, d),
        "product": product,
        "hessian": jax.hessian(f),
        "third": jax.grad(lambda x: product(x) @ d),
        "third forward": along(product, d),
        "batch": lambda x: jax.vmap(product)(jnp.stack([x, 0.5 * x])),
    }


def compare(f, x, names, tolerance, dtype=np.float64):
    x, d = x.astype(dtype), jnp.array([0.3, 0.5, -0.7], dtype)
    natively = derivatives(loss(scan, f), d)
    wanted = derivatives(loss(unrolled, f), d)
    for name in names:
        found = jax.jit(natively[name])(x)
        expected = jax.jit(wanted[name])(x)
        assert np.allclose(found, expected, tolerance, tolerance, equal_nan=True), name


@pytest.mark.slow(
    "arithmetic",
    "sorted",
    "extremes",
    "powers",
    "elementary",
    "indices",
    "rule of its argument",
    "branches",
    "systems",
    "alias",
    "rule",
    "where",
)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_products_and_third_derivatives(name):
    """Both modes, forward over reverse, and one over the other again."""
    compare(FUNCTIONS[name], X, ("gradient", "tangent", "product", "third"), 1e-9)


@pytest.mark.slow("ends-*")
@pytest.mark.parametrize("name", KINKS)
@pytest.mark.parametrize("x", [jnp.zeros(3), jnp.array([0.0, 1.0, 1.0])], ids=["zero", "ends"])
def test_kinks_and_ties(name, x):
    """At zero, at ties and at the ends of an interval there is the derivative that jax has."""
    compare(KINKS[name], x, ("gradient", "tangent", "product"), 1e-9)


@pytest.mark.slow
@pytest.mark.thorough("systems")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_hessians_and_batches(name):
    """Several directions at once, batches of points, and single precision."""
    f = FUNCTIONS[name]
    compare(f, X, ("hessian", "third forward", "batch"), 1e-9)
    compare(f, X, ("gradient", "product"), 1e-3, np.float32)


def test_what_is_not_a_number_is_shown():
    """An argument that is NaN and is folded away shows in derivatives."""
    compare(FUNCTIONS["alias"], X.at[0].set(np.nan), ("gradient", "tangent", "product"), 1e-9)
    product = along(jax.grad(loss(scan, FUNCTIONS["alias"])), jnp.ones(3))
    assert np.isnan(jax.jit(product)(X.at[0].set(np.nan))[jnp.array([0, 2])]).all()


def test_they_are_taken_on_a_program():
    """A body and that of its gradient have programs that are differentiated, not traces of jax."""
    closed = jax.make_jaxpr(lambda dx, x: (jnp.sin(x) * jnp.exp(x) * dx,))(X, X)
    assert differentiable(Traced(closed))
    assert differentiable(Transposed(Traced(closed), 0, 1, [False, False]))


def test_a_choice_is_linear_in_either_branch():
    """Guards that a loop which carries such a choice is transposed as a linear one."""
    program = Program()
    x, truth = program.argument("f64"), program.argument("b1")
    dx = program.placeholder("f64")
    chosen = program.select(truth, program.zero("f64"), dx, "f64")
    assert program.is_linear(chosen)
    assert program.is_linear(program.mul(x, chosen, "f64"))
    assert not program.is_linear(x)


def test_loops_inside_are_copied_where_no_tangent_enters_them():
    """A root that is found by iterations needs no other program where tangents are transposed."""

    def body(x, dx):
        root = lax.while_loop(lambda y: y * y > 2 * x, lambda y: y - 0.1, 3.0)
        return root * dx

    scalar = jax.ShapeDtypeStruct((), float)
    known = written(Traced(jax.make_jaxpr(body)(scalar, scalar)))
    assert known is not None
    assert known.repeats([True, False]) and not known.repeats([False, True])

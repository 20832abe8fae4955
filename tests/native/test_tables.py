"""Entries of tables at numbers that are known at run time: a load, and not a choice for each."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from difflie import native
from difflie.native.program import Program
from difflie.native.rules.tangents import copied
from difflie.native.rules.writing import arguments, flat, write_closed

WHOLE = jnp.arange(40) * 3
FORMS = {
    "an entry": lambda i, j, a, b: a[i],
    "of two numbers": lambda i, j, a, b: b[i, j],
    "a row": lambda i, j, a, b: jnp.sum(b[i] * b[j]),
    "a window": lambda i, j, a, b: jax.lax.dynamic_slice(b, (i, j), (2, 3)).ravel(),
    "computed": lambda i, j, a, b: jnp.sin(a)[i] + jnp.cos(a)[j],
    "known": lambda i, j, a, b: jnp.asarray(np.arange(30.0) ** 2, a.dtype)[i] * a[3],
    "mixed": lambda i, j, a, b: jnp.concatenate([a, jnp.zeros(5, a.dtype), jnp.sin(a)])[i + j],
    "in a loop": lambda i, j, a, b: jax.lax.fori_loop(0, 5, lambda k, s: s + a[i + k] * a[j], a[0]),
    "or a number": lambda i, j, a, b: a.at[i].get(mode="fill", fill_value=7.0),
    "whole numbers and truths": lambda i, j, a, b: WHOLE[i] + (a > 0)[j],
}


def tables(dtype):
    rng = np.random.default_rng(0)
    return [jnp.asarray(rng.normal(size=size), dtype) for size in (30, (12, 25))]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_are_those_of_jax(form, dtype):
    """Guards numbers outside of the table, lanes with numbers or tables of their own, and NaNs."""
    f, (a, b) = FORMS[form], tables(dtype)
    k, close = jax.jit(native.kernel(f)), {"rtol": 1e3 * np.finfo(dtype).eps}
    for i, j in ((0, 0), (11, 24), (29, 7), (1000, 1000), (-1, -1000)):
        np.testing.assert_allclose(*(g(jnp.int32(i), jnp.int32(j), a, b) for g in (k, f)), **close)
    rng = np.random.default_rng(1)
    i, j = (jnp.asarray(rng.integers(-3, 33, 37)) for _ in range(2))
    many = jnp.asarray(rng.normal(size=(37, 30)), dtype)
    for axes, args in (((0, 0, None, None), (i, j, a, b)), ((0, None, 0, None), (i, 4, many, b))):
        np.testing.assert_allclose(*(jax.vmap(g, axes)(*args) for g in (k, f)), **close)
    for place in (5, 6):
        broken = a.at[place].set(jnp.nan), b.at[place].set(jnp.nan)
        one, other = (g(jnp.int32(5), jnp.int32(9), *broken) for g in (k, f))
        np.testing.assert_array_equal(np.isnan(one), np.isnan(other))


@pytest.mark.slow("a window")
@pytest.mark.parametrize("form", [name for name in FORMS if "truths" not in name])
def test_have_derivatives_in_both_modes(form):
    """Guards entries that are linear, which are transposed, and the second derivatives."""

    def derivatives(g):
        def loss(a, b):
            return jnp.sum(jnp.sin(g(jnp.int32(5), jnp.int32(9), a, b)))

        gradient = jax.grad(loss, (0, 1))
        return gradient(a, b), jax.jvp(gradient, (a, b), (b[0, 0] * a, a[0] * b))

    f, (a, b) = FORMS[form], tables(np.float64)
    one, other = (
        jax.tree.leaves(jax.jit(derivatives, static_argnums=0)(g)) for g in (native.kernel(f), f)
    )
    for x, y in zip(one, other, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-12)


def test_are_one_instruction():
    """Guards that a program does not grow with the size of a table."""
    program = Program(tables=True)
    number, *table = [program.argument(kind) for kind in ("i32", *["f64"] * 30)]
    program.entry(number, table, "f64")
    assert program.operations.count("entry") == 1
    assert "select" not in program.operations


def test_loops_inside_are_copied_as_another_program_may_have_them():
    """Guards lanes and GPUs, which have no tables, against a loop that is copied as it is."""
    table = jax.ShapeDtypeStruct((30,), np.float64)
    number = jax.ShapeDtypeStruct((), np.int32)

    def walk(a, i):
        return jax.lax.while_loop(lambda k: a[k] > 0, lambda k: k + 1, i)

    closed = jax.make_jaxpr(walk)(table, number)
    source, target = Program(tables=True), Program()
    given = arguments(source, [table, number])
    results = flat(write_closed(source, closed, given))
    copied(source, results, target, flat(arguments(target, [table, number])))
    (loop,), (other,) = source.loops.values(), target.loops.values()
    assert "entry" in loop.condition.operations
    assert "entry" not in other.condition.operations

"""Large products of matrices within compiled programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from difflie import native

FORMS = {
    "as they are": lambda a, b: a @ b,
    "turned": lambda a, b: b.T @ a.T,
    "computed": lambda a, b: (a + 1) @ jnp.sin(b),
    "with zeros": lambda a, b: jnp.tril(a) @ b.at[0].set(0.0),
    "one after the other": lambda a, b: (a @ b) @ (b.T @ a.T),
}


def factors(sizes, dtype):
    m, n, k = sizes
    rng = np.random.default_rng(0)
    return jnp.asarray(rng.normal(size=(m, n)), dtype), jnp.asarray(rng.normal(size=(n, k)), dtype)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sizes", [(14, 13, 21), (5, 20, 7), (9, 33, 4), (37, 42, 1), (4, 70, 3)])
def test_are_those_of_numpy(sizes, dtype, form):
    """Guards widths that are no multiples of a vector, and places of operands in memory."""
    a, b = factors(sizes, dtype)
    f = FORMS[form]
    np.testing.assert_allclose(native.kernel(f)(a, b), f(a, b), atol=2e3 * np.finfo(dtype).eps)


def test_differentiate_in_both_modes():
    """Guards derivatives through products that are one instruction, where they are linear."""
    a, b = factors((8, 9, 10), np.float64)
    f = FORMS["one after the other"]
    inside = lambda a: jnp.sum(jnp.sin(native.kernel(f)(a, b)))  # noqa: E731
    outside = lambda a: jnp.sum(jnp.sin(f(a, b)))  # noqa: E731
    for derivative in (jax.grad, jax.jacfwd):
        np.testing.assert_allclose(
            jax.jit(derivative(inside))(a), jax.jit(derivative(outside))(a), rtol=1e-9, atol=1e-9
        )


def test_what_is_no_number_stays_none():
    """Guards rows of a product against numbers of other rows, next to which they are stored."""
    a, b = factors((8, 9, 10), np.float64)
    product = native.kernel(FORMS["as they are"])(a.at[2, 3].set(jnp.nan), b)
    expected = np.zeros((8, 10), bool)
    expected[2] = True
    np.testing.assert_array_equal(np.isnan(product), expected)


@pytest.mark.parametrize("of", [(0, 0), (0, None), (None, 0)])
def test_batches_are_loops(of):
    """Guards batches without lanes: each environment its own rows, shared ones read by all."""

    def summed(a, b):
        def body(x, row):
            x = x @ row + row.T @ a
            return x, x[0]

        return native.scan(body, a, b, 3)

    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(5, 9, 9)) / 9, rng.normal(size=(5, 3, 9, 9)) / 9
    a, b = (x if axis == 0 else x[0] for x, axis in zip((a, b), of, strict=True))
    found = jax.jit(jax.vmap(summed, in_axes=of))(a, b)
    for i in range(5):
        one = summed(*(x if axis is None else x[i] for x, axis in zip((a, b), of, strict=True)))
        for x, y in zip(found, one, strict=True):
            np.testing.assert_allclose(x[i], y, rtol=1e-12)


def test_what_is_folded_away_is_shown_by_its_own_rows():
    """Guards NaNs that a row has lost against those that other rows of a product show."""

    def f(a, x, lost):
        return (a.at[2].add(0 * lost) @ x)[2] + 0 * a[5, 1] * x[0]

    a, x = factors((20, 20, 1), np.float64)
    x, zero = x[:, 0], jnp.float64(0)
    for broken, number in ((a, jnp.float64(jnp.nan)), (a.at[5, 1].set(jnp.nan), zero)):
        assert np.isnan(native.kernel(f)(broken, x, number))
    assert np.isfinite(native.kernel(f)(a.at[3].set(jnp.nan), x, zero))

"""The solver of implicit steps by itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from difflie.solvers.linear import inverse, plain_product
from difflie.solvers.newton import FixedPoint, Newton
from difflie.solvers.root import root


@pytest.mark.parametrize("n", [1, 5, 70])
def test_inverse_and_product(n):
    a = np.random.default_rng(n).normal(size=(n, n))
    x = np.arange(n, dtype=float)
    if n > 1:
        a[0, 0] = 0.0  # a pivot that has to be looked for
    np.testing.assert_allclose(jax.jit(inverse)(a, n) @ a, np.eye(n), atol=1e-11)
    np.testing.assert_allclose(
        jax.jit(plain_product)(jnp.asarray(a), jnp.asarray(x)), a @ x, rtol=1e-12
    )


def kepler(search):
    """The eccentric anomaly x of x - e sin x = m, twice."""

    def anomaly(e, m):
        return root(lambda x: x - e * jnp.sin(x) - m, m, search)

    return anomaly


@pytest.mark.slow("0.1-search0", "0.9-search1", "0.1-search1")
@pytest.mark.parametrize("search", [Newton(), FixedPoint()])
@pytest.mark.parametrize("e", [0.1, 0.9])  # contracts, and does not
def test_roots_and_their_derivatives(search, e):
    anomaly, m = jax.jit(kepler(search)), jnp.array([0.3, 1.1])
    x, found = anomaly(e, m)
    assert found
    np.testing.assert_allclose(x - e * np.sin(x), m, rtol=3e-16, atol=1e-16)
    wanted = np.sin(x) / (1 - e * np.cos(x))  # dx/de
    for jacobian in (jax.jacfwd, jax.jacrev):
        slope = jax.jit(jacobian(lambda e: anomaly(e, m)[0]))(e)
        np.testing.assert_allclose(slope, wanted, rtol=1e-13)
    second = jax.jit(jax.jacfwd(jax.jacrev(lambda e: anomaly(e, m)[0])))(e)
    d = 1e-5
    near = [jax.jit(jax.jacfwd(lambda e: anomaly(e, m)[0]))(e + s * d) for s in (-1, 1)]
    np.testing.assert_allclose(second, (near[1] - near[0]) / (2 * d), rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_where_there_is_no_root_the_guess_stays(dtype):
    guess = jnp.asarray([0.3, -2.0], dtype)
    for residual in (lambda x: x * x + 1, lambda x: x * jnp.nan, lambda x: jnp.ones_like(x)):
        for search in (Newton(), FixedPoint()):
            x, found = jax.jit(root, static_argnums=(0, 2))(residual, guess, search)
            assert not found and x.dtype == dtype
            np.testing.assert_array_equal(x, guess)


def test_no_unknowns():
    x, found = root(lambda x: x, jnp.zeros(0), FixedPoint())
    assert x.shape == (0,) and found


def test_a_derivative_that_does_not_exist_is_not_a_number():
    # x^3 = p at p = 0, where the root is found but dx/dp is infinite.
    def cube_root(p):
        return root(lambda x: x**3 - p, jnp.zeros(1), Newton())[0][0]

    assert not np.isfinite(jax.jit(jax.grad(cube_root))(0.0))

"""Eigenvalues, smallest solutions and pseudoinverses of small matrices against LAPACK."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from difflie import native
from difflie.solvers.linear import eigen, minimum_norm, pseudoinverse

RANDOM = np.random.default_rng(0)


def definite(n):
    a = RANDOM.normal(size=(n, n))
    return a @ a.T


def redundant(n):
    a = RANDOM.normal(size=(n, max(1, n - 2)))
    return a @ a.T


def graded(n):
    scale = 10.0 ** -np.arange(n)
    return scale[:, None] * definite(n) * scale


KINDS = [definite, redundant, graded, lambda n: np.zeros((n, n)), np.eye, lambda n: -definite(n)]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [1, 2, 3, 6, 9])
def test_eigenvalues_and_vectors(n, dtype):
    """To rounding of the largest, also where some are zero, equal or of other sizes."""
    matrices = np.stack([kind(n) for kind in KINDS]).astype(dtype)
    natively = jax.jit(jax.vmap(native.kernel(eigen)))
    for s, v in (jax.jit(jax.vmap(eigen))(matrices), natively(matrices)):
        assert s.dtype == v.dtype == dtype
        rounding = 20 * n * np.finfo(dtype).eps
        size = 1e-30 + np.max(np.abs(matrices), axis=(1, 2))
        off = matrices @ np.asarray(v) - v * s[:, None]
        assert np.all(np.max(np.abs(off), axis=(1, 2)) <= rounding * size)
        unit = np.asarray(v).mT @ v
        np.testing.assert_allclose(unit, np.broadcast_to(np.eye(n), unit.shape), atol=rounding)
        wrong = np.max(np.abs(np.sort(s) - np.linalg.eigvalsh(matrices)), axis=1)
        assert np.all(wrong <= rounding * size)


def test_what_is_not_finite_ends():
    assert np.isnan(eigen(jnp.full((3, 3), jnp.nan))[0]).all()


def of_rank(rank, size=(6, 9)):
    return RANDOM.normal(size=(size[0], rank)) @ RANDOM.normal(size=(rank, size[1]))


@pytest.mark.slow("2")
@pytest.mark.parametrize("rank", [2, 4])
def test_the_smallest_solution_by_a_factor(rank):
    """The same as of the Gram matrix alone, and as of the pseudoinverse."""
    half = of_rank(rank, (4, 11))
    gram = half.T @ half
    b = gram @ RANDOM.normal(size=11)
    x = minimum_norm(jnp.asarray(gram), jnp.asarray(half))(b)
    np.testing.assert_allclose(x, np.linalg.pinv(gram, 1e-10) @ b, atol=1e-9)
    np.testing.assert_allclose(x, minimum_norm(jnp.asarray(gram))(b), atol=1e-9)


@pytest.mark.slow("0")
@pytest.mark.parametrize("rank", [0, 3, 5])
def test_the_pseudoinverse_of_small_matrices(rank):
    """Guards redundant constraints of RATTLE: as by LAPACK, in a program too."""
    matrix = of_rank(rank, (5, 5)) if rank else np.zeros((5, 5))
    b = matrix @ RANDOM.normal(size=5)
    wanted = np.linalg.pinv(matrix, 1e-10) @ b
    solve = lambda a, b: pseudoinverse(a)(b)  # noqa: E731
    for f in (solve, native.kernel(solve)):
        np.testing.assert_allclose(f(jnp.asarray(matrix), jnp.asarray(b)), wanted, atol=1e-8)
    assert np.isnan(solve(jnp.full((2, 2), jnp.nan), jnp.ones(2))).all()


@pytest.mark.slow("5-float64", "12-float64")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [5, 12])
def test_the_smallest_solution_of_badly_scaled_redundant_equations(n, dtype):
    """Guards multipliers: what is outside of the range stays out, in few and in many turns."""
    u, _ = np.linalg.qr(RANDOM.normal(size=(n, n)))
    s = np.append(10.0 ** -np.linspace(0, 4 if dtype == "float64" else 1, n - 2), (0, 0))
    gram = u * s @ u.T
    right = u[:, : n - 2] @ RANDOM.normal(size=n - 2)
    solve = lambda gram, b: minimum_norm(gram)(b)  # noqa: E731
    given = jnp.asarray(gram, dtype), jnp.asarray(gram @ right, dtype)
    eps = np.finfo(dtype).eps
    for f in (solve, native.kernel(solve)):
        x = np.asarray(jax.jit(f)(*given))
        assert x.dtype == dtype
        np.testing.assert_allclose(gram @ x, given[1], atol=100 * eps)
        np.testing.assert_allclose(x, right, atol=1e4 * eps * np.abs(right).max() / s[n - 3] ** 0.5)
    assert np.isnan(solve(jnp.full((n, n), jnp.nan), jnp.ones(n))).all()
    assert not np.any(solve(jnp.zeros((n, n)), jnp.ones(n)))

"""Jacobi's algorithms for eigenvalues and singular values against LAPACK."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from difflie import native
from difflie.solvers.linear import eigen, minimum_norm, pseudoinverse, singular_values

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


MATRICES = {
    "ordinary": of_rank(6),
    "tall": of_rank(5, (9, 5)),
    "rank 3": of_rank(3),
    "zero": np.zeros((6, 9)),
    "repeated": np.eye(7, 5),
    "graded": 10.0 ** -np.arange(5)[:, None] * of_rank(5, (5, 5)),
    "one": np.array([[-2.0]]),
    "no rows": np.zeros((0, 4)),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", MATRICES)
def test_singular_values(kind, dtype):
    """To rounding of the largest, the largest first, the ordinary way and natively."""
    a = MATRICES[kind].astype(dtype)
    right = np.linalg.svd(a, compute_uv=False)
    rounding = 20 * max(a.shape) * np.finfo(dtype).eps
    for f in (singular_values, native.kernel(singular_values)):
        s = jax.jit(f)(a)
        assert s.dtype == dtype
        np.testing.assert_allclose(s, right, atol=rounding * right.max(initial=0))


def test_small_singular_values_are_not_those_of_the_gram_matrix():
    """Values below the root of rounding, which the eigenvalues of a^T a do not tell."""
    u, _ = np.linalg.qr(RANDOM.normal(size=(6, 6)))
    a = u @ np.diag([1, 1e-3, 1e-6, 1e-9, 1e-12, 0]) @ u.T
    np.testing.assert_allclose(
        singular_values(jnp.asarray(a))[:5], [1, 1e-3, 1e-6, 1e-9, 1e-12], rtol=1e-3
    )


def test_singular_values_of_what_is_not_finite():
    assert np.isnan(singular_values(jnp.full((3, 4), jnp.nan))).all()


@pytest.mark.parametrize("rank", [2, 4])
def test_the_smallest_solution_by_a_factor(rank):
    """The same as of the Gram matrix alone, and as of the pseudoinverse."""
    half = of_rank(rank, (4, 11))
    gram = half.T @ half
    b = gram @ RANDOM.normal(size=11)
    x = minimum_norm(jnp.asarray(gram), jnp.asarray(half))(b)
    np.testing.assert_allclose(x, np.linalg.pinv(gram, 1e-10) @ b, atol=1e-9)
    np.testing.assert_allclose(x, minimum_norm(jnp.asarray(gram))(b), atol=1e-9)


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

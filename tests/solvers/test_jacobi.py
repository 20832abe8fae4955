"""Jacobi's eigenvalue algorithm against LAPACK."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from difflie import native
from difflie.solvers.linear import eigen

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

"""Singular values of small matrices against LAPACK."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from difflie import native
from difflie.solvers.singular_values import bidiagonal, singular_value, values_above

RANDOM = np.random.default_rng(0)


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


def singular_values(a, bits=None):
    """All of them, the largest first."""
    count = min(a.shape)
    if not count:
        return jnp.zeros(0, a.dtype)
    return jax.vmap(lambda k: singular_value(bidiagonal(a), k, bits))(jnp.arange(count))


@pytest.mark.slow("*-float32")
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
    if right.max(initial=0) > 0:
        threshold = jnp.asarray(1e-5 * right.max(), dtype)
        assert values_above(bidiagonal(jnp.asarray(a)), threshold) == np.sum(right > threshold)


def test_small_singular_values_are_not_those_of_the_gram_matrix():
    """Values below the root of rounding, which the eigenvalues of a^T a do not tell."""
    u, _ = np.linalg.qr(RANDOM.normal(size=(6, 6)))
    a = u @ np.diag([1, 1e-3, 1e-6, 1e-9, 1e-12, 0]) @ u.T
    np.testing.assert_allclose(
        singular_values(jnp.asarray(a))[:5], [1, 1e-3, 1e-6, 1e-9, 1e-12], rtol=1e-3
    )


def test_singular_values_of_what_is_not_finite():
    assert np.isnan(singular_values(jnp.full((3, 4), jnp.nan))).all()


def test_few_bits():
    """Guards the margin of a step: to as many bits as are asked for, and zero stays small."""
    a = jnp.asarray(of_rank(4))
    right = np.linalg.svd(a, compute_uv=False)
    found = singular_values(a, 10)
    np.testing.assert_allclose(found[:4], right[:4], rtol=0.05)
    assert np.all(found[4:] < 1e-14 * right[0])

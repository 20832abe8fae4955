"""The blocks of the equations of constrained motion, as drawn at the head of `motion`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from difflie.constraints.motion import Balance, IndependentVelocities

RANDOM = np.random.default_rng(0)
ROOT = RANDOM.normal(size=(6, 6))
M = jnp.asarray(ROOT @ ROOT.T + np.eye(6))
FULL = RANDOM.normal(size=(3, 6))
# The last row is the sum of the first two.
REDUNDANT = np.concatenate((FULL, FULL[:1] + FULL[1:2]))
F = jnp.asarray(RANDOM.normal(size=6))


@pytest.mark.parametrize("A", [FULL, REDUNDANT], ids=["independent", "redundant"])
def test_both_rows_hold_with_the_smallest_multipliers(A):
    b = jnp.asarray(A @ RANDOM.normal(size=6))
    x, nu = Balance(M, jnp.asarray(A)).solve(F, b)
    np.testing.assert_allclose(M @ x + A.T @ nu, F, atol=1e-9)
    np.testing.assert_allclose(A @ x, b, atol=1e-9)
    np.testing.assert_allclose(A @ np.linalg.pinv(A) @ nu, nu, atol=1e-8)


def test_both_ways_agree_on_independent_rows():
    b = jnp.asarray(RANDOM.normal(size=3))
    ways = [form(M, jnp.asarray(FULL)).solve(F, b) for form in (Balance, IndependentVelocities)]
    for one, other in zip(*ways, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.slow
def test_derivatives_keep_the_smallest_multipliers():
    """Rows that stay redundant turn; the multipliers turn with their range."""
    change = RANDOM.normal(size=(3, 6))

    def rows(s):
        A = jnp.asarray(FULL) + s * change
        return jnp.concatenate((A, (1 + s) * A[:1] + A[1:2]))

    def solved(s):
        A = rows(s)
        return Balance(M, A).solve(F, A @ jnp.arange(6.0))

    h = 1e-5
    found = jax.jvp(solved, (0.0,), (1.0,))[1]
    expected = ((a - b) / (2 * h) for a, b in zip(solved(h), solved(-h), strict=True))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)
    reverse = jax.grad(lambda s: sum(jnp.sum(a * jnp.arange(len(a))) for a in solved(s)))(0.0)
    forward = sum(jnp.sum(a * jnp.arange(len(a))) for a in found)
    assert reverse == pytest.approx(float(forward), rel=1e-8)

"""Regulators and Gramians: against scipy, derivatives, what cannot be, errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from difflie import control as dc

RNG = np.random.default_rng(3)
A, B = RNG.normal(size=(5, 5)), RNG.normal(size=(5, 2))
A *= 1.4 / abs(np.linalg.eigvals(A)).max()
ROOT = RNG.normal(size=(7, 7))
JOINT = ROOT @ ROOT.T + 0.1 * np.eye(7)
Q, N, R = JOINT[:5, :5], 0.3 * JOINT[:5, 5:], JOINT[5:, 5:]
MODEL = A, B, Q, R, N


def test_against_scipy():
    """With and without a cross term; the closed loop of an unstable model is stable."""
    for cross in (None, N):
        K, P, converged = dc.lqr(A, B, Q, R, cross)
        exact = scipy.linalg.solve_discrete_are(A, B, Q, R, s=cross)
        assert converged
        np.testing.assert_allclose(P, exact, rtol=1e-10)
        mixed = B.T @ exact @ A + (0 if cross is None else cross.T)
        np.testing.assert_allclose(K, np.linalg.solve(R + B.T @ exact @ B, mixed), rtol=1e-9)
        assert abs(np.linalg.eigvals(A - B @ np.asarray(K))).max() < 1


def test_slow_closed_loops():
    """Whose eigenvalues are near 1, as with short steps and expensive commands."""
    chain = np.eye(2) + 1e-3 * np.array([[0.0, 1.0], [0.0, 0.0]])
    push, cost = np.array([[0.0], [1e-3]]), np.diag((1e-3, 0.0))
    P = dc.lqr(chain, push, cost, np.eye(1)).P
    exact = scipy.linalg.solve_discrete_are(chain, push, cost, np.eye(1))
    np.testing.assert_allclose(P, exact, rtol=1e-8)


def along(x):
    """A model on a line through the first, symmetric where it has to be."""
    dA, dB, dN = jnp.cos(A), jnp.sin(B), jnp.cos(N)
    dQ, dR = jnp.cos(Q), jnp.cos(R)
    return A + x[0] * dA, B + x[1] * dB, Q + x[2] * dQ, R + x[3] * dR, N + x[4] * dN


def check_derivatives(function, size):
    """In both modes, of first and second order, against central differences."""
    x = jnp.zeros(size)
    forward, reverse = jax.jacfwd(function)(x), jax.jacrev(function)(x)
    np.testing.assert_allclose(reverse, forward, rtol=1e-9, atol=1e-11)
    second = jax.jacfwd(jax.jacrev(function))(x)
    for k, e in enumerate(1e-5 * np.eye(size)):
        difference = (function(e) - function(-e)) / 2e-5
        np.testing.assert_allclose(forward[..., k], difference, rtol=1e-6, atol=1e-7)
        difference = (jax.jacrev(function)(e) - jax.jacrev(function)(-e)) / 2e-5
        np.testing.assert_allclose(second[..., k], difference, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_derivatives_of_the_regulator():
    def weighed(x):
        K, P, _ = dc.lqr(*along(x))
        return jnp.stack((jnp.sum(jnp.cos(P)), jnp.sum(jnp.sin(K))))

    check_derivatives(weighed, 5)


def test_what_nothing_stabilises_says_so():
    """A mode out of reach that grows; one that only the cost does not see; not one that decays."""
    grows, decays = np.diag((1.1, 0.5)), np.diag((0.9, 0.5))
    second, one = np.array([[0.0], [1.0]]), np.eye(1)
    K, P, converged = dc.lqr(grows, second, np.eye(2), one)
    assert not converged and np.isnan(K).all() and np.isnan(P).all()
    assert not dc.lqr(np.eye(2), np.eye(2), np.diag((1.0, 0.0)), np.eye(2)).converged
    assert dc.lqr(decays, second, np.eye(2), one).converged
    many = jax.vmap(dc.lqr, in_axes=(0, None, None, None))
    batch = many(np.stack((grows, decays)), second, np.eye(2), one)
    np.testing.assert_array_equal(batch.converged, (False, True))


@pytest.mark.slow
def test_time_varying_against_one_large_least_squares_problem():
    """Over three steps, with other matrices in each."""
    scale = np.array([1.0, 0.7, 1.3])[:, None, None]
    given = tuple(scale * m for m in MODEL)
    K, P = dc.tvlqr(*given[:4], Q, given[4])
    assert K.shape == (3, 2, 5) and P.shape == (4, 5, 5)

    def cost(commands, x):
        total = 0.0
        for A, B, Q, R, N, u in zip(*given, commands.reshape(3, 2), strict=True):
            total += (x @ Q @ x + 2 * x @ N @ u + u @ R @ u) / 2
            x = A @ x + B @ u
        return total + x @ MODEL[2] @ x / 2

    start = jnp.arange(1.0, 6.0)
    zero = jnp.zeros(6)
    best = -jnp.linalg.solve(jax.hessian(cost)(zero, start), jax.grad(cost)(zero, start))
    np.testing.assert_allclose(best[:2], -K[0] @ start, rtol=1e-9)
    np.testing.assert_allclose(cost(best, start), start @ P[0] @ start / 2, rtol=1e-9)


@pytest.mark.slow
def test_time_varying_tends_to_the_constant_one():
    """With the same matrices in all steps, given once; derivatives in both modes."""
    many = np.repeat(A[None], 60, axis=0), np.repeat(B[None], 60, axis=0)
    forever = dc.lqr(*MODEL)
    K, P = dc.tvlqr(*many, Q, R, np.zeros((5, 5)), N)
    np.testing.assert_allclose(K[0], forever.K, rtol=1e-8)
    np.testing.assert_allclose(P[0], forever.P, rtol=1e-8)

    def last(x):
        return jnp.sum(jnp.cos(dc.tvlqr(many[0][:4] + x, many[1][:4], Q, R, Q).P))

    x = jnp.zeros((4, 5, 5))
    np.testing.assert_allclose(jax.jacfwd(last)(x), jax.grad(last)(x), rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_gramians_against_scipy():
    stable = A / 2
    W, settles = dc.controllability_gramian(stable, B)
    exact = scipy.linalg.solve_discrete_lyapunov(stable, B @ B.T)
    assert settles
    np.testing.assert_allclose(W, exact, rtol=1e-11)
    many = np.repeat(stable[None], 60, axis=0), np.repeat(B[None], 60, axis=0)
    np.testing.assert_allclose(dc.finite_gramian(*many), exact, rtol=1e-9)
    W, settles = dc.controllability_gramian(A, B)
    assert not settles and np.isnan(W).all()
    check_derivatives(lambda x: dc.controllability_gramian(*(m / 2 for m in along(x)[:2])).W, 5)


def test_a_finite_gramian_is_that_of_the_map_from_commands():
    """W = M M', where M takes all commands to the last state."""
    steps = RNG.normal(size=(4, 5, 5)), RNG.normal(size=(4, 5, 2))

    def last(commands):
        x = jnp.zeros(5)
        for A, B, u in zip(*steps, commands, strict=True):
            x = A @ x + B @ u
        return x

    M = jax.jacfwd(last)(jnp.zeros((4, 2))).reshape(5, 8)
    np.testing.assert_allclose(dc.finite_gramian(*steps), M @ M.T, rtol=1e-10)


def test_single_precision_stays_single():
    """In the precision of A, whatever the others have."""
    K, P, converged = dc.lqr(A.astype("float32"), B, Q, R, N)
    assert converged and K.dtype == P.dtype == "float32"
    np.testing.assert_allclose(P, dc.lqr(*MODEL).P, rtol=1e-4)
    W, stable = dc.controllability_gramian((A / 2).astype("float32"), B)
    assert stable and W.dtype == "float32"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda: dc.lqr(A, B[:4], Q, R), r"lqr: B has shape \(4, 2\), needed is \(5, nu\)"),
        (lambda: dc.lqr(A, B, Q, R[0]), r"lqr: R has shape \(2,\), needed is \(2, 2\)"),
        (lambda: dc.lqr(A[:4], B, Q, R), r"lqr: A has shape \(4, 5\), needed is \(4, 4\)"),
        (lambda: dc.lqr(A, B, Q, -R), r"lqr: R has the eigenvalue -.* must be positive definite"),
        (lambda: dc.lqr(A, B, A, R), r"lqr: Q is not symmetric, by .*; give \(Q \+ Q.T\) / 2"),
        (lambda: dc.lqr(np.inf * A, B, Q, R), "lqr: A has entries that are not finite"),
        (lambda: dc.tvlqr(A, B, Q, R, Q), r"tvlqr: A has shape \(5, 5\), needed is \(n, nx, nx\)"),
        (lambda: dc.finite_gramian(A[None], B), r"finite_gramian: B has shape \(5, 2\)"),
    ],
)
def test_bad_input_is_one_clear_error(change, words):
    with pytest.raises(ValueError, match=words):
        change()

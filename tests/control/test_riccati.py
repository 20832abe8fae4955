"""The Riccati sweep against the conditions of an optimum, solved as one dense linear system."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from difflie.control.box_qp import box_qp
from difflie.control.linear_quadratic import LinearQuadratic, costates, linear_rollout
from difflie.control.riccati import Box, riccati


def problem(nx, nu, nz=0, steps=6, seed=0, dtype=np.float64):
    g = np.random.default_rng(seed)
    n = nx + nu
    root = g.standard_normal((steps, n, n))
    end = g.standard_normal((nx, nx))
    parts = (
        g.standard_normal((steps, nx)),
        0.5 * g.standard_normal((steps, nx, n)) / np.sqrt(n) + np.eye(nx, n),
        g.standard_normal((steps, n)),
        root @ np.swapaxes(root, 1, 2) / n + 0.1 * np.eye(n),
        g.standard_normal(nx),
        end @ end.T / nx,
        np.zeros(nz),
    )
    return LinearQuadratic(*(jnp.asarray(x, dtype) for x in parts))


def dense_optimum(lq):
    """d (N, n), dx_N (nx,) and the multipliers (N, nx) of the steps, by numpy."""
    N, nx, n, nz = lq.steps, lq.nx, lq.nx + lq.nu, lq.nz
    size = N * n + nx
    H, g = np.zeros((size, size)), np.zeros(size)
    A, b = np.zeros((N * nx + nx - nz, size)), np.zeros(N * nx + nx - nz)
    for k in range(N):
        at, rows = slice(k * n, k * n + n), slice(k * nx, k * nx + nx)
        H[at, at], g[at] = lq.H[k], lq.g[k]
        A[rows, at], b[rows] = lq.D[k], -lq.gap[k]
        A[rows, (k + 1) * n : (k + 1) * n + nx] -= np.eye(nx)
    H[N * n :, N * n :], g[N * n :] = lq.end_H, lq.end_g
    A[N * nx :, : nx - nz] = np.eye(nx - nz)
    none = np.zeros((A.shape[0], A.shape[0]))
    solved = np.linalg.solve(np.block([[H, A.T], [A, none]]), np.concatenate((-g, b)))
    return solved[: N * n].reshape(N, n), solved[N * n : size], solved[size:][: N * nx]


@pytest.mark.parametrize(("nx", "nu", "nz"), [(4, 2, 0), (5, 3, 2), (30, 6, 0)])
def test_the_optimum_is_that_of_a_dense_solve(nx, nu, nz):
    """Gains, steps and costates, in a native loop and, for large matrices, in one of XLA."""
    lq = problem(nx, nu, nz)
    sweep = jax.jit(riccati)(lq, None, jnp.zeros(()))
    d, end = linear_rollout(lq, sweep)
    exact, exact_end, multipliers = dense_optimum(lq)
    assert bool(sweep.fine)
    assert_allclose(d, exact, rtol=1e-9, atol=1e-9)
    assert_allclose(end, exact_end, rtol=1e-9, atol=1e-9)
    lam, slope = costates(lq.at(d, end))
    assert_allclose(lam[1:].ravel(), multipliers, rtol=1e-8, atol=1e-8)
    assert_allclose(slope, 0, atol=1e-9)


@pytest.mark.parametrize(("nx", "nu"), [(4, 2), (30, 6)])
def test_in_a_wide_box_nothing_changes(nx, nu):
    """A box that does not matter gives the same sweep."""
    lq, zero, none = problem(nx, nu), jnp.zeros(()), jnp.zeros(0)
    wide = jnp.full((lq.steps, nu), 1e3)
    free = riccati(lq, None, zero)
    boxed = riccati(lq, Box(-wide, wide, none, none), zero)
    assert_allclose(boxed.K, free.K, rtol=1e-10, atol=1e-10)
    assert_allclose(boxed.k, free.k, rtol=1e-10, atol=1e-10)
    assert bool(jnp.all(boxed.free == 1))


def test_controls_at_a_bound_have_no_gains():
    """In a narrow box controls stay within it, and those at a bound do not react."""
    lq, none = problem(5, 3), jnp.zeros(0)
    wide = jnp.full((lq.steps, 3), 0.1)
    sweep = riccati(lq, Box(-wide, wide, none, none), jnp.zeros(()))
    held = np.asarray(sweep.free) == 0
    assert held.any()
    assert not held.all()
    assert_allclose(np.abs(sweep.k)[held], 0.1)
    assert_allclose(np.asarray(sweep.K)[held], 0)


def test_the_root_is_of_the_inverse_of_what_is_free():
    """A quadratic problem in a box meets its conditions; U U^T inverts the free part."""
    g = np.random.default_rng(1)
    H = g.standard_normal((6, 6))
    H, slope = jnp.asarray(H @ H.T + np.eye(6)), jnp.asarray(10 * g.standard_normal(6))
    lower, upper = -jnp.ones(6), jnp.ones(6)
    x, free, U = box_qp(H, slope, lower, upper)
    left = np.asarray(slope + H @ x)
    assert_allclose(left[free == 1], 0, atol=1e-9)
    assert np.all(left[x == 1] <= 0)
    assert np.all(left[x == -1] >= 0)
    inside = np.flatnonzero(free)
    assert 0 < len(inside) < 6
    expected = np.zeros((6, 6))
    expected[np.ix_(inside, inside)] = np.linalg.inv(np.asarray(H)[np.ix_(inside, inside)])
    assert_allclose(U @ U.T, expected, atol=1e-12)


@pytest.mark.parametrize(("nx", "nu"), [(4, 2), (30, 6)])
def test_a_batch_is_a_loop(nx, nu):
    """Sweeps side by side are those one after the other."""
    both = [problem(nx, nu, seed=s) for s in range(3)]
    stacked = jax.tree.map(lambda *a: jnp.stack(a), *both)
    batch = jax.vmap(lambda lq: riccati(lq, None, jnp.zeros(())))(stacked)
    for i, lq in enumerate(both):
        assert_allclose(batch.K[i], riccati(lq, None, jnp.zeros(())).K, rtol=1e-9, atol=1e-9)


def test_single_precision():
    """The same to rounding."""
    lq = problem(5, 3)
    single = jax.tree.map(lambda a: a.astype(jnp.float32), lq)
    sweep = riccati(single, None, jnp.zeros((), jnp.float32))
    assert sweep.K.dtype == jnp.float32
    assert_allclose(sweep.K, riccati(lq, None, jnp.zeros(())).K, rtol=1e-3, atol=1e-4)


def test_without_curvature_it_is_not_fine():
    """A problem without a least value is said to be none, and the shift makes it one."""
    lq = problem(4, 2)
    concave = lq._replace(H=lq.H.at[2, 4:, 4:].add(-50 * jnp.eye(2)))
    assert not bool(riccati(concave, None, jnp.zeros(())).fine)
    assert bool(riccati(concave, None, jnp.full((), 1e3)).fine)

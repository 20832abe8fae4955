"""The matrix of the optimality conditions: its blocks, and its inverse by a Riccati sweep."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from machines import swing

from difflie import control as dc
from difflie.control.discretization import Discretization
from difflie.control.kkt import Matrices, Solution, Unknowns, matrices
from difflie.control.sensitivity import Numbers, _first_order, _solution

N, NX, NU, NZ, M = 4, 5, 2, 2, 3


def some(held, z_held, on):
    """Matrices of a problem with random numbers and some active bounds."""
    random, n = np.random.default_rng(0), NX + NU

    def definite(*shape):
        a = random.normal(size=(*shape, shape[-1]))
        return a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])

    return Matrices(
        random.normal(size=(N, NX, n)),
        definite(N, n),
        definite(NX),
        random.normal(size=(N, M, n)),
        random.normal(size=(M, NX)),
        on * random.integers(0, 2, (N, M)).astype(float),
        on * np.ones(M),
        held * random.integers(0, 2, (N, NU)).astype(float),
        z_held * np.array([1.0, 0.0]),
        jnp.asarray(1e3),
    )


def unknowns(seed):
    random = np.random.default_rng(seed)
    shapes = ((N, NX + NU), (NX,), (N, NX), (NX,), (N, M), (M,), (N, NU), (NZ,))
    return Unknowns(*(jnp.asarray(random.normal(size=s)) for s in shapes))


@pytest.mark.slow("active0")
@pytest.mark.parametrize("active", [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)])
def test_the_matrix_is_symmetric_and_undone(active):
    """x . K y = y . K x, and K of the solution is the right-hand side, whatever is active."""
    K, x, y = some(*active), unknowns(1), unknowns(2)
    flat = lambda u: ravel_pytree(u)[0]  # noqa: E731
    assert flat(x) @ flat(K.times(y)) == pytest.approx(float(flat(y) @ flat(K.times(x))), rel=1e-12)
    np.testing.assert_allclose(flat(K.times(K.solve(x))), flat(x), rtol=1e-8, atol=1e-8)


@pytest.mark.slow
def test_the_matrix_is_the_derivative_of_the_conditions():
    """K of `kkt` and F of `sensitivity` are of one Lagrangian, by the points and the costates."""
    problem = swing(limits=dc.Limits(u_lower=-4.0, u_upper=4.0))
    plan = dc.solve(problem, dc.FDDP(tolerance=1e-10, exact=True))
    knots = Discretization.of(problem)
    solution = _solution(knots, plan)
    K, numbers = matrices(knots, solution), Numbers(knots, problem.q0, problem.v0)
    random = np.random.default_rng(0)
    nx = knots.nx
    d = jnp.asarray(random.normal(size=(knots.steps, nx + knots.nu)))
    end = jnp.asarray(random.normal(size=nx))
    lam = jnp.asarray(random.normal(size=(knots.steps + 1, nx)))

    def conditions(step):
        motion = solution.motion
        dx = step * jnp.concatenate((d[:, :nx], end[None]))
        x = jax.vmap(knots.retract)(motion.x, dx)
        moved = motion._replace(x=x, u=motion.u + step * d[:, nx:])
        costates = solution.costates + step * lam
        made = _first_order(numbers, Solution(moved, costates, *solution[2:]))
        # At the points themselves; what the tangents' own rotation adds vanishes with F.
        return made.d.at[:, :nx].add(-costates[:-1]), made.end - costates[-1], made.lam

    zero = jax.tree.map(jnp.zeros_like, unknowns_of(K, knots))
    given = zero._replace(d=d, end=end, lam=lam[1:], lam_0=lam[0])
    left = K.times(given)
    by_d, by_end, by_lam = jax.jit(jax.jacfwd(conditions))(0.0)
    np.testing.assert_allclose(by_d, left.d, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(by_end, left.end, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(by_lam, left.lam, rtol=1e-6, atol=1e-6)


def unknowns_of(K, knots):
    n, m = K.D.shape[2], K.C.shape[1]
    shapes = (
        *((knots.steps, n), (knots.nx,), (knots.steps, knots.nx), (knots.nx,)),
        *((knots.steps, m), (K.end_C.shape[0],), (knots.steps, knots.nu), (knots.nz,)),
    )
    return Unknowns(*map(jnp.zeros, shapes))

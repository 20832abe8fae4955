"""The factorisation M = L^T D L: exact, as sparse as the tree, differentiable."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trees import error, random_body, random_states, random_tree, zoo

import difflie as dl

TREES = {"zoo": zoo(), "random": random_tree(2)}


def ancestor_mask(system):
    """Whether degree of freedom i is moved by j (nv, nv), from the bodies alone."""
    t = system.topology
    moved = np.zeros((system.nv, system.nv), bool)
    for b in range(len(t.bodies)):
        mine = range(t.velocity_start[b], t.velocity_start[b + 1])
        above, rows = b, []
        while above >= 0:
            rows += range(t.velocity_start[above], t.velocity_start[above + 1])
            above = t.parents[above]
        for i in mine:
            moved[i, [j for j in rows if j <= i or j not in mine]] = True
    return moved


@pytest.mark.slow
@pytest.mark.parametrize("case", TREES)
def test_factors_solve_and_multiply(case):
    system = dl.tree(TREES[case])
    q, x = (jnp.asarray(s) for s in random_states(system, 3, seed=3)[:2])

    @jax.jit
    @jax.vmap
    def ours(q, x):
        factors = dl.mass_factorisation(system, q)
        return (
            dl.mass_matrix(system, q),
            factors.matrices(),
            factors.multiply(x),
            factors.solve(x),
            factors.log_determinant(),
        )

    mass, (lower, diagonal), product, solution, log_determinant = ours(q, x)
    again = jnp.einsum("bki,bk,bkj->bij", lower, diagonal, lower)
    condition = np.linalg.cond(mass).max()
    assert error(again, mass) < 1e-12
    assert error(product, jnp.einsum("bij,bj->bi", mass, x)) < 1e-12
    expected = jnp.linalg.solve(mass, x[..., None])[..., 0]
    assert error(solution, expected) < max(1e-12, 1e-14 * condition)
    np.testing.assert_allclose(log_determinant, np.linalg.slogdet(mass)[1], rtol=1e-10)
    # Unit lower triangular, positive, and no entry where the tree has branches.
    np.testing.assert_array_equal(np.diagonal(lower, axis1=1, axis2=2), 1)
    np.testing.assert_array_less(0, diagonal)
    moved = ancestor_mask(system)
    assert np.all(np.asarray(lower)[:, ~moved] == 0)
    assert np.all(np.asarray(mass)[:, ~(moved | moved.T)] == 0)
    branched = 2 * np.count_nonzero(moved) < system.nv * (system.nv + 1)
    assert branched, "the trees have branches"


def test_single_precision():
    system = dl.chain([random_body(np.random.default_rng(1), "a", dl.Free())])
    single = system.astype(jnp.float32)
    factors = dl.mass_factorisation(single, single.neutral())
    assert {a.dtype for a in jax.tree.leaves(factors)} == {jnp.dtype("float32")}
    assert factors.solve(jnp.ones(6, jnp.float32)).dtype == jnp.float32


def test_mimic_joints_are_refused():
    rng = np.random.default_rng(2)
    mimic = dl.Revolute(name="follower", mimic=dl.Mimic("a", 1.0, 0.0))
    system = dl.chain([random_body(rng, "a", dl.Revolute()), random_body(rng, "b", mimic)])
    with pytest.raises(ValueError, match="'follower' mimics another; solve with"):
        dl.mass_factorisation(system, system.neutral())

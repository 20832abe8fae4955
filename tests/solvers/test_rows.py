"""Rows of which few columns are kept are those of all columns."""

import jax.numpy as jnp
import numpy as np

from difflie.solvers.rows import Rows


def test_rows_of_few_columns_are_those_of_all():
    """Guards products, Hessians and mobilities of rows with few columns, one given twice."""
    rng = np.random.default_rng(0)
    k, d, w, n = 5, 3, 4, 10
    columns = np.array([rng.permutation(n)[:w] for _ in range(k)])
    columns[0, 1] = columns[0, 0]
    rows = Rows(jnp.asarray(rng.normal(size=(k, d, w))), columns)
    every = np.zeros((k, d, n))
    for place in np.ndindex(k, d, w):
        every[place[0], place[1], columns[place[0], place[2]]] += rows.entries[place]
    np.testing.assert_allclose(rows.whole(n), every, atol=1e-14)
    v, g, weights = (jnp.asarray(rng.normal(size=s)) for s in ((n,), (k, d), (k, d, d)))
    np.testing.assert_allclose(rows.of(v), every @ v, atol=1e-13)
    np.testing.assert_allclose(rows.times(g, n), np.einsum("kdn,kd->n", every, g), atol=1e-13)
    squared = np.einsum("kdm,kde,ken->mn", every, weights, every)
    np.testing.assert_allclose(rows.squared(weights, n), squared, atol=1e-13)
    # Parts of 2, 4 and 4 entries, one after the other in no order.
    parts = rng.permutation(np.repeat(np.arange(3), (2, 4, 4)))
    a = np.where(parts[:, None] == parts, rng.normal(size=(n, n)), 0)
    a = a @ a.T + np.eye(n)
    mobility = np.einsum("kdm,mn,ken->kde", every, np.linalg.inv(a), every)
    factor = jnp.linalg.cholesky(a)
    for each in (rows, Rows(jnp.asarray(every))):
        np.testing.assert_allclose(each.mobility(factor, parts), mobility, atol=1e-12)

"""What holds for every pair of kinds of shapes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from pairs_at_random import Pairs, at_random, batched, by_coal, differences, of_moves, result

from difflie.collision.distances import contact_points


def check_against_coal(kind_a: str, kind_b: str, n: int, tolerance: float = 2e-10) -> None:
    """Another program finds the same signed distance, where it finds one."""
    pairs = at_random(kind_a, kind_b, n)
    theirs, found = by_coal(pairs), result(pairs)
    known = ~np.isnan(theirs)
    assert known.mean() > 0.99
    assert np.abs(theirs - found.gap)[known].max() < tolerance


def derivatives(f: Any, pairs: Pairs, mode: Any) -> np.ndarray:
    """Of a function of motions (6,) at rest: (n, ..., 6)."""
    g = jax.jit(jax.vmap(mode(f), (None, 0, 0, 0, 0)))
    return np.asarray(g(jnp.zeros(6), *pairs.arguments()))


def check_derivatives(kind_a: str, kind_b: str, n: int) -> None:
    """Of the gap and of the normal: as differences, both modes alike, the Hessian finite.

    Differences that reach across a border between features are others: of the gap none in a
    thousand, of the normal, whose derivative jumps there or grows with 1/gap, some.
    """
    pairs = at_random(kind_a, kind_b, n, seed=1)
    gap = of_moves(pairs, lambda w: w.gap)
    ours, theirs = derivatives(gap, pairs, jax.jacfwd), differences(gap, pairs).T
    error = np.abs(ours - theirs).max(1)
    assert np.quantile(error, 0.99) < 1e-6
    assert error.max() < 2
    assert np.abs(derivatives(gap, pairs, jax.jacrev) - ours).max() < 1e-9
    assert np.isfinite(derivatives(gap, pairs, jax.hessian)).all()
    normal = of_moves(pairs, lambda w: w.normal.to_array())
    ours = derivatives(normal, pairs, jax.jacfwd)
    theirs = np.moveaxis(differences(normal, pairs), 0, -1)
    size = 1 + np.abs(ours).max((1, 2))
    assert np.quantile(np.abs(ours - theirs).max((1, 2)) / size, 0.9) < 1e-5
    backward = derivatives(normal, pairs, jax.jacrev)
    assert (np.abs(backward - ours).max((1, 2)) / size).max() < 1e-9


def check_points(kind_a: str, kind_b: str, n: int) -> None:
    """Points lie a gap apart along the unit normal; single precision finds the same distances.

    The other order of the shapes gives the same points.
    """
    pairs = at_random(kind_a, kind_b, n, seed=2)
    pose, numbers, other, numbers_b = pairs.arguments()
    found = batched(pairs.kinds)(pose, numbers, other, numbers_b)
    valid = np.asarray(found.valid)
    assert valid.any(1).all()
    assert (np.asarray(found.gap)[~valid] > 1e8).all()
    step = (found.second - found.first - found.normal * found.gap).to_array()
    assert np.abs(step)[valid].max() < 1e-13
    assert np.abs(found.normal.square() - 1).max() < 1e-12
    mirrored = jax.jit(jax.vmap(contact_points(kind_b, kind_a)))(other, numbers_b, pose, numbers)
    assert np.abs(mirrored.gap - found.gap)[valid].max() < 1e-9
    if kind_a != kind_b:
        step = (mirrored.first - found.second).to_array()
        assert np.abs(step)[valid].max() < 1e-12
    single = result(pairs, jnp.float32)
    assert single.gap.dtype == np.float32
    assert np.abs(single.gap - result(pairs).gap).max() < 1e-5

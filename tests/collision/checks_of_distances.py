"""What holds for every pair of kinds of shapes."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pairs_at_random import (
    Pairs,
    at_random,
    batched,
    by_coal,
    by_search,
    differences,
    of_moves,
    outside,
    result,
    separation,
)

from difflie.collision.distances import Witness, contact_points, deepest
from difflie.groups import so3
from difflie.groups.components import Matrix, Vector
from difflie.spatial import Transform

# m; coal is not exact where shapes touch, and takes some that are about this far for touching.
TOUCHING = 1e-5
# m; the last digits of coal's depths. Pairs with a closed form are held to 1e-12 besides.
OF_COAL = 1e-9


def check_against_coal(kind_a: str, kind_b: str, n: int) -> None:
    """Another program finds the same signed distance, where it finds one."""
    pairs = at_random(kind_a, kind_b, n)
    theirs, found = by_coal(pairs), np.asarray(result(pairs).gap)
    known = ~np.isnan(theirs)
    assert known.mean() > 0.99
    near = np.minimum(np.abs(theirs), np.abs(found)) < 2 * TOUCHING
    error = np.abs(theirs - found) - np.where(near, TOUCHING, OF_COAL)
    assert error[known].max() < 0


Kinds = Sequence[tuple[str, str]]


def pairs_of(*quick: tuple[str, str], slow: Kinds = (), thorough: Kinds = ()) -> Any:
    """Parameters `kinds`: pairs of every run, and those of slow and of thorough tests."""
    params = [pytest.param(kinds) for kinds in quick]
    params += [pytest.param(kinds, marks=pytest.mark.slow) for kinds in slow]
    params += [pytest.param(kinds, marks=pytest.mark.thorough) for kinds in thorough]
    return pytest.mark.parametrize("kinds", params, ids="-".join)


def check_optimal(kind_a: str, kind_b: str, n: int) -> None:
    """Along the normal the shapes are separated by the gap, and nothing else is the distance.

    Apart: the points lie in both shapes, so nothing is further. Overlapping: no direction at random
    separates them better.
    """
    pairs = at_random(kind_a, kind_b, n, seed=7)
    found = result(pairs)
    gap, normal = np.asarray(found.gap), np.asarray(found.normal.to_array())
    along = np.array([separation(pairs, i, normal[i : i + 1])[0] for i in range(n)])
    assert np.abs(along - gap).max() < 1e-12
    assert (gap < 0).sum() > n / 5
    assert (gap - by_search(pairs, refine=False)).min() > -1e-12
    for side, points in ((0, found.first), (1, found.second)):
        local = np.einsum(
            "nji,nj->ni", pairs.rotations[side], points.to_array() - pairs.origins[side]
        )
        numbers = [[x[i] for x in pairs.numbers[side]] for i in range(n)]
        over = np.array([outside(pairs.kinds[side], numbers[i], local[i]) for i in range(n)])
        # Close to where a part would lie flat, points are known less well than the gap.
        assert np.abs(over).max() < 1e-5
        assert np.quantile(np.abs(over), 0.999) < 1e-6
        assert np.quantile(np.abs(over), 0.95) < 1e-10


def derivatives(f: Any, pairs: Pairs) -> Any:
    """Of gap and normal at rest, forward and reverse (n, ..., 6), and the gap's Hessian (n, 6, 6).

    In one program: they have much in common.
    """

    def of_pair(*pair: Any) -> Any:
        at = lambda motion: f(motion, *pair)  # noqa: E731
        with_slope = lambda motion: (at(motion), jax.jacrev(lambda m: at(m)[0])(motion))  # noqa: E731
        forward, hessian = jax.jacfwd(with_slope)(jnp.zeros(6))
        return forward, jax.jacrev(at)(jnp.zeros(6)), hessian

    return jax.tree.map(np.asarray, jax.jit(jax.vmap(of_pair))(*pairs.arguments()))


def check_derivatives(kind_a: str, kind_b: str, n: int, tolerance: float = 1e-6) -> None:
    """Of the gap and of the normal: as differences, both modes alike, the Hessian finite.

    Differences that reach across a border between features are others, so a few may be; at corners
    that touch there is such a border.
    """
    pairs = at_random(kind_a, kind_b, n, seed=1)
    away = np.abs(result(pairs).gap) > 1e-4
    moved = of_moves(pairs)
    (ours, normal), (back, normal_back), hessian = derivatives(moved, pairs)
    theirs, normal_theirs = differences(moved, pairs)
    error = np.abs(ours - theirs).max(1)
    assert np.quantile(error[away], 0.98) < tolerance
    assert error.max() < 2
    # Normals of corners that touch are known to rounding, divided by the gap; their derivatives,
    # by its square.
    rounding = 1e-9 + 1e-15 / (np.asarray(result(pairs).gap) ** 2 + 1e-18)
    assert (np.abs(back - ours).max(1) < rounding).all()
    assert np.isfinite(hessian).all()
    size = 1 + np.abs(normal).max((1, 2))
    error = np.abs(normal - normal_theirs).max((1, 2)) / size
    assert np.quantile(error[away], 0.95) < 10 * tolerance
    assert (np.abs(normal_back - normal).max((1, 2)) / size < rounding).all()


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
    least = jax.vmap(deepest)
    assert np.abs(least(mirrored).gap - least(found).gap).max() < 1e-9
    if kind_a != kind_b:
        step = (mirrored.first - found.second).to_array()
        assert np.abs(step)[valid].max() < 1e-12
    single = result(pairs, jnp.float32)
    assert single.gap.dtype == np.float32
    error = np.abs(single.gap - result(pairs).gap)
    assert error.max() < 1e-4
    assert np.quantile(error, 0.98) < 3e-6


def pose(position: Any, turn: Any = (0.0, 0.0, 0.0)) -> Transform:
    """A position in m and a rotation vector."""
    rotation = so3.exp(jnp.array(turn, float))
    return Transform(Matrix.from_array(rotation), Vector.from_array(jnp.array(position, float)))


@functools.cache
def _with_derivatives(kinds: tuple[str, str]) -> Any:
    """The contact points of a pair, and derivatives by both poses along a direction."""
    find = contact_points(*kinds)

    @jax.jit
    def found(poses: Any, tangent: Any, numbers: Any, numbers_b: Any) -> Any:
        def gap(poses: Any) -> Any:
            return deepest(find(poses[0], numbers, poses[1], numbers_b)).gap

        def everything(poses: Any) -> Any:
            found = find(poses[0], numbers, poses[1], numbers_b)
            return sum(x.sum() for x in jax.tree.leaves((found.gap, found.normal, found.first)))

        along = jax.jvp(everything, (poses,), (tangent,))
        second_order = jax.jvp(jax.grad(gap), (poses,), (tangent,))
        derivatives = along, jax.grad(everything)(poses), second_order
        return find(poses[0], numbers, poses[1], numbers_b), derivatives

    return found


def checked(
    kinds: tuple[str, str], first: Transform, numbers: Any, second: Transform, numbers_b: Any
) -> Witness:
    """The contact points of one pair; values and derivatives by both poses are finite.

    Derivatives are taken along a direction that is no axis, and of a sum that leaves nothing out.
    """
    poses = first, second
    rng = np.random.default_rng(0)
    tangent = jax.tree.map(lambda x: jnp.asarray(rng.normal(size=jnp.shape(x))), poses)
    found, derivatives = _with_derivatives(tuple(kinds))(poses, tangent, numbers, numbers_b)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(derivatives))
    return found

"""Every manifold: retract, difference and dexp_inv fit together as the integrators need them."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import Any

import accuracy
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from difflie.groups import (
    SE3,
    SO3,
    Cayley,
    Euclidean,
    FlatProduct,
    Manifold,
    Pose,
    Product,
    UnitQuaternion,
    quaternion,
    se3,
    so3,
)
from difflie.reproduce.mueller.transition import RotationVector

ANGLES = (0.0, 1e-160, 1e-16, 1e-8, 1e-3, 0.1, 1.0, 2.0, 3.0, pi - 1e-3)


def compiled(f):
    return jax.jit(jax.vmap(f))


@dataclass(frozen=True)
class Case:
    """A manifold with the point of coordinates (6,) and the tangent of coordinates (6,)."""

    manifold: Manifold
    point: Any
    tangent: Any

    def __str__(self) -> str:
        return type(self.manifold).__name__


def _pose(x):
    return jnp.concatenate((quaternion.exp(x[:3]), x[3:]))


CASES = [
    Case(Euclidean(6), lambda x: x, lambda x: x),
    Case(UnitQuaternion(), lambda x: quaternion.exp(x[:3]), lambda x: x[:3]),
    Case(Pose(), _pose, lambda x: x),
    Case(UnitQuaternion(Cayley()), lambda x: quaternion.exp(x[:3]), lambda x: x[:3]),
    Case(Pose(Cayley()), _pose, lambda x: x),
    Case(SO3(), lambda x: so3.exp(x[:3]), lambda x: x[:3]),
    Case(SE3(), se3.exp, lambda x: x),
    Case(
        Product((SO3(), Euclidean(2), UnitQuaternion())),
        lambda x: (so3.exp(x[:3]), x[:2], quaternion.exp(x[:3])),
        lambda x: (x[:3], x[:2], x[:3]),
    ),
    Case(
        FlatProduct((Euclidean(2), Pose(), UnitQuaternion())),
        lambda x: jnp.concatenate((x[:2], _pose(x), quaternion.exp(x[:3]))),
        lambda x: jnp.concatenate((x[:2], x, x[:3])),
    ),
    Case(
        FlatProduct((Euclidean(2), Pose(Cayley()), UnitQuaternion(Cayley()))),
        lambda x: jnp.concatenate((x[:2], _pose(x), quaternion.exp(x[:3]))),
        lambda x: jnp.concatenate((x[:2], x, x[:3])),
    ),
    Case(RotationVector(Pose()), lambda x: x, lambda x: x),
    Case(FlatProduct((UnitQuaternion(),)), lambda x: quaternion.exp(x[:3]), lambda x: x[:3]),
    Case(FlatProduct(()), lambda x: x[:0], lambda x: x[:0]),
]


def tree_error(a, b) -> float:
    leaves = jax.tree.map(lambda a, b: np.abs(np.asarray(a) - b).max(initial=0.0), a, b)
    return max(jax.tree.leaves(leaves), default=0.0)


def coordinates() -> list[np.ndarray]:
    """Points anywhere, tangents through all angles, and tangents of angle one."""
    n = len(ANGLES)
    y = accuracy.samples(np.linspace(0.3, 3.0, n), 6, 3)
    return [y, accuracy.samples(ANGLES, 6, 3), accuracy.samples(np.ones(n), 6, 3)[::-1]]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_difference_inverts_retract(case):
    @compiled
    def evaluate(y, xi, _):
        m, y0, xi = case.manifold, case.point(y), case.tangent(xi)
        y1 = m.retract(y0, xi)
        xi_back = m.difference(y0, y1)
        return xi, xi_back, y1, m.retract(y0, xi_back)

    xi, xi_back, y1, y1_back = evaluate(*coordinates())
    assert tree_error(xi, xi_back) <= 2e-14
    assert tree_error(y1, y1_back) <= 2e-14


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_dexp_inv_is_the_rate_of_the_local_coordinates(case):
    """y0 exp(theta(t)) moves at the rate xi when theta moves at dexp_inv(theta, xi)."""
    h = 1e-5

    @compiled
    def evaluate(y, theta, xi):
        m, y0, theta, xi = case.manifold, case.point(y), case.tangent(theta), case.tangent(xi)
        rate = m.dexp_inv(theta, xi)

        def moved(s):
            return m.retract(y0, jax.tree.map(lambda a, b: a + s * b, theta, rate))

        step = m.difference(moved(-h), moved(h))
        return xi, jax.tree.map(lambda a: a / (2 * h), step)

    xi, difference_quotient = evaluate(*coordinates())
    assert tree_error(xi, difference_quotient) <= 1e-9


@pytest.mark.parametrize("case", CASES[1:7], ids=str)
def test_points_stay_on_their_manifold(case):
    """Rounding errors of many steps in single precision do not take an attitude off its group."""
    m, xi = case.manifold, case.tangent(jnp.linspace(1e-3, 2e-3, 6, dtype=jnp.float32))
    start = case.point(jnp.linspace(0.3, 0.8, 6, dtype=jnp.float32))
    end = jax.jit(lambda y: jax.lax.fori_loop(0, 20_000, lambda _, y: m.retract(y, xi), y))(start)
    end = np.asarray(end, float)
    attitude = end[:3, :3] if end.ndim == 2 else end[:4, None]
    error = attitude.T @ attitude - np.eye(attitude.shape[1])
    assert np.abs(error).max() <= 5e-7


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_derivatives_by_the_entries_of_points(case):
    """Those of retract in forward and reverse mode are those of differences off the manifold."""
    y, xi, way = (jnp.asarray(a[6]) for a in coordinates())
    point, xi = case.point(y), case.tangent(xi)
    flat, unflat = ravel_pytree(point)
    way = jnp.resize(way, flat.shape)

    @jax.jit
    def derivatives(flat):
        def moved(flat):
            return ravel_pytree(case.manifold.retract(unflat(flat), xi))[0]

        h = 1e-5
        difference = (moved(flat + h * way) - moved(flat - h * way)) / (2 * h)
        forward = jax.jvp(moved, (flat,), (way,))[1]
        reverse = jax.vjp(moved, flat)[1](forward)[0] @ way
        return difference, forward, reverse - forward @ forward

    difference, forward, symmetry = derivatives(flat)
    np.testing.assert_allclose(forward, difference, atol=1e-9)
    np.testing.assert_allclose(symmetry, 0, atol=1e-13)


def test_matrices_and_quaternions_agree():
    y, theta, xi = (a[7] for a in coordinates())
    for flat, matrix, convert, tangent in (
        (UnitQuaternion(), SO3(), quaternion.to_matrix, lambda x: x[:3]),
        (Pose(), SE3(), _pose_matrix, lambda x: x),
    ):
        y0 = flat.retract(_pose(y)[:4] if flat.point_size == 4 else _pose(y), tangent(theta))
        y1 = flat.retract(y0, tangent(xi))
        same = matrix.retract(convert(y0), tangent(xi))
        np.testing.assert_allclose(convert(y1), same, rtol=0, atol=1e-14)
        np.testing.assert_allclose(
            flat.difference(y0, y1), matrix.difference(convert(y0), same), rtol=0, atol=1e-14
        )
        np.testing.assert_allclose(
            flat.dexp_inv(tangent(theta), tangent(xi)),
            matrix.dexp_inv(tangent(theta), tangent(xi)),
            rtol=0,
            atol=1e-14,
        )


def _pose_matrix(y):
    top = jnp.concatenate((quaternion.to_matrix(y[:4]), y[4:, None]), axis=1)
    return jnp.concatenate((top, jnp.array([[0.0, 0.0, 0.0, 1.0]])))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_precision_is_kept(case):
    def evaluate(x):
        m, y, xi = case.manifold, case.point(x), case.tangent(x)
        return m.retract(y, xi), m.difference(y, y), m.dexp_inv(xi, xi)

    for f in (evaluate, jax.jacrev(evaluate)):
        leaves = jax.tree.leaves(jax.eval_shape(f, jax.ShapeDtypeStruct((6,), np.float32)))
        assert {leaf.dtype for leaf in leaves} == {np.dtype(np.float32)}


@pytest.mark.parametrize("case", [c for c in CASES if hasattr(c.manifold, "point_size")], ids=str)
def test_sizes(case):
    x = np.ones(6)
    assert case.point(x).shape == (case.manifold.point_size,)
    assert case.tangent(x).shape == (case.manifold.tangent_size,)


def test_both_signs_of_a_quaternion_are_one_attitude():
    y0, y1 = quaternion.exp(np.array([0.3, 1.0, -2.0])), quaternion.exp(np.array([0.1, -0.4, 0.2]))
    m = UnitQuaternion()
    np.testing.assert_array_equal(m.difference(y0, -y1), m.difference(y0, y1))


@pytest.mark.parametrize("case", CASES[:-1], ids=str)
def test_other_shapes_are_refused(case):
    m, x = case.manifold, jnp.linspace(0.1, 0.6, 6)
    y, xi = case.point(x), case.tangent(x)
    longer = jax.tree.map(lambda a: jnp.ones((a.shape[0] + 1, *a.shape[1:])), (y, xi))
    batch = jax.tree.map(lambda a: jnp.ones((2, *a.shape)), (y, xi))
    for wrong_y, wrong_xi in (longer, batch):
        for method, arguments in (
            (m.retract, (wrong_y, xi)),
            (m.retract, (y, wrong_xi)),
            (m.difference, (wrong_y, y)),
            (m.difference, (y, wrong_y)),
            (m.dexp_inv, (wrong_xi, xi)),
            (m.dexp_inv, (xi, wrong_xi)),
        ):
            with pytest.raises(ValueError, match="expected"):
                method(*arguments)


def test_a_product_of_other_length_is_refused():
    m = Product((UnitQuaternion(), UnitQuaternion()))
    q = quaternion.exp(np.ones(3))
    with pytest.raises(ValueError, match="zip"):
        m.retract((q,), (np.ones(3), np.ones(3)))

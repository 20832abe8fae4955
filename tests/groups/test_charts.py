"""Manifolds in Cayley coordinates: at large arguments, and their adjoints and halfway rates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm, sqrtm

from difflie.groups import Cayley, Euclidean, Exponential, FlatProduct, Pose, UnitQuaternion, se3


def skew(w):
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def screw(X):
    return np.block([[skew(X[:3]), X[3:, None]], [np.zeros((1, 4))]])


def cayley(A):
    return np.linalg.solve(np.eye(len(A)) - A / 2, np.eye(len(A)) + A / 2)


@pytest.mark.parametrize("large", [1e3, 1e8, 1e150])
def test_cayley_coordinates_of_almost_half_turns(large):
    m, X = Pose(Cayley()), jnp.array([large, 0.0, 0.0, 1.0, 2.0, 3.0])
    end = m.retract(jnp.array([1.0, 0.0, 0.0, 0.0, 0.1, 0.2, 0.3]), X)
    half = np.arctan(large / 2)
    np.testing.assert_allclose(end[:4], [np.cos(half), np.sin(half), 0, 0], rtol=0, atol=2e-16)
    assert np.all(np.isfinite(end)) and np.all(np.isfinite(m.dexp_inv(X, jnp.ones(6))))


@pytest.mark.parametrize("chart", [Exponential(), Cayley()], ids=str)
def test_adjoint_and_halfway_in_every_chart(chart):
    m = FlatProduct((UnitQuaternion(), Euclidean(1), Pose())).in_chart(chart)
    theta, xi = np.random.default_rng(4).normal(size=(2, 10)) * 0.7
    adjoint, halfway = (jax.jit(f)(theta, xi) for f in (m.adjoint, m.halfway))
    psi = expm if chart == Exponential() else cayley
    R, T = psi(skew(theta[:3])), psi(screw(theta[4:]))
    np.testing.assert_allclose(adjoint[:3], R @ xi[:3], atol=1e-14)
    np.testing.assert_allclose(adjoint[4:], se3.Ad(jnp.asarray(T)) @ xi[4:], atol=1e-14)
    half = np.asarray(se3.Ad(jnp.asarray(np.real(sqrtm(T)))))
    np.testing.assert_allclose((np.eye(3) + np.real(sqrtm(R))) @ halfway[:3], xi[:3], atol=1e-14)
    np.testing.assert_allclose((np.eye(6) + half) @ halfway[4:], xi[4:], atol=1e-13)
    assert adjoint[3] == xi[3] and halfway[3] == xi[3] / 2

"""The nearest inertia of a rigid body: a projection, the identity where nothing is wrong."""

import numpy as np
import pytest

from difflie.parameters import nearest_consistent
from difflie.parameters.pseudo_inertia import inconsistency

RNG = np.random.default_rng(0)


def moments(inertia):
    return np.trace(inertia) / 2 * np.eye(3) - inertia


def rotated(diagonal):
    turn = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    inertia = turn @ np.diag(diagonal) @ turn.T
    return (inertia + inertia.T) / 2


def test_the_inertia_of_a_body_is_returned_as_it_is():
    inertia = rotated((0.2, 0.3, 0.4))
    np.testing.assert_array_equal(nearest_consistent(2.0, inertia), inertia)


def test_no_inertia_becomes_that_of_a_ball_of_water():
    """4 pi / 3 kg are a ball of radius 0.1 m."""
    mass = 4 * np.pi / 3
    expected = 0.4 * mass * 0.1**2 * np.eye(3)
    np.testing.assert_allclose(nearest_consistent(mass, np.zeros((3, 3))), expected, rtol=1e-14)


@pytest.mark.parametrize("diagonal", [(0.1, 0.1, 1.0), (-0.1, 0.2, 0.3), (0, 0, 1e-9)])
def test_it_is_the_nearest_of_those_no_smaller_than_the_ball(diagonal):
    """<S - P, X - P> <= 0 for every X of a convex set holds for the point P nearest to S alone."""
    inertia = rotated(diagonal)
    result = nearest_consistent(1.5, inertia)
    assert not inconsistency(result)
    S, P = moments(inertia), moments(result)
    ball = moments(nearest_consistent(1.5, np.zeros((3, 3))))
    assert np.linalg.eigvalsh(P - ball).min() > -1e-15
    for root in RNG.normal(size=(200, 3, 3)) * 10.0 ** RNG.uniform(-4, 0, (200, 1, 1)):
        assert np.sum((S - P) * (ball + root @ root.T - P)) < 1e-14


def test_single_precision_stays():
    assert nearest_consistent(1.0, np.zeros((3, 3), np.float32)).dtype == np.float32

"""Standard errors, what is not identifiable, and robust losses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from difflie.identify.losses import Cauchy, Huber, Squares
from difflie.identify.statistics import correlations, directions, information, whiteness


def test_the_covariance_of_a_straight_line():
    """Against the printed formulas of linear regression."""
    x = np.linspace(0, 1, 50)
    found = information(np.stack((np.ones(50), x), 1), 0.04, ("height", "slope"))
    spread = np.sum((x - x.mean()) ** 2)
    assert found.covariance[1, 1] == pytest.approx(0.04 / spread)
    assert found.covariance[0, 0] == pytest.approx(0.04 * (1 / 50 + x.mean() ** 2 / spread))
    expected = -x.mean() / np.sqrt(np.mean(x**2))
    assert correlations(found.covariance)[0, 1] == pytest.approx(expected)
    assert found.unidentifiable == ()


def test_what_acts_only_together_is_named():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 30))
    J = np.stack((a, 2 * a, b, 0 * b), 1)
    found = information(J, 1.0, ("mass", "length", "damping", "friction"))
    told = {frozenset(name for name, _ in row) for row in found.unidentifiable}
    assert told == {frozenset({"mass", "length"}), frozenset({"friction"})}
    assert np.isinf(np.diag(found.covariance)).tolist() == [True, True, False, True]
    assert found.covariance[2, 2] == pytest.approx(1 / (b @ b - (a @ b) ** 2 / (a @ a)))


def test_directions_are_told_in_one_sentence():
    """Guards summaries of machines with many undetermined directions from dozens of lines."""
    assert directions(()) == ""
    one = directions(((("mass", 0.8), ("length", -0.6)),))
    assert one == "this data does not determine one direction, of mass, length"
    many = [((f"link{k}/com_x", 1.0 - 0.01 * k), ("base/mass", 0.5)) for k in range(26)]
    said = directions(many)
    assert said.startswith("this data does not determine 26 directions, mostly of base/mass, link0")
    assert said.endswith("link6/com_x and 19 more")


def test_white_noise_and_a_walk():
    noise = np.random.default_rng(3).normal(size=5000)
    white, bound = whiteness(noise)
    assert (np.abs(white) < bound).mean() >= 0.8
    assert whiteness(np.convolve(noise, np.ones(10)))[0][0] > 0.8


@pytest.mark.parametrize("loss", [Squares(), Huber(1.5), Cauchy(0.7)])
def test_losses_and_their_derivatives(loss):
    r = jnp.array((-4.0, -0.1, -1e-9, 0.0, 1e-3, 0.3, 1.0, 9.0))
    square = {
        "Squares": r**2,
        "Huber": jnp.where(abs(r) < 1.5, r**2, 3 * abs(r) - 2.25),
        "Cauchy": 0.49 * jnp.log1p((r / 0.7) ** 2),
    }[type(loss).__name__]
    np.testing.assert_allclose(loss(r) ** 2, square, rtol=1e-12)
    np.testing.assert_array_equal(jnp.sign(loss(r)), jnp.sign(r))
    ahead, back = (jnp.diag(f(loss)(r)) for f in (jax.jacfwd, jax.jacrev))
    h = 1e-6
    np.testing.assert_allclose(ahead, (loss(r + h) - loss(r - h)) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose(back, ahead, rtol=1e-12)


def test_a_limit_that_is_none():
    for limit in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="positive and finite"):
            Huber(limit)

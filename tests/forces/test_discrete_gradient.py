"""The discrete gradient of a law: against closed forms, at coinciding arguments and at kinks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.forces.springs import mean_slope

RNG = np.random.default_rng(0)
PATH = [("a", (0.0, 0.0, 0.0)), (None, (0.0, 0.0, 0.0))]
SPRING = dl.Spring(PATH, stiffness=80.0, rest_length=0.7)
ROPE = dl.Rope(PATH, stiffness=80.0, rest_length=0.7)
Y0 = jnp.asarray(RNG.uniform(0.3, 1.1, 4000))
Y1 = Y0 + jnp.asarray(RNG.normal(size=4000) * 10.0 ** RNG.uniform(-16, 0, 4000))


@jax.jit
def mean(law, y0, y1):
    return mean_slope(law.potential, law.tension, y0, y1)


def test_linear_spring():
    found = mean(SPRING, Y0, Y1)
    np.testing.assert_allclose(found, 80.0 * ((Y0 + Y1) / 2 - 0.7), atol=1e-12)


def test_tension_spring_across_its_kink():
    a, b = np.maximum(Y0 - 0.7, 0), np.maximum(Y1 - 0.7, 0)
    both, none = (a > 0) & (b > 0), (a == 0) & (b == 0)
    difference = np.where(Y1 == Y0, 1, Y1 - Y0)
    share = np.where(both, 1, np.where(none, 0, (b - a) / difference))
    exact = 80.0 * (a + b) / 2 * share
    found = mean(ROPE, Y0, Y1)
    work = ROPE.potential(Y1) - ROPE.potential(Y0)
    np.testing.assert_allclose(found * (Y1 - Y0), work, atol=4e-15, rtol=1e-14)
    np.testing.assert_allclose(found[~both], exact[~both], atol=1e-6)
    np.testing.assert_allclose(found[both], exact[both], atol=1e-12)


@pytest.mark.slow
def test_any_law_and_its_derivatives():
    """y^4 + exp(y): the work is exact, and derivatives exist where both arguments coincide."""
    power, slope = (lambda y: y**4 + jnp.exp(y)), (lambda y: 4 * y**3 + jnp.exp(y))
    found = mean_slope(power, slope, Y0, Y1)
    np.testing.assert_allclose(found * (Y1 - Y0), power(Y1) - power(Y0), atol=1e-14)
    both = jax.vmap(jax.grad(lambda a, b: mean_slope(power, slope, a, b), argnums=(0, 1)))(Y0, Y0)
    for partial in both:
        np.testing.assert_allclose(partial, (12 * Y0**2 + jnp.exp(Y0)) / 2, rtol=1e-6)


def test_single_precision():
    law = jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), ROPE)
    y0, y1 = Y0.astype(jnp.float32), Y1.astype(jnp.float32)
    found = mean(law, y0, y1)
    assert found.dtype == jnp.float32
    work = law.potential(y1) - law.potential(y0)
    np.testing.assert_allclose(found * (y1 - y0), work, rtol=1e-6, atol=3e-6)

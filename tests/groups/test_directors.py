"""Frames as origin and directors: against the Cayley map and their own definitions."""

import jax
import jax.numpy as jnp
import numpy as np

import difflie as dl
from difflie.groups import directors

RNG = np.random.default_rng(0)
FRAME = jnp.asarray(np.vstack((RNG.normal(size=3), dl.so3.exp(RNG.normal(size=3)).T)))
RATES = jnp.asarray(RNG.normal(size=6))
H = 0.8


@jax.jit
def step(frame, rates, h):
    middle = directors.middle(frame, rates, h)
    return middle, frame + h * directors.motion(middle, rates)


def test_a_step_is_the_cayley_map():
    middle, end = step(FRAME, RATES, H)
    turned = dl.so3.cay(H / 2 * RATES[:3]) @ FRAME[1:].T
    np.testing.assert_allclose(end[1:].T, turned, atol=1e-15)
    np.testing.assert_allclose(end[0], FRAME[0] + H * RATES[3:], atol=1e-15)
    np.testing.assert_allclose(middle, (FRAME + end) / 2, atol=1e-15)


def test_rates_and_loads():
    force = jnp.asarray(RNG.normal(size=(4, 3)))
    motion = directors.motion(FRAME, RATES)
    np.testing.assert_allclose(directors.rates(FRAME, motion), RATES, atol=1e-15)
    power = directors.load(FRAME, force) @ RATES
    np.testing.assert_allclose(power, jnp.sum(force * motion), atol=1e-14)


def test_orthonormalised():
    error = 1e-5 * RNG.normal(size=(4, 3))
    corrected = directors.orthonormalised(FRAME + error)
    np.testing.assert_allclose(corrected[1:] @ corrected[1:].T, jnp.eye(3), atol=1e-9)
    np.testing.assert_array_equal(corrected[0], (FRAME + error)[0])

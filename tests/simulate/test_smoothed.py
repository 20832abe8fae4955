"""Derivatives of means over random changes: against closed forms, and where exact ones are zero."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

import difflie as dl


def test_derivatives_are_those_of_the_mean_in_both_modes():
    """A linear function exactly; a kink as the normal distribution says; closures exactly."""
    x = {"a": jnp.array([0.3, -0.2]), "b": jnp.array(1.5)}
    slope = np.array([[1.0, 2.0], [-3.0, 0.5]])

    def line(x):
        return slope @ x["a"] + x["b"] ** 0, 4 * x["b"]

    spread = {"a": 0.1, "b": 2.0}
    for mode in (jax.jacfwd, jax.jacrev):
        first, second = mode(dl.smoothed(line, spread, samples=8))(x)
        assert_allclose(first["a"], slope, atol=1e-12)
        assert_allclose(second["b"], 4, atol=1e-12)
        assert_allclose(second["a"], 0, atol=1e-12)
    many = {"spread": 0.5, "samples": 20_000}
    kink = jax.vmap(jax.grad(dl.smoothed(lambda x: jnp.maximum(x, 0.0), **many)))
    at = jnp.array([-1.0, -0.3, 0.0, 0.8])
    assert_allclose(kink(at), norm.cdf(at / 0.5), atol=0.01)
    assert jax.grad(lambda k: dl.smoothed(lambda x: k * x**2, 0.5)(3.0))(2.0) == 9.0
    single = dl.smoothed(lambda x: jnp.maximum(x, 0.0), 0.5)
    assert jax.grad(single)(jnp.float32(0.2)).dtype == jnp.float32
    with pytest.raises(ValueError, match="spread is 0"):
        dl.smoothed(line, 0.0)
    with pytest.raises(ValueError, match="2 samples for 3 numbers"):
        dl.smoothed(line, 0.1, samples=2)(x)


@pytest.mark.slow
def test_a_finger_finds_the_box_that_it_does_not_touch_yet():
    """Guards the use: the exact derivative of the box's place is zero, this one moves the box."""
    axis = (1, 0, 0)
    bodies = [
        dl.Body(name="finger", joint=dl.Prismatic(axis=axis), mass=0.5),
        dl.Body(name="box", joint=dl.Prismatic(axis=axis, friction=2.0), mass=1.0),
    ]
    shapes = {"tip": dl.Sphere("finger", 0.02), "box": dl.Box("box", (0.05, 0.05, 0.05))}
    system = dl.touching(dl.tree(bodies).with_shapes(shapes), "tip", "box")

    def place(pushes):
        control = jnp.repeat(pushes, 25)[:, None] * jnp.array([1.0, 0.0])
        options = {"dt": 4e-3, "steps": 100, "save_every": 100, "method": "ConvexContact"}
        return dl.simulate(system, [-0.2, 0.0], [0.0, 0.0], control=control, **options).q[-1, 1]

    pushes, goal = jnp.full(4, 0.5), 0.02
    assert place(pushes) == 0
    assert jnp.all(jax.grad(place)(pushes) == 0)
    near = dl.smoothed(place, 2.0)
    cost = jax.jit(jax.grad(lambda u: (near(u) - goal) ** 2))
    for _ in range(40):
        pushes = pushes - 100 * cost(pushes)
    assert abs(place(pushes) - goal) < 0.005

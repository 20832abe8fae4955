"""Many free bodies: only the nearest contact points act, and nothing else changes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.integrators import ConvexContact

# All contact points, more than ever touch, and fewer than touch in the end.
ALL, ENOUGH, FEW = 45, 20, 3


@pytest.fixture(scope="module")
def balls():
    """Nine balls of different sizes above each other and the ground, and where they begin."""
    sizes = 0.08 + 0.005 * np.arange(9)
    bodies = [
        dl.Body(name=f"ball{k}", joint=dl.Free(), mass=1.0 + 0.1 * k, inertia=np.eye(3) * 3e-3)
        for k in range(9)
    ]
    system = dl.tree(bodies).with_shapes(
        {f"ball{k}": dl.Sphere(f"ball{k}", r) for k, r in enumerate(sizes)} | {"ground": dl.Plane()}
    )
    system = dl.touching(system, stiffness=1e5, friction=0.4)
    places = [[0.19 * (k % 4), 0.02 * (k % 3), 0.11 + 0.2 * (k // 4)] for k in range(9)]
    q = np.concatenate([[1, 0, 0, 0, *place] for place in places])
    return system, jnp.asarray(q)


def end(system, q, v, most, steps=150):
    method = ConvexContact(most_points=most)
    return dl.simulate(system, q, v, dt=4e-3, steps=steps, save_every=steps, method=method)


@pytest.mark.slow
def test_the_nearest_points_are_enough(balls):
    """Guards that points which are far off change nothing, in the motion and its derivatives."""
    system, q = balls
    v = jnp.full(54, 0.1)
    every, some = (end(system, q, v, most) for most in (ALL, ENOUGH))
    np.testing.assert_allclose(some.q[-1], every.q[-1], atol=1e-9)
    np.testing.assert_allclose(some.v[-1], every.v[-1], atol=1e-8)
    assert every.result.crowded is None and str(some.result) == str(every.result)
    report = some.contacts(system)
    np.testing.assert_allclose(report.pressure, every.contacts(system).pressure, atol=1e-5)

    def height(most):
        return lambda v: jnp.sum(end(system, q, v, most, 40).q[-1][6::7])

    back, known = jax.grad(height(ENOUGH))(v), jax.grad(height(ALL))(v)
    along = jax.jvp(height(ENOUGH), (v,), (v,))[1]
    np.testing.assert_allclose(back, known, atol=1e-9)
    np.testing.assert_allclose(along, back @ v, atol=1e-9)


@pytest.mark.slow
def test_points_that_are_left_out_are_named(balls):
    """Guards the result of a run in which more points overlap than act."""
    system, q = balls
    run = end(system, q, jnp.zeros(54), FEW)
    assert not run.result.crowded.good
    assert f"more than {FEW} points" in str(run.result)


def test_a_number_of_points_is_positive(balls):
    """Guards the error for a method in which no contact point could act."""
    system, q = balls
    with pytest.raises(ValueError, match="most_points=0; give one or more"):
        end(system, q, jnp.zeros(54), 0)

"""Drag at a joint, which grows with the square of its rate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl

DRAG, INERTIA = 0.3, 0.2
WHEEL = dl.Body(
    name="wheel",
    joint=dl.Revolute(axis=(0.0, 0.0, 1.0), name="axle"),
    mass=1.0,
    inertia=np.eye(3) * INERTIA,
)
DRAGGED = dl.attach(dl.chain([WHEEL]), dl.JointDrag("axle", DRAG))


def test_a_wheel_slows_down_as_in_closed_form():
    """From v0 it turns at v0 / (1 + v0 t drag / J), by log(1 + v0 t drag / J) J / drag."""
    v0, dt, steps = -4.0, 0.005, 200
    run = dl.simulate(DRAGGED, jnp.zeros(1), jnp.array([v0]), dt=dt, steps=steps)
    slowing = 1 + abs(v0) * dt * steps * DRAG / INERTIA
    np.testing.assert_allclose(run.v[-1], v0 / slowing, rtol=1e-7)
    np.testing.assert_allclose(run.q[-1], np.sign(v0) * np.log(slowing) * INERTIA / DRAG, rtol=1e-7)


@pytest.mark.parametrize("v", [-1.5, 0.0, 0.5])
def test_derivatives(v):
    """By drag -v |v|, by the rate -2 drag |v|; at rest both are 0."""

    def effort(drag, v):
        system = dl.attach(dl.chain([WHEEL]), dl.JointDrag("axle", drag))
        return dl.passive_force(system, jnp.zeros(1), v[None])[0]

    for derivative in (jax.jacfwd, jax.grad):
        found = derivative(effort, (0, 1))(jnp.array(DRAG), jnp.array(v))
        np.testing.assert_allclose(found, (-v * abs(v), -2 * DRAG * abs(v)), atol=1e-15)


def test_negative_drag_is_refused():
    with pytest.raises(dl.ModelError, match=r"drag is -0.1 .*it must not be negative"):
        dl.attach(dl.chain([WHEEL]), dl.JointDrag("axle", -0.1))

"""A motor against the closed form of its run-up."""

import jax
import jax.numpy as jnp
import numpy as np

import difflie as dl


def test_run_up():
    """v = v_0 (1 - e^(-t / T)), no-load speed v_0 = u / (k n), T = n^2 J R / (n k)^2."""
    motor = dl.Motor(gear_ratio=50.0, torque_constant=0.02, resistance=2.0, rotor_inertia=4e-5)
    wheel = dl.Body(name="wheel", joint=dl.Continuous(axis=(0.0, 0.0, 1.0)), mass=1.0)
    system = dl.chain([wheel])
    voltage = jnp.array([12.0])

    def end(motor):
        driven = system.replace(armature=motor.armature[None])
        run = dl.simulate(
            driven,
            [0.0],
            [0.0],
            dt=2e-3,
            steps=100,
            method=dl.RKMK6(),
            control=lambda t, q, v: motor.effort(voltage, v),
            save_every=100,
        )
        return run.v[-1, 0]

    speed, constant = 12.0 / (50 * 0.02), 4e-5 * 2.0 / 0.02**2
    value, gradient = jax.value_and_grad(end)(motor)
    decay = np.exp(-0.2 / constant)
    np.testing.assert_allclose(value, speed * (1 - decay), rtol=1e-11)
    slope = -speed * decay * 0.2 / constant / 2.0  # by R, which the time constant is linear in
    np.testing.assert_allclose(gradient.resistance, slope, rtol=1e-9)
    stalled = motor.effort(voltage, jnp.zeros(1))
    np.testing.assert_allclose([stalled[0], motor.current(voltage, jnp.zeros(1))[0]], [6.0, 6.0])

"""A motor against the closed form of its run-up."""

import jax
import jax.numpy as jnp
import numpy as np

import difflie as dl


def test_run_up():
    """v = v_0 (1 - e^(-t / T)), no-load speed v_0 = u / (k n), T = n^2 J R / (n k)^2."""
    wheel = dl.Body(name="wheel", joint=dl.Continuous(axis=(0.0, 0.0, 1.0)), mass=1.0)
    bare = dl.chain([wheel])
    numbers = {"gear_ratio": 50.0, "torque_constant": 0.02, "rotor_inertia": 4e-5}
    given = {"dt": 2e-3, "steps": 100, "method": dl.RKMK6(), "save_every": 100}

    def end(resistance):
        motor = dl.VoltageMotor("wheel", resistance=resistance, **numbers)
        driven = dl.attach(bare.replace(armature=motor.armature[None]), motor)
        run = dl.simulate(driven, [0.0], [0.0], control=jnp.full((100, 1), 12.0), **given)
        return run.v[-1, 0]

    speed, constant = 12.0 / (50 * 0.02), 4e-5 * 2.0 / 0.02**2
    value, slope = jax.value_and_grad(end)(2.0)
    decay = np.exp(-0.2 / constant)
    np.testing.assert_allclose(value, speed * (1 - decay), rtol=1e-11)
    # By R, which the time constant is linear in.
    np.testing.assert_allclose(slope, -speed * decay * 0.2 / constant / 2.0, rtol=1e-9)
    motor, still = dl.VoltageMotor("wheel", resistance=2.0, **numbers), jnp.zeros(())
    stalled = motor.torque(jnp.asarray(12.0), still, still, None)[0]
    np.testing.assert_allclose([stalled, motor.current(jnp.asarray(12.0), still)], [6.0, 6.0])

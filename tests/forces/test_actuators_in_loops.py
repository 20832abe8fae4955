"""Actuators of machines with closed loops: what acts is the torque of the law."""

import jax.numpy as jnp
import numpy as np
import pytest
from loops import four_bar

import difflie as dl

KP, KD, WANTED = 30.0, 2.0, 0.4


@pytest.mark.slow
@pytest.mark.thorough("RKMK4")
@pytest.mark.parametrize("method", ["RKMK4", "GeneralizedAlpha"])
def test_a_servo_is_the_torque_of_its_law(method):
    """The same motion as that of the law written as a control, constraints kept."""
    system, q0 = four_bar()[:2]
    v0 = jnp.zeros(system.nv)
    crank = system.joint_names[0]
    servo = dl.attach(system, dl.PositionServo(crank, kp=KP, kd=KD, max_torque=50.0))

    def law(t, q, v):
        return jnp.zeros(system.nv).at[0].set(KP * (WANTED - q[0]) - KD * v[0])

    given = {"dt": 5e-3, "steps": 20, "method": method}
    one = dl.simulate(servo, q0, v0, control=lambda t, q, v: jnp.array([WANTED]), **given)
    two = dl.simulate(system, q0, v0, control=law, **given)
    assert one.result.ok and two.result.ok
    assert np.abs(np.asarray(one.v[-1])).max() > 1e-2
    np.testing.assert_allclose(one.q, two.q, atol=1e-12)
    np.testing.assert_allclose(one.v, two.v, atol=1e-11)
    assert np.abs(dl.constraint_residual(servo, one.q[-1])).max() < 1e-9
    wanted = [law(0.0, q, v) for q, v in zip(two.q, two.v, strict=True)]
    np.testing.assert_allclose(one.effort(servo), wanted, atol=1e-9)

"""One step as a function: the numbers of `simulate`, derivatives, errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pendulums import pendulum

import difflie as dl

PENDULUM = pendulum(damping=0.1)


def push(t, q, v):
    return jnp.sin(5 * t) - 0.1 * v


@pytest.mark.slow
def test_steps_are_those_of_simulate():
    """For methods without memory any number of steps, with functions and with samples."""
    forces = np.array([[0.3], [-2.0], [1.0]])
    for method in ("RKMK4", "SemiImplicitEuler"):
        for control in (push, forces):
            how = {"dt": 0.05, "steps": 3, "method": method, "control": control}
            run = dl.simulate(PENDULUM, [1.9], [0.4], **how)
            q, v = [1.9], [0.4]
            for k in range(3):
                u = push if control is push else forces[k]
                given = {"method": method, "control": u, "t": k * 0.05}
                q, v, solved = dl.step(PENDULUM, q, v, 0.05, **given)
                assert solved
            np.testing.assert_allclose((q, v), (run.q[-1], run.v[-1]), rtol=1e-14)


@pytest.mark.slow("EnergyMomentum")
@pytest.mark.parametrize("method", ["BDF2", "VariationalMidpoint", "EnergyMomentum", "Moreau"])
def test_the_first_step_of_every_family(method):
    run = dl.simulate(PENDULUM, [1.9], [0.4], dt=0.05, steps=1, method=method, control=push)
    q, v, solved = dl.step(PENDULUM, [1.9], [0.4], 0.05, method=method, control=push)
    assert solved
    np.testing.assert_allclose((q, v), (run.q[1], run.v[1]), rtol=1e-14)


def test_derivatives_in_both_modes_and_in_a_batch():
    """Of the control, the state and dt, against central differences."""

    def end(x):
        return jnp.concatenate(dl.step(PENDULUM, x[:1], x[1:2], x[2], control=x[3:])[:2])

    x = jnp.array([[1.9, 0.4, 0.05, 0.3], [0.0, 0.0, 0.05, 0.0]])
    both = jax.jit(jax.vmap(lambda x: (end(x), jax.jacfwd(end)(x), jax.jacrev(end)(x))))
    _, forward, reverse = both(x)
    np.testing.assert_allclose(reverse, forward, atol=1e-14)
    for k, e in enumerate(1e-5 * np.eye(4)):
        difference = (both(x + e)[0] - both(x - e)[0]) / 2e-5
        np.testing.assert_allclose(forward[..., k], difference, atol=1e-9)


def test_a_step_that_is_not_finite_is_not_made():
    """The state stays, as in `simulate`."""
    q, v, solved = dl.step(PENDULUM, [1.9], [0.4], 0.05, control=lambda t, q, v: jnp.inf * v)
    assert not solved
    np.testing.assert_array_equal((q, v), ([1.9], [0.4]))


def test_bad_input_is_one_clear_error():
    with pytest.raises(ValueError, match=r"step: dt is -0.1; it must be positive"):
        dl.step(PENDULUM, [0.0], [0.0], -0.1)
    with pytest.raises(ValueError, match=r"control"):
        dl.step(PENDULUM, [0.0], [0.0], 0.1, control=[1.0, 2.0])
    late = dl.attach(PENDULUM, dl.Drive(PENDULUM.joint_names[0], delay=0.1))
    with pytest.raises(ValueError, match=r"step: .* has a memory"):
        dl.step(late, [0.0], [0.0], 0.1, control=[1.0])

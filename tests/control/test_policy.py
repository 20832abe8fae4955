"""A network as a control, trained through `simulate`."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from pendulums import pendulum

import difflie as dl
from difflie import control as dc
from difflie import quantities as dq

PENDULUM = pendulum(damping=0.1)


def turn(system, q, v, u, t):
    return jnp.concatenate((jnp.sin(q), jnp.cos(q)))


@pytest.mark.slow
def test_a_few_steps_of_training_lower_a_cost():
    """Sampled, with quantities as its observation; the machine is not trained along."""
    network = eqx.nn.MLP(5, 1, width_size=8, depth=1, key=jax.random.key(0))
    seen = dc.observation(PENDULUM, turn, dq.Point("bob", (0.0, 0.0, -1.0)))
    policy = dc.Policy(network, seen)
    assert len(jax.tree.leaves(eqx.filter(policy, eqx.is_array))) == 4

    def cost(policy):
        control = dl.Sampled(policy, 20)
        run = dl.simulate(PENDULUM, [1.0], [0.0], dt=0.025, steps=40, control=control)
        return jnp.mean(run.q**2 + 0.1 * run.v**2)

    optimiser = optax.adam(0.05)
    memory = optimiser.init(eqx.filter(policy, eqx.is_array))
    costs = []
    for _ in range(10):
        value, slope = eqx.filter_value_and_grad(cost)(policy)
        updates, memory = optimiser.update(slope, memory)
        policy = eqx.apply_updates(policy, updates)
        costs.append(float(value))
    assert costs[-1] < 0.8 * costs[0] and np.all(np.diff(costs) < 0)


@pytest.mark.slow
def test_a_network_with_a_memory():
    """A recurrent one is a controller as it is; its weights have derivatives in both modes."""

    class Recurrent(eqx.Module):
        cell: eqx.nn.GRUCell
        gain: jax.Array

        def init(self, t, q, v):
            return jnp.zeros(3)

        def __call__(self, memory, t, q, v):
            memory = self.cell(jnp.concatenate((q, v)), memory)
            return self.gain @ memory, memory

    network = Recurrent(eqx.nn.GRUCell(2, 3, key=jax.random.key(1)), jnp.ones((1, 3)))

    def end(scale):
        scaled = jax.tree.map(lambda a: scale * a if eqx.is_inexact_array(a) else a, network)
        how = {"dt": 0.025, "steps": 20, "control": dl.Sampled(scaled, 20)}
        return dl.simulate(PENDULUM, [1.0], [0.0], **how).q[-1, 0]

    one = jnp.ones(())
    difference = (end(one + 1e-5) - end(one - 1e-5)) / 2e-5
    np.testing.assert_allclose(jax.jacfwd(end)(one), difference, rtol=1e-7)
    np.testing.assert_allclose(jax.grad(end)(one), difference, rtol=1e-7)


def test_observations():
    """All of the state by default; quantities one after the other; errors."""
    q, v, t = jnp.array([0.3]), jnp.array([2.0]), jnp.zeros(())
    np.testing.assert_array_equal(dc.Policy(lambda x: x)(t, q, v), [0.3, 2.0])
    seen = dc.observation(PENDULUM, turn, dq.Velocities())(t, q, v)
    np.testing.assert_allclose(seen, [np.sin(0.3), np.cos(0.3), 2.0])
    with pytest.raises(TypeError, match="the quantity is 3; give a function"):
        dc.observation(PENDULUM, 3)

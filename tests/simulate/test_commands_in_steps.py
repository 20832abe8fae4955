"""Feedback within a step: methods keep their orders, and no command is evaluated twice."""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import quantities as dq
from difflie.integrators import METHODS, EmbeddedMuntheKaas, Method

TIME = 0.4
# One sub-step for each step.
LOOSE = {"rtol": 0.999, "atol": 0.999, "substeps": 1}
STEPS = {1: (80, 160), 2: (40, 80), 3: (24, 48), 4: (16, 32), 5: (10, 20), 6: (8, 14), 8: (5, 9)}


@functools.cache
def arm() -> dl.System:
    """Two links on motors whose torque falls with the speed."""
    joint = functools.partial(dl.Revolute, axis=(0.0, 1.0, 0.0))
    link = functools.partial(dl.Body, mass=1.0, com=(0.0, 0.0, -0.5), inertia=0.1 * np.eye(3))
    upper = link(name="upper", joint=joint(name="a", damping=0.1))
    lower = link(name="lower", joint=joint(name="b"), position=(0.0, 0.0, -1.0))
    motors = [
        dl.VoltageMotor(j, torque_constant=1.0, resistance=2.0, max_voltage=500.0, max_current=1e3)
        for j in ("a", "b")
    ]
    return dl.attach(dl.chain([upper, lower]), *motors)


class Feedback(eqx.Module):
    """A law of time, configuration and velocity, with a gain to differentiate by."""

    gain: jax.Array

    def __call__(self, t, q, v):
        return self.gain * (jnp.sin(3 * t) - q) - 2 * v * jnp.cos(q)


def end(method: Method, steps: int, gain=10.0) -> jax.Array:
    run = dl.simulate(
        *(arm(), [0.9, -0.4], [0.5, 0.8]),
        dt=TIME / steps,
        steps=steps,
        save_every=steps,
        method=method,
        control=Feedback(jnp.asarray(gain)),
    )
    return jnp.concatenate((run.q[-1], run.v[-1]))


@functools.cache
def exact() -> np.ndarray:
    return np.asarray(end(dl.RKMK8(), 80))


# Of each kind of methods one; the others are slow tests.
QUICK = "RKMK4", "CF4", "CG3", "DormandPrince54", "ImplicitMidpoint", "GeneralizedAlpha", "BDF2"
EVERY = [
    pytest.param(m, marks=[pytest.mark.slow] * (m.name not in QUICK), id=m.name) for m in METHODS
]


@pytest.mark.slow("CG3", "CF4")
@pytest.mark.parametrize("method", EVERY)
def test_every_method_keeps_its_order_under_feedback(method):
    """Every stage has the command at its own state; held over a step it would leave order 1."""
    if isinstance(method, EmbeddedMuntheKaas):
        method = type(method)(**LOOSE)
    counts = STEPS[method.order]
    errors = [np.abs(end(method, n) - exact()).max() for n in counts]
    order = np.log(errors[0] / errors[1]) / np.log(counts[1] / counts[0])
    assert order > method.order - 0.35, errors


class Logged:
    """A law that keeps the states for which it is called while a program runs."""

    def __init__(self):
        self.calls = []

    def __call__(self, t, q, v):
        def law(t, q, v):
            self.calls.append((float(t), *map(float, q), *map(float, v)))
            return np.asarray(-2.0 * q - v)

        return jax.pure_callback(law, jax.ShapeDtypeStruct(v.shape, v.dtype), t, q, v)


DELAYED = [dl.Drive(j, delay=0.03) for j in ("a", "b")]
# How a motion is made, and how many commands its four steps need.
ONCE = {
    "RKMK4": ({"method": "RKMK4"}, 16),
    "CF4": ({"method": "CF4"}, 16),
    "SemiImplicitEuler": ({"method": "SemiImplicitEuler"}, 4),
    "adaptive": ({"method": dl.DormandPrince54(**LOOSE)}, 28),
    "sampled": ({"method": "RKMK4", "sampled": True}, 2),
    # One before the steps, for what keeps something from step to step.
    "reduction": ({"method": "RKMK4", "reductions": {"effort": dq.Peak(dq.Effort())}}, 17),
    "delayed": ({"method": "RKMK4", "actuators": DELAYED}, 5),
}


@pytest.mark.parametrize("case", ONCE)
def test_no_command_is_evaluated_twice_at_one_state(case):
    """The record, the actuators and the first stage share one evaluation in every step."""
    how, needed = ONCE[case]
    how, system, law = dict(how), arm(), Logged()
    if actuators := how.pop("actuators", ()):
        system = dl.attach(dataclasses.replace(system, actuators=()), *actuators)
    control = dl.Sampled(law, 25.0) if how.pop("sampled", False) else law
    run = dl.simulate(system, [0.9, -0.4], [0.5, 0.8], dt=0.02, steps=4, control=control, **how)
    jax.block_until_ready(run.q)
    jax.effects_barrier()
    assert bool(run.result.ok)
    assert len(law.calls) == needed


@pytest.mark.slow
def test_a_search_for_an_event_evaluates_the_command_once():
    """Every try of the last step begins at the same state."""
    law = Logged()
    how = {"dt": 0.02, "steps": 4, "method": "SemiImplicitEuler", "control": law}
    run = dl.simulate(arm(), [0.9, -0.4], [0.5, 0.8], until=lambda t, q, v: 0.93 - t - q[0], **how)
    jax.block_until_ready(run.q)
    jax.effects_barrier()
    assert run.result.ending.event == 0
    # The loop goes on to its full length, and stays where the event came.
    assert len(law.calls) == 4 + 1

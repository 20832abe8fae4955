"""What a user gives or returns becomes real numbers, and loses no part without a word."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
import difflie.quantities as dq


@pytest.fixture(scope="module")
def pendulum():
    joint = dl.Revolute(axis=(0.0, 1.0, 0.0))
    return dl.chain([dl.Body(name="a", joint=joint, mass=1.0, com=(0.0, 0.0, -0.3))])


def motion(system, **given):
    given = {"dt": 1e-2, "steps": 20, "method": "SemiImplicitEuler"} | given
    return dl.simulate(system, [0.5], [0.2], **given)


class Integral:
    def __init__(self, start):
        self.start = start

    def init(self, t, q, v):
        return self.start

    def __call__(self, memory, t, q, v):
        return -50.0 * memory * jnp.ones(1), memory + q[0] * 1e-2


class Counted(Integral):
    def __call__(self, memory, t, q, v):
        return memory * jnp.ones(1), memory + 1


@pytest.mark.parametrize("start", [0, False, np.int32(0), np.float32(0)])
def test_an_integral_may_start_from_a_whole_number(pendulum, start):
    right = motion(pendulum, control=dl.Sampled(Integral(0.0), 100.0)).q
    found = motion(pendulum, control=dl.Sampled(Integral(start), 100.0)).q
    np.testing.assert_array_equal(found, right)


def test_a_counter_stays_whole(pendulum):
    run = motion(pendulum, control=dl.Sampled(Counted(0), 100.0))
    np.testing.assert_array_equal(run.u[:5, 0], np.arange(5.0))


class Lag(dl.Actuator):
    start: float = eqx.field(static=True, default=0.0)

    def init(self, command, q, v):
        return self.start

    def torque(self, command, q, v, memory):
        return memory.kept, memory._replace(kept=memory.kept + 0.1 * (command - memory.kept))


def test_the_memory_of_an_actuator_may_start_from_a_whole_number(pendulum):
    runs = [
        motion(dl.attach(pendulum, Lag(start, joint="a")), control=lambda t, q, v: jnp.ones(1)).q
        for start in (0.0, 0)
    ]
    np.testing.assert_array_equal(*runs)


class Rotor(dl.JointForce):
    joint: str = eqx.field(static=True)

    def effort(self, x, v):
        return 1j * x


def test_complex_numbers_are_refused_by_name(pendulum):
    with pytest.raises(TypeError, match="'peak' returns is complex"):
        motion(pendulum, reductions={"peak": dq.Peak(lambda s, q, v, u, t: 1j * q[0])})
    with pytest.raises(TypeError, match=r"effort of .* is complex"):
        motion(dl.attach(pendulum, Rotor(joint="a")))


def test_whole_numbers_where_reals_are_meant_are_fine(pendulum):
    run = motion(pendulum, control=lambda t, q, v: jnp.ones(1, int))
    assert run.result.ok
    half = dq.Deviation(lambda s, q, v, u, t: jnp.ones(1, int), 0.5)
    np.testing.assert_array_equal(dq.along(half, pendulum, run)[0], 0.5)


def test_a_system_has_floating_point_numbers(pendulum):
    with pytest.raises(TypeError, match="no floating-point type"):
        pendulum.astype(int)

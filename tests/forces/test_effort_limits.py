"""Limits of what several actuators do together, and laws of actuators of one's own among them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.forces.actuators.acting import applied, torques
from difflie.system.kinematic_tree import Tree

CART = dl.chain([dl.Body(name="cart", joint=dl.Prismatic(axis=(1, 0, 0), max_effort=3.0), mass=2)])
PAIR = dl.attach(CART, *(dl.Drive("cart", name=name) for name in "ab"))


@pytest.mark.parametrize(
    ("names", "limits", "said"),
    [
        (("a", "a"), {}, "each once"),
        ((), {}, "name one or more"),
        (("a",), {"force_range": (1.0, -1.0)}, "force_range is .*; the least comes first"),
        (("a",), {"each": [[1.0, -1.0]]}, "each is .*; the least comes first"),
        (("a",), {"each": [1.0, -1.0]}, "each has shape"),
        (("c",), {}, "no actuator is named 'c'.*; attach it first"),
    ],
)
def test_invalid_shared_limits_are_refused(names, limits, said):
    """Names twice or none, limits the wrong way round: with what to do."""
    with pytest.raises(dl.ModelError, match=said):
        dl.attach(PAIR, dl.SharedLimit(names, **{"force_range": (-1.0, 1.0), **limits}))


@pytest.mark.parametrize(
    ("part", "name"),
    [
        (dl.GeneralActuator("cart", gain=(1.0, 0, 0), command_range=(1.0, -1.0)), "command_range"),
        (dl.GeneralActuator("cart", gain=(1.0, 0, 0), force_range=(1.0, -1.0)), "force_range"),
        (dl.JointTendon(dl.FixedTendon(["cart"], [1.0]), rest_lengths=(1.0, -1.0)), "rest_lengths"),
        (dl.JointTendon(dl.FixedTendon(["cart"], [1.0]), length_range=(1.0, -1.0)), "length_range"),
    ],
)
def test_ranges_the_wrong_way_round_are_refused(part, name):
    """Of commands, forces and lengths, which would silently be others."""
    with pytest.raises(dl.ModelError, match=f"{name} is .*; the least comes first"):
        dl.attach(CART, part)


@pytest.mark.parametrize("forces", [(0.0, 0.0), (0.5, 0.5), (1.0, -1.0), (2.0, 2.0), (3.0, -3.0)])
def test_shared_limits_at_and_within_their_bounds(forces):
    """The sum is kept, and derivatives are finite: at zero, inside, at a bound and beyond."""
    limit = dl.SharedLimit(("a", "b"), (-1.0, 1.0))
    kept = limit.kept(jnp.array(forces))
    np.testing.assert_allclose(kept.sum(), np.clip(sum(forces), -1, 1), atol=1e-15)
    assert np.all(np.isfinite(jax.jacrev(limit.kept)(jnp.array(forces))))


def test_efforts_within_an_effort_limit_leave_no_limit():
    """A run compares with the limits what acts, which is clipped, and not the sum before."""
    how = {"control": lambda t, q, v: jnp.array([4.0, 5.0]), "dt": 0.01, "steps": 2}
    free, kept = (
        dl.simulate(system, [0.0], [0.0], **how)
        for system in (PAIR, dl.attach(PAIR, dl.EffortLimit("cart")))
    )
    assert not free.result.within_limits and kept.result.within_limits
    np.testing.assert_allclose(kept.v[-1], [3 / 2 * 0.02], rtol=1e-6)


def test_torques_that_were_delivered_are_not_limited_again():
    """Beside an actuator with a memory, what quantities read is what acted in the step."""
    late, limit = dl.Drive("cart", name="c", delay=0.01), dl.SharedLimit(("b", "c"), (-10.0, 10.0))
    system = dl.attach(CART, dl.Drive("cart", name="b"), late, limit)
    acted = jnp.array([5.0, 5.0])
    again = torques(Tree.of(applied(system, acted)), jnp.array([10.0, 0.0]), *2 * [jnp.zeros(1)])
    np.testing.assert_allclose(again, acted)


def test_discrete_mechanics_meets_an_effort_limit():
    """A stiff drive at its limit: a variational method solves its steps, with the limited force."""
    stiff = dl.attach(CART, dl.PositionServo("cart", kp=1e4, kd=1e3), dl.EffortLimit("cart"))
    run = dl.simulate(
        *(stiff, [0.0], [0.0]),
        control=dl.ZeroOrderHold(jnp.full((20, 1), 10.0)),
        method="VariationalMidpoint",
        dt=0.01,
        steps=20,
    )
    assert run.result.ok
    np.testing.assert_allclose(run.v[-1], [3 / 2 * 0.2], rtol=1e-3)


class Geared(dl.Drive):
    """A drive of one's own, which is made from other numbers than its fields."""

    ratio: jax.Array = eqx.field(converter=dl.number())

    def __init__(self, joint, teeth, **place):
        super().__init__(joint, **place)
        self.ratio = jnp.asarray(float(teeth[0] / teeth[1]))

    def torque(self, command, q, v, memory):
        torque, memory = super().torque(command, q, v, memory)
        return self.ratio * torque, memory


class Named(Geared):
    """One more, whose law is that of the package."""

    torque = dl.Drive.torque


@pytest.mark.parametrize("kind", [Geared, Named])
def test_actuators_with_a_constructor_of_ones_own(kind):
    """Several of them act, as one does."""
    drives = [kind("cart", (2, 1), name=name) for name in "ab"]
    after = dl.step(dl.attach(CART, *drives), [0.0], [0.0], dt=1.0, control=[1.0, 2.0])
    np.testing.assert_allclose(after.v, [3.0 if kind is Geared else 1.5], rtol=1e-6)

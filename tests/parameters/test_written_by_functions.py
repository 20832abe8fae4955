"""Numbers that are no field of a machine: functions write them wherever they belong."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.parameters import Parameter, Parameters, positive


def hinge(name, **numbers):
    return dl.Body(
        name=f"{name} link",
        joint=dl.Revolute(name=name, axis=(0.0, 1.0, 0.0), damping=0.1, **numbers),
        mass=1.0,
        com=(0.0, 0.0, -0.2),
        inertia=0.01 * np.eye(3),
        position=(0.0, 0.0, -0.4),
    )


SYSTEM = dl.chain([hinge("first"), hinge("second", friction=0.3)], name="arm")


def wear(system, friction):
    """One number for unlike ones: half of it at the second joint, and in a damping."""
    return system.replace(
        friction=jnp.stack((friction, friction / 2)),
        damping=system.joints.damping.at[0].add(2 * friction),
    )


WEAR = Parameter("wear", of=wear, start=0.4, bounds=(0, None), unit="N m", prior=(0.5, 0.1))


def test_one_number_is_written_to_many_places():
    p = Parameters(SYSTEM, [WEAR, "*/damping"])
    assert p.names == ("first/damping", "second/damping", "wear")
    assert p.units[2] == "N m"
    np.testing.assert_allclose(p.initial, (0.1, 0.1, 0.4))
    np.testing.assert_allclose(p.values(p.start), p.initial, rtol=1e-12)
    np.testing.assert_allclose(p.x_at(p.initial), p.start, rtol=1e-12)
    np.testing.assert_allclose(p.limits[0], 0.0)
    np.testing.assert_allclose(p.residual(p.start), [-1.0])
    made = p.with_values(np.array((0.2, 0.3, 0.6)))
    np.testing.assert_allclose(made.joints.friction, (0.6, 0.3))
    np.testing.assert_allclose(made.joints.damping, (1.4, 0.3))
    # The system that was given has nothing written into it, so that nothing is written twice.
    np.testing.assert_allclose(p.system.joints.damping, SYSTEM.joints.damping)
    np.testing.assert_allclose(p.system_at(p.start).joints.damping, (0.9, 0.1))


def test_derivatives_and_batches_pass_through_functions():
    p = Parameters(SYSTEM, [WEAR])
    slope = jax.jacfwd(lambda x: p.system_at(x).joints.friction)(p.start)
    np.testing.assert_allclose(slope[:, 0], (0.4, 0.2), rtol=1e-12)
    grid = jnp.linspace(0.1, 1.0, 4)[:, None]
    found = jax.vmap(lambda v: p.with_values(v).joints.friction)(grid)
    np.testing.assert_allclose(found, grid * np.array((1, 0.5)))


class Shape(eqx.Module):
    """A function with numbers of its own."""

    ratios: jax.Array

    def __call__(self, system, value):
        return system.replace(friction=self.ratios * value[0], gravity=jnp.append(value[1:], -9.8))


def test_functions_with_numbers_and_values_with_a_shape():
    declared = Parameter("tilt", positive(), start=(0.3, 0.1, 0.2), of=Shape(jnp.array((1.0, 3.0))))
    p = Parameters(SYSTEM, [declared])
    assert p.names == ("tilt_x", "tilt_y", "tilt_z")
    made = p.system_at(p.start)
    np.testing.assert_allclose(made.joints.friction, (0.3, 0.9))
    np.testing.assert_allclose(made.gravity, (0.1, 0.2, -9.8))
    assert p.vector({"tilt_x": 1.0})[0] == 1


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (Parameter("wear", of=wear), ["arm: 'wear'", "give it one name, and a `start`"]),
        (Parameter("wear", of=wear, start=1.0, tied=True), ["leave out `tied`"]),
        (Parameter("wear", of=wear, start=(1.0, 2.0)), ["wear(system, value) fails", "correct"]),
        (Parameter("wear", of=lambda s, x: x, start=1.0), ["must return the system", "returns"]),
        (Parameter("wear", of=lambda s, x: s.astype("float32"), start=1.0), ["keep float64"]),
        (Parameter("wear", of=wear, start=np.nan), ["start must be finite"]),
        (Parameter("wear", of=wear, start=1.0, prior=(1.0, 0.0)), ["deviation is 0"]),
        (Parameter("*/damping", unit="N m s"), ["unit of its field"]),
    ],
)
def test_functions_that_cannot_be(declared, words):
    with pytest.raises(ValueError, match="arm: ") as error:
        Parameters(SYSTEM, [declared])
    for word in words:
        assert word in str(error.value)


def test_what_no_system_tells():
    p = Parameters(SYSTEM, [WEAR])
    with pytest.raises(ValueError, match="'wear' is written by a function, so that no system"):
        p.x_of(SYSTEM)
    with pytest.raises(ValueError, match=r"wear is -1.*at least 0 N m"):
        p.with_values(np.array([-1.0]))
    with pytest.raises(ValueError, match="two numbers are named 'wear'"):
        Parameters(SYSTEM, [WEAR, WEAR])

"""Numbers named by path where nothing is identified: sweeps of values, and gradients of designs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import quantities as dq

STATE = jnp.array([0.3, -0.4, 0.5]), jnp.array([0.2, 0.1, -0.3])


def arm():
    def link(k, **fields):
        joint = dl.Revolute(name=f"joint{k}", axis=((0, 0, 1), (0, 1, 0), (1, 1, 0))[k])
        return dl.Body(
            name=f"link{k}",
            joint=joint,
            position=(0, 0, 0.3) if k else (0, 0, 0),
            com=(0.05, 0.0, 0.15),
            **{"mass": 1.0 + k, "inertia": np.diag([0.02, 0.03, 0.04]), **fields},
        )

    hand = {"joint": dl.Fixed(name="grip"), "position": (0, 0, 0.2), "com": (0, 0, 0.1)}
    return dl.chain([link(0), link(1), link(2), dl.Body(name="payload", mass=0.0, **hand)])


ARM = arm()


def swing(system):
    """How far a free swing takes the hand (6,), and its energy () at the end."""
    run = dl.simulate(system, *STATE, dt=5e-3, steps=20, save_every=20)
    pose = dq.along(dq.Pose(dl.Frame("payload")), system, run)[-1]
    kinetic, potential = run.energy(system)
    return jnp.append(pose, (kinetic + potential)[-1])


@pytest.mark.slow
def test_a_sweep_is_a_loop_over_machines():
    """Also from a mass of zero, which has no free number, but is a value like others."""
    parameters = dl.Parameters(ARM, ["payload/mass", "joint1/damping"])
    assert parameters.names == ("payload/mass", "joint1/damping")
    assert parameters.units == ("kg", "N m s/rad")
    grid = jnp.stack((jnp.linspace(0.0, 3.0, 5), jnp.linspace(0.4, 0.0, 5)), axis=1)
    swept = jax.jit(jax.vmap(lambda values: swing(parameters.with_values(values))))(grid)
    alone = jax.jit(swing)
    for row, (mass, damping) in zip(swept, grid, strict=True):
        machine = ARM.replace(
            mass=ARM.bodies.mass.at[3].set(mass), damping=ARM.joints.damping.at[1].set(damping)
        )
        np.testing.assert_allclose(row, alone(machine), atol=1e-12)
    assert np.ptp(np.asarray(swept), axis=0).min() > 1e-3


@pytest.mark.slow
def test_the_gradient_of_a_design():
    """Of a motion by the masses, forward and reverse, by values and by free numbers."""
    parameters = dl.Parameters(ARM, ["link*/mass"])
    weights = jnp.cos(jnp.arange(7.0))
    costs = [
        lambda values: weights @ swing(parameters.with_values(values)),
        lambda x: weights @ swing(parameters.system_at(x)),
    ]
    x = parameters.start
    for f, at in zip(costs, (parameters.initial, x), strict=True):
        forward, reverse = jax.jit(lambda at, f=f: (jax.jacfwd(f)(at), jax.grad(f)(at)))(at)
        np.testing.assert_allclose(forward, reverse, rtol=1e-10, atol=1e-12)
        h = 1e-5
        ends = jax.jit(jax.vmap(f))(at + h * jnp.concatenate((jnp.eye(3), -jnp.eye(3))))
        differences = (ends[:3] - ends[3:]) / (2 * h)
        np.testing.assert_allclose(forward, differences, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(parameters.values(x), parameters.initial, rtol=1e-14)


def test_values_by_name():
    parameters = dl.Parameters(ARM, ["link*/mass", "payload/inertial", "joint0/axis", "gravity"])
    values = parameters.vector({"link1/mass": 5.0, "payload/com_z": 0.3, "payload/I_yy": 1.0})
    machine = parameters.with_values(values)
    assert machine.bodies.mass[1] == 5.0 and machine.bodies.com[3, 2] == 0.3
    np.testing.assert_array_equal(machine.bodies.inertia[3], np.diag([0.0, 1.0, 0.0]))
    np.testing.assert_allclose(machine.joints.axis, ARM.joints.axis, atol=1e-15)
    np.testing.assert_array_equal(parameters.values_of(machine), values)
    slope = jax.jacfwd(lambda m: parameters.vector({"link1/mass": m}))(2.0)
    np.testing.assert_array_equal(slope, np.eye(len(values))[1])
    single = dl.Parameters(ARM.astype("float32"), ["link*/mass"])
    values = single.vector({"link0/mass": 2.5})
    assert values.dtype == single.initial.dtype == "float32"
    assert single.with_values(values).bodies.mass.dtype == "float32"


def test_entries_of_an_inertia_have_paths():
    """By the names of identified ones, both mirror images at once, with gradients; none twice."""
    parameters = dl.Parameters(ARM, ["link1/I_xy", "link2/I_zz"])
    assert parameters.names == ("link1/I_xy", "link2/I_zz")
    assert parameters.units == ("kg m^2", "kg m^2")
    assert parameters.names[0] in dl.Parameters(ARM, ["link1/inertia"]).names
    np.testing.assert_array_equal(parameters.initial, [0.0, 0.04])
    made = parameters.with_values([0.001, 0.05])
    expected = [[0.02, 0.001, 0.0], [0.001, 0.03, 0.0], [0.0, 0.0, 0.04]]
    np.testing.assert_allclose(made.bodies.inertia[1], expected, rtol=1e-15)
    slope = jax.grad(lambda x: parameters.with_values(x).bodies.inertia[1].sum())(jnp.zeros(2))
    np.testing.assert_array_equal(slope, [2.0, 0.0])
    with pytest.raises(ValueError, match="'link1/inertia' shares a part with 'link1/I_xy'"):
        dl.Parameters(ARM, ["link1/inertia", "link1/I_xy"])
    with pytest.raises(ValueError, match="link2/I_zz is -1; it must be at least 0 kg m"):
        parameters.with_values([0.0, -1.0])
    everything = dl.Parameters(ARM, ["link1/*"])
    assert not [name for name in everything.names if everything.names.count(name) > 1]


def test_bounds_belong_to_the_values():
    bounded = dl.Parameter("link1/mass", bounds=(1.0, 4.0))
    parameters = dl.Parameters(ARM, ["link0/mass", bounded, dl.Parameter("payload/com")])
    assert parameters.with_values([0.0, 4.0, 0, 0, 0]).bodies.mass[1] == 4.0
    for values, words in (
        ([-0.5, 2.0, 0, 0, 0], "link0/mass is -0.5; it must be at least 0 kg"),
        ([1.0, 4.5, 0, 0, 0], "link1/mass is 4.5; it must be between 1 and 4 kg"),
    ):
        with pytest.raises(ValueError, match=words):
            parameters.with_values(values)
    single = dl.Parameters(ARM.astype("float32"), [dl.Parameter("link0/mass", bounds=(0.1, 0.7))])
    for bound in (0.1, 0.7):
        single.with_values([bound])


class Brake(dl.JointForce):
    joint: str = eqx.field(static=True)
    damping: jax.Array = eqx.field(converter=dl.number(unit="N m s/rad"))

    def effort(self, x, v):
        return -self.damping * v


def test_names_that_are_none_and_names_of_two():
    parameters = dl.Parameters(ARM, ["link*/mass"])
    with pytest.raises(ValueError, match="no parameter is named 'link1/mas'; did you mean 'link1/"):
        parameters.vector({"link1/mas": 1.0})
    with pytest.raises(ValueError, match=r"link1/mass has shape \(2,\), needed is \(\)"):
        parameters.vector({"link1/mass": [1.0, 2.0]})
    braked = dl.attach(ARM, Brake("joint1", 0.1))
    with pytest.raises(ValueError, match="two numbers are named 'joint1/damping'; give the field"):
        dl.Parameters(braked, ["joint*/damping"])

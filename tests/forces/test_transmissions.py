"""Transmissions that are built by hand: gears, tendons, kinds of one's own, and their mistakes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import identify as di
from difflie.spatial import Force

ARM = dl.chain(
    [
        dl.Body(
            name=name,
            joint=dl.Revolute(axis=(0, 1, 0), name=joint, damping=0.1),
            position=(0.3 if name == "fore" else 0.0, 0, 0),
            mass=1.0,
            com=(0.15, 0, 0.02),
            inertia=0.01 * np.eye(3),
        )
        for name, joint in (("upper", "shoulder"), ("fore", "elbow"))
    ]
)
Q, V = jnp.array([0.4, -0.7]), jnp.array([0.3, 0.5])


@pytest.mark.slow
def test_a_gear_is_a_scaled_drive():
    """In a motion, and for fits of torques, whose gain is that of the gear, too."""
    scaled = dl.attach(ARM, dl.Drive("shoulder", torque_scale=20.0), dl.Drive("elbow"))
    geared = dl.JointTransmission("shoulder", gear=20.0)
    system = dl.attach(ARM, dl.Drive(transmission=geared), dl.Drive("elbow"))
    assert system.actuator_names == scaled.actuator_names == ("shoulder", "elbow")
    ends = [dl.step(s, Q, V, dt=0.01, control=[0.3, 0.2]).q for s in (system, scaled)]
    np.testing.assert_allclose(*ends, rtol=1e-13)
    rng = np.random.default_rng(0)
    q, v, a, tau = rng.normal(size=(4, 5, 2))
    recording = di.Recording("log", 0.01 * np.arange(5), q=q, v=v, a=a, tau=tau)
    residuals = [
        di.InverseDynamics.of(s, [recording]).residual(s, jnp.zeros(0)) for s in (system, scaled)
    ]
    np.testing.assert_allclose(*residuals, rtol=1e-12)


class Distance(dl.PointTransmission):
    """The square of the distance between two points, whose moment arm is twice the vector."""

    ends: dl.Path

    @property
    def path(self):
        return self.ends

    def lever(self, frames):
        x = frames.translation.to_array()
        step = 2 * (x[1] - x[0])
        wrench = jnp.stack((-step, step))
        return jnp.sum(step * step) / 4, Force.from_array(
            jnp.concatenate((jnp.zeros((2, 3)), wrench), axis=1)
        )


@pytest.mark.slow
def test_a_kind_of_ones_own():
    """Its force is that of its length's gradient."""
    ends = dl.as_path([(None, (0.1, 0.0, 0.5)), ("fore", (0.2, 0.0, 0.0))])
    system = dl.attach(ARM, dl.Drive(transmission=Distance(ends)))

    def length(q):
        point = dl.body_poses(system, q)[1] @ jnp.array([0.2, 0.0, 0.0, 1.0])
        return jnp.sum((point[:3] - jnp.array([0.1, 0.0, 0.5])) ** 2)

    effort = dl.quantities.Effort()(system, Q, V, jnp.array([3.0]), 0.0)
    np.testing.assert_allclose(effort, 3 * jax.grad(length)(Q), rtol=1e-12)


@pytest.mark.slow
def test_forces_of_tendons_are_in_sensors_and_absolute_machines():
    """A tendon pulls at points: a joint's wrench has it, and so has the machine of free bodies."""
    along = dl.SpatialTendon([(None, (0.1, 0.0, 0.5)), ("fore", (0.2, 0.0, 0.0))])
    pulled = dl.attach(ARM, dl.Drive(transmission=along, name="cable"))
    spring = dl.attach(ARM, dl.Tendon(along, stiffness=5.0, rest_lengths=(0.1, 0.1)))
    u = -5 * (length_of(along, Q) - 0.1)[None]
    sensor = dl.quantities.JointWrench("shoulder")
    a = dl.forward_dynamics(spring, Q, V, dl.passive_force(spring, Q, V))
    wrenches = [sensor.at(s, Q, V, a, given, 0.0) for s, given in ((pulled, u), (spring, None))]
    np.testing.assert_allclose(*wrenches, rtol=1e-10, atol=1e-12)
    machine = dl.absolute(pulled, without=["damping"])
    assert machine.actuator_names == ("cable",)
    fixed = dl.attach(ARM, dl.JointTendon(dl.FixedTendon(["elbow"], [1.0])))
    with pytest.raises(dl.ModelError, match="stands at a joint"):
        dl.absolute(fixed, without=["damping"])


def length_of(tendon, q):
    """The length of a tendon from the world to the fore arm."""
    a, b = tendon.points.points
    return jnp.linalg.norm((dl.body_poses(ARM, q)[1] @ jnp.append(b, 1.0))[:3] - a)


@pytest.mark.parametrize(
    ("transmission", "words"),
    [
        (dl.JointTransmission("elbw"), "no joint that moves by itself is named 'elbw'.*elbow"),
        (dl.JointTransmission("elbow", [1.0, 2.0, 3.0]), "its gear has 3 numbers"),
        (dl.FixedTendon(["elbow"], [1.0, 2.0]), "one number for each of its 1 joints"),
        (dl.FixedTendon(["wrist"], [1.0]), "no joint that moves by itself is named 'wrist'"),
        (dl.SpatialTendon([("fore", (0, 0, 0))]), "its path has 1 points"),
        (dl.SpatialTendon([("for", (0, 0, 0)), (None, (0, 0, 1))]), "no body is named 'for'"),
        (
            dl.SpatialTendon([("fore", (0, 0, 0)), (None, (0, 0, 1))], [dl.Wrap(1, "fore", 0.1)]),
            "no segment begins with point 1",
        ),
        (dl.SliderCrank([("fore", (0, 0, 0))], dl.Frame(), -1.0), "rod is -1.0 m"),
        (
            dl.SiteTransmission("fore", np.ones(6), reference=dl.Frame("upper")),
            "both bodies branch off from 'upper'",
        ),
    ],
)
def test_mistakes(transmission, words):
    """One error that names the fault and the fix."""
    with pytest.raises(dl.ModelError, match=words):
        dl.attach(ARM, dl.Drive(transmission=transmission))


def test_a_place_is_given_once():
    """A joint and a transmission are two places."""
    both = dl.Drive("elbow", transmission=dl.JointTransmission("shoulder"))
    with pytest.raises(dl.ModelError, match="a joint and a transmission; give one"):
        dl.attach(ARM, both)
    assert dataclasses.replace(both, transmission=None).label == "elbow"

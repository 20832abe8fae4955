"""What arrives at a joint behind its drive."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from methods import three_methods

import difflie as dl
from difflie import identify as di
from difflie.forces.actuators.acting import delivered
from difflie.system.kinematic_tree import Tree


def chain():
    y = {"joint": dl.Revolute(axis=(0.0, 1.0, 0.0)), "mass": 1.0, "com": (0, 0, -0.2)}
    inertia = np.diag((0.02, 0.02, 0.002))
    bodies = [
        dl.Body(name="upper", inertia=inertia, **y),
        dl.Body(name="lower", inertia=inertia, position=(0, 0, -0.4), **y),
    ]
    return dl.chain(bodies)


NUMBERS = {"torque_scale": 0.9, "torque_bias": 0.1, "load_friction": 0.3, "slip_velocity": 0.05}
JOINT = chain().joint_names[1]
OTHER = chain().joint_names[0]
DRIVEN = dl.attach(chain(), dl.Drive(OTHER), dl.Drive(JOINT, **NUMBERS))


def arriving(command, v):
    tau = 0.9 * command + 0.1
    return tau - 0.3 * np.abs(tau) * np.tanh(v / 0.05)


def test_the_effort_at_its_joint_only():
    q, command, v = jnp.zeros(2), jnp.asarray([2.0, -1.0]), jnp.asarray([0.3, 0.02])
    found = delivered(Tree.of(DRIVEN), command, q, v)
    np.testing.assert_allclose(found, (2.0, arriving(-1.0, 0.02)), rtol=1e-15)
    given = Tree.of(DRIVEN), command, q, v
    assert delivered(*jax.tree.map(lambda a: a.astype(jnp.float32), given)).dtype == jnp.float32


def test_limits_are_those_of_what_arrives():
    """A gain is seen, and a loss is not taken for the command."""
    limited = chain().replace(max_effort=jnp.asarray([1.0, 1.0]))
    for scale, seen in ((2.0, True), (0.5, False)):
        drive = dl.Drive(JOINT, torque_scale=scale)
        control = jnp.broadcast_to(jnp.asarray([0.9, 0.9 if seen else 1.1]), (3, 2))
        driven = dl.attach(limited, dl.Drive(OTHER), drive)
        run = dl.simulate(driven, [0.1, 0], [0, 0], steps=3, control=control)
        assert bool(run.result.within_limits) != seen


@pytest.mark.parametrize("command", [0.0, -1.0 / 9.0, 1.0])
@pytest.mark.parametrize("v", [0.0, 0.1])
def test_derivatives_at_rest_and_without_load(command, v):
    def effort(scale, command, v):
        drive = dl.Drive(JOINT, **{**NUMBERS, "torque_scale": scale})
        return drive.torque(command, v, v, None)[0]

    at = tuple(jnp.asarray(x) for x in (0.9, command, v))
    ahead, back = (f(effort, argnums=(0, 1, 2))(*at) for f in (jax.jacfwd, jax.grad))
    np.testing.assert_allclose(ahead, back, rtol=1e-14)
    assert np.isfinite(ahead).all()


@three_methods
def test_a_motion_with_a_drive_is_that_with_what_arrives(method):
    def command(t, q, v):
        return jnp.stack((jnp.sin(5 * t), 2 * jnp.cos(3 * t)))

    def arrives(t, q, v):
        tau = 0.9 * command(t, q, v)[1] + 0.1
        felt = tau - 0.3 * jnp.abs(tau) * jnp.tanh(v[1] / 0.05)
        return jnp.stack((command(t, q, v)[0], felt))

    start = jnp.asarray([0.3, -0.2]), jnp.asarray([0.0, 0.4])
    a = dl.simulate(DRIVEN, *start, dt=2e-3, steps=50, control=command, method=method)
    b = dl.simulate(chain(), *start, dt=2e-3, steps=50, control=arrives, method=method)
    np.testing.assert_allclose(a.q, b.q, atol=1e-12)
    np.testing.assert_allclose(a.v, b.v, atol=1e-11)


def test_a_bias_acts_without_control():
    still = jnp.zeros(2)
    run = dl.simulate(DRIVEN, still, still, dt=1e-3, steps=10)
    assert abs(float(run.v[-1, 1])) > 1e-3


@pytest.mark.slow
def test_its_numbers_are_found_again():
    t = 0.01 * np.arange(400)[:, None]
    w = np.array((3.0, 4.3))
    q, v, a = np.sin(w * t), w * np.cos(w * t), -w * w * np.sin(w * t)
    needed = np.array([dl.inverse_dynamics(chain(), *x) for x in zip(q, v, a, strict=True)])
    # Inverted: tau - 0.3 |tau| s is tau (1 - 0.3 s) where tau is positive, tau (1 + 0.3 s) else.
    s = 0.3 * np.tanh(v[:, 1] / 0.05)
    tau = np.where(needed[:, 1] > 0, needed[:, 1] / (1 - s), needed[:, 1] / (1 + s))
    command = np.stack((needed[:, 0], (tau - 0.1) / 0.9), 1)
    data = di.Recording("sines", t[:, 0], q, v, a, command)
    rough = dl.Drive(JOINT, load_friction=0.05, slip_velocity=0.05)
    rough = dl.attach(chain(), dl.Drive(OTHER), rough)
    leaves = "torque_scale", "torque_bias", "load_friction"
    free = dl.Parameters(rough, [f"{JOINT}/{leaf}" for leaf in leaves])
    found = di.fit(free, di.InverseDynamics.of(rough, [data]))
    assert found.converged
    np.testing.assert_allclose(found.values, (0.9, 0.1, 0.3), rtol=1e-7)


@pytest.mark.parametrize(
    ("joint", "numbers", "said"),
    [
        ("elbow", {}, "no joint that moves by itself is named 'elbow'"),
        (JOINT, {"load_friction": -0.1}, "load_friction is -0.1; it must not be negative"),
        (JOINT, {"torque_bias": np.nan}, "torque_bias is nan; it must be finite"),
        (JOINT, {"slip_velocity": 0.0}, "slip_velocity is 0.0 rad/s or m/s; it must be positive"),
        (JOINT, {"torque_scale": [1.0, 2.0]}, "torque_scale has shape"),
    ],
)
def test_what_is_no_drive_is_named(joint, numbers, said):
    with pytest.raises(dl.ModelError, match=said):
        dl.attach(chain(), dl.Drive(joint, **numbers))


def test_one_drive_a_joint():
    with pytest.raises(dl.ModelError, match="there already; give this one a name of its own"):
        dl.attach(DRIVEN, dl.Drive(JOINT))
    ball = dl.chain([dl.Body(name="ball", joint=dl.Spherical(), mass=1.0, inertia=np.eye(3))])
    with pytest.raises(dl.ModelError, match="several degrees of freedom"):
        dl.attach(ball, dl.Drive(ball.joint_names[0]))

"""Operational-space dynamics against its definition and Pinocchio's Jacobians and inertias."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from robots import ROBOTS, pin, read
from trees import error, random_states

import difflie as dl

FRAME = dict(position=(0.1, -0.05, 0.2), rotation=(0.4, 0.3, -0.2))


@pytest.fixture(
    scope="module",
    params=[
        ("panda_description/urdf/panda.urdf", "fixed", "panda_hand"),
        ("anymal_b_simple_description/robots/anymal.urdf", "free", "LF_FOOT"),
    ],
    ids=["arm", "quadruped"],
)
def robot(request):
    path, base, body = request.param
    twin = read(ROBOTS / path, base)
    q, v, tau, _, _ = (x[0] for x in random_states(twin.system, 1, seed=4))
    return twin, body, q, v, tau


@pytest.mark.slow("quadruped")
def test_against_pinocchio(robot):
    """Lambda, mu and p of a frame turned and shifted on a body, by dense matrices."""
    twin, body, q, v, _ = robot
    system, model, data = twin.system, twin.model, twin.data
    found = dl.operational_space(system, q, v, dl.Frame(body, **FRAME))
    g, x = twin.rates(q), twin.coordinates(q)
    parent = model.frames[model.getFrameId(body, pin.BODY)]
    inner = pin.SE3(pin.exp3(np.array(FRAME["rotation"])), np.array(FRAME["position"]))
    place = parent.placement * inner
    number = model.addFrame(pin.Frame("tool", parent.parentJoint, place, pin.FrameType.OP_FRAME))
    data = model.createData()
    pin.computeJointJacobiansTimeVariation(model, data, x, g @ v)
    pin.updateFramePlacements(model, data)
    J = np.roll(pin.getFrameJacobian(model, data, number, pin.LOCAL), 3, axis=0) @ g
    rate = np.roll(pin.getFrameJacobianTimeVariation(model, data, number, pin.LOCAL), 3, axis=0)
    mass = np.asarray(dl.mass_matrix(system, q))
    gravity = g.T @ pin.computeGeneralizedGravity(model, data, x)
    coriolis = g.T @ pin.nonLinearEffects(model, data, x, g @ v) - gravity
    inverse = J @ np.linalg.solve(mass, J.T)
    inertia = np.linalg.inv(inverse)
    bias = inertia @ (J @ np.linalg.solve(mass, coriolis) - rate @ g @ v)
    weight = inertia @ J @ np.linalg.solve(mass, gravity)
    size = np.linalg.cond(inertia)
    for ours, theirs in zip(found, (inertia, bias, weight, inverse), strict=True):
        assert error([ours], [theirs]) < 1e-14 * size


@pytest.mark.slow
def test_a_wrench_at_the_frame_accelerates_it(robot):
    """F = Lambda dV/dt + mu + p, with the acceleration that tau = J^T F gives."""
    twin, body, q, v, _ = robot
    frame = dl.Frame(body, **FRAME)
    wrench = jnp.array([1.0, -2.0, 0.5, 3.0, 4.0, -5.0])

    def twist(time, q, v, a):
        """Of the frame, in its own axes, at a time near zero of the motion with a."""
        here = dl.integrate(twin.system, q, time * v)
        J = dl.body_jacobian(twin.system, here, body)
        pose = dl.se3.inverse(_pose(frame))
        return dl.se3.Ad(pose) @ J @ (v + time * a)

    J = jax.jacfwd(lambda v: twist(0.0, q, v, jnp.zeros_like(v)))(v)
    a = dl.forward_dynamics(twin.system, q, v, J.T @ wrench)
    _, acceleration = jax.jvp(lambda t: twist(t, q, v, a), (0.0,), (1.0,))
    inertia, bias, gravity, inverse = dl.operational_space(twin.system, q, v, frame)
    assert error([inertia @ acceleration + bias + gravity], [wrench]) < 1e-9
    np.testing.assert_allclose(inertia @ inverse, np.eye(6), atol=1e-9)


def _pose(frame):
    turn = dl.so3.exp(frame.rotation)
    return jnp.eye(4).at[:3, :3].set(turn).at[:3, 3].set(frame.position)


@pytest.mark.slow("quadruped")
def test_a_body_by_its_name_and_what_is_refused(robot):
    """A body stands for its own frame; the world does not move."""
    twin, body, q, v, _ = robot
    by_name = dl.operational_space(twin.system, q, v, body)
    by_frame = dl.operational_space(twin.system, q, v, dl.Frame(body))
    np.testing.assert_array_equal(by_name.inertia, by_frame.inertia)
    with pytest.raises(dl.ModelError, match="the world does not move; give a frame on a body"):
        dl.operational_space(twin.system, q, v, None)
    with pytest.raises(ValueError, match=f"did you mean {body!r}"):
        dl.operational_space(twin.system, q, v, body + "x")


@pytest.mark.slow
def test_gradients_and_few_degrees_of_freedom():
    """Where Lambda does not exist its inverse is right, with derivatives in both modes."""
    hinge = dl.Body(name="bar", joint=dl.Revolute(), mass=2.0, com=(0.5, 0, 0), inertia=np.eye(3))
    system = dl.chain([hinge])

    def inverse(mass, q):
        space = dl.operational_space(system.replace(mass=mass), q, jnp.ones(1), "bar")
        return space.inverse_inertia[2, 2]

    given = jnp.array([2.0]), jnp.array([0.3])
    np.testing.assert_allclose(inverse(*given), 1 / 1.5)
    for transform in (jax.jacfwd, jax.jacrev):
        slope, still = transform(inverse, (0, 1))(*given)
        np.testing.assert_allclose(slope, [-0.25 / 1.5**2], rtol=1e-12)
        np.testing.assert_allclose(still, 0.0, atol=1e-15)

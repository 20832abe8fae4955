"""Jacobians and their rates against poses, forward-mode derivatives and Pinocchio."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from robots import ROBOTS, pin, read
from trees import error, random_states, zoo

import difflie as dl

KINDS = ("body", "spatial", "geometric")
JACOBIANS = (dl.body_jacobian, dl.spatial_jacobian, dl.geometric_jacobian)
RATES = (dl.body_jacobian_rate, dl.spatial_jacobian_rate, dl.geometric_jacobian_rate)


@pytest.mark.slow
def test_twists_and_rates():
    system, chosen = dl.tree(zoo()), ("ball", "sled")
    q, v, _, _, _ = random_states(system, 2, seed=2)

    @jax.jit
    @jax.vmap
    def ours(q, v):
        def at(time):
            here = dl.integrate(system, q, time * v)
            jacobians = jnp.array([[j(system, here, b) for j in JACOBIANS] for b in chosen])
            index = np.array([system.body_names.index(b) for b in chosen])
            return dl.body_poses(system, here)[index], jacobians

        (poses, jacobians), (motions, changes) = jax.jvp(at, (0.0,), (1.0,))
        rates = jnp.array([[r(system, q, v, b) for r in RATES] for b in chosen])

        @jax.vmap
        def of_all(b):
            return jnp.array([j(system, q, b) for j in JACOBIANS])

        return poses, motions, jacobians, changes, rates, of_all(np.arange(len(system.body_names)))

    poses, motions, jacobians, changes, rates, of_all = map(np.asarray, ours(q, v))
    assert error(rates, changes) < 1e-12
    index = [system.body_names.index(b) for b in chosen]
    np.testing.assert_allclose(of_all[:, index], jacobians, atol=1e-14)
    assert not of_all[:, system.body_names.index("wall")].any()
    twists = np.einsum("sbkij,sj->sbki", jacobians, v)
    for sample in range(2):
        for b in range(len(chosen)):
            pose, motion = poses[sample, b], motions[sample, b]
            body, spatial, geometric = twists[sample, b]
            expected = np.linalg.solve(pose, motion)
            np.testing.assert_allclose(dl.se3.hat(jnp.asarray(body)), expected, atol=1e-12)
            np.testing.assert_allclose(
                dl.se3.hat(jnp.asarray(spatial)), motion @ np.linalg.inv(pose), atol=1e-11
            )
            np.testing.assert_allclose(geometric[:3], spatial[:3], atol=1e-12)
            np.testing.assert_allclose(geometric[3:], motion[:3, 3], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "base", "bodies"),
    [
        ("panda_description/urdf/panda.urdf", "fixed", ("panda_hand", "panda_leftfinger")),
        ("ur_description/urdf/ur5_robot.urdf", "free", ("wrist_3_link", "base_link")),
        ("solo_description/robots/solo12.urdf", "free", ("FL_FOOT", "HR_UPPER_LEG")),
    ],
)
def test_robots(path, base, bodies):
    twin = read(ROBOTS / path, base)
    system, model, data = twin.system, twin.model, twin.data
    q, v, _, _, _ = (x[0] for x in random_states(system, 1, seed=4))

    @jax.jit
    def ours(q, v):
        return (
            jnp.array([[j(system, q, b) for j in JACOBIANS] for b in bodies]),
            jnp.array([[r(system, q, v, b) for r in RATES] for b in bodies]),
        )

    jacobians, rates = ours(q, v)
    g, x = twin.rates(q), twin.coordinates(q)
    pin.computeJointJacobiansTimeVariation(model, data, x, g @ v)
    pin.updateFramePlacements(model, data)
    frames = (pin.LOCAL, pin.WORLD, pin.LOCAL_WORLD_ALIGNED)
    for kind, reference in enumerate(frames):
        ids = [model.getFrameId(name, pin.BODY) for name in bodies]
        expected = [pin.getFrameJacobian(model, data, i, reference) for i in ids]
        changes = [pin.getFrameJacobianTimeVariation(model, data, i, reference) for i in ids]
        for found, theirs in ((jacobians, expected), (rates, changes)):
            turned = np.roll(theirs, 3, axis=1) @ g
            assert error([found[:, kind]], [turned]) < 1e-12, KINDS[kind]


def test_bodies_that_do_not_move_and_unknown_ones():
    system = dl.tree(zoo())
    assert not np.any(dl.geometric_jacobian(system, system.neutral(), "wall"))
    with pytest.raises(ValueError, match=r"sadellite.*did you mean 'satellite'"):
        dl.spatial_jacobian(system, system.neutral(), "sadellite")


@pytest.mark.slow
def test_far_from_the_origin_nothing_is_lost_in_single_precision():
    base = dl.Body(name="base", joint=dl.Free(), mass=1.0, inertia=np.eye(3))
    tip = dl.Body(
        name="tip", joint=dl.Revolute(), parent="base", position=(0.3, 0.1, 0.2), mass=0.5
    )
    system = dl.tree([base, tip]).astype("float32")
    q = system.neutral().at[7].set(0.4)
    v = jnp.arange(1.0, 8.0, dtype="float32")
    here = dl.geometric_jacobian(system, q, "tip")
    assert here.dtype == np.float32
    far = q.at[4].set(3e4)
    np.testing.assert_allclose(dl.geometric_jacobian(system, far, "tip"), here, atol=1e-6)
    found = dl.centroidal_momentum_matrix(system, far)
    np.testing.assert_allclose(found, dl.centroidal_momentum_matrix(system, q), atol=1e-6)
    found = dl.coriolis_matrix(system, far, v)
    np.testing.assert_allclose(found, dl.coriolis_matrix(system, q, v), atol=1e-5)

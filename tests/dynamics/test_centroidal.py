"""Centre of mass and centroidal momentum against the bodies' own and Pinocchio's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from robots import ROBOTS, pin, read
from trees import error, random_states, zoo

import difflie as dl


def quantities(system, q):
    return (
        dl.center_of_mass(system, q),
        dl.center_of_mass_jacobian(system, q),
        dl.centroidal_momentum_matrix(system, q),
    )


@pytest.mark.slow
def test_every_joint_type():
    system = dl.tree(zoo())
    q, v, _, _, _ = (jnp.asarray(x[0]) for x in random_states(system, 1, seed=6))

    @jax.jit
    def ours(q, v):
        def at(time):
            return dl.center_of_mass(system, dl.integrate(system, q, time * v))

        velocity = jax.jvp(at, (0.0,), (1.0,))[1]
        return *quantities(system, q), velocity, dl.body_poses(system, q), dl.momentum(system, q, v)

    center, jacobian, matrix, velocity, poses, momentum = map(np.asarray, ours(q, v))
    moving = np.array([name not in ("floor", "wall") for name in system.body_names])
    masses = np.asarray(system.bodies.mass) * moving
    com = np.asarray(system.bodies.com)
    centers = np.einsum("bij,bj->bi", poses[:, :3, :3], com) + poses[:, :3, 3]
    mass = dl.total_mass(system)
    np.testing.assert_allclose(mass, masses.sum(), rtol=1e-14)
    np.testing.assert_allclose(center, masses @ centers / mass, atol=1e-13)
    np.testing.assert_allclose(jacobian @ v, velocity, atol=1e-12)
    about = matrix @ v
    np.testing.assert_allclose(about[3:], mass * velocity, atol=1e-12)
    shifted = np.r_[about[:3] + np.cross(center, about[3:]), about[3:]]
    assert error([shifted], [momentum]) < 1e-12


@pytest.mark.parametrize(
    ("path", "base"),
    [
        ("panda_description/urdf/panda.urdf", "fixed"),  # with a mimic joint
        ("ur_description/urdf/ur5_robot.urdf", "free"),
        ("g1_description/urdf/g1_29dof_rev_1_0.urdf", "free"),
    ],
)
def test_robots(path, base):
    twin = read(ROBOTS / path, base)
    q = random_states(twin.system, 1, seed=7)[0][0]
    found = jax.jit(lambda q: quantities(twin.system, q))(q)
    model, data, g, x = twin.model, twin.data, twin.rates(q), twin.coordinates(q)
    jacobian = pin.jacobianCenterOfMass(model, data, x) @ g
    matrix = np.roll(pin.computeCentroidalMap(model, data, x), 3, axis=0) @ g
    expected = (pin.centerOfMass(model, data, x), jacobian, matrix)
    for ours, theirs in zip(found, expected, strict=True):
        assert error([ours], [theirs]) < 1e-12

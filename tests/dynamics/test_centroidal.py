"""Centre of mass and centroidal momentum against the bodies' own and Pinocchio's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from robots import ROBOTS, pin, read
from trees import error, random_body, random_states, zoo

import difflie as dl
from difflie import quantities as dq


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


@pytest.mark.slow("g1_description/urdf/g1_29dof_rev_1_0.urdf-free")
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


def floating_arm():
    """A free base, a body welded to it, and a ball joint and a hinge beyond."""
    rng = np.random.default_rng(4)
    joints = {"hull": dl.Free(), "mast": dl.Fixed(), "boom": dl.Spherical(), "hook": dl.Revolute()}
    names = list(joints)
    return dl.tree(
        [
            random_body(rng, name, joint, names[i - 1] if i else None)
            for i, (name, joint) in enumerate(joints.items())
        ]
    )


@pytest.mark.slow
def test_momentum_of_one_body():
    """Against m dc/dt and c x m dc/dt + R I R^T w from the derivative of the body's pose."""
    system = floating_arm()
    q, v, _, _, _ = (jnp.asarray(x[0]) for x in random_states(system, 1, seed=8))

    def poses(time):
        return dl.body_poses(system, dl.integrate(system, q, time * v))

    T, rate = jax.jvp(poses, (0.0,), (1.0,))
    b, parts = system.bodies, []
    for k, name in enumerate(system.body_names):
        R, turning = T[k, :3, :3], rate[k, :3, :3] @ T[k, :3, :3].T
        center = R @ b.com[k] + T[k, :3, 3]
        linear = b.mass[k] * (rate[k, :3, :3] @ b.com[k] + rate[k, :3, 3])
        spin = R @ b.inertia[k] @ R.T @ dl.so3.vee(turning)
        expected = jnp.concatenate((jnp.cross(center, linear) + spin, linear))
        parts.append(dl.momentum(system, q, v, body=name))
        np.testing.assert_allclose(parts[-1], expected, rtol=0, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(sum(parts), dl.momentum(system, q, v), rtol=0, atol=1e-12)
    by_index = jax.vmap(lambda k: dl.momentum(system, q, v, k))(jnp.arange(len(parts)))
    np.testing.assert_allclose(by_index, jnp.stack(parts), rtol=0, atol=1e-14)
    kept = dq.Momentum("hook")
    assert kept.name == "momentum of hook"
    np.testing.assert_array_equal(kept(system, q, v, None, 0.0), parts[-1])
    single = system.astype("float32")
    found = dl.momentum(single, q.astype("float32"), v.astype("float32"), "hook")
    assert found.dtype == "float32" and error([found], [parts[-1]]) < 1e-5
    with pytest.raises(ValueError, match="no body is named 'huk'"):
        dl.momentum(system, q, v, body="huk")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "step", "tolerance"), [("float64", 1e-6, 1e-8), ("float32", 0.05, 2e-3)]
)
def test_momentum_of_one_body_has_gradients(dtype, step, tolerance):
    """By the mass, the state and the inertia, in both precisions, against central differences."""
    system = floating_arm()
    q, v, _, _, _ = (x[0] for x in random_states(system, 1, seed=8))
    system, q, v = system.astype(dtype), jnp.asarray(q, dtype), jnp.asarray(v, dtype)
    b = system.bodies

    def size(x):
        changed = system.replace(mass=b.mass * (1 + x), inertia=b.inertia * (1 + x), com=b.com + x)
        at = dl.integrate(system, q, x * jnp.ones_like(v))
        return jnp.sum(dl.momentum(changed, at, v * (1 + x), "boom"))

    x, h = jnp.zeros((), dtype), jnp.asarray(step, dtype)
    expected = (8 * (size(h) - size(-h)) - (size(2 * h) - size(-2 * h))) / (12 * h)
    for slope in (jax.grad(size)(x), jax.jvp(size, (x,), (jnp.ones_like(x),))[1]):
        assert slope.dtype == dtype
        np.testing.assert_allclose(slope, expected, rtol=tolerance)

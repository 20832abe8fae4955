"""The closed derivatives of the dynamics against forward-mode ones and Pinocchio's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from robots import ROBOTS, pin, read
from trees import error, random_states, zoo

import difflie as dl


@pytest.mark.slow
def test_against_forward_mode():
    """With wrenches, on every joint type; forward dynamics through the implicit function."""
    system = dl.tree(zoo())
    q, v, a, _, wrench = (jnp.asarray(x[0]) for x in random_states(system, 1, seed=1))

    @jax.jit
    def ours(q, v, a, wrench):
        tau = dl.inverse_dynamics(system, q, v, a, wrench)
        inverse = dl.inverse_dynamics_derivatives(system, q, v, a, wrench)
        return inverse, dl.forward_dynamics_derivatives(system, q, v, tau, wrench)

    @jax.jit
    def expected(q, v, a, wrench):
        def tau(x):
            s, v, a = jnp.split(x, 3)
            return dl.inverse_dynamics(system, dl.integrate(system, q, s), v, a, wrench)

        return jax.jacfwd(tau)(jnp.concatenate((jnp.zeros_like(v), v, a)))

    inverse, forward = ours(q, v, a, wrench)
    by_q, by_v, mass = reference = np.split(np.asarray(expected(q, v, a, wrench)), 3, axis=1)
    for found, value in zip(inverse, reference, strict=True):
        assert error([found], [value]) < 1e-12
    tolerance = 1e-14 * np.linalg.cond(mass)
    solved = np.linalg.solve(mass, np.hstack((-by_q, -by_v, np.eye(system.nv))))
    assert error([np.hstack(forward)], [solved]) < tolerance


@pytest.mark.slow("g1*", "panda*", "solo_description/robots/solo12.urdf-free")
@pytest.mark.parametrize(
    ("path", "base"),
    [
        ("ur_description/urdf/ur5_robot.urdf", "fixed"),
        ("panda_description/urdf/panda.urdf", "fixed"),  # with a mimic joint
        ("solo_description/robots/solo12.urdf", "free"),
        ("g1_description/urdf/g1_29dof_rev_1_0.urdf", "free"),
    ],
)
def test_robots(path, base):
    twin = read(ROBOTS / path, base)
    system, model, data = twin.system, twin.model, twin.data
    q, v, a, tau, _ = (x[0] for x in random_states(system, 1, seed=3))

    @jax.jit
    def ours(q, v, a, tau):
        inverse = dl.inverse_dynamics_derivatives(system, q, v, a)
        return inverse, dl.forward_dynamics_derivatives(system, q, v, tau)

    inverse, forward = ours(q, v, a, tau)
    g, x = twin.rates(q), twin.coordinates(q)
    pin.computeRNEADerivatives(model, data, x, g @ v, g @ a)
    mass = np.triu(data.M)
    mass += np.triu(mass, 1).T
    for found, theirs in zip(inverse, (data.dtau_dq, data.dtau_dv, mass), strict=True):
        assert error([found], [g.T @ theirs @ g]) < 1e-12
    if not twin.laws:
        back = np.linalg.inv(g)
        pin.computeABADerivatives(model, data, x, g @ v, back.T @ tau)
        inverse_mass = np.triu(data.Minv)
        inverse_mass += np.triu(inverse_mass, 1).T
        reference = (back @ data.ddq_dq @ g, back @ data.ddq_dv @ g, back @ inverse_mass @ back.T)
        tolerance = max(1e-12, 1e-14 * np.linalg.cond(mass))
        for found, value in zip(forward, reference, strict=True):
            assert error([found], [value]) < tolerance


@pytest.mark.slow
def test_forward_dynamics_batched_and_in_single_precision():
    system = dl.tree([dl.Body(name="a", joint=dl.Free(), mass=1.0, inertia=np.eye(3))])
    q, v, _, tau, _ = (jnp.asarray(x) for x in random_states(system, 3, seed=5))
    batch = jax.vmap(lambda *s: dl.forward_dynamics_derivatives(system, *s))(q, v, tau)
    single = system.astype("float32")
    for i in range(3):
        one = dl.forward_dynamics_derivatives(system, q[i], v[i], tau[i])
        low = dl.forward_dynamics_derivatives(
            single, *(x[i].astype("float32") for x in (q, v, tau))
        )
        for together, alone, coarse in zip(batch, one, low, strict=True):
            np.testing.assert_allclose(together[i], alone, atol=1e-13)
            assert coarse.dtype == np.float32
            np.testing.assert_allclose(coarse, alone, atol=3e-5)

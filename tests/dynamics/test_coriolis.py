"""The Coriolis matrix by what defines it, against Christoffel symbols and Pinocchio."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from robots import ROBOTS, pin, read
from trees import error, random_body, random_joint, random_states, zoo

import difflie as dl


@pytest.mark.slow
def test_identities_on_every_joint_type():
    """C v is the bias without gravity, and dM/dt = C + C^T."""
    system = dl.tree(zoo())
    q, v, _, _, _ = (jnp.asarray(x[0]) for x in random_states(system, 1, seed=8))

    @jax.jit
    def ours(q, v):
        def mass(time):
            return dl.mass_matrix(system, dl.integrate(system, q, time * v))

        weightless = system.replace(gravity=jnp.zeros(3))
        change = jax.jvp(mass, (0.0,), (1.0,))[1]
        return dl.coriolis_matrix(system, q, v), dl.bias_force(weightless, q, v), change

    matrix, force, change = map(np.asarray, ours(q, v))
    assert error([matrix @ v], [force]) < 1e-12
    assert error([matrix + matrix.T], [change]) < 1e-12


@pytest.mark.slow
def test_christoffel_symbols_where_velocities_are_derivatives():
    rng = np.random.default_rng(1)
    kinds = ("Revolute", "Universal", "Helical", "Prismatic")
    system = dl.chain([random_body(rng, k, random_joint(rng, k)) for k in kinds])
    q, v, _, _, _ = (jnp.asarray(x[0]) for x in random_states(system, 1, seed=9))
    mass_by_q = jax.jit(jax.jacfwd(lambda q: dl.mass_matrix(system, q)))(q)
    symbols = mass_by_q + jnp.swapaxes(mass_by_q, 1, 2) - jnp.moveaxis(mass_by_q, 2, 0)
    found = dl.coriolis_matrix(system, q, v)
    assert error([found], [symbols @ v / 2]) < 1e-12


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
    q, v, _, _, _ = (x[0] for x in random_states(twin.system, 1, seed=10))
    g, x = twin.rates(q), twin.coordinates(q)
    expected = g.T @ pin.computeCoriolisMatrix(twin.model, twin.data, x, g @ v) @ g
    found = jax.jit(lambda q, v: dl.coriolis_matrix(twin.system, q, v))(q, v)
    assert error([found], [expected]) < 1e-12

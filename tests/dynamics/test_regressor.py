"""Regressors against the quantities they are of; base parameters against known numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from robots import ROBOTS, pin, read
from trees import error, random_body, random_joint, random_states, zoo

import difflie as dl


@pytest.mark.slow
def test_every_joint_type():
    system = dl.tree(zoo())
    q, v, a, _, _ = (jnp.asarray(x[0]) for x in random_states(system, 1, seed=11))

    @jax.jit
    def ours(q, v, a):
        regressors = (
            dl.inverse_dynamics_regressor(system, q, v, a),
            dl.kinetic_energy_regressor(system, q, v),
            dl.potential_energy_regressor(system, q),
            dl.momentum_regressor(system, q, v),
        )
        tau, momentum = dl.inverse_dynamics(system, q, v, a), dl.momentum(system, q, v)
        return regressors, (tau, *dl.energy(system, q, v), momentum)

    regressors, expected = ours(q, v, a)
    pi = dl.inertial_parameters(system).ravel()
    armature = system.joints.armature
    linear = [y @ pi for y in regressors]
    linear[0] += armature * a
    linear[1] += armature @ v**2 / 2
    for found, value in zip(linear, expected, strict=True):
        assert error([jnp.atleast_1d(found)], [jnp.atleast_1d(value)]) < 1e-12


def test_parameters_there_and_back():
    system = dl.tree(zoo())
    pi = dl.inertial_parameters(system)
    again = dl.with_inertial_parameters(system, pi)
    for name in ("mass", "com", "inertia"):
        np.testing.assert_allclose(
            getattr(again.bodies, name), getattr(system.bodies, name), atol=1e-15
        )
    b, body = 3, system.bodies
    com, central = body.com[b], body.inertia[b]
    about = central + body.mass[b] * (com @ com * np.eye(3) - np.outer(com, com))
    order = [about[i, j] for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))]
    np.testing.assert_allclose(pi[b], [body.mass[b], *(body.mass[b] * com), *order], rtol=1e-14)
    # A body without mass stays one, and has derivatives.
    empty = jax.jacfwd(lambda pi: dl.with_inertial_parameters(system, pi).bodies.com)(0 * pi)
    assert np.all(np.isfinite(empty))


ROBOT_RANKS = (
    ("panda_description/urdf/panda.urdf", "fixed", None),  # with a mimic joint
    ("ur_description/urdf/ur5_robot.urdf", "fixed", 36),
    ("solo_description/robots/solo12.urdf", "free", None),
)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "base", "rank"), ROBOT_RANKS)
def test_robots(path, base, rank):
    """The rank is that of Pinocchio's regressor, and the reduced regressor gives the same force."""
    twin = read(ROBOTS / path, base)
    system, model, data = twin.system, twin.model, twin.data
    rng = np.random.default_rng(0)
    count = 20 * model.njoints // system.nv + 5
    q, v, a, _, _ = random_states(system, count, seed=12)
    theirs = []
    for x, rate, acceleration in zip(q, v, a, strict=True):
        g = twin.rates(x)
        parts = (twin.coordinates(x), g @ rate, g @ acceleration)
        theirs.append(g.T @ pin.computeJointTorqueRegressor(model, data, *parts))
    stacked = np.concatenate(theirs)
    # What only the rounded angles of the file let through counts as nothing.
    scale = np.linalg.norm(stacked, axis=0)
    scale = np.where(scale > 1e-8 * scale.max(), scale, np.inf)
    base_parameters = dl.base_parameters(system)
    expected = np.linalg.matrix_rank(stacked / scale, rtol=1e-8)
    assert base_parameters.rank == expected
    assert rank is None or expected == rank

    regressor = dl.inverse_dynamics_regressor(system, q[0], v[0], a[0])
    reduced = regressor[:, base_parameters.columns]
    assert error([reduced @ base_parameters.matrix], [regressor]) < 1e-9
    pi = rng.normal(size=regressor.shape[1])
    pi[::10] = np.abs(pi[::10])  # the masses
    other = dl.with_inertial_parameters(system, pi.reshape(-1, 10))
    force = dl.inverse_dynamics(other.replace(armature=0 * other.joints.armature), q[0], v[0], a[0])
    assert error([reduced @ (base_parameters.matrix @ pi)], [force]) < 1e-9


@pytest.mark.slow
def test_known_numbers_of_base_parameters():
    """Seven for each link on a revolute joint, less what the first joint cannot show."""
    rng = np.random.default_rng(2)

    def arm(axes, gravity=(0.0, 0.0, -9.81)):
        bodies = [random_body(rng, f"b{i}", dl.Revolute(axis=a)) for i, a in enumerate(axes)]
        flat = [dl.Body(**{**vars(b), "rotation": (0.0, 0.0, 0.0)}) for b in bodies]
        return dl.chain(flat if gravity[2] == 0 else bodies, gravity=gravity)

    parallel = [(0.0, 0.0, 1.0)] * 2
    planar = dl.base_parameters(arm(parallel, (0.0, -9.81, 0.0)))
    assert planar.rank == 6
    assert planar.columns.tolist() == [1, 2, 9, 11, 12, 19]
    assert dl.base_parameters(arm(parallel, (0.0, 0.0, 0.0))).rank == 4
    assert dl.base_parameters(arm(rng.normal(size=(7, 3)).tolist())).rank == 7 * 7 - 4
    free = dl.chain([random_body(rng, k, random_joint(rng, k)) for k in ("Free", "Revolute")])
    assert dl.base_parameters(free).rank == 10 + 7

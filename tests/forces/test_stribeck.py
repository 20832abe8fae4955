"""Friction that fades as a joint gains speed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from methods import three_methods

import difflie as dl
from difflie import identify as di

BREAKAWAY, OVER, RISE = 0.4, 0.3, 0.05


def chain(**numbers):
    y = {"mass": 1.0, "com": (0, 0, -0.2), "inertia": np.diag((0.02, 0.02, 0.002))}
    joints = [
        dl.Revolute(axis=(0.0, 1.0, 0.0), name=name, friction_velocity=RISE, **numbers)
        for name in ("shoulder", "elbow")
    ]
    return dl.chain(
        [
            dl.Body(name="upper", joint=joints[0], **y),
            dl.Body(name="lower", joint=joints[1], position=(0, 0, -0.4), **y),
        ]
    )


RUBBING = dl.attach(chain(), dl.Stribeck("elbow", BREAKAWAY, OVER))


def law(v):
    return -BREAKAWAY * np.exp(-((v / OVER) ** 2)) * np.tanh(v / RISE)


def test_the_law_at_its_joint_only():
    force = jax.vmap(lambda v: dl.passive_force(RUBBING, jnp.zeros(2), jnp.stack((1.0 - v, v))))
    v = jnp.linspace(-2.0, 2.0, 41).at[20].set(0.0)
    found = force(v)
    np.testing.assert_array_equal(found[:, 0], 0)
    np.testing.assert_allclose(found[:, 1], law(np.asarray(v)), rtol=1e-13, atol=1e-300)
    assert (np.asarray(found[:, 1] * v) <= 0).all() and found[20, 1] == 0
    half = RUBBING.astype(jnp.float32)
    rest = jnp.zeros(2, jnp.float32)
    found = dl.passive_force(half, rest, jnp.asarray([0.0, 0.1], jnp.float32))
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found[1], law(0.1), rtol=2e-6)


def test_derivatives():
    """In both modes against differences; at rest it is a damper of breakaway / v0."""

    def effort(breakaway, over, v):
        system = dl.attach(chain(), dl.Stribeck("elbow", breakaway, over))
        return dl.passive_force(system, jnp.zeros(2), jnp.zeros(2).at[1].set(v))[1]

    numbers = 0, 1, 2
    ahead, back = (jax.jit(f(effort, numbers)) for f in (jax.jacfwd, jax.grad))
    for v in (0.0, 0.02, -0.4):
        at = np.array((BREAKAWAY, OVER, v))
        slopes = ahead(*map(jnp.asarray, at))
        np.testing.assert_allclose(slopes, back(*map(jnp.asarray, at)), rtol=1e-13, atol=1e-16)
        if v == 0:
            np.testing.assert_allclose(slopes, (0, 0, -BREAKAWAY / RISE), rtol=1e-14)
        for k, slope in enumerate(slopes):
            step = 1e-5 * np.eye(3)[k]
            off = float(effort(*(at + step)) - effort(*(at - step))) / 2e-5
            assert float(slope) == pytest.approx(off, rel=1e-6, abs=1e-9)


@three_methods
def test_a_motion_with_it_is_that_with_its_effort(method):
    def effort(t, q, v):
        return jnp.stack((jnp.zeros(()), jnp.exp(-((v[1] / OVER) ** 2)) * jnp.tanh(v[1] / RISE)))

    start = jnp.asarray([0.3, -0.2]), jnp.asarray([0.0, 0.4])
    how = {"dt": 2e-3, "steps": 50, "method": method}
    a = dl.simulate(RUBBING, *start, **how)
    b = dl.simulate(chain(), *start, control=lambda *at: -BREAKAWAY * effort(*at), **how)
    np.testing.assert_allclose(a.q, b.q, atol=1e-12)
    np.testing.assert_allclose(a.v, b.v, atol=1e-11)


def pendulum(**numbers):
    joint = dl.Revolute(axis=(0.0, 1.0, 0.0), name="elbow", friction_velocity=RISE, **numbers)
    return dl.chain([dl.Body(name="arm", joint=joint, mass=1.0, com=(0, 0, -0.2))])


def sine():
    """A motion of a pendulum, slow and then fast: t (n,), q (n, 1), v, a."""
    t = 0.01 * np.arange(400)[:, None]
    size, angle, w = 0.1 + 0.2 * t, 4.3 * t, 4.3
    v = 0.2 * np.sin(angle) + size * w * np.cos(angle)
    a = 0.4 * w * np.cos(angle) - size * w * w * np.sin(angle)
    return t[:, 0], size * np.sin(angle), v, a


def test_its_numbers_are_found_again():
    t, q, v, a = sine()
    bare = pendulum()
    needed = np.asarray(jax.vmap(lambda *x: dl.inverse_dynamics(bare, *x))(q, v, a))
    tau = needed + 0.05 * v + 0.25 * np.tanh(v / RISE) - law(v)
    rough = dl.attach(pendulum(damping=0.01, friction=0.1), dl.Stribeck("elbow", 0.1, 0.6))
    leaves = "damping", "friction", "breakaway", "stribeck_velocity"
    free = dl.Parameters(rough, [f"elbow/{leaf}" for leaf in leaves])
    found = di.fit(free, di.InverseDynamics.of(rough, [di.Recording("sine", t, q, v, a, tau)]))
    assert found.converged
    np.testing.assert_allclose(found.values, (0.05, 0.25, BREAKAWAY, OVER), rtol=1e-8)
    assert found.parameters.names[2] == "elbow/breakaway"


@pytest.mark.slow
def test_the_torque_error_has_all_that_forward_dynamics_has():
    """Springs between bodies and friction enter the needed torques."""
    spring = dl.Spring([(None, (0.1, 0, 0)), ("arm", (0, 0, -0.3))], 30.0, 0.2)
    system = dl.attach(pendulum(), dl.Stribeck("elbow", BREAKAWAY, OVER), spring)
    t, q, v, _ = (x[::40] for x in sine())
    tau = np.sin(t)[:, None]

    @jax.jit
    @jax.vmap
    def moving(q, v, tau):
        return dl.forward_dynamics(system, q, v, tau + dl.passive_force(system, q, v))

    a = moving(*map(jnp.asarray, (q, v, tau)))
    problem = di.InverseDynamics.of(system, [di.Recording("any", t, q, v, a, tau)])
    np.testing.assert_allclose(problem.torques(system), tau, atol=1e-12)


@pytest.mark.parametrize(
    ("joint", "numbers", "said"),
    [
        ("elbw", (0.1, 0.2), "no joint that moves by itself is named 'elbw'; did you mean 'elbow'"),
        ("elbow", (-0.1, 0.2), "breakaway is -0.1 N m or N; it must not be negative"),
        ("elbow", (0.1, 0.0), "stribeck_velocity is 0.0 rad/s or m/s; it must be positive"),
        ("elbow", (0.1, np.inf), "stribeck_velocity is inf; it must be finite"),
        ("elbow", ([0.1, 0.2], 0.2), "breakaway has shape"),
    ],
)
def test_what_is_no_stribeck_friction_is_named(joint, numbers, said):
    with pytest.raises(dl.ModelError, match=said):
        dl.attach(chain(), dl.Stribeck(joint, *numbers))


def test_one_at_a_joint_beside_a_drive():
    with pytest.raises(dl.ModelError, match="has one already"):
        dl.attach(RUBBING, dl.Stribeck("elbow", 0.1, 0.1))
    both = dl.attach(RUBBING, dl.Drive("elbow"))
    assert len(both.couplings) == len(both.actuators) == 1


def test_a_machine_without_its_joint_refuses_it():
    with pytest.raises(dl.ModelError, match="stands at a joint"):
        dl.absolute(RUBBING)
    read = di.with_sensors(chain(), di.Encoder("elbow", position_bias=0.1))
    with pytest.raises(dl.ModelError, match="stands at a joint"):
        dl.absolute(read)

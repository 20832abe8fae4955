"""The same machine as a tree and with free bodies: motion, reactions, derivatives."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trees import KINDS, error, random_body, random_joint, random_states

import difflie as dl
from difflie import constraints as dc


def without_armature(joint):
    return replace(joint, armature=0.0)


def every_joint():
    """A tree with a joint of each type, and a fixed body in its middle."""
    rng = np.random.default_rng(4)
    parents = (None, "b0", "b1", "b2", "b1", None, "b5", "b6", "b6", "b0")
    return dl.tree(
        [
            random_body(rng, f"b{k}", without_armature(random_joint(rng, kind)), parent)
            for k, (kind, parent) in enumerate(zip(KINDS, parents, strict=True))
        ]
    )


def double_pendulum(**joint):
    rng = np.random.default_rng(2)
    first, second = dl.Revolute(axis=(0, 1.0, 0.2), **joint), dl.Revolute(axis=(0.3, 1.0, 0))
    bodies = [random_body(rng, "upper", first), random_body(rng, "lower", second)]
    return dl.chain(bodies)


def accelerations_of(machine, system, q, v, a):
    """The derivative of the machine's velocities where the system has the acceleration a (nv,)."""

    def velocities(e):
        moved = system.manifold.retract(q, e * v)
        return dl.absolute_state(machine, system, moved, v + e * a)[1]

    return jax.jvp(velocities, (0.0,), (1.0,))[1]


@jax.jit
def compared(machine, system, q, v):
    """Of the machine: g, A v, the acceleration, the multipliers, A; and the tree's acceleration."""
    tau = dl.passive_force(system, q, v)
    dynamics = dl.constrained_dynamics if system.constraints else dl.forward_dynamics
    a = jax.tree.leaves(dynamics(system, q, v, tau))[0]
    x, u = dl.absolute_state(machine, system, q, v)
    force = dl.passive_force(machine, x, u)
    found, multipliers = dl.constrained_dynamics(machine, x, u, force)
    A = dl.constraint_jacobian(machine, x)
    expected = accelerations_of(machine, system, q, v, a)
    return dl.constraint_residual(machine, x), A @ u, found, multipliers, A, expected


@pytest.fixture(scope="module")
def tree():
    system = every_joint()
    machine = dl.absolute(system)
    q, v, *_ = random_states(system, 1, seed=3)
    return system, machine, q[0], v[0], compared(machine, system, q[0], v[0])


@pytest.mark.slow
def test_every_joint_type_moves_as_in_the_tree(tree):
    system, machine, _, _, (g, rate, found, _, A, expected) = tree
    assert machine.body_names == system.body_names
    assert machine.nv == 6 * len(system.body_names)
    assert len(A) == machine.nv - system.nv
    assert np.max(np.abs(g)) < 1e-13
    assert np.max(np.abs(rate)) < 1e-12
    assert error(found[None], expected[None]) < 1e-10


@pytest.mark.slow
def test_reactions_are_the_wrenches_of_the_joints(tree):
    """Newton and Euler from the leaves to the root, by matrices, from the bodies' accelerations."""
    system, machine, q, v, (_, _, found, multipliers, A, _) = tree
    poses = np.asarray(dl.body_poses(system, q))
    twists, rates = np.asarray(dl.body_twists(system, q, v)), np.asarray(found).reshape(-1, 6)
    mass, com, inertia = (np.asarray(x) for x in jax.tree.leaves(system.bodies))
    wrench = np.zeros((len(mass), 6))
    t = system.topology
    for b in reversed(range(len(mass))):
        c = np.asarray(dl.so3.hat(com[b]))
        M = np.block(
            [
                [inertia[b] - mass[b] * c @ c, mass[b] * c],
                [-mass[b] * c, mass[b] * np.eye(3)],
            ]
        )
        weight = mass[b] * poses[b, :3, :3].T @ np.asarray(system.gravity)
        external = np.r_[np.cross(com[b], weight), weight]
        wrench[b] += M @ rates[b] - np.asarray(dl.se3.ad(twists[b])).T @ M @ twists[b] - external
        if t.parents[b] >= 0:
            into = np.linalg.inv(poses[b]) @ poses[t.parents[b]]
            wrench[t.parents[b]] += np.asarray(dl.se3.Ad(into)).T @ wrench[b]
    scale, start = np.max(np.abs(wrench)), 0
    joints = [b for b, joint in enumerate(t.types) if joint != dl.Free()]
    assert len(joints) == len(machine.constraints)
    for b, constraint in zip(joints, machine.constraints, strict=True):
        rows = slice(start, start + constraint.size)
        start += constraint.size
        on_child = A[rows, 6 * b : 6 * b + 6].T @ multipliers[rows]
        assert np.max(np.abs(on_child - wrench[b])) < 1e-10 * scale


@pytest.mark.thorough
def test_a_pendulum_of_two_free_bodies_keeps_what_its_tree_keeps():
    """Its constraints and the energy, along the same motion."""
    system = double_pendulum()
    machine = dl.absolute(system)
    start = jnp.array((0.4, -0.9)), jnp.array((1.0, -2.0))
    one = dl.simulate(system, *start, dt=5e-3, steps=40)
    other = dl.simulate(machine, *dl.absolute_state(machine, system, *start), dt=5e-3, steps=40)
    assert other.result.ok
    assert max(float(x.max()) for x in other.constraint_violation(machine)) < 1e-13
    poses = [dl.body_poses(system, one.q[-1]), dl.body_poses(machine, other.q[-1])]
    np.testing.assert_allclose(*poses, atol=1e-8)
    for kind in zip(one.energy(system), other.energy(machine), strict=True):
        np.testing.assert_allclose(*kind, atol=1e-7)


@pytest.mark.slow
@pytest.mark.thorough("SE3")
@pytest.mark.parametrize("group", ["SE3", "SO3xR3"])
def test_a_double_pendulum_moves_alike(group):
    system = double_pendulum()
    machine = dl.absolute(system, group)
    q, v = jnp.array((0.4, -0.9)), jnp.array((1.0, -2.0))
    x, u = dl.absolute_state(machine, system, q, v)
    a, _ = dl.constrained_dynamics(machine, x, u, jnp.zeros_like(u))
    expected = accelerations_of(machine, system, q, v, dl.forward_dynamics(system, q, v, 0 * v))
    np.testing.assert_allclose(a, expected, rtol=1e-10, atol=1e-10)
    one = dl.simulate(system, q, v, dt=2e-3, steps=100)
    other = dl.simulate(machine, x, u, dt=2e-3, steps=100)
    assert bool(other.result.ok)
    poses = dl.body_poses(system, one.q[-1])
    found = np.array([machine.body_names.index(name) for name in system.body_names])
    np.testing.assert_allclose(dl.body_poses(machine, other.q[-1])[found], poses, atol=1e-9)


@pytest.mark.slow
def test_derivatives_go_through_to_the_leaves():
    system = double_pendulum()
    q, v = jnp.array((0.4, -0.9)), jnp.array((1.0, -2.0))
    rng = np.random.default_rng(0)
    weight = rng.normal(size=12)

    @jax.jit
    def of_machine(mass, position, rotation, axis):
        changed = system.replace(mass=mass, position=position, rotation=rotation, axis=axis)
        machine = dl.absolute(changed)
        x, u = dl.absolute_state(machine, changed, q, v)
        return weight @ dl.constrained_dynamics(machine, x, u, jnp.zeros_like(u))[0]

    @jax.jit
    def of_tree(mass, position, rotation, axis):
        changed = system.replace(mass=mass, position=position, rotation=rotation, axis=axis)
        a = dl.forward_dynamics(changed, q, v, 0 * v)
        return weight @ accelerations_of(dl.absolute(system), changed, q, v, a)

    joints = system.joints
    given = system.bodies.mass, joints.position, joints.rotation, joints.axis
    assert abs(of_machine(*given) - of_tree(*given)) < 1e-9
    expected = jax.jit(jax.grad(of_tree, argnums=(0, 1, 2, 3)))(*given)
    found = jax.jit(jax.grad(of_machine, argnums=(0, 1, 2, 3)))(*given)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
@pytest.mark.thorough("follower1*", "follower2*")
@pytest.mark.parametrize(
    ("follower", "multiplier", "kind"),
    [
        (dl.Revolute(axis=(0, 1.0, 0)), -2.0, dc.Gear),
        (dl.Revolute(axis=(0, 1.0, 0)), 0.7, dc.Transmission),
        (dl.Prismatic(axis=(1.0, 0, 0)), 0.3, dc.Transmission),
    ],
)
def test_mimic_joints_become_gears(follower, multiplier, kind):
    rng = np.random.default_rng(1)
    law = dl.Mimic("leader", multiplier, 0.4)
    system = dl.tree(
        [
            random_body(rng, "leader", dl.Revolute(axis=(0, 1.0, 0))),
            random_body(rng, "follower", replace(follower, mimic=law), "leader"),
        ]
    )
    machine = dl.absolute(system)
    assert type(machine.constraints[-1]) is kind
    g, rate, found, _, _, expected = compared(machine, system, np.array([2.6]), np.array([1.3]))
    assert np.max(np.abs(g)) < 1e-13
    assert np.max(np.abs(rate)) < 1e-12
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_couplings_and_closures_are_carried_over():
    """A four-bar linkage with a spring: its tree and its free bodies."""
    y = (0, 1.0, 0)
    rng = np.random.default_rng(5)
    bodies = [
        random_body(rng, "a", dl.Revolute(axis=y), position=(0, 0, 0), rotation=(0, 0, 0)),
        random_body(rng, "b", dl.Revolute(axis=y), "a", position=(0.5, 0, 0.2), rotation=(0, 0, 0)),
        random_body(
            rng, "c", dl.Revolute(axis=y), "b", position=(0.6, 0, -0.1), rotation=(0, 0, 0)
        ),
    ]
    closure = dc.RevoluteConstraint(
        dc.Frame("c", (0.3, 0, 0.4), axis=y), dc.Frame(None, (1.3, 0, 0), axis=y)
    )
    spring = dl.Spring([("a", (0.1, 0, 0)), ("c", (0.2, 0.1, 0))], 40.0, 0.3)
    system = dl.constrain(dl.attach(dl.tree(bodies), spring), closure)
    machine = dl.absolute(system)
    assert machine.couplings == system.couplings
    q, v = dl.assemble(system, (0.2, 0.1, 0.3), (1.0, 0.0, 0.0))
    g, rate, found, _, A, expected = compared(machine, system, q, v)
    assert np.max(np.abs(g)) < 1e-11
    assert np.max(np.abs(rate)) < 1e-11
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert A.shape == (20, 18) and np.linalg.matrix_rank(A, 1e-9) == 17


def test_what_cannot_be_carried_over_is_named():
    with pytest.raises(dl.ModelError, match=r"damping of 'upper'.*without=\('damping',\)"):
        dl.absolute(double_pendulum(damping=0.1))
    limited = double_pendulum(upper=1.0, armature=0.2)
    with pytest.raises(dl.ModelError, match=r"armature of 'upper'; limits of 'upper'"):
        dl.absolute(limited)
    assert dl.absolute(limited, without=("limits", "armature")).nv == 12
    with pytest.raises(ValueError, match="did you mean 'damping'"):
        dl.absolute(limited, without=("dampings",))
    with pytest.raises(ValueError, match="'SE3' or 'SO3xR3'"):
        dl.absolute(limited, "SE2")
    light = double_pendulum().replace(mass=(0.0, 1.0))
    with pytest.raises(dl.ModelError, match="'upper' move and have no inertia"):
        dl.absolute(light)
    system = dl.constrain(double_pendulum(), dc.Proportional(("upper", "lower"), (1.0, 2.0)))
    with pytest.raises(dl.ModelError, match="Gear"):
        dl.absolute(system)
    mass = jax.jit(lambda s: dl.absolute(s).bodies.mass)
    assert np.all(np.isnan(mass(double_pendulum(damping=0.1))))
    assert np.all(np.isfinite(mass(double_pendulum())))


@pytest.mark.slow
def test_bodies_without_inertia_stay_fixed():
    rng = np.random.default_rng(3)
    system = dl.tree(
        [
            random_body(rng, "arm", dl.Revolute()),
            dl.Body(name="tool", parent="arm", position=(0.1, 0.2, 0.3), rotation=(0.3, 0, 0.1)),
            random_body(rng, "wrist", dl.Revolute(axis=(1.0, 0, 0)), "tool"),
        ]
    )
    machine = dl.absolute(system)
    assert machine.nv == 12
    q, v = np.array((0.3, 0.5)), np.array((1.0, 2.0))
    x, u = dl.absolute_state(machine, system, q, v)
    np.testing.assert_allclose(dl.body_poses(machine, x), dl.body_poses(system, q), atol=1e-14)
    np.testing.assert_allclose(
        dl.body_twists(machine, x, u), dl.body_twists(system, q, v), atol=1e-14
    )

"""The variational integrator against a brute-force discrete Lagrangian, and what it preserves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trees import error as relative_error
from trees import random_body, random_joint, random_states

import difflie as dl
from difflie.constraints import Projection
from difflie.dynamics.discrete_articulated import newton_step
from difflie.dynamics.discrete_inverse_dynamics import momenta
from difflie.formulations import Inputs, formulated
from difflie.reproduce.long_run import spring_pendulum
from difflie.system.kinematic_tree import Tree

METHOD = dl.VariationalMidpoint()


def machine(kinds, parents, seed=3, **leaves):
    """A tree on the given joints; rotors on joints of one degree of freedom only."""
    rng = np.random.default_rng(seed)
    bodies = [
        random_body(rng, f"b{i}", random_joint(rng, kind), None if p is None else f"b{p}")
        for i, (kind, p) in enumerate(zip(kinds, parents, strict=True))
    ]
    system = dl.tree(bodies)
    t = system.topology
    grouped = np.array([not t.manifolds[b].plain for b in t.dof_body])
    armature = jnp.where(grouped, 0.0, system.joints.armature)
    return system.replace(armature=armature, **leaves)


def flyer():
    """A free base with a branch, in free fall of no gravity, with springs."""
    system = machine(("Free", "Revolute", "Spherical"), (None, 0, 0), gravity=np.zeros(3))
    return system.replace(stiffness=np.full(system.nv, 4.0))


def pendulum():
    """A fixed base with a spherical joint, damped."""
    system = machine(("Revolute", "Spherical"), (None, 0))
    return system.replace(damping=np.full(4, 0.3), stiffness=np.full(4, 2.0))


def state(system, scale=0.5):
    q, v, *_ = (jnp.asarray(x[0]) for x in random_states(system, 1, seed=3))
    return q, v * scale


def kinetic_action(system, q0, q1, h):
    """h times the kinetic energy of bodies that move along screws from q0 to q1."""
    starts, ends = dl.body_poses(system, q0), dl.body_poses(system, q1)
    bodies = system.bodies

    def energy(start, end, mass, com, inertia):
        V = dl.se3.log(dl.se3.inverse(start) @ end) / h
        v = V[3:] + jnp.cross(V[:3], com)
        return (mass * v @ v + V[:3] @ inertia @ V[:3]) / 2

    rates = dl.difference(system, q0, q1) / h
    rotors = jnp.sum(system.joints.armature * rates**2) / 2
    each = jax.vmap(energy)(starts, ends, bodies.mass, bodies.com, bodies.inertia)
    return h * (jnp.sum(each) + rotors)


@pytest.mark.slow
def test_momenta_are_the_derivatives_of_the_discrete_lagrangian():
    """And the articulated sweep solves with the dense matrix."""
    kinds = ("Free", "Revolute", "Prismatic", "Spherical", "Universal", "Helical", "Free", "Planar")
    system = machine(kinds, (None, 0, 0, 1, 3, 2, 4, None))
    tree, h = Tree.of(system), 0.05
    q0, w = state(system, 1.0)
    q1 = dl.integrate(system, q0, h * w)
    still, slope = jnp.zeros(system.nv), jnp.linspace(0, 1, system.nv)

    def action(d0, d1):
        move = system.manifold.retract
        return kinetic_action(system, move(q0, d0), move(q1, d1), h)

    start, end = jax.jit(jax.grad(action, (0, 1)))(still, still)
    found = jax.jit(lambda w: momenta(tree, q0, w, h))
    p0, p1 = found(w)
    assert relative_error(p0[None], -np.asarray(start)[None]) < 1e-13
    assert relative_error(p1[None], np.asarray(end)[None]) < 1e-13
    dense = jax.jit(jax.jacfwd(lambda w: found(w)[0]))(w) + jnp.diag(slope)
    change = np.random.default_rng(1).normal(size=system.nv)
    solved = jax.jit(newton_step)(tree, q0, w, h, p0 + change, slope)
    assert relative_error(solved[None], np.linalg.solve(dense, change)[None]) < 1e-12


@pytest.mark.slow
def test_order_with_every_kind_of_force():
    system = pendulum()
    q, v = state(system)

    def control(t, q, v):
        return jnp.sin(3 * t) - 0.4 * v * jnp.abs(v)

    def wrench(t, q, v):
        return jnp.ones((2, 6)) * jnp.cos(t + v[0])

    def end(method, n):
        run = dl.simulate(
            *(system, q, v), dt=0.4 / n, steps=n, method=method, save_every=n,
            control=control, wrench=wrench,
        )  # fmt: skip
        assert run.result.ok
        return np.concatenate((run.q[-1], run.v[-1]))

    reference = end(dl.RKMK6(), 80)
    coarse, fine = (np.abs(end(METHOD, n) - reference).max() for n in (20, 40))
    assert 1e-6 < fine < 1e-3 and 3.9 < coarse / fine < 4.1


@pytest.mark.thorough
def test_symplectic_to_rounding():
    """Dz^T J Dz = J in the canonical charts q = q0 exp(x), p_x = dexp_{-x}^T p."""
    system = flyer().replace(gravity=np.array([0.0, 0.0, -3.0]))
    q, v = state(system)
    formulation = formulated(Tree.of(system), METHOD, Projection())
    h, n, manifold = jnp.asarray(0.05), system.nv, system.manifold
    start = formulation.init(jnp.zeros(()), q, v, h, Inputs())

    def to_body(x, px):
        """dexp_{-x}^-T px"""
        return jax.vjp(lambda r: manifold.dexp_inv(x, r), px)[1](px)[0]

    def step(z, end):
        q0, p0 = manifold.retract(q, z[:n]), to_body(z[:n], z[n:])
        state = start._replace(y=(q0, v), memory=start.memory._replace(p=p0))
        ((q1, _), (p1, _)), solved = formulation.step(jnp.zeros(()), state, h, Inputs())
        x1 = manifold.difference(end, q1)
        # dexp^T is 2 - dexp^-T near the centre of the chart, to first order.
        return jnp.concatenate((x1, 2 * p1 - to_body(x1, p1))), (q1, solved)

    z = jnp.concatenate((jnp.zeros(n), start.memory.p))

    def derivative(z):
        end, _ = step(z, q)[1]
        return jax.jacfwd(step, has_aux=True)(z, jax.lax.stop_gradient(end))

    d, (_, solved) = jax.jit(derivative)(z)
    J = np.kron([[0, 1], [-1, 0]], np.eye(n))
    assert solved and np.abs(d.T @ J @ d - J).max() < 1e-12 * np.abs(d).max() ** 2


@pytest.mark.slow
def test_momentum_energy_and_attitudes_in_the_long_run():
    system = flyer()
    q, v = state(system)
    run = dl.simulate(system, q, v, dt=0.02, steps=10_000, method=METHOD, save_every=20)
    assert run.result.ok
    momentum = np.asarray(run.momentum(system))
    size = np.abs(momentum[0, :3]).max()
    # About the origin, from which the machine flies away.
    assert np.abs(momentum - momentum[0])[:, :3].max() < 1e-11 * max(size, 1)
    assert np.abs(momentum - momentum[0])[:, 3:].max() < 1e-12
    assert np.asarray(run.constraint_error(system)).max() < 1e-12
    energy = np.sum(run.energy(system), axis=0)
    error = np.abs(energy - energy[0])
    assert error.max() < 2e-4 * energy[0] and error[375:].max() < 1.5 * error[:250].max()


@pytest.mark.slow
def test_gradients_in_both_modes():
    system = pendulum()
    q, v = state(system)
    directions = jax.tree.map(
        lambda a: np.random.default_rng(a.size).normal(size=a.shape),
        (v, v, system.bodies.mass, system.joints.position, system.joints.damping),
    )

    @jax.jit
    def final(dq, v, mass, position, damping):
        machine = system.replace(mass=mass, position=position, damping=damping)
        run = dl.simulate(
            machine, dl.integrate(machine, q, dq), v, dt=0.02, steps=10, method=METHOD
        )
        return jnp.sum(jnp.sin(run.q[-1])) + jnp.sum(run.v[-1] ** 2)

    at = (0 * v, v, system.bodies.mass, system.joints.position, system.joints.damping)
    reverse = jax.jit(jax.grad(final, (0, 1, 2, 3, 4)))(*at)
    forward = jax.jit(lambda *d: jax.jvp(final, at, d)[1])
    zeros = jax.tree.map(jnp.zeros_like, at)
    for i, direction in enumerate(directions):
        there, back = (
            final(*(a + s * direction if i == k else a for k, a in enumerate(at)))
            for s in (1e-5, -1e-5)
        )
        expected = (there - back) / 2e-5
        along = forward(*(jnp.asarray(direction) if i == k else o for k, o in enumerate(zeros)))
        np.testing.assert_allclose(along, expected, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(np.sum(reverse[i] * direction), along, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_a_step_too_large_is_reported():
    system = pendulum()
    q, v = state(system)
    run = dl.simulate(system, q, v * 40, dt=3.0, steps=4, method=METHOD)
    assert not run.result.ok
    assert "not solved" in str(run.result) and "t = " in str(run.result)


@pytest.mark.slow
def test_single_precision():
    system = pendulum()
    q, v = state(system)
    runs = [
        dl.simulate(
            *(system.astype(kind), q.astype(kind), v.astype(kind)),
            **{"dt": 0.02, "steps": 10, "method": "VariationalMidpoint"},
        )
        for kind in (jnp.float32, jnp.float64)
    ]
    assert runs[0].q.dtype == runs[0].v.dtype == jnp.float32 and runs[0].result.ok
    np.testing.assert_allclose(runs[0].v, runs[1].v, atol=2e-5)


@pytest.mark.slow
def test_stiff_dampers_and_drives_are_solved():
    """Where explicit methods would need a thousand times smaller steps."""
    system = pendulum()
    system = system.replace(damping=np.full(4, 300.0))
    q, v = state(system)
    run = dl.simulate(
        *(system, q, v), dt=0.02, steps=10, method=METHOD, control=lambda t, q, v: -500 * v
    )
    assert run.result.ok and np.abs(run.v).max() <= 2 * np.abs(v).max()


def test_mimic_joints_are_refused():
    rng = np.random.default_rng(0)
    follow = dl.Revolute(mimic=dl.Mimic(joint="one"))
    system = dl.tree(
        [
            random_body(rng, "a", dl.Revolute(name="one"), None),
            random_body(rng, "b", follow, "a"),
        ]
    )
    with pytest.raises(ValueError, match=r"'b'.* mimics another; use another method"):
        dl.simulate(system, np.zeros(1), np.zeros(1), method=METHOD, steps=1)


@pytest.mark.slow
def test_springs_between_bodies():
    system, q, v = spring_pendulum()
    run, fine = (
        dl.simulate(system, q, v, dt=1e-3, steps=200, method=m, save_every=200)
        for m in (METHOD, "RKMK4")
    )
    assert run.result.ok
    np.testing.assert_allclose(run.q[-1], fine.q[-1], atol=1e-4)
    # They can be turned about the vertical.
    momentum = run.momentum(system)[:, 2]
    np.testing.assert_allclose(momentum[-1], momentum[0], atol=1e-13)

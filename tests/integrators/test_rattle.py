"""RATTLE on the heavy top and on closed loops: order, what it preserves, derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loops import TOP_COM, TOP_FORCE, TOP_RATE, check_derivatives, four_bar, heavy_top, spatial_loop

import difflie as dl
from difflie.constraints import Projection
from difflie.constraints.constraint import VelocityConstraint
from difflie.formulations import Inputs, formulated
from difflie.system.kinematic_tree import Tree

METHOD = dl.Rattle()
CHUNK = 100


def run(system, q, v, dt, chunks, method=METHOD):
    """q, v and multipliers of every step; pieces of equal length are compiled once."""
    found = []
    for _ in range(chunks):
        part = dl.simulate(system, q, v, dt=dt, steps=CHUNK, method=method)
        assert part.result.ok
        q, v = part.q[-1], part.v[-1]
        found.append((part.q, part.v, part.states.multipliers))
    return [jnp.concatenate(x) for x in zip(*found, strict=True)]


@pytest.fixture(scope="module")
def top():
    return heavy_top()


@pytest.mark.slow
def test_a_free_body_held_at_a_point_is_a_pendulum():
    """It keeps its constraints, energy and momentum, and moves as the body on a ball joint."""
    inertia = np.diag([0.1, 0.2, 0.15])
    bob = dl.Body(name="bob", joint=dl.Spherical(), mass=2.0, com=(0.1, 0, -0.6), inertia=inertia)
    pendulum = dl.tree([bob])
    system, start = dl.absolute(pendulum), (pendulum.neutral(), jnp.asarray([1.0, -0.5, 2.0]))
    state = dl.absolute_state(system, pendulum, *start)
    exact = dl.simulate(pendulum, *start, dt=5e-3, steps=100, save_every=50)
    found = dl.simulate(system, *state, dt=5e-3, steps=100, save_every=50, method=METHOD)
    assert found.result.ok
    assert max(float(x.max()) for x in found.constraint_violation(system)) < 1e-13
    assert float(found.constraint_error(system).max()) < 1e-15
    poses = [dl.body_poses(pendulum, exact.q[-1]), dl.body_poses(system, found.q[-1])]
    np.testing.assert_allclose(*poses, atol=1e-4)
    energy, lift = sum(found.energy(system)), found.momentum(system)[:, 2]
    np.testing.assert_allclose(energy, energy[0], atol=1e-3)
    np.testing.assert_allclose(lift, lift[0], atol=1e-13)


@pytest.mark.slow
def test_order_on_the_heavy_top(top):
    """Poses, velocities and multipliers against the printed ones."""
    errors = []
    for dt, chunks in ((1e-3, 2), (5e-4, 4)):
        q, v, multipliers = run(*top, dt, chunks)
        found = q[-1, 4:], v[-1, :3], multipliers[-1]
        pairs = zip(found, (TOP_COM, TOP_RATE, TOP_FORCE), strict=True)
        errors.append([np.abs(a - b).max() for a, b in pairs])
    coarse, fine = np.array(errors)
    assert np.all(coarse < np.array((3e-3, 2e-2, 2)))
    assert np.all(np.abs(np.log2(coarse / fine) - 2) < 0.1)


@pytest.mark.slow
def test_what_the_heavy_top_keeps(top):
    """Constraints, the angular momentum about the vertical, the energy up to a bounded error."""
    system, q0, v0 = top

    @jax.jit
    @jax.vmap
    def kept(q, v):
        g, A = dl.constraint_residual(system, q), dl.constraint_jacobian(system, q)
        energy = sum(dl.energy(system, q, v))
        return jnp.abs(g).max(), jnp.abs(A @ v).max(), dl.momentum(system, q, v)[2], energy

    q, v, multipliers = run(*top, 1e-3, 20)
    position, rate, momentum, energy = (np.asarray(x) for x in kept(q, v))
    assert position.max() < 1e-13 and rate.max() < 1e-13
    assert np.abs(momentum - momentum[0]).max() < 1e-11
    assert energy[0] == pytest.approx(5435.6968, abs=1e-4)
    error, half = np.abs(energy - energy[0]), len(energy) // 2
    assert error.max() < 0.3 and error[half:].max() < 1.1 * error[:half].max()
    # The multipliers are the force at the pivot, also at the first state.
    exact = dl.constrained_dynamics(system, q0, v0, jnp.zeros(6))[1]
    np.testing.assert_allclose(multipliers[0], exact, rtol=1e-12)


@pytest.mark.slow
def test_symplectic_to_rounding(top):
    """Dz^T J Dz = Z^T J Z for tangents Z of the constrained states, in canonical charts.

    q = q0 exp(x), p_x = dexp_{-x}^T p.
    """
    system, q, v = top
    tree = Tree.of(system)
    formulation = formulated(tree, METHOD, Projection())
    h, n, manifold = jnp.asarray(2e-3), system.nv, system.manifold
    start = formulation.init(jnp.asarray(0.0), q, v, h, Inputs())

    def to_body(x, px):
        """dexp_{-x}^-T px"""
        return jax.vjp(lambda r: manifold.dexp_inv(x, r), px)[1](px)[0]

    def constraints(z):
        q0, p0 = manifold.retract(q, z[:n]), to_body(z[:n], z[n:])
        v0 = jnp.linalg.solve(dl.mass_matrix(system, q0), p0)
        A = dl.constraint_jacobian(system, q0)
        return jnp.concatenate((dl.constraint_residual(system, q0), A @ v0))

    def step(z, end):
        q0, p0 = manifold.retract(q, z[:n]), to_body(z[:n], z[n:])
        state = start._replace(y=(q0, v), memory=start.memory._replace(p=p0))
        ((q1, _), (p1, *_)), solved = formulation.step(jnp.asarray(0.0), state, h, Inputs())
        x1 = manifold.difference(end, q1)
        # dexp^T is 2 - dexp^-T near the centre of the chart, to first order.
        return jnp.concatenate((x1, 2 * p1 - to_body(x1, p1))), (q1, solved)

    @jax.jit
    def derivative(z, tangents):
        _, (end, solved) = step(z, q)

        def along(d):
            return jax.jvp(lambda z: step(z, jax.lax.stop_gradient(end))[0], (z,), (d,))[1]

        return jax.vmap(along, in_axes=1, out_axes=1)(tangents), solved

    z = jnp.concatenate((jnp.zeros(n), start.memory.p))
    _, s, rows = np.linalg.svd(jax.jit(jax.jacfwd(constraints))(z))
    assert s.min() > 1e-6
    Z = rows[len(s) :].T
    D, solved = derivative(z, Z)
    J = np.kron([[0, 1], [-1, 0]], np.eye(n))
    defect = np.abs(D.T @ J @ D - Z.T @ J @ Z).max()
    assert solved and defect < 1e-12 * np.abs(D).max() ** 2


@pytest.fixture(scope="module")
def loop():
    return four_bar()


@pytest.mark.slow
def test_a_closed_loop_with_redundant_equations(loop):
    """In joint coordinates, with dampers, a drive and a wrench, against RKMK4 and projection."""
    system, q, v = loop
    system = system.replace(damping=np.full(3, 0.3))

    def control(t, q, v):
        return jnp.stack((2 * jnp.sin(5 * t), 0 * t, -0.1 * v[2]))

    def end(method, n):
        found = dl.simulate(
            *(system, q, v), dt=0.4 / n, steps=n, method=method, save_every=n, control=control
        )
        assert found.result.ok
        return found

    reference = end(dl.RKMK4(), 400)
    exact = np.concatenate((reference.q[-1], reference.v[-1]))
    runs = [end(METHOD, n) for n in (40, 80)]
    errors = [np.abs(np.concatenate((r.q[-1], r.v[-1])) - exact).max() for r in runs]
    assert errors[1] < 1e-2 and 3.8 < errors[0] / errors[1] < 4.2
    assert np.abs(dl.constraint_residual(system, runs[1].q[-1])).max() < 1e-13
    A = dl.constraint_jacobian(system, runs[1].q[-1])
    assert np.abs(A @ runs[1].v[-1]).max() < 1e-12
    # At both ends the multipliers are those of the accelerations, with the drive at that time.
    for k, t in ((0, 0.0), (-1, 0.4)):
        at = runs[1].q[k], runs[1].v[k]
        tau = dl.passive_force(system, *at) + control(t, *at)
        expected = dl.constrained_dynamics(system, *at, tau)[1]
        np.testing.assert_allclose(runs[1].states.multipliers[k], expected, atol=1e-9)


@pytest.mark.slow
def test_gradients_in_both_modes():
    start, q, v = spatial_loop()

    def final(given):
        system, v = given
        found = dl.simulate(system, q, v, dt=0.01, steps=4, method=METHOD)
        forces = jnp.sum(found.states.multipliers[-1] ** 2)
        return jnp.sum(jnp.sin(found.q[-1])) + jnp.sum(found.v[-1] ** 2) + forces / 1e4

    # An error of a length is corrected in one step, so that it moves the velocity by 1 / h.
    assert check_derivatives(final, (start, v), step=1e-6) > 10


def test_constraints_of_velocities_are_refused(loop):
    system, q, v = loop

    class Skate(VelocityConstraint):
        frames = (dl.Frame("crank"),)
        equations = ("slip",)

        def rate(self, frames, twists):
            return [twists[0].linear.x]

    with pytest.raises(ValueError, match=r"Rattle keeps .* but the slip of constraint 1, Skate"):
        dl.simulate(dl.constrain(system, Skate()), q, v, method=METHOD)


@pytest.mark.slow
def test_a_step_too_large_is_reported(loop):
    system, q, v = loop
    found = dl.simulate(system, q, v * 20, dt=1.0, steps=3, method=METHOD)
    assert not found.result.ok and "not solved" in str(found.result)


@pytest.mark.slow
def test_single_precision(loop):
    runs = [
        dl.simulate(
            *(x.astype(kind) for x in loop), **{"dt": 0.01, "steps": 10, "method": "Rattle"}
        )
        for kind in (jnp.float32, jnp.float64)
    ]
    assert runs[0].q.dtype == runs[0].states.multipliers.dtype == jnp.float32
    assert runs[0].result.ok
    np.testing.assert_allclose(runs[0].v, runs[1].v, atol=1e-4)

"""Motions of closed loops by Runge-Kutta methods, against other programs and each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest
from loops import (
    TOP_COM,
    TOP_RATE,
    check_derivatives,
    four_bar,
    heavy_top,
    spatial_loop,
)

import difflie as dl
from difflie.constraints import SphericalConstraint

CHUNK = 50


def after(system, q, v, dt, steps, method, **options):
    """The state after a number of steps; pieces of equal length are compiled once."""
    for _ in range(steps // CHUNK):
        run = dl.simulate(
            *(system, q, v), dt=dt, steps=CHUNK, method=method, save_every=CHUNK, **options
        )
        assert run.result.ok
        q, v = run.q[-1], run.v[-1]
    return q, v


def broken(system, q, v):
    """The largest errors of positions and velocities."""
    A = dl.constraint_jacobian(system, q)
    return np.abs(dl.constraint_residual(system, q)).max(), np.abs(A @ v).max()


@pytest.mark.slow
@pytest.mark.parametrize("machine", [four_bar, spatial_loop])
def test_accelerations_and_multipliers_by_least_squares(machine):
    """Of redundant equations the smallest multipliers."""
    system, q, v = machine()
    tau = jnp.linspace(-1, 2, system.nv)
    a, multipliers = dl.constrained_dynamics(system, q, v, tau)
    M, A = np.asarray(dl.mass_matrix(system, q)), np.asarray(dl.constraint_jacobian(system, q))
    effort = np.asarray(tau - dl.bias_force(system, q, v))
    c = np.asarray(dl.constraint_bias(system, q, v))
    inverse = np.linalg.inv(M)
    expected = np.linalg.lstsq(A @ inverse @ A.T, -c - A @ inverse @ effort, rcond=1e-10)[0]
    np.testing.assert_allclose(multipliers, expected, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(a, inverse @ (effort + A.T @ expected), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_accelerations_against_pinocchio():
    system, q, v = spatial_loop()
    tau = np.linspace(-1, 2, system.nv)
    model = pin.Model()
    joints = {None: 0}
    axes = {"crank": np.array((0.1, 1.0, 0.2)), "rocker": np.array((0.3, 1.0, -0.2))}
    parents = {"crank": None, "coupler": "crank", "rocker": None}
    for k, name in enumerate(system.body_names):
        kind = pin.JointModelSpherical()
        if name in axes:
            kind = pin.JointModelRevoluteUnaligned(axes[name] / np.linalg.norm(axes[name]))
        place = pin.SE3(np.eye(3), np.asarray(system.joints.position[k]))
        joints[name] = model.addJoint(joints[parents[name]], kind, place, name)
        bodies = system.bodies
        inertia = pin.Inertia(float(bodies.mass[k]), np.asarray(bodies.com[k]), np.eye(3))
        inertia.inertia = np.asarray(bodies.inertia[k])
        model.appendBodyToJoint(joints[name], inertia, pin.SE3.Identity())
    closure = pin.RigidConstraintModel(
        pin.ContactType.CONTACT_3D,
        *(model, joints["coupler"], pin.SE3(np.eye(3), np.array((1.0, 0.0, 0.0)))),
        *(joints["rocker"], pin.SE3(np.eye(3), np.array((0.8, 0.0, 0.0)))),
        pin.ReferenceFrame.LOCAL,
    )
    data = model.createData()
    closures, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    closures.append(closure)
    datas.append(closure.createData())
    pin.initConstraintDynamics(model, data, closures, datas)
    # Its quaternions have the scalar last.
    q = np.asarray(q)
    there = np.concatenate((q[:1], q[2:5], q[1:2], q[5:]))
    settings = pin.ProximalSettings(1e-14, 1e-10, 100)
    expected = pin.constraintDynamics(
        *(model, data, there, np.asarray(v), tau), closures, datas, settings
    )
    a, _ = dl.constrained_dynamics(system, q, v, tau)
    np.testing.assert_allclose(a, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("stabilisation", [dl.Projection(), dl.NullSpace()], ids=str)
def test_order_on_the_heavy_top(stabilisation):
    """Against the printed state, with the free body's own frame at the centre of mass."""
    system, q, v = heavy_top()
    errors = []
    for dt, steps in ((1e-3, 200), (5e-4, 400)):
        end = after(system, q, v, dt, steps, dl.RKMK4(), stabilisation=stabilisation)
        com, rate = end[0][4:], end[1][:3]
        errors.append((np.abs(com - TOP_COM).max(), np.abs(rate - TOP_RATE).max()))
        position, velocity = broken(system, *end)
        assert position < 1e-13 and velocity < 1e-12
    coarse, fine = np.array(errors)
    assert np.all(fine < 1e-4) and np.all(np.log2(coarse / fine) > 3.5)


@pytest.fixture(scope="module")
def loop():
    return four_bar(SphericalConstraint)


@pytest.fixture(scope="module")
def reference(loop):
    return after(*loop, 1e-3, 400, dl.RKMK4())


@pytest.mark.slow
def test_order_energy_and_constraints_with_projection(loop, reference):
    system, q, v = loop
    errors = []
    for dt, steps in ((8e-3, 50), (4e-3, 100)):
        end = after(*loop, dt, steps, dl.RKMK4())
        errors.append(np.abs(np.concatenate(end) - np.concatenate(reference)).max())
        assert max(broken(system, *end)) < 1e-13
    assert errors[1] < 1e-5 and 3.7 < np.log2(errors[0] / errors[1]) < 4.5
    before, later = (sum(dl.energy(system, *s)) for s in ((q, v), reference))
    np.testing.assert_allclose(later, before, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("stabilisation", [dl.Baumgarte(), dl.Unstabilised()], ids=str)
def test_other_ways_to_stay_on_the_constraints(loop, reference, stabilisation):
    system, q, v = loop
    run = dl.simulate(system, q, v, dt=4e-3, steps=100, stabilisation=stabilisation)
    end = run.q[-1], run.v[-1]
    error = np.abs(np.concatenate(end) - np.concatenate(reference)).max()
    assert run.result.ok and error < 1e-4 and max(broken(system, *end)) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("method", ["DormandPrince54", "GaussLegendre4"])
def test_other_methods(loop, reference, method):
    end = after(*loop, 8e-3, 50, method)
    np.testing.assert_allclose(np.concatenate(end), np.concatenate(reference), atol=1e-5)
    assert max(broken(loop[0], *end)) < 1e-13


@pytest.mark.slow
def test_single_precision_and_batches(loop, reference):
    """A batch over masses contains the motion of each machine."""
    system, q, v = (x.astype(jnp.float32) for x in loop)

    @jax.jit
    @jax.vmap
    def ends(mass):
        run = dl.simulate(system.replace(mass=mass), q, v, dt=8e-3, steps=CHUNK)
        return run.q[-1], run.v[-1], run.result.ok

    factors = jnp.array((1.0, 1.0, 1.5), jnp.float32)
    found_q, found_v, solved = ends(factors[:, None] * system.bodies.mass)
    assert found_q.dtype == found_v.dtype == jnp.float32 and np.all(solved)
    np.testing.assert_allclose(found_q[0], reference[0], atol=2e-4)
    np.testing.assert_allclose(found_v[1], reference[1], atol=2e-3)
    assert np.abs(found_q[2] - found_q[0]).max() > 1e-3


@pytest.mark.slow
def test_derivatives_of_a_simulation():
    start, q, v = spatial_loop()

    def final(given):
        system, v = given
        run = dl.simulate(system, q, v, dt=0.01, steps=4)
        return jnp.sum(jnp.sin(run.q[-1])) + jnp.sum(run.v[-1] ** 2)

    assert check_derivatives(final, (start, v)) > 10

"""Inertia along tendons, against flywheels that constraints turn, in all of the dynamics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl

AXIS = dl.Prismatic(axis=(1, 0, 0))
ALONG = dl.FixedTendon(("one", "two"), (-1.0, 2.0))


def rods(*more):
    """Two rods, side by side, on springs, and more bodies beside them."""
    turning = [
        dl.Body(
            name=name,
            joint=dl.Revolute(axis=(0, 1, 0), armature=0.1, stiffness=stiffness),
            mass=1.0,
            com=(0.4, 0, 0.1),
        )
        for name, stiffness in (("one", 3.0), ("two", 8.0))
    ]
    return dl.tree([*turning, *more])


def spatial():
    """An arm whose tip a tendon joins to the other rod."""
    tip = dl.Body(name="tip", parent="one", joint=AXIS, position=(0.8, 0, 0), mass=0.5)
    ends = [("tip", (0.1, 0, 0)), (None, (0.2, 0.3, 0.9)), ("two", (0.5, 0.1, 0))]
    return dl.attach(rods(tip), dl.Inerter(dl.SpatialTendon(ends), inertance=0.8))


def test_a_flywheel_that_a_constraint_turns_moves_alike():
    """With every family of methods that takes the inertia."""
    heavy = dl.attach(rods(), dl.Inerter(ALONG, inertance=0.7))
    wheel = rods(dl.Body(name="wheel", joint=AXIS, mass=0.7))
    wheel = dl.constrain(
        wheel, dl.constraints.Proportional(("one", "two", "wheel"), (-1.0, 2.0, -1.0))
    )
    how = {"dt": 1e-3, "steps": 300, "save_every": 300}
    v = np.array([0.5, -0.3])
    for method in ("RKMK4", "ImplicitMidpoint", "GeneralizedAlpha", "SemiImplicitEuler"):
        one = dl.simulate(heavy, [0.3, 0.1], v, method=method, **how)
        other = dl.simulate(wheel, [0.3, 0.1, -0.1], [*v, -1.1], method="RKMK4", **how)
        close = 1e-8 if method == "RKMK4" else 2e-3
        np.testing.assert_allclose(one.q[-1], other.q[-1, :2], atol=close, err_msg=method)


@pytest.mark.parametrize(
    "made", [lambda: dl.attach(rods(), dl.Inerter(ALONG, inertance=2.0)), spatial]
)
def test_it_is_in_all_of_the_dynamics(made):
    """M, energy, inverse and forward dynamics agree, also in single precision."""
    system = made()
    rng = np.random.default_rng(0)
    q, v, tau = (jnp.asarray(rng.normal(size=system.nv)) for _ in range(3))
    M, a = dl.mass_matrix(system, q), dl.forward_dynamics(system, q, v, tau)
    np.testing.assert_allclose(dl.energy(system, q, v)[0], v @ M @ v / 2, rtol=1e-12)
    np.testing.assert_allclose(M @ a + dl.bias_force(system, q, v), tau, atol=1e-12)
    np.testing.assert_allclose(dl.inverse_dynamics(system, q, v, a), tau, atol=1e-12)
    np.testing.assert_allclose(dl.mass_solve(system, q, tau), jnp.linalg.solve(M, tau), atol=1e-12)
    single = dl.forward_dynamics(
        system.astype(jnp.float32), *(x.astype(jnp.float32) for x in (q, v, tau))
    )
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, a, rtol=2e-4, atol=2e-4)

    def found(q, v):
        return dl.forward_dynamics(system, q, v, tau)

    ahead, back = jax.jacfwd(found, (0, 1))(q, v), jax.jacrev(found, (0, 1))(q, v)
    by = dl.forward_dynamics_derivatives(system, q, v, tau)
    for k, (one, other, matrix) in enumerate(zip(ahead, back, by[:2], strict=True)):
        np.testing.assert_allclose(one, other, atol=1e-10)
        np.testing.assert_allclose(matrix, one, atol=1e-10)
        h = np.eye(2)[k] * 1e-6
        unit = np.eye(system.nv)
        slope = [
            (found(q + h[0] * e, v + h[1] * e) - found(q - h[0] * e, v - h[1] * e)) / 2e-6
            for e in unit
        ]
        np.testing.assert_allclose(np.transpose(slope), one, rtol=1e-6, atol=1e-6)


def test_energy_stays():
    """Of a motion with an inertia along a spatial tendon, whose arm changes."""
    system = spatial()
    run = dl.simulate(system, [0.3, 0.2, 0.1], [0.5, -0.4, 0.6], dt=2e-3, steps=500)
    total = np.sum(run.energy(system), axis=0)
    np.testing.assert_allclose(total, total[0], rtol=0, atol=1e-8)


@pytest.mark.slow
def test_gradients_of_motions():
    """By the inertance, in both modes, against differences; and linear models have it."""
    system = spatial()

    def end(b):
        machine = dl.attach(rods(), dl.Inerter(ALONG, inertance=b))
        return dl.simulate(machine, [0.3, 0.1], [0.5, -0.3], dt=1e-2, steps=50).q[-1, 0]

    ahead, back = jax.jacfwd(end)(0.7), jax.grad(end)(0.7)
    assert float(ahead) == pytest.approx(float(back), rel=1e-10)
    assert float(ahead) == pytest.approx(float(end(0.7 + 1e-5) - end(0.7 - 1e-5)) / 2e-5, rel=1e-6)
    q, dt = system.neutral(), 1e-4
    model = dl.control.linearize(system, q, jnp.zeros(system.nv), dt)
    np.testing.assert_allclose(
        model.B[system.nv :] / dt, jnp.linalg.inv(dl.mass_matrix(system, q)), rtol=1e-3, atol=1e-3
    )


def test_what_needs_independent_coordinates_refuses_it():
    """By name, with what to do."""
    system = spatial()
    with pytest.raises(ValueError, match=r"mass_factorisation needs .* Inerter .*solve with"):
        dl.mass_factorisation(system, system.neutral())
    for method in ("VariationalMidpoint", "EnergyMomentum"):
        with pytest.raises(ValueError, match="use another method"):
            dl.simulate(system, system.neutral(), [0, 0, 0], dt=1e-3, steps=1, method=method)
    with pytest.raises(dl.ModelError, match="inertance is -1"):
        dl.attach(rods(), dl.Inerter(ALONG, inertance=-1.0))
    with pytest.raises(dl.ModelError, match="no joint that moves by itself is named 'three'"):
        dl.attach(rods(), dl.Inerter(dl.FixedTendon(("three",), (1.0,)), inertance=1.0))

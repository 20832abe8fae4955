"""Every method has a program, in motions and in gradients, and every kind of machine."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loops import four_bar

import difflie as dl


def arm(**joint):
    """Two bars on hinges that cross."""
    return dl.chain(
        [
            dl.Body(
                name=f"link{i}",
                joint=dl.Revolute(axis=axis, **joint),
                position=(0.5 * i, 0.0, 0.0),
                mass=1.0,
                com=(0.25, 0.0, 0.0),
                inertia=np.diag((1e-3, 0.02, 0.02)),
            )
            for i, axis in enumerate(((0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
        ]
    )


def flying():
    """A free body with two hinges on it."""
    bodies = [
        dl.Body(name=f"b{i}", joint=joint, mass=1.0, com=(0.1, 0.05, 0.0), inertia=0.02 * np.eye(3))
        for i, joint in enumerate((dl.Free(), *(dl.Revolute(axis=e) for e in np.eye(3)[:2])))
    ]
    return dl.chain(bodies)


def sprung():
    path = [(None, (0.0, 0.0, 1.0)), ("link1", (0.2, 0.1, 0.0))]
    return dl.attach(arm(stiffness=2.0, damping=0.1), dl.Spring(path, 50.0, 0.3))


def touching():
    path = [(None, (0.0, 0.0, -0.3)), ("link1", (0.5, 0.0, 0.0))]
    return dl.attach(arm(), dl.PlaneContact(path, 1e3, (0.0, 0.0, 1.0)))


MACHINES = {
    "free": flying,
    "loop": lambda: four_bar()[0],
    "friction": lambda: arm(friction=0.2),
    "springs": sprung,
    "contact": touching,
    "stop": lambda: dl.attach(arm(lower=-0.35, upper=0.35), dl.JointStop(500.0)),
}
# One of those that differ in their tableau only.
METHODS = (
    *("SemiImplicitEuler", "BodyFixedEuler", "StormerVerlet", "CF4", "RKMK8", "BogackiShampine32"),
    *("RungeKutta43", "DormandPrince54", "ImplicitMidpoint", "GaussLegendre6", "EnergyMomentum"),
    *("VariationalMidpoint", "Moreau", "ConvexContact", "GeneralizedAlpha", "BDF2", "Rattle"),
)
REFUSED = {("VariationalMidpoint", "loop"), ("EnergyMomentum", "loop")}
QUICK = ("DormandPrince54", "friction")
# Operations are those of the method, with and without constraints, or those of the machine.
CASES = [(m, k) for m in METHODS for k in ("friction", "loop")]
CASES += [
    (m, k)
    for m in ("CF4", "ConvexContact", "GeneralizedAlpha")
    for k in MACHINES
    if (m, k) not in CASES
]


def moved(method, kind):
    """A number of the end of a short motion, as a function of the machine, and the machine."""
    if kind == "loop":
        system, q, v = four_bar()
    else:
        system = MACHINES[kind]()
        q = dl.integrate(system, system.neutral(), jnp.linspace(-0.4, 0.3, system.nv))
        v = jnp.linspace(0.5, -0.2, system.nv)

    def end(system):
        run = dl.simulate(system, q, v, dt=2e-3, steps=10, method=method)
        return jnp.sum(jnp.sin(run.q[-1])) + jnp.sum(jnp.cos(run.v[-1]))

    return end, system


@pytest.mark.thorough(
    "Rattle-friction",
    "GaussLegendre6-loop",
    "BDF2-loop",
    "ImplicitMidpoint-loop",
    "StormerVerlet-loop",
    "RKMK8-loop",
    "BogackiShampine32-loop",
    "DormandPrince54-loop",
    "RungeKutta43-loop",
    "CF4-loop",
)
@pytest.mark.parametrize(
    ("method", "kind"),
    [
        pytest.param(method, kind, marks=() if (method, kind) == QUICK else pytest.mark.slow)
        for method, kind in CASES
    ],
)
def test_motions_and_gradients_have_programs(method, kind, monkeypatch, capfd):
    """Guards that none runs the ordinary way, of which DIFFLIE_NATIVE=explain would tell."""
    monkeypatch.setenv("DIFFLIE_NATIVE", "explain")
    monkeypatch.setenv("DIFFLIE_TIERED", "0")
    end, system = moved(method, kind)
    if (method, kind) in REFUSED:
        with pytest.raises(ValueError, match=method):
            end(system)
        return
    value, gradient = jax.jit(jax.value_and_grad(end))(system)
    assert np.isfinite(value)
    assert any(np.any(leaf) for leaf in jax.tree.leaves(gradient))
    assert "native:" not in capfd.readouterr().out


# Each method, and each machine: the methods differ in their tableaus, not in their loops.
@pytest.mark.slow
@pytest.mark.thorough("BogackiShampine32-loop", "RungeKutta43-contact")
@pytest.mark.parametrize(
    ("method", "kind"),
    [("BogackiShampine32", "loop"), ("RungeKutta43", "contact"), ("DormandPrince54", "contact")],
)
def test_numbers_of_adaptive_methods_are_those_of_jax(method, kind, monkeypatch):
    """Guards loops inside that are repeated in both directions: gradients against tangents."""
    end, system = moved(method, kind)
    of_masses = lambda mass: end(system.replace(mass=mass))  # noqa: E731
    mass, change = system.bodies.mass, jnp.linspace(0.3, 1.0, len(system.bodies.mass))
    value, gradient = jax.jit(jax.value_and_grad(of_masses))(mass)
    monkeypatch.setenv("DIFFLIE_NATIVE", "0")
    wanted, along = jax.jit(lambda x, d: jax.jvp(of_masses, (x,), (d,)))(mass, change)
    np.testing.assert_allclose(value, wanted, rtol=1e-12)
    np.testing.assert_allclose(gradient @ change, along, rtol=1e-9)

"""What the steps of a method resolve: damping, friction, stiffness, and free flight."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import eigh

import difflie as dl
from difflie import integrators
from difflie.constraints import Proportional
from difflie.control import Effort, Problem


def link(name, parent=None):
    return dl.Body(
        name=name,
        parent=parent,
        joint=dl.Revolute(axis=(0, 1.0, 0)),
        position=(0.3, 0, 0),
        mass=1.0,
        com=(0.15, 0, 0),
        inertia=0.01 * np.eye(3),
    )


ARM = dl.chain([link("upper"), link("lower", "upper")])
SMOOTH = 0.01
STIFF = ARM.replace(
    friction=jnp.array([0.1, 0.3]),
    friction_velocity=jnp.full(2, SMOOTH),
    damping=jnp.array([0.4, 0.2]),
)
Q = jnp.array([0.1, 0.7])
BALL = dl.tree([dl.Body(name="ball", joint=dl.Free(), mass=0.4, inertia=0.004 * np.eye(3))])


def told(f):
    """What a function returns, and the texts of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return f(), [str(w.message) for w in caught]


@pytest.mark.parametrize("name", ["RKMK4", "CG3", "CF2", "RKMK8"])
def test_limits_are_where_a_linear_equation_grows(name):
    """Stepping dy/dt = z y: bounded just below the limits, growing just above."""
    method = integrators.by_name(name)

    def growth(z):
        def field(t, y):
            return jnp.array([z.real * y[0] - z.imag * y[1], z.imag * y[0] + z.real * y[1]])

        start = jnp.array([1.0, 0.0])
        end = integrators.single_step(method, dl.groups.Euclidean(2), field, 0.0, start, 1.0)
        return float(jnp.linalg.norm(end))

    real, imaginary = method.stability
    assert growth(complex(-real + 0.02)) <= 1 < growth(complex(-real - 0.02))
    assert growth(1j * (imaginary - 0.02)) <= 1.1 < growth(1j * (imaginary + 0.02))


def test_implicit_and_adaptive_methods_have_no_limits():
    for name in ("ImplicitMidpoint", "GeneralizedAlpha", "DormandPrince54", "BDF2"):
        assert integrators.by_name(name).stability is None


def test_numbers_are_eigenvalues():
    """Of dt M^-1 (D + friction / friction_velocity), and dt sqrt of those of M^-1 K."""
    system = STIFF.replace(stiffness=jnp.array([50.0, 900.0]))
    found = dl.simulate(system, Q, [0.0, 0.0], dt=1e-4, steps=1).result.resolution
    M = dl.mass_matrix(system, Q)
    D = np.diag(np.array([0.4, 0.2]) + np.array([0.1, 0.3]) / SMOOTH)
    np.testing.assert_allclose(found.damping, 1e-4 * eigh(D, M)[0][-1], rtol=1e-3)
    K = np.diag([50.0, 900.0])
    np.testing.assert_allclose(found.stiffness, 1e-4 * np.sqrt(eigh(K, M)[0][-1]), rtol=1e-3)
    assert found.good and not found.messages()


@pytest.mark.slow
def test_a_step_that_cannot_resolve_friction_says_so():
    """In the result and as a warning, with joint, step, and what would do."""
    run, said = told(lambda: dl.simulate(STIFF, Q, [0.0, 0.0], dt=2e-3, steps=5, method="RKMK4"))
    assert run.result.ok and not run.result.resolution.good
    (sentence,) = said
    assert "joint 'lower'" in sentence and "0.002 s" in sentence and "implicit" in sentence
    assert any("joint 'lower'" in m for m in run.result.messages())
    for given in ({"method": "DormandPrince54"}, {"method": "RKMK4", "dt": 1e-4}):
        _, said = told(
            lambda g=given: dl.simulate(STIFF, Q, [0.0, 0.0], **{"dt": 2e-3, "steps": 2} | g)
        )
        assert not any("joint" in s for s in said)
    assert dl.simulate(ARM, Q, [0.0, 0.0], dt=2e-3, steps=2).result.resolution is None


def test_step_and_problem_say_so_once():
    """Control loops step often: one warning for each machine, method and step."""
    system = STIFF.replace(damping=jnp.array([0.5, 0.3]))
    first = told(lambda: dl.step(system, Q, [0.0, 0.0], 3e-3))[1]
    again = told(lambda: dl.step(system, Q, [0.0, 0.0], 3e-3))[1]
    assert len(first) == 1 and first[0].startswith("step: joint 'lower'") and not again
    problem = told(lambda: Problem(system, Q, [0.0, 0.0], dt=4e-3, steps=5, running=[Effort()]))[1]
    assert len(problem) == 1 and problem[0].startswith("Problem: joint 'lower'")


@pytest.mark.slow
def test_under_transformations_nothing_is_warned_of_and_the_result_tells():
    """Traced numbers: the result has them, run by run; derivatives are finite."""

    def end(scale):
        system = STIFF.replace(friction=scale * jnp.array([0.1, 0.3]))
        return dl.simulate(system, Q, [0.0, 0.0], dt=2e-3, steps=2)

    runs, said = told(lambda: jax.vmap(end)(jnp.array([1e-3, 1.0])))
    assert not said
    np.testing.assert_array_equal(runs.result.resolution.good, [True, False])
    assert "in 1 of 2, first in 1: joint 'lower'" in str(runs.result)
    assert np.isfinite(jax.grad(lambda s: end(s).q[-1].sum())(1.0))


@pytest.mark.slow
def test_what_constraints_hold_is_not_counted():
    """A damper between parts that constraints couple to a heavy one is resolved."""
    system = dl.constrain(ARM, Proportional(["upper", "lower"], [1.0, -1.0]))
    system = system.replace(damping=jnp.array([0.0, 20.0]))
    found = dl.simulate(system, [0.0, 0.0], [0.0, 0.0], dt=1e-3, steps=1).result.resolution
    M = np.array([1.0, 1.0]) @ np.array(dl.mass_matrix(ARM, jnp.zeros(2))) @ np.array([1.0, 1.0])
    np.testing.assert_allclose(found.damping, 1e-3 * 20.0 / M, rtol=1e-6)


@pytest.mark.parametrize(
    ("method", "spin", "word"),
    [
        ("BodyFixedEuler", 50.0, "momentum"),
        ("CG2", 600.0, "momentum"),
        ("SemiImplicitEuler", 600.0, "turns by 0.6 rad"),
        ("SemiImplicitEuler", 50.0, ""),
        ("RKMK4", 50.0, ""),
        ("DormandPrince54", 50.0, ""),
    ],
)
def test_free_flight_that_loses_its_momentum_says_so(method, spin, word):
    """Gravity's own momentum does not count, and `ok` stays."""
    v = jnp.array([0, spin, 0, 1.0, 0, 0])
    run = dl.simulate(BALL, BALL.neutral(), v, dt=1e-3, steps=100, method=method, save_every=10)
    assert run.result.ok and bool(run.result.flight.good) == (not word)
    assert word in str(run.result) and ("free body" in str(run.result)) == bool(word)


@pytest.mark.slow
def test_free_flight_is_judged_only_where_nothing_else_acts():
    """At rest and falling it is fine; under dampers, wrenches and constraints nothing is said."""
    still, v = jnp.zeros(6), jnp.array([0, 50.0, 0, 1.0, 0, 0])
    given = {"dt": 1e-3, "steps": 100, "method": "BodyFixedEuler"}
    assert dl.simulate(BALL, BALL.neutral(), still, **given).result.flight.good
    damped = BALL.replace(damping=jnp.full(6, 0.1))
    assert dl.simulate(damped, BALL.neutral(), v, **given).result.flight.good
    pushed = dl.simulate(BALL, BALL.neutral(), v, wrench=jnp.ones((1, 6)), **given)
    assert pushed.result.flight is None


def test_constant_inputs():
    """A command (nu,) and wrenches (nb, 6) may be constant, as in `step`."""
    u, wrench = jnp.array([0.3, -0.2]), jnp.full((2, 6), 0.1)
    constant = dl.simulate(ARM, Q, [0.0, 0.0], dt=1e-2, steps=4, control=u, wrench=wrench)
    rows = {"control": jnp.tile(u, (4, 1)), "wrench": jnp.tile(wrench, (4, 1, 1))}
    np.testing.assert_array_equal(
        constant.q, dl.simulate(ARM, Q, [0.0, 0.0], dt=1e-2, steps=4, **rows).q
    )
    with pytest.raises(ValueError, match="control"):
        dl.simulate(ARM, Q, [0.0, 0.0], dt=1e-2, steps=4, control=jnp.zeros(3))

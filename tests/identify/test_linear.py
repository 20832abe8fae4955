"""The linear problem against the torques themselves, numpy's least squares, and its own noise."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trees import random_body, random_states

import difflie as dl
from difflie import identify as di
from difflie.identify.base_parameters import chi_names
from difflie.identify.torque_rows import linear_parameters
from difflie.parameters import divergence_terms

COUNT = 60


def machine():
    """A mimic joint, a spring, a ball, drives and a body fixed to the world; no two alike."""
    rng = np.random.default_rng(5)
    rub = {"damping": 0.4, "friction": 0.3, "armature": 0.1, "friction_velocity": 0.5}
    hinge = dl.Revolute(name="hinge", axis=(0.0, 1.0, 0.2), **rub)
    slide = dl.Prismatic(
        name="slide", axis=(0.3, 0.0, 1.0), stiffness=20.0, spring_reference=0.1, **rub
    )
    law = dl.Mimic("hinge", multiplier=-0.7, offset=0.2)
    follower = dl.Revolute(name="follower", axis=(1.0, 0.0, 0.0), mimic=law, **rub)
    bodies = [
        random_body(rng, "stand", dl.Fixed()),
        random_body(rng, "upper", hinge, "stand"),
        random_body(rng, "lower", slide, "upper"),
        random_body(rng, "side", follower, "upper"),
        random_body(rng, "hand", dl.Spherical(name="wrist", **rub), "lower"),
    ]
    system = dl.tree(bodies)
    drives = [dl.Drive(name) for name in ("hinge", *(f"wrist[{i}]" for i in range(3)))]
    drives.insert(1, dl.Drive("slide", torque_scale=1.2, torque_bias=0.3))
    return dl.attach(system, *drives)


TRUE = machine()
FREE = ["[!s]*/inertial", "side/inertial", "*/damping", "*/friction", "*/armature"]


@pytest.fixture(scope="module")
def problem():
    """Exact torques; a state and two torques are gaps."""
    q, v, a, _, _ = random_states(TRUE, COUNT, seed=1)
    t = 0.1 * np.arange(COUNT)
    silent = di.InverseDynamics.of(TRUE, [di.Recording("", t, q, v, a, np.zeros_like(v))])
    tau = np.array(jax.jit(lambda system: silent.torques(system))(TRUE))
    tau[:, 1] = (tau[:, 1] - 0.3) / 1.2
    tau[3, 1:3] = np.nan
    q[7, 0] = np.nan
    recording = di.Recording("random", t, q, v, a, tau)
    return di.InverseDynamics.of(TRUE, [recording], (0.1, 0.2, 0.3, 0.4, 0.5))


@pytest.fixture(scope="module")
def exact(problem):
    return di.linear(TRUE, problem)


def noisy(problem, seed):
    noise = np.random.default_rng(seed).normal(size=problem.tau.shape) * problem.deviation
    return dataclasses.replace(problem, tau=problem.tau + noise)


def other(seed):
    """Another machine with the same geometry."""
    rng = np.random.default_rng(seed)
    rows = len(TRUE.joints.damping)
    numbers = {name: rng.uniform(0.1, 1, rows) for name in ("damping", "friction", "armature")}
    bodies = [random_body(rng, name, dl.Fixed()) for name in TRUE.body_names]
    values = {name: np.array([getattr(b, name) for b in bodies]) for name in ("mass", "com")}
    return TRUE.replace(**numbers, **values, inertia=np.array([b.inertia for b in bodies]))


@pytest.mark.slow
def test_few_rows_stand_for_all_torques(problem, exact):
    """The sum of squares is that of the recursive inverse dynamics, for any machine."""
    residual = jax.jit(lambda s: jnp.sum(problem.residual(s, problem.own) ** 2))
    few = jax.jit(lambda s: jnp.sum(exact.torques.residual(s, problem.own) ** 2))
    for seed in range(3):
        np.testing.assert_allclose(few(other(seed)), residual(other(seed)), rtol=1e-11)
    assert float(residual(TRUE)) < 1e-20
    assert exact.torques.measured.shape[0] < int(problem.measured.sum())


def test_base_parameters_without_noise(exact):
    names = chi_names(TRUE)
    assert len(names) == exact.base.matrix.shape[1] == linear_parameters(TRUE).size
    assert names[10] == "upper/mass" and "wrist/friction[2]" in names and "hinge/damping" in names
    np.testing.assert_allclose(exact.values, exact.of(TRUE), rtol=1e-8, atol=1e-10)
    assert exact.variance < 1e-20
    kept = [names[k] for k in exact.base.columns]
    assert [n.split(" ")[0] for n in exact.names] == kept
    assert not any(n.startswith("stand/") for n in kept)


def test_inertial_base_parameters_are_those_of_the_machine():
    rng = np.random.default_rng(9)
    hinge = dl.Revolute(axis=(1.0, 0.0, 0.3))
    two = dl.chain([random_body(rng, name, hinge) for name in ("one", "two")])
    q, v, a, tau, _ = random_states(two, COUNT, seed=2)
    recording = di.Recording("random", np.arange(COUNT), q, v, a, tau)
    found = di.linear(two, di.InverseDynamics.of(two, [recording]), joints=())
    base = dl.base_parameters(two)
    np.testing.assert_array_equal(found.base.columns, base.columns)
    np.testing.assert_allclose(found.base.matrix, base.matrix, atol=1e-8)


@pytest.mark.slow
def test_estimates_and_errors_are_those_of_least_squares(problem):
    data = noisy(problem, 3)
    found = di.linear(TRUE, data)
    chi = linear_parameters(TRUE)

    @jax.jit
    @jax.jacfwd
    def derivative(change):
        pi, *rows = jnp.split(chi + change, (50, 56, 62))
        numbers = dict(zip(("armature", "damping", "friction"), rows, strict=True))
        system = dl.with_inertial_parameters(TRUE.replace(**numbers), pi.reshape(5, 10))
        return data.residual(system, data.own)

    w = np.asarray(derivative(jnp.zeros_like(chi)))[:, found.base.columns]
    off = np.asarray(data.residual(TRUE, data.own))
    there = np.asarray(data.measured)
    values, rss, rank, _ = np.linalg.lstsq(w, -off, rcond=None)
    assert rank == found.base.rank
    np.testing.assert_allclose(found.values, found.of(TRUE) + values, rtol=1e-8, atol=1e-9)
    variance = rss[0] / (there.sum() - rank)
    assert found.variance == pytest.approx(variance, rel=1e-9)
    covariance = variance * np.linalg.inv(w.T @ w)
    np.testing.assert_allclose(found.white_errors, np.sqrt(np.diag(covariance)), rtol=1e-7)
    known = di.linear(TRUE, data, known_deviations=True)
    np.testing.assert_allclose(known.white_errors * variance**0.5, found.white_errors)


@pytest.mark.slow
def test_errors_tell_how_far_estimates_are_off(problem, exact):
    """Of intervals too, whose Student's t knows that few rows tell many numbers."""
    scores, inside, true = [], [], exact.of(TRUE)
    for seed in range(60):
        found = di.linear(TRUE, noisy(problem, seed))
        scores.append((found.values - true) / found.white_errors)
        lower, upper = found.intervals.T
        inside.append((lower < true) & (true < upper))
    assert 0.9 < np.std(scores) < 1.1
    assert 0.93 < np.mean(inside) < 0.97


@pytest.mark.slow
def test_residuals_tell_the_deviation_of_each_joint(problem):
    deviation = np.asarray(problem.deviation)[0]
    alike = dataclasses.replace(noisy(problem, 4), deviation=jnp.asarray(np.full(5, 0.3)))
    found = di.linear(TRUE, alike)
    np.testing.assert_allclose(found.deviations, deviation, rtol=0.5)
    again = di.linear(TRUE, dataclasses.replace(alike, deviation=jnp.asarray(found.deviations)))
    assert again.variance == pytest.approx(1, abs=0.15)


def pseudo(system):
    b = system.bodies
    return np.asarray(dl.parameters.pseudo_inertia(b.mass, b.com, b.inertia))


@pytest.mark.slow
def test_the_consistent_machine_is_the_same_from_wherever_it_is_sought(problem, exact):
    """Where torques tell; a solution that is consistent already is kept."""
    for seed in (1, 2):
        found = exact.consistent(dl.Parameters(other(seed), FREE))
        off = np.abs(exact.of(found.system) - exact.of(TRUE)).max()
        assert found.converged, found.message
        assert off < 1e-5
        assert np.linalg.eigvalsh(pseudo(found.system)).min() > 0
    close = exact.consistent(dl.Parameters(TRUE, FREE))
    np.testing.assert_allclose(close.system.bodies.mass, TRUE.bodies.mass, rtol=1e-6)


@pytest.mark.slow
def test_a_solution_without_bodies_becomes_a_machine(problem):
    """Little is told by few and noisy torques; their best machine still has positive masses."""
    deviation = jnp.asarray(np.full(5, 5.0))
    few = dataclasses.replace(problem, there=problem.there.at[14:].set(False), deviation=deviation)
    found = di.linear(TRUE, noisy(few, 6))
    best = found.consistent(dl.Parameters(TRUE, FREE))
    assert best.converged, best.message
    assert np.linalg.eigvalsh(pseudo(best.system)).min() > 0
    assert float(best.system.joints.friction.min()) > 0
    # No machine has the linear solution: it cannot be reached, but others are no better.
    assert np.abs((found.of(best.system) - found.values) / found.standard_errors).max() > 0.5
    near, scale = di.NominalPrior.of(TRUE, 1e-3), 1 / found.noise

    @jax.jit
    @jax.vmap
    def cost(x):
        system = best.parameters.system_at(x)
        linear = jnp.sum(found.torques.residual(system, x[:0]) ** 2)
        return (scale**2 * linear + jnp.sum(near.residual(system, x[:0]) ** 2)) / 2

    changes = np.random.default_rng(0).normal(size=(40, len(best.x))) * 0.1
    costs = np.asarray(cost(jnp.asarray(best.x + np.vstack((0 * best.x, changes, changes / 100)))))
    assert costs[0] == pytest.approx(best.cost, rel=1e-9)
    assert costs.min() > best.cost * (1 - 1e-3)


@pytest.mark.slow
def test_what_torques_do_not_tell_stays_near(exact):
    """Of the first body only the inertia about its axis, and what acts like it, can be told."""
    start = TRUE.replace(mass=TRUE.bodies.mass.at[1].set(2.5))
    found = exact.consistent(dl.Parameters(start, FREE), weight=1e-2)
    assert found.converged, found.message
    assert np.isfinite(found.standard_errors[:40]).all()
    assert 2.0 < float(found.system.bodies.mass[1]) < 3.0


@pytest.mark.slow
def test_divergence_is_its_definition():
    one, two = other(3), other(4)
    near = di.NominalPrior.of(one, weight=2.5)
    terms = near.residual(two, jnp.zeros(0)).reshape(-1, 10)
    for row, j, j0 in zip(terms, pseudo(two), pseudo(one), strict=True):
        ratio = np.linalg.solve(j0, j)
        d = np.trace(ratio) - np.linalg.slogdet(ratio)[1] - 4
        assert float(jnp.sum(row**2)) == pytest.approx(2.5 * d, rel=1e-10)
    assert float(jnp.abs(near.residual(one, jnp.zeros(0))).max()) < 1e-14
    massless = di.NominalPrior.of(one.replace(mass=one.bodies.mass.at[2].set(0.0)))
    assert massless.bodies == (0, 1, 3, 4) and massless.measured.sum() == 40


def test_bodies_are_near_the_nearest_of_an_inertia_that_no_body_has():
    """As fits start there: at the start the divergence is zero."""
    flat = other(3).bodies.inertia.at[2].set(np.diag([0.01, 0.01, 0.1]))
    system = other(3).replace(inertia=flat)
    free = dl.Parameters(system, ["*/inertial"])
    near = di.NominalPrior.of(system)
    assert near.bodies == (0, 1, 2, 3, 4)
    residual = near.residual(free.system_at(free.start), jnp.zeros(0))
    np.testing.assert_allclose(residual, 0, atol=1e-7)


def test_derivatives_of_the_divergence():
    rng = np.random.default_rng(8)
    nominal, step = jnp.asarray(rng.normal(size=(2, 10)) * 0.3)
    at = jax.jit(lambda x: divergence_terms(x, nominal.astype(x.dtype)))
    ahead, back = jax.jit(jax.jacfwd(at)), jax.jit(jax.jacrev(at))
    h = 1e-6
    for size in (0.0, 1e-9, 1e-3, 0.499, 0.501, 2.0):
        theta = nominal.at[0].add(size)
        difference = (at(theta + h * step) - at(theta - h * step)) / (2 * h)
        np.testing.assert_allclose(ahead(theta) @ step, difference, atol=1e-8)
        np.testing.assert_allclose(back(theta), ahead(theta), atol=1e-12)
        single = at(theta.astype(np.float32))
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, at(theta), atol=2e-6 * np.exp(size))


@pytest.mark.slow
def test_what_is_not_linear_is_said(problem):
    with pytest.raises(di.DataError, match="not linear in 'dampin'; did you mean 'damping'"):
        di.linear(TRUE, problem, joints=("dampin",))
    few = dataclasses.replace(problem, there=problem.there.at[2:].set(False))
    with pytest.raises(di.DataError, match="10 measurements cannot tell 10 base parameters"):
        di.linear(TRUE, few)
    for weight in (0.0, -1.0, np.inf):
        with pytest.raises(ValueError, match="must be positive and finite"):
            di.NominalPrior.of(TRUE, weight)

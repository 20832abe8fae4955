"""Ipopt as a solver: its derivatives, its optima against the other solvers, and collocation."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from machines import satellite
from scipy.linalg import expm
from small_problems import around_a_pillar, block, pendulum, slew, straight_way

import difflie as dl
from difflie import control as dc
from difflie.constraints import Proportional
from difflie.control.discretization import Discretization
from difflie.control.nonlinear_program import Program, constraints, curvatures, slopes, values
from difflie.control.solve import first_motion

pytest.importorskip("ipyopt")


@pytest.mark.slow
@pytest.mark.thorough("HermiteSimpson()")
@pytest.mark.parametrize("transcription", [dc.Shooting(), dc.HermiteSimpson()], ids=str)
def test_sparse_derivatives_are_those_of_the_functions(transcription):
    """On a manifold, with linear controls and a free duration, away from the given motion."""
    limits = dc.Limits(v=jnp.full(3, 4.0))
    terms = {"interpolation": "linear", "duration": (0.5, 2.0), "limits": limits}
    problem = slew(2, final=[dc.Duration(), dc.State(jnp.array([0.8, 0.0, 0.6, 0.0]))], **terms)
    knots = Discretization.of(problem)
    motion, _ = first_motion(problem, knots, None)
    program = Program(knots, transcription, motion)
    pattern = program.pattern()
    rng = np.random.default_rng(0)
    X = jnp.asarray(0.1 * rng.normal(size=program.size))
    y = rng.normal(size=program.constraint_bounds()[0].size)
    weights = program.weights(0.7, y)

    def whole(X):
        v = values(program, X)
        parts = v.gaps, v.bounded, v.end_bounded
        g = jnp.concatenate([jnp.ravel(part) for part in parts])
        return jnp.sum(v.cost) + v.end_cost, g

    s = slopes(program, X)
    gradient, dense = jax.jit(jax.jacfwd(whole))(X)
    np.testing.assert_allclose(program.gathered(s.cost, s.end_cost), gradient, atol=1e-12)
    sparse = np.zeros((pattern.rows.size, program.size))
    np.add.at(sparse, pattern.jacobian, constraints(s)[pattern.of_jacobian])
    np.testing.assert_allclose(sparse, dense[pattern.rows], atol=1e-12)
    lagrangian = lambda X: 0.7 * whole(X)[0] + y @ whole(X)[1]  # noqa: E731
    dense = jax.jit(jax.jacfwd(jax.jacfwd(lagrangian)))(X)
    blocks = np.concatenate([np.ravel(b) for b in curvatures(program, X, weights)])
    sparse = np.zeros_like(dense)
    np.add.at(sparse, pattern.hessian, blocks[pattern.of_hessian])
    np.testing.assert_allclose(sparse, np.tril(dense), atol=1e-11)


PROBLEMS = {
    "box": (lambda: block(20, limits=dc.Limits(u_lower=-5.5, u_upper=5.5)), lambda p: None),
    "pendulum": (pendulum, lambda p: None),
    "pillar": (around_a_pillar, straight_way),
    "slew": (slew, lambda p: None),
}


@pytest.mark.slow
@pytest.mark.thorough("slew")
@pytest.mark.parametrize("name", PROBLEMS)
def test_its_optima_are_those_of_the_interior_point_method(name):
    """Costs, controls, costates and multipliers."""
    made, guess = PROBLEMS[name]
    problem = made()
    plan, other = (
        dc.solve(problem, solver, guess(problem)) for solver in (dc.Ipopt(), dc.InteriorPoint())
    )
    assert plan.result.converged and other.result.converged
    np.testing.assert_allclose(plan.cost, other.cost, rtol=1e-7)
    np.testing.assert_allclose(plan.u, other.u, atol=1e-4)
    pairs = zip(plan.multipliers, other.multipliers, strict=True)
    for mine, its in ((plan.costates, other.costates), *pairs):
        np.testing.assert_allclose(mine, its, atol=1e-4 * (1 + np.max(np.abs(its), initial=0)))
    assert max(plan.result.kkt[:3]) < 1e-6
    costs = plan.result.costs[: plan.result.iterations + 1]
    np.testing.assert_allclose(costs[-1], plan.cost, rtol=1e-7)


@pytest.mark.slow
@pytest.mark.thorough("Trapezoidal()-2")
@pytest.mark.parametrize(
    ("transcription", "order"), [(dc.Trapezoidal(), 2), (dc.HermiteSimpson(), 4)], ids=str
)
def test_collocation_converges_at_its_order(transcription, order):
    """To the cost of int (u^2 + q^2 + v^2) / 2 dt for a block, from the matrix exponential."""
    A, B = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])
    flow = expm(np.block([[A, -B @ B.T], [-np.eye(2), -A.T]]))
    start = np.array([1.0, 0.0])
    # The costate at the end is zero.
    exact = -start @ np.linalg.solve(flow[2:, 2:], flow[2:, :2] @ start) / 2
    errors = []
    for steps in (4, 8):
        running = [dc.Effort(1.0), dc.State([0.0], 1.0)]
        problem = block(steps, running=running, final=[], interpolation="linear")
        problem = problem.replace(q0=[1.0])
        plan = dc.solve(problem, dc.Ipopt(transcription=transcription, tolerance=1e-10))
        errors.append(abs(float(plan.cost) - exact))
    assert errors[0] / errors[1] > 2 ** (order - 0.5)
    assert errors[1] < {2: 1e-2, 4: 1e-4}[order]


@pytest.mark.thorough
def test_collocation_on_a_manifold_is_the_same_problem():
    """A slew by Hermite and Simpson costs what it does with many steps of a method of order 4."""
    fine = dc.solve(slew(60, method="RKMK4"), dc.InteriorPoint())
    plan = dc.solve(slew(10, interpolation="linear"), dc.Ipopt(transcription=dc.HermiteSimpson()))
    np.testing.assert_allclose(plan.cost, fine.cost, rtol=1e-3)


@pytest.mark.slow
def test_what_cannot_be_says_where():
    plan = dc.solve(block(limits=dc.Limits(u_lower=-1.0, u_upper=1.0)), dc.Ipopt())
    assert not plan.result.converged and "the violation of a bound" in str(plan.result)


def test_it_ends_when_asked():
    """By its own options, by time, and by Ctrl-C, with what there is."""
    problem = block(20, limits=dc.Limits(u_lower=-5.5, u_upper=5.5))
    plan = dc.solve(problem, dc.Ipopt({"max_iter": 2}))
    assert plan.result.status == dc.Status.OUT_OF_ITERATIONS
    plan = dc.solve(problem, dc.Ipopt(), seconds=0.0)
    assert plan.result.status == dc.Status.OUT_OF_TIME
    seen = []

    def stop(iteration, cost):
        seen.append(cost)
        if iteration == 3:
            raise KeyboardInterrupt

    plan = dc.solve(problem, dc.Ipopt(), progress=stop)
    assert plan.result.status == dc.Status.INTERRUPTED and len(seen) == 4
    np.testing.assert_allclose(plan.cost, seen[-1])


@pytest.mark.slow
def test_it_differentiates_outside_of_compiled_programs(monkeypatch):
    """The gradient of the cost is that of others; in jax.jit, and without ipyopt, it says so."""
    problem = block(20, limits=dc.Limits(u_lower=-5.5, u_upper=5.5))
    cost = lambda q, solver: dc.solve(problem.replace(q0=q), solver).cost  # noqa: E731
    mine, other = (
        jax.grad(cost)(jnp.zeros(1), solver) for solver in (dc.Ipopt(), dc.InteriorPoint())
    )
    np.testing.assert_allclose(mine, other, rtol=1e-7)
    with pytest.raises(TypeError, match=r"cannot run under jax\.jit"):
        jax.jit(lambda q: cost(q, dc.Ipopt()))(jnp.zeros(1))
    monkeypatch.setitem(sys.modules, "ipyopt", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[ipopt\]'"):
        cost(jnp.zeros(1), dc.Ipopt())


@pytest.mark.slow
def test_collocation_knows_no_closed_loops():
    links = {"mass": 1.0, "com": (0.5, 0.0, 0.0), "joint": dl.Revolute(axis=(0.0, 1.0, 0.0))}
    arm = dl.chain([dl.Body(name=name, **links, position=(1.0, 0, 0)) for name in "ab"])
    geared = dl.constrain(arm, Proportional(("a", "b"), (1.0, 2.0)))
    problem = dc.Problem(geared, [0.0] * 2, [0.0] * 2, dt=0.1, steps=2, running=[dc.Effort()])
    with pytest.raises(ValueError, match="collocation knows no constraints"):
        dc.solve(problem, dc.Ipopt(transcription=dc.Trapezoidal()))


@pytest.mark.slow
@pytest.mark.thorough("1000.0*")
@pytest.mark.parametrize(("share", "cost"), [(1e3, 0.8030435133), (0.35, 0.8142511294)])
def test_the_arm(share, cost):
    """The optima of Crocoddyl 3.2.1, free and boxed."""
    from arm_reach import arm_reach

    plan = dc.solve(arm_reach(share), dc.Ipopt())
    np.testing.assert_allclose(plan.cost, cost, rtol=1e-9)


@pytest.mark.slow
def test_a_bound_of_ones_own_on_a_machine_with_a_quaternion():
    """What users bound may check its configuration: none of zeros is ever asked for."""
    place = dc.Bounded(lambda s, q, v, u, t: dl.body_poses(s, q)[0, :1, 3], -0.5, 0.05)
    problem = dc.Problem(
        *(satellite(), satellite().neutral(), jnp.zeros(6)),
        dt=0.1,
        steps=4,
        running=[dc.Effort(1e-2), place],
        final=[dc.State([1.0, 0, 0, 0, 0.2, 0, 0], 10.0)],
    )
    plan = dc.solve(problem, dc.Ipopt())
    assert plan.result.converged and jnp.max(plan.q[:, 4]) < 0.05 + 1e-6

"""FDDP against closed forms, published optima, and itself from other starts and in other forms."""

import subprocess
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from machines import move, pendulum, satellite, slider, swing

import difflie as dl
from difflie import control as dc
from difflie.control.discretization import Discretization, Motion, Point
from difflie.control.linear_quadratic import with_bounds, with_exact_hessian
from difflie.control.model import model_of
from difflie.groups import quaternion

SLOW = pytest.mark.slow


@pytest.mark.slow
def test_a_linear_machine_is_solved_in_one_iteration():
    """The block without bounds: one step finds the optimum of one large least-squares problem."""
    n, dt = 20, 0.1
    problem = dc.Problem(
        slider(),
        [1.0],
        [0.0],
        dt=dt,
        steps=n,
        running=[dc.State([0.0], 1.0), dc.Effort(0.1)],
        final=[dc.State([0.0], 10.0)],
    )
    plan = dc.solve(problem)
    assert plan.result.converged and plan.result.iterations == 1
    A, B = np.array([[1.0, dt], [0.0, 1.0]]), np.array([dt**2, dt])
    states = np.zeros((n + 1, 2, n))
    free = [np.array([1.0, 0.0])]
    for k in range(n):
        states[k + 1] = A @ states[k]
        states[k + 1, :, k] += B
        free.append(A @ free[-1])
    weight = np.repeat([*[dt] * n, 10.0], 2)
    M = states.reshape(2 * n + 2, n)
    H = M.T * weight @ M + 0.1 * dt * np.eye(n)
    u = -np.linalg.solve(H, M.T * weight @ np.concatenate(free))
    np.testing.assert_allclose(plan.u[:, 0], u, atol=1e-9)


def test_a_block_moved_from_rest_to_rest():
    """u = 6 - 12 t and int u^2 = 12, up to the step size."""
    plan = dc.solve(move(100))
    assert plan.result.converged
    t = np.asarray(plan.t[:-1]) + 0.005
    np.testing.assert_allclose(plan.u[:, 0], 6 - 12 * t, atol=0.07)
    np.testing.assert_allclose(plan.cost, 12, rtol=2e-3)
    np.testing.assert_allclose(plan.q[-1], 1.0, atol=1e-6)


def slew(turn, start=(1.0, 0.0, 0.0, 0.0), about=(1.0, 0.0, 0.0, 0.0), steps=20):
    """The satellite turns by a rotation vector; the world is turned by the quaternion `about`."""
    pose = lambda p: jnp.concatenate((quaternion.multiply(jnp.asarray(about), p), jnp.zeros(3)))  # noqa: E731
    start = jnp.asarray(start)
    goal = pose(quaternion.multiply(start, quaternion.exp(jnp.asarray(turn))))
    return dc.Problem(
        satellite(),
        pose(start),
        jnp.zeros(6),
        dt=1.0 / steps,
        steps=steps,
        running=[dc.Effort(1.0)],
        final=[dc.State(goal, 1e3)],
    )


@pytest.mark.slow
def test_a_slew_about_one_axis():
    """A torque I theta (6 - 12 t) turns a body about a principal axis from rest to rest."""
    angle = 2.0
    plan = dc.solve(slew([0.0, 0.0, angle]))
    assert plan.result.converged
    t = (np.arange(20) + 0.5) / 20
    np.testing.assert_allclose(plan.u[:, 2], 0.4 * angle * (6 - 12 * t), rtol=0.03, atol=0.03)
    np.testing.assert_allclose(np.delete(plan.u, 2, axis=1), 0, atol=1e-6)


@pytest.mark.slow
def test_the_choice_of_the_world_frame_changes_nothing():
    """Start and goal turned together, and the other sign of the quaternion: the same iterates."""
    turn = [0.9, -1.2, 0.5]
    plans = [
        dc.solve(slew(turn)),
        dc.solve(slew(turn, about=quaternion.exp(jnp.array([0.4, 1.1, -0.3])))),
        dc.solve(slew(turn, start=(-1.0, 0.0, 0.0, 0.0))),
    ]
    for plan in plans:
        assert plan.result.converged
        np.testing.assert_allclose(plan.u, plans[0].u, atol=1e-9)
        np.testing.assert_allclose(plan.result.costs, plans[0].result.costs, rtol=1e-9)


@pytest.mark.slow
def test_starts_with_and_without_gaps_meet():
    """A motion as the guess and a line through the air end in the same optimum."""
    problem = swing(limits=dc.Limits(u_lower=-12.0, u_upper=12.0))
    cold = dc.solve(problem)
    rolled = dc.solve(problem, guess=jnp.full((30, 1), 0.5))
    line = jnp.linspace(0, jnp.pi, 31)[:, None]
    straight = dc.solve(problem, guess=(line, 0 * line, jnp.zeros((30, 1))))
    for plan in (rolled, straight):
        assert plan.result.converged
        np.testing.assert_allclose(plan.cost, cold.cost, rtol=1e-9)
        np.testing.assert_allclose(plan.u, cold.u, atol=1e-4)
    again = dc.solve(problem, guess=cold)
    assert again.result.converged and again.result.iterations == 0


@pytest.mark.slow
def test_controls_keep_their_box():
    """Some are at a bound, where their gains are zero, and some are not."""
    problem = swing()
    plan = dc.solve(problem, dc.FDDP(tolerance=1e-10))
    u = np.asarray(plan.u)
    assert np.abs(u).max() == 4.0 and (np.abs(u) < 4.0).any()
    assert np.all(np.asarray(plan.gains)[np.abs(u[:, 0]) == 4.0] == 0)


@pytest.mark.slow
def test_plain_compiled_and_batched_searches_have_the_same_iterates():
    problem = swing()
    starts = jnp.array([[0.0], [0.2], [-0.1]])
    solve = lambda q: dc.solve(problem.replace(q0=q))  # noqa: E731
    plain = [solve(q) for q in starts]
    jitted, batched = jax.jit(solve)(starts[1]), jax.vmap(solve)(starts)
    np.testing.assert_allclose(jitted.u, plain[1].u, atol=1e-11)
    for i, plan in enumerate(plain):
        assert plan.result.iterations == batched.result.iterations[i]
        np.testing.assert_allclose(batched.u[i], plan.u, atol=1e-9)
        np.testing.assert_allclose(batched.result.costs[i], plan.result.costs, rtol=1e-9)


@pytest.mark.slow
def test_single_precision_stays_single():
    plan, exact = dc.solve(swing(pendulum().astype("float32"))), dc.solve(swing())
    assert plan.u.dtype == plan.cost.dtype == plan.gains.dtype == "float32"
    assert plan.result.converged
    np.testing.assert_allclose(plan.cost, exact.cost, rtol=1e-4)


@pytest.mark.thorough
def test_a_variational_method():
    """The optimum of other steps is their own, and near."""
    plan = dc.solve(swing(method="VariationalMidpoint"))
    assert plan.result.converged
    np.testing.assert_allclose(plan.cost, dc.solve(swing()).cost, rtol=0.1)


@SLOW
def test_linear_controls():
    """The controls at the knots keep the box, also the first; the motion is that of a finer one."""
    problem = swing(interpolation="linear", method="RKMK4")
    plan = dc.solve(problem)
    assert plan.result.converged and plan.u.shape == (31, 1)
    assert np.abs(plan.u).max() <= 4.0
    control = dl.FirstOrderHold(plan.u)
    run = dl.simulate(problem.system, plan.q[0], plan.v[0], dt=0.05, steps=30, control=control)
    np.testing.assert_allclose(run.q, plan.q, atol=1e-6)


@SLOW
def test_a_free_duration():
    """Least time for the block between bounds of its force: bang-bang, 2 sqrt(m d / f)."""
    problem = move(
        steps=30,
        running=[dc.Effort(1e-4)],
        final=[dc.ReachState([1.0]), dc.Duration(1.0)],
        limits=dc.Limits(u_lower=-1.0, u_upper=1.0),
        duration=(0.5, 5.0),
    )
    plan = dc.solve(problem)
    assert plan.result.converged
    np.testing.assert_allclose(plan.duration, 2.0, rtol=2e-2)


@pytest.mark.slow
def test_the_exact_hessian():
    """Against jax.hessian of the Lagrangian."""
    problem = swing(steps=5, method="SemiImplicitEuler")
    knots = Discretization.of(problem)
    rng = np.random.default_rng(0)
    x = Point(*(jnp.asarray(rng.standard_normal((6, 1))) for _ in range(2)), jnp.zeros((6, 0)))
    motion = Motion(x, jnp.asarray(rng.standard_normal((5, 1))))
    lam = jnp.asarray(rng.standard_normal((6, 2)))
    none = jnp.zeros((5, 0)), jnp.zeros(0)
    model = model_of(knots, motion)
    lq = with_bounds(model, 0, (none[0], none[0]), (none[1], none[1]))
    H = with_exact_hessian(knots, motion, lam, none, lq).H[2]

    def lagrangian(d):
        at, end = (Point(x.q[k], x.v[k], x.z[k]) for k in (2, 3))
        at, u = knots.retract(at, d[:2]), motion.u[2] + d[2:]
        r, w = knots.residuals(at, u, 2.0)
        return w @ r**2 / 2 + lam[3] @ knots.difference(end, knots.step(at, u, 2.0))

    np.testing.assert_allclose(H, jax.hessian(lagrangian)(jnp.zeros(3)), atol=1e-9)


@pytest.mark.slow
def test_a_search_that_ends_early_says_why():
    """Out of iterations, of time, interrupted: the best is kept, and the condition that is left."""
    problem = swing()
    plan = dc.solve(problem, dc.FDDP(iterations=2))
    assert plan.result.status == dc.Status.OUT_OF_ITERATIONS and plan.result.iterations == 2
    assert "out of iterations after 2" in str(plan.result) and "at knot" in str(plan.result)
    assert dc.solve(problem, seconds=0.0).result.status == dc.Status.OUT_OF_TIME

    def interrupt(iteration, cost):
        if iteration == 3:
            raise KeyboardInterrupt

    plan = dc.solve(problem, progress=interrupt)
    assert plan.result.status == dc.Status.INTERRUPTED and np.isfinite(plan.cost)
    closed = dc.Equal(lambda system, q, v, u, t: q**2 + 1.0)
    plan = dc.solve(swing(final=[closed]), dc.FDDP(iterations=40))
    assert not plan.result.converged
    assert "the violation of a bound" in str(plan.result) and "at knot 30" in str(plan.result)


@SLOW
def test_an_arm_against_crocoddyl():
    """The optima of Crocoddyl 3.2.1, free and in a box, where a cold start ends in the same one."""
    from arm_reach import arm_reach

    for box, cost, most in ((1e3, 0.8030435133982765, 8), (0.35, 0.814251129455368, 22)):
        plan = dc.solve(arm_reach(box))
        assert plan.result.converged
        np.testing.assert_allclose(plan.cost, cost, rtol=1e-9)
        costs = np.asarray(plan.result.costs)
        assert np.argmax(np.abs(costs / cost - 1) < 1e-6) <= most
    warm = dc.solve(arm_reach(0.35), guess=dc.solve(arm_reach(1e3)).u)
    np.testing.assert_allclose(warm.cost, cost, rtol=1e-9)


@SLOW
def test_without_native_code():
    """The ordinary way finds the same."""
    code = (
        "import sys; sys.path.insert(0, 'tests/control'); import jax;"
        "jax.config.update('jax_enable_x64', True); from machines import swing;"
        "from difflie import control as dc; print(repr(float(dc.solve(swing()).cost)))"
    )
    environment = {**__import__("os").environ, "DIFFLIE_NATIVE": "0"}
    made = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    np.testing.assert_allclose(float(made.stdout), dc.solve(swing()).cost, rtol=1e-9)


@SLOW
def test_a_closed_loop_and_a_spring():
    """A four-bar linkage with a spring: its constraint is kept, the plan converges."""
    crank = dl.Body(
        name="crank",
        joint=dl.Revolute(axis=(0.0, 1.0, 0.0)),
        mass=0.5,
        com=(0.1, 0.0, 0.0),
        inertia=np.diag([0.01, 0.01, 0.01]),
    )
    rod = replace(crank, name="rod", position=(0.2, 0.0, 0.0))
    system = dl.chain([crank, rod], name="crank", gravity=(0.0, 0.0, 0.0))
    tip, post = dl.Frame("rod", (0.2, 0.0, 0.0)), dl.Frame(None, (0.6, 0.0, 0.0))
    system = dl.constrain(system, dl.constraints.Distance(tip, post, 0.3))
    spring = dl.Spring([(None, (0.8, 0.0, 0.0)), ("rod", (0.2, 0.0, 0.0))], 20.0, 0.1)
    system = dl.attach(system, spring)
    q0, _ = dl.assemble(system, jnp.array([-0.5, 0.8]))
    problem = dc.Problem(
        system,
        q0,
        jnp.zeros(2),
        dt=0.02,
        steps=25,
        running=[dc.Effort(1e-2), dc.Velocity(1e-2)],
        final=[dc.Point(tip, [0.31, 0.0, 0.08], 100.0)],
        inputs=dc.Motors("crank"),
        method="RKMK4",
    )
    plan = dc.solve(problem)
    assert plan.result.converged
    residuals = jax.vmap(lambda q: dl.constraint_residual(system, q))(plan.q)
    np.testing.assert_allclose(residuals, 0, atol=1e-8)

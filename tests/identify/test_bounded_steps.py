"""Values that are best at a bound settle there in a few steps, and leave it where it is wrong."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import lsq_linear

import difflie as dl
from difflie import identify as di
from difflie.identify.elimination import Linearised

T = 0.01 * np.arange(400)
HINGE = dl.Revolute(name="hinge", axis=(0, 1, 0))
ARM = dl.chain(
    [dl.Body(name="arm", joint=HINGE, mass=1.0, com=(0, 0, -0.3), inertia=0.02 * np.eye(3))]
)
TRUE = ARM.replace(mass=np.array([1.4]), damping=np.array([0.1]), armature=np.array([0.01]))


def problem(dtype="float64"):
    """Torques of a pendulum without friction, with noise and a few gross errors."""
    q, v, a = np.sin(3 * T), 3 * np.cos(3 * T), -9 * np.sin(3 * T)
    q, v, a = q + np.sin(7 * T), v + 7 * np.cos(7 * T), a - 49 * np.sin(7 * T)
    columns = [jnp.asarray(c[:, None]) for c in (q, v, a)]

    def torque(q, v, a):
        return dl.inverse_dynamics(TRUE, q, v, a) - dl.passive_force(TRUE, q, v)

    tau = np.array(jax.vmap(torque)(*columns))
    noise = 0.1 * np.random.default_rng(1).normal(size=tau.shape)
    # Friction that pushes forward: its best value would be negative.
    tau += noise - 0.05 * np.sign(v[:, None])
    tau[::40] += 2.0
    recording = di.Recording("swing", T, *map(np.asarray, columns), tau)
    return di.InverseDynamics.of(ARM.astype(dtype), [recording], deviation=0.1)


PROBLEM = problem()
OTHERS = "arm/mass", "hinge/damping", "hinge/armature"


@pytest.mark.slow("0.0001-loss0", "0.0001-loss1")
@pytest.mark.filterwarnings("ignore:hinge/friction is .* at its bound")
@pytest.mark.filterwarnings("ignore:.*zero has no logarithm")
@pytest.mark.parametrize("loss", [di.Squares(), di.Huber(1.5)])
@pytest.mark.parametrize("friction", [1e-4, 0.1, 3.0])
def test_friction_that_is_not_there_settles_at_zero(loss, friction):
    """The others are as if it were fixed at 0."""
    without = di.fit(dl.Parameters(ARM, OTHERS), PROBLEM, loss=loss)
    start = dl.Parameter("hinge/friction", start=friction)
    found = di.fit(dl.Parameters(ARM, [*OTHERS, start]), PROBLEM, loss=loss)
    assert found.converged and found.steps <= 15
    assert found.at_bound.tolist() == [False, False, False, True]
    assert found.values[-1] < 1e-6 * found.standard_errors[-1]
    assert found.cost == pytest.approx(without.cost, rel=1e-7)
    np.testing.assert_allclose(found.values[:-1], without.values, rtol=1e-4)


@pytest.mark.slow("bounds0-0.05")
@pytest.mark.filterwarnings("ignore:.*at its bound")
@pytest.mark.parametrize(
    ("bounds", "end"), [((None, 0.05), 0.05), ((0.02, 0.05), 0.05), ((0.2, 0.4), 0.2)]
)
def test_upper_and_lower_bounds(bounds, end):
    """The damping is 0.1: the cost is that of the one fixed at the nearer bound."""
    rest = ["arm/mass", "hinge/armature"]
    start = 0.03 if end < 0.1 else 0.3
    damping = dl.Parameter("hinge/damping", bounds=bounds, start=start)
    found = di.fit(dl.Parameters(TRUE, [*rest, damping]), PROBLEM)
    held = di.fit(dl.Parameters(TRUE.replace(damping=np.array([end])), rest), PROBLEM)
    assert found.converged and found.steps <= 15 and found.at_bound[-1]
    assert found.values[-1] == pytest.approx(end, rel=1e-6)
    assert found.cost == pytest.approx(held.cost, rel=1e-7)


def test_values_leave_a_bound_where_it_is_wrong():
    """A fit that starts next to zero finds the damping as one from its neighbourhood."""
    free = dl.Parameters(ARM.replace(damping=np.array([0.05])), OTHERS[:2])
    found = di.fit(free, PROBLEM)
    again = di.fit(free, PROBLEM, start=free.start.at[1].set(-40.0))
    assert again.converged and again.steps <= 10
    np.testing.assert_allclose(again.values, found.values, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*at its bound")
@pytest.mark.filterwarnings("ignore:.*zero has no logarithm")
def test_single_precision_settles_too():
    free = dl.Parameters(ARM.astype("float32"), [*OTHERS, "hinge/friction"])
    found = di.fit(free, problem(dtype="float32"))
    double = di.fit(dl.Parameters(ARM, [*OTHERS, "hinge/friction"]), PROBLEM)
    assert found.converged and found.at_bound[-1]
    np.testing.assert_allclose(found.values[:-1], double.values[:-1], rtol=2e-3)


def test_bounds_are_where_values_of_far_numbers_end():
    """Below, above, both or none, as a fit is told."""
    given = {"mass": (None, 3.0), "damping": (0.1, 0.4), "armature": (-1.0, None)}
    bounded = [dl.Parameter(f"*/{leaf}", bounds=bounds) for leaf, bounds in given.items()]
    free = dl.Parameters(TRUE.replace(damping=np.array([0.2])), [*bounded, "*/com_x"])
    for x, told in zip((-60.0, 60.0), free.bounded, strict=True):
        values, further = free.values(np.full(4, x)), free.values(np.full(4, 1.1 * x))
        np.testing.assert_array_equal(told, np.isclose(values, further, rtol=1e-12))


def test_steps_end_where_limits_are():
    """As bounded least squares by another method find them."""
    random = np.random.default_rng(2)
    matrix, target = jnp.asarray(random.normal(size=(30, 6))), jnp.asarray(random.normal(size=30))
    here = Linearised.of(lambda x, args: args[0] @ x - args[1], jnp.zeros(6), (matrix, 9 * target))
    size = 0.3 * here.lengths
    rows = np.concatenate((matrix, np.diag(size)))
    ahead = np.array([0.0, -0.9, 1.0, 0.0, 0.1, -0.1])
    low, high = np.where(ahead < 0, ahead, -np.inf), np.where(ahead > 0, ahead, np.inf)
    expected = lsq_linear(rows, np.append(9 * target, np.zeros(6)), (low, high), tol=1e-14).x
    step, lower = here.minimum(size, ahead)
    assert ((step == low) | (step == high)).any()
    np.testing.assert_allclose(step, expected, rtol=1e-6, atol=1e-8)
    after = np.asarray(matrix @ step - 9 * target)
    assert lower == pytest.approx((81 * float(target @ target) - after @ after) / 2)


def test_curved_residuals_are_not_swung_around():
    """x = 1 is best, and Gauss-Newton steps lead from 1 + e to 1 - 0.8 e."""

    def residual(x, _):
        return jnp.concatenate((x - 1, 4.0 + 0.1 * (x - 1) ** 2))

    steps = []
    start = jnp.array([1.5])
    cost = float(jnp.sum(residual(start, None) ** 2) / 2)
    best = di.LevenbergMarquardt(tolerance=1e-12).minimised(
        residual, start, None, cost, lambda k, _: steps.append(k)
    )
    assert best.converged and len(steps) <= 8
    assert float(best.unknown[0]) == pytest.approx(1, abs=1e-5)

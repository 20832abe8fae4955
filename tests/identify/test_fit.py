"""Parameters from motions that were simulated: exact without noise, with honest errors with it."""

import dataclasses
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.stats

import difflie as dl
from difflie import identify as di
from difflie.constraints import SphericalConstraint
from difflie.parameters import Identity

STEPS, DT = 300, 5e-3


def pendulum():
    def link(name, position):
        hinge = dl.Revolute(axis=(0.0, 1.0, 0.0))
        inertia = np.diag((0.01, 0.01, 0.001))
        return dl.Body(
            name=name, joint=hinge, mass=1.0, com=(0, 0, -0.2), inertia=inertia, position=position
        )

    return dl.chain([link("upper", (0, 0, 0)), link("lower", (0, 0, -0.4))])


START = pendulum().replace(damping=np.array((0.01, 0.02)))
TRUE = pendulum().replace(mass=np.array((1.3, 0.7)), damping=np.array((0.1, 0.05)))
FREE = dl.Parameters(START, ["*/mass", "*/damping"])
VALUES = np.array((1.3, 0.7, 0.1, 0.05))


@pytest.fixture(scope="module")
def recording():
    t = DT * np.arange(STEPS + 1)
    tau = np.stack((np.sin(3 * t), 0.5 * np.cos(5 * t)), 1)
    run = dl.simulate(
        TRUE, np.array((0.3, 0.2)), np.zeros(2), dt=DT, steps=STEPS, control=jnp.asarray(tau[:-1])
    )

    def acceleration(q, v, tau):
        return dl.forward_dynamics(TRUE, q, v, tau + dl.passive_force(TRUE, q, v))

    a = jax.jit(jax.vmap(acceleration))(run.q, run.v, jnp.asarray(tau))
    return di.Recording("swing", t, *(np.asarray(x) for x in (run.q, run.v, a)), tau)


PROBLEMS = {
    "torques": lambda r: di.InverseDynamics.of(START, [r]),
    "one step": lambda r: di.Shooting.of(START, [r], window=1, position=1e-6, velocity=1e-3),
    "windows": lambda r: di.Shooting.of(START, [r], window=70, position=1e-3),
    "rollout": lambda r: di.Shooting.of(START, [r], position=1e-3, velocity=1e-2),
}


@pytest.mark.slow("one step", "windows", "rollout")
@pytest.mark.parametrize("kind", [*PROBLEMS, pytest.param("states", marks=pytest.mark.slow)])
def test_without_noise_the_truth_is_found(kind, recording):
    if kind == "states":
        rng = np.random.default_rng(4)
        off = dataclasses.replace(recording, v=recording.v + 0.3 * rng.normal(size=(301, 2)))
        problem = di.Shooting.of(START, [off], window=100, position=1e-4, free=True)
    else:
        problem = PROBLEMS[kind](recording)
    true_residual = problem.residual(TRUE, problem.own)
    assert true_residual.shape == problem.measured.shape
    if kind != "states":
        assert float(jnp.abs(true_residual).max()) < 1e-8
    found = di.fit(FREE, problem)
    assert found.converged, found.message
    np.testing.assert_allclose(found.values, VALUES, rtol=1e-8)
    np.testing.assert_allclose(found.system.bodies.mass, VALUES[:2], rtol=1e-8)
    np.testing.assert_allclose(found.start, (1, 1, 0.01, 0.02), rtol=1e-12)
    assert np.abs(found.correlations).max() <= 1 + 1e-12


@pytest.mark.slow
def test_jacobians_are_those_of_differences(recording):
    problem = PROBLEMS["windows"](recording)

    @jax.jit
    def residual(x):
        return problem.residual(FREE.system_at(x), problem.own)

    x, h = FREE.start + 0.1, 1e-6
    ahead = jax.jacfwd(residual)(x)
    for k, e in enumerate(np.eye(4)):
        difference = (residual(x + h * e) - residual(x - h * e)) / (2 * h)
        np.testing.assert_allclose(ahead[:, k], difference, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@pytest.mark.thorough("windows")
@pytest.mark.parametrize("kind", ["torques", "windows"])
def test_how_what_is_found_follows_what_is_given(kind, recording):
    """Guards second derivatives of residuals: implicit derivatives of a minimum with noise, by
    centres of mass that are not fitted, are those of fits solved again."""
    noise = np.random.default_rng(2).normal(size=recording.tau.shape)
    problem = PROBLEMS[kind](dataclasses.replace(recording, tau=recording.tau + 0.05 * noise))
    moved = np.array([[0.0, 0.0, 0.02], [0.03, 0.0, -0.01]])

    def minimum(s):
        given = START.replace(com=START.bodies.com + s * moved)
        parameters = dl.Parameters(given, ["*/mass", "*/damping"])
        found = di.fit(parameters, problem, minimiser=di.LevenbergMarquardt(tolerance=1e-13))
        assert found.converged
        return found.x

    def half_square(x, s):
        system = FREE.system_at(x).replace(com=START.bodies.com + s * moved)
        return jnp.sum(problem.residual(system, problem.own) ** 2) / 2

    slope = jax.grad(half_square)
    second = jax.jit(jax.jacfwd(slope, (0, 1)))

    def values(s):
        """Those of the minimum, whose last digits, which depend on the machine, come by Newton."""
        x = jnp.asarray(minimum(s))
        x = x - jnp.linalg.solve(second(x, s)[0], jax.jit(slope)(x, s))
        return FREE.values(x)

    x = jnp.asarray(minimum(0.0))
    by_x, by_s = second(x, 0.0)
    implicit = -jax.jacfwd(FREE.values)(x) @ jnp.linalg.solve(by_x, by_s)
    near, far = (values(h) - values(-h) for h in (0.02, 0.04))
    again = (8 * near - far) / (12 * 0.02)
    np.testing.assert_allclose(implicit, again, rtol=1e-6)


@pytest.mark.slow
def test_measured_times_of_any_spacing(recording):
    """Every second or third time, the torque held in between: the grid lands on every jump."""
    kept = np.cumsum(np.tile((2, 3), 40))
    t = recording.t[np.concatenate(([0], kept))]
    tau = np.random.default_rng(0).normal(size=(len(t), 2))
    q, v = [np.array((0.3, 0.2))], [np.zeros(2)]
    for k, steps in enumerate(np.tile((2, 3), 40)):
        held = jnp.broadcast_to(tau[k], (10, 2))
        run = dl.simulate(TRUE, q[-1], v[-1], dt=DT * steps / 10, steps=10, control=held)
        q.append(np.asarray(run.q[-1]))
        v.append(np.asarray(run.v[-1]))
    data = di.Recording("jumps", t, np.array(q), np.array(v), tau=tau)
    for substeps, limit in ((1, 1e-2), (10, 1e-12)):
        problem = di.Shooting.of(START, [data], velocity=1.0, substeps=substeps)
        assert float(jnp.abs(problem.residual(TRUE, problem.own)).max()) < limit


@pytest.mark.slow
def test_gaps_are_left_out(recording):
    q = recording.q.copy()
    q[50:60] = np.nan
    q[200, 1] = np.nan
    data = dataclasses.replace(recording, q=q)
    for problem in (di.InverseDynamics.of(START, [data]), PROBLEMS["rollout"](data)):
        assert int((~problem.measured).sum()) >= 21
        found = di.fit(FREE, problem)
        np.testing.assert_allclose(found.values, VALUES, rtol=1e-8)
    short = di.Shooting.of(START, [recording], window=140)
    assert int((~short.measured).sum()) == 2 * 120 + 2 * 420  # The end, and all velocities.
    with pytest.raises(di.DataError, match="begins in a gap"):
        di.Shooting.of(START, [data], window=50)


@pytest.mark.slow
def test_standard_errors_are_those_of_many_repetitions(recording):
    rng = np.random.default_rng(11)
    clean = PROBLEMS["torques"](recording)
    scores = []
    for _ in range(100):
        noise = rng.normal(size=clean.tau.shape) * np.array((0.05, 0.2))
        noisy = dataclasses.replace(clean, tau=clean.tau + noise, deviation=jnp.asarray((0.1, 0.4)))
        found = di.fit(FREE, noisy)
        assert found.converged and 0.2 < found.variance < 0.3
        scores.append((found.values - VALUES) / [found.standard_errors, found.white_errors])
    assert 0.85 < np.std(scores) < 1.15
    known = di.fit(FREE, noisy, known_deviations=True)
    np.testing.assert_allclose(known.white_errors * found.variance**0.5, found.white_errors)


@pytest.mark.slow
def test_a_drive_and_what_it_moves_do_not_vanish_together(recording):
    """Torques in the units of their measurement: a small gain would explain all with no mass."""
    drives = [dl.Drive(joint) for joint in START.joint_names]
    scale = dl.Parameter("*/torque_scale", prior=(1.05, 0.05), tied=True)
    free = dl.Parameters(dl.attach(START, *drives), ["*/mass", "*/damping", scale])
    tau = recording.tau / 1.1 + 0.05 * np.random.default_rng(2).normal(size=recording.tau.shape)
    data = dataclasses.replace(recording, tau=tau)
    found = di.fit(free, di.InverseDynamics.of(free.system, [data], 0.05))
    off = np.abs(found.values - (*VALUES, 1.1))
    assert found.converged and (off < 4 * found.standard_errors).all()
    assert found.standard_errors[-1] < 0.05


@pytest.mark.slow
def test_smoothed_torques_tell_the_truth_with_its_errors():
    """Friction and armature behind Savitzky-Golay, which cuts the tops off accelerations."""
    hinge = dl.Revolute(axis=(0.0, 1.0, 0.0), name="hinge")
    arm = dl.chain([dl.Body(name="arm", joint=hinge, mass=0.5, com=(0.0, 0.0, -0.2))])
    rough = arm.replace(damping=[0.1], friction=[0.2], armature=[0.1], friction_velocity=[0.1])
    true = rough.replace(damping=[0.15], friction=[0.4], armature=[0.08])
    free = dl.Parameters(rough, ["hinge/damping", "hinge/friction", "hinge/armature"])

    def drive(t, q=None, v=None):
        return (1.6 * jnp.sin(9 * t) + 1.2 * jnp.sin(19.5 * t) + 0.8 * jnp.sin(5 * t))[..., None]

    run = dl.simulate(true, [0.1], [0.0], dt=1e-3, steps=6000, save_every=2, control=drive)
    t, tau = np.asarray(run.t), np.asarray(drive(run.t))
    rng, scores = np.random.default_rng(3), []
    for _ in range(12):
        q = np.asarray(run.q) + 3e-5 * rng.normal(size=run.q.shape)
        log = di.Recording("log", t, q, tau=tau + 0.05 * rng.normal(size=tau.shape))
        found = di.fit(free, di.InverseDynamics.of(rough, [log.smoothed(31, 3)], 0.05))
        scores.append((found.values - (0.15, 0.4, 0.08)) / found.standard_errors)
    assert np.abs(np.mean(scores, axis=0)).max() < 1.5
    spread = np.std(scores, axis=0)
    assert spread.min() > 0.6 and spread.max() < 1.5


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_steps_do_not_depend_on_units(unit):
    """Rosenbrock's valley, with one unknown in another unit."""

    def residual(unknown, size):
        x, y = unknown[0] / size, unknown[1]
        return jnp.stack((10 * (y - x**2), 1 - x))

    found = [
        di.LevenbergMarquardt().minimised(residual, jnp.asarray((-1.2 * s, 1.0)), s, 12.1)
        for s in (1.0, unit)
    ]
    assert found[1].converged and abs(found[0].steps - found[1].steps) <= 1
    np.testing.assert_allclose(found[1].unknown, (unit, 1.0), rtol=1e-6)


@pytest.mark.parametrize("numbers", [{"tolerance": 91.0}, {"max_steps": 0}, {"patience": 0}])
def test_searches_that_would_end_at_once_are_refused(numbers):
    with pytest.raises(ValueError, match=f"{next(iter(numbers))} is"):
        di.LevenbergMarquardt(**numbers)


@pytest.mark.slow
@pytest.mark.thorough("loss1")
@pytest.mark.parametrize("loss", [di.Huber(1.0), di.Cauchy(1.5)])
def test_standard_errors_behind_robust_losses(recording, loss):
    """A fit for each of many noises, a tenth of it five times as large."""
    rng = np.random.default_rng(12)
    clean = PROBLEMS["torques"](recording)
    scores = []
    for _ in range(100):
        noise = 0.1 * rng.normal(size=clean.tau.shape)
        noise *= np.where(rng.random(noise.shape) < 0.1, 5, 1)
        noisy = dataclasses.replace(clean, tau=clean.tau + noise, deviation=jnp.asarray(0.1))
        found = di.fit(FREE, noisy, loss=loss)
        scores.append((found.values - VALUES) / [found.standard_errors, found.white_errors])
    spread = np.std(scores, axis=(0, 2))
    np.testing.assert_allclose(spread, 1, atol=0.1)


@pytest.mark.slow
def test_doubtful_estimates_are_warned_of(recording):
    """One far from its prior, one at a bound."""
    joint, other = START.joint_names
    free = dl.Parameters(
        START,
        [
            dl.Parameter("upper/mass", prior=(1.0, 0.05)),
            dl.Parameter("lower/mass", prior=(0.7, 0.05)),
            dl.Parameter(f"{joint}/damping", bounds=(0.0, 0.06)),
            f"{other}/damping",
        ],
    )
    noise = 0.05 * np.random.default_rng(5).normal(size=recording.tau.shape)
    data = dataclasses.replace(recording, tau=recording.tau + noise)
    with pytest.warns(UserWarning, match="is this right") as seen:
        found = di.fit(free, di.InverseDynamics.of(START, [data], 0.05), start=free.start + 0.1)
    said = [str(w.message) for w in seen]
    assert len(said) == 2, said
    assert "upper/mass is" in said[0] and "deviations from its prior" in said[0]
    assert f"{joint}/damping is 0.06, at its bound 0.06" in said[1]
    np.testing.assert_allclose(found.start, free.values(free.start + 0.1))


def test_small_starts_are_warned_of(recording):
    """Of a damping of zero, which has no logarithm; not where the fit is told where to start."""
    still = START.replace(damping=0 * START.joints.damping)
    free = dl.Parameters(still, ["*/damping"])
    problem = di.InverseDynamics.of(still, [recording])
    first = START.joint_names[0]
    with pytest.warns(
        UserWarning, match=rf"zero has no logarithm.*{first}/damping at 0\.001"
    ) as seen:
        di.fit(free, problem, minimiser=di.LevenbergMarquardt(max_steps=1))
    assert len([w for w in seen if "logarithm" in str(w.message)]) == 1
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        di.fit(free, problem, start=free.start, minimiser=di.LevenbergMarquardt(max_steps=1))
    assert not any("logarithm" in str(w.message) for w in said)


@pytest.mark.slow
def test_outliers_count_little_in_a_robust_loss(recording):
    tau = recording.tau.copy()
    tau[::20] += 3.0
    problem = di.InverseDynamics.of(START, [dataclasses.replace(recording, tau=tau)], 0.01)
    off = [
        np.abs(di.fit(FREE, problem, loss=loss).values - VALUES).max()
        for loss in (di.Squares(), di.Huber(1.0), di.Cauchy(1.0))
    ]
    assert off[0] > 0.05 and off[1] < 0.01 and off[2] < 0.001


def test_what_acts_only_together_has_no_error_bar(recording):
    problem = PROBLEMS["torques"](recording)
    found = di.fit(dl.Parameters(START, ["upper/com", "upper/mass", "*/damping"]), problem)
    told = {name for row in found.information.unidentifiable for name, _ in row}
    assert {"upper/com_y"} <= told
    assert np.isfinite(found.standard_errors[-2:]).all()


@pytest.mark.slow
def test_what_is_not_told_is_named_as_in_tables():
    """Of a body in a plane: all but its mass, its centre of mass there, and the inertia across."""
    t = DT * np.arange(STEPS + 1)
    w = np.array((3.0, 5.3))
    angle = np.outer(t, w)
    q, v, a = np.sin(angle), w * np.cos(angle), -w * w * np.sin(angle)
    tau = np.asarray(jax.vmap(lambda *x: dl.inverse_dynamics(TRUE, *x))(q, v, a))
    tau = tau + 1e-3 * np.random.default_rng(0).normal(size=tau.shape)
    problem = di.InverseDynamics.of(START, [di.Recording("sines", t, q, v, a, tau)])
    free = dl.Parameters(START, ["lower/inertial"])
    found = di.fit(free, problem)
    known = [f"lower/{name}" for name in ("mass", "com_x", "com_z", "I_yy")]
    finite = {n for n, e in zip(free.names, found.standard_errors, strict=True) if np.isfinite(e)}
    assert finite == set(known)
    told = {name for row in found.information.unidentifiable for name, _ in row}
    assert told == set(free.names) - finite
    # The torques are linear in mass, first and second moments: least squares by hand.
    at = [free.names.index(name) for name in known]
    table = found.values

    def torques(numbers):
        machine = free.with_values(jnp.asarray(table).at[np.array(at)].set(numbers))
        return jax.vmap(lambda *x: dl.inverse_dynamics(machine, *x))(q, v, a).ravel()

    slopes = jax.jit(jax.jacfwd(torques))(jnp.asarray(table[at]))
    slopes = np.asarray(slopes)
    expected = np.sqrt(found.variance * np.diag(np.linalg.inv(slopes.T @ slopes)))
    np.testing.assert_allclose(found.white_errors[at], expected, rtol=1e-6)
    # The upper body, which is not fitted, makes torques wrong over many rows.
    assert (found.standard_errors[at] > 1.5 * expected).all()


@pytest.mark.slow
def test_what_stands_at_a_bound_has_a_one_sided_interval(recording):
    """The damping is 0.1 and may be 0.06 at most, where no more free number changes it."""
    bounded = dl.Parameter(f"{START.joint_names[0]}/damping", bounds=(0.0, 0.06))
    free = dl.Parameters(START, ["*/mass", bounded])
    with pytest.warns(UserWarning, match="at its bound"):
        found = di.fit(free, PROBLEMS["torques"](recording), start=free.start.at[-1].set(40.0))
    assert found.values[-1] == 0.06 and found.at_bound.tolist() == [False, False, True]
    error, lower = found.standard_errors[-1], found.intervals[-1, 0]
    assert np.isfinite(found.standard_errors).all()
    one_sided = scipy.stats.t(found.freedom[-1]).ppf(0.95) * error
    np.testing.assert_allclose(found.intervals[-1], (max(0.06 - one_sided, 0), 0.06))
    assert lower < 0.06 and found.notes == [
        f"at a bound, with a one-sided interval: {free.names[-1]}"
    ]
    # As without a bound: the torques are linear in the damping.
    unbounded = dl.Parameters(START, ["*/mass", dl.Parameter(bounded.path, transform=Identity())])
    system = found.system
    slope = jax.jit(jax.jacfwd(lambda x: found.problems[0].residual(unbounded.system_at(x), x[:0])))
    by_x = slope(unbounded.x_of(system)) / np.append(found.values[:2], 1.0)
    expected = np.sqrt(found.variance * np.linalg.inv(by_x.T @ by_x)[-1, -1])
    np.testing.assert_allclose(found.white_errors[-1], expected, rtol=1e-6)


def test_priors_stand_in_for_measurements(recording):
    tied = dl.Parameter("*/damping", prior=(0.07, 1e-9), tied=True, start=0.05)
    found = di.fit(dl.Parameters(START, ["*/mass", tied]), PROBLEMS["torques"](recording))
    assert found.values[-1] == pytest.approx(0.07, rel=1e-6)


def test_progress_interruption_and_going_on(recording):
    problem, seen = PROBLEMS["torques"](recording), []

    def interrupted(step, cost):
        seen.append(cost)
        if step == 3:
            raise KeyboardInterrupt

    first = di.fit(FREE, problem, progress=interrupted)
    assert not first.converged and first.message.startswith("interrupted after 3 steps")
    assert first.cost <= seen[0] and len(seen) == 3
    rest = di.fit(FREE, problem, start=first.x)
    assert rest.converged and rest.steps < di.fit(FREE, problem).steps
    stopped = di.fit(FREE, problem, minimiser=di.LevenbergMarquardt(max_steps=2))
    assert not stopped.converged and "not converged after 2 steps" in stopped.message
    assert np.isnan(stopped.standard_errors).all() and "no standard errors" in repr(stopped)
    assert all(p.interval is None for p in stopped.results.parameters.values())
    assert not stopped.assess().advice


@pytest.mark.slow("optimiser0")
@pytest.mark.parametrize("optimiser", [optax.lbfgs(), optax.adam(3e-2)])
def test_descent_finds_the_truth(optimiser, recording):
    minimiser = di.Descent(optimiser, tolerance=1e-8)
    found = di.fit(FREE, PROBLEMS["torques"](recording), minimiser=minimiser)
    assert found.converged
    np.testing.assert_allclose(found.values, VALUES, rtol=1e-4)


@pytest.mark.slow
def test_initial_states_alone_are_found(recording):
    """A fit without parameters finds where motions start, and has no errors to tell."""
    bare = dataclasses.replace(recording, v=None).between(0, 0.3)
    problem = di.Shooting.of(TRUE, [bare], position=1e-3, free=True)
    found = di.fit(dl.Parameters(TRUE, []), problem)
    assert found.converged
    assert found.standard_errors.shape == (0,)
    _, v = problem.motions(TRUE, jnp.asarray(found.own[0]))
    np.testing.assert_allclose(v[0, :60], recording.v[:60], atol=1e-3)


def test_what_cannot_be_fitted_is_said(recording):
    few = di.InverseDynamics.of(START, [recording.between(0.0, 1.5 * DT)])
    assert few.tau.size == 4
    with pytest.raises(di.DataError, match="4 measurements are fewer than the 22 unknowns"):
        di.fit(dl.Parameters(START, ["*/inertial", "*/damping"]), few)
    wild = dataclasses.replace(recording, tau=1e200 * np.ones_like(recording.tau))
    with pytest.raises(di.DataError, match="not finite"):
        di.fit(FREE, PROBLEMS["rollout"](wild))
    with pytest.raises(di.DataError, match="a is not measured"):
        di.InverseDynamics.of(START, [dataclasses.replace(recording, a=None)])
    with pytest.raises(di.DataError, match="q has 1 columns, the machine 2"):
        di.InverseDynamics.of(START, [dataclasses.replace(recording, q=recording.q[:, :1])])
    looped = dl.constrain(START, SphericalConstraint(dl.Frame("lower", (0, 0, -0.4)), dl.Frame()))
    with pytest.raises(di.DataError, match="reactions in closed loops are not identifiable"):
        di.InverseDynamics.of(looped, [recording])
    with pytest.raises(di.DataError, match="no standard deviation"):
        di.InverseDynamics.of(START, [recording], -1.0)

"""Errors and intervals: coloured noise, gaps, bounds, priors, profiles and the bootstrap."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from scipy.optimize import brentq
from scipy.signal import lfilter
from scipy.stats import t as student

import difflie as dl
from difflie import identify as di
from difflie.identify.problem import Layout
from difflie.identify.statistics import (
    Rows,
    at_bounds,
    blocks,
    clustered,
    correlation_time,
    information,
    intervals,
    uncertainty,
)

DT = 0.01


def layout(rows, width=1, recordings=1):
    each = rows // recordings
    sequence, time = np.arange(rows) // each, DT * (np.arange(rows) % each)
    channel = np.tile(np.arange(width), rows)
    return di.Layout(np.repeat(sequence, width), np.repeat(time, width), channel)


def coloured(rng, rows, rho, width=1):
    """An autoregressive sequence (rows * width,), its channels interleaved."""
    white = rng.normal(size=(rows + 1000, width))
    return lfilter([1], [1, -rho], white, axis=0)[1000:].ravel()


@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_the_correlation_time_of_an_autoregressive_sequence(rho):
    """Against 2 h sum rho^(2 l), with a tenth of the rows missing, in two recordings and joints."""
    rng = np.random.default_rng(1)
    noise, there = coloured(rng, 20000, rho, 2), rng.random(40000) > 0.1
    where = di.Layout(*(x[there] for x in layout(20000, 2, 2)))
    found = correlation_time(noise[there], where)
    assert found == pytest.approx(2 * DT * rho**2 / (1 - rho**2), rel=0.2)
    white = correlation_time(rng.normal(size=there.sum()), where)
    assert white < DT


def test_blocks_are_long_and_keep_to_their_recording():
    rng = np.random.default_rng(2)
    where = layout(3000, 2, 3)
    each = blocks(coloured(rng, 3000, 0.8, 2), where)
    sizes = np.bincount(each)
    assert 10 <= len(sizes) <= 100 and sizes.min() > 2 * 16
    for k in range(len(sizes)):
        assert len(set(where.sequence[each == k])) == 1
        # All joints of a row are in one block.
        assert set(np.bincount((where.time[each == k] / DT).round().astype(int))) <= {0, 2}


def test_clusters_without_bias_and_with_their_degrees_of_freedom():
    """Of white noise, from the definitions with whole matrices (k, k)."""
    rng, k = np.random.default_rng(3), 24
    J, each = rng.normal(size=(k, 3)), np.repeat(np.arange(4), 6)
    u, factor = np.linalg.qr(J)[0], rng.normal(size=(2, 3))
    maker = np.eye(k) - u @ u.T
    weights = []
    for b in range(4):
        at = each == b
        share, axes = np.linalg.eigh(maker[np.ix_(at, at)])
        root = axes / np.sqrt(share) @ axes.T
        weights.append(factor @ u[at].T @ root @ maker[at])
    r = maker @ rng.normal(size=k)
    found, freedom = clustered(u, r, each, factor)
    expected = sum(np.outer(w @ r, w @ r) for w in weights)
    np.testing.assert_allclose(factor @ found @ factor.T, expected, rtol=1e-9)
    for i in range(2):
        products = np.array([[a[i] @ b[i] for b in weights] for a in weights])
        np.testing.assert_allclose(np.trace(products), factor[i] @ factor[i], rtol=1e-9)
        np.testing.assert_allclose(freedom[i], np.trace(products) ** 2 / np.sum(products**2))


@pytest.mark.slow("0.0")
@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_intervals_cover_the_truth_in_noise_of_any_colour(rho):
    """Of 400 x 6 intervals; those of white noise cover too few where noise has a colour."""
    rng, rows = np.random.default_rng(5), 1500
    t, where = DT * np.arange(rows), layout(rows, 2)
    waves = np.sin(np.outer(t, (1.0, 2.3, 3.1, 5.2)))
    J = np.stack(
        (
            np.column_stack((waves, np.ones(rows), 0 * t)),
            np.column_stack((waves[:, ::-1], 0 * t, np.sign(waves[:, 0]))),
        ),
        1,
    ).reshape(-1, 6)
    every = Rows(np.ones(2 * rows, bool), np.zeros(2 * rows, bool), where, np.zeros(2 * rows, int))
    known = information(J, 1.0, tuple("abcdef"))
    none, free = np.full(6, np.inf), np.zeros(6, int)
    inside, white = [], []
    for _ in range(400):
        noise = coloured(rng, rows, rho, 2)
        values = known.inverse @ (J.T @ noise)
        found = uncertainty(known, J, noise - J @ values, every)
        lower, upper = intervals(
            values, found.standard_errors, found.freedom, (-none, none), free
        ).T
        inside.append((lower < 0) & (upper > 0))
        white.append(np.abs(values) < 1.96 * found.white_errors)
    assert 0.93 < np.mean(inside) < 0.97
    assert np.mean(white) < 0.8 if rho else 0.93 < np.mean(white) < 0.97


def test_intervals_end_at_bounds():
    """One-sided at a bound, and within the bounds elsewhere."""
    limits = np.array([0.0, 0.0, -np.inf, -np.inf]), np.array([np.inf, np.inf, 2.0, np.inf])
    values, errors = np.array([0.001, 0.5, 2.0, 1.0]), np.array([1.0, 1.0, 0.1, 0.2])
    sides = at_bounds(values, np.ones(4), errors, limits)
    assert sides.tolist() == [-1, 0, 1, 0]
    found = intervals(values, errors, np.full(4, 5.0), limits, sides)
    one, both = student(5).ppf((0.95, 0.975))
    expected = [
        (0, 0.001 + one),
        (0, 0.5 + both),
        (2 - 0.1 * one, 2),
        (1 - 0.2 * both, 1 + 0.2 * both),
    ]
    np.testing.assert_allclose(found, expected)


def arm():
    hinge = dl.Revolute(name="hinge", axis=(0.0, 1.0, 0.0), damping=0.1, friction=0.2)
    return dl.chain(
        [
            dl.Body(
                name="arm",
                joint=hinge,
                mass=1.0,
                com=(0.0, 0.0, -0.2),
                inertia=np.diag((0.01, 0.01, 0.001)),
            )
        ]
    )


def swing(seed, size=0.1, system=None, rho=0.9, rows=800):
    system = system or arm()
    t = DT * np.arange(rows)[:, None]
    w = np.array((2.0, 3.7, 5.1))
    q, v, a = (
        np.sum(f, axis=1, keepdims=True)
        for f in (np.sin(w * t), w * np.cos(w * t), -w * w * np.sin(w * t))
    )
    silent = di.InverseDynamics.of(
        arm(), [di.Recording("swing", t[:, 0], q, v, a, np.zeros_like(v))]
    )
    noise = coloured(np.random.default_rng(seed), rows, rho) * np.sqrt(1 - rho**2)
    tau = np.asarray(silent.torques(system)) + size * noise[:, None]
    return di.Recording("swing", t[:, 0], q, v, a, tau)


@pytest.fixture(scope="module")
def fitted():
    free = dl.Parameters(arm(), ["arm/mass", "hinge/damping", "hinge/friction"])
    return di.fit(free, di.InverseDynamics.of(arm(), [swing(1)], 0.1))


@pytest.mark.slow
def test_fits_and_base_parameters_have_the_same_errors():
    """Guards one default for linear and nonlinear fits: of numbers on which torques depend alike.

    Of an arm at a vertical hinge, without gravity: its inertia about the hinge and friction.
    """
    rub = {"damping": 0.1, "friction": 0.2}
    hinge = dl.Revolute(name="hinge", axis=(0.0, 0.0, 1.0), **rub)
    turning = dl.chain([dl.Body(name="arm", joint=hinge, mass=1.0, inertia=0.1 * np.eye(3))])
    turning = turning.replace(armature=[0.05])
    problem = di.InverseDynamics.of(turning, [swing(1, system=turning)], 0.1)
    free = dl.Parameters(turning, ["hinge/damping", "hinge/friction", "hinge/armature"])
    found = di.fit(free, problem, minimiser=di.LevenbergMarquardt(tolerance=1e-12))
    base = di.linear(turning, problem, joints=("damping", "friction"))
    assert base.names == ("arm/origin_I_zz", "hinge/damping", "hinge/friction")
    for name in ("standard_errors", "white_errors", "freedom"):
        np.testing.assert_allclose(
            getattr(found, name), np.roll(getattr(base, name), -1), rtol=1e-4
        )
    np.testing.assert_allclose(found.intervals[:2], base.intervals[1:], rtol=1e-4)
    assert (found.standard_errors > 1.3 * found.white_errors).any()


@pytest.mark.slow
def test_what_only_a_prior_holds_has_its_error():
    """The torques tell the first and second moments of the mass, not the mass itself."""
    prior = dl.Parameter("arm/mass", prior=(1.0, 0.05))
    free = dl.Parameters(arm(), [prior, "arm/com_z", "arm/inertia", "hinge/damping"])
    found = di.fit(free, di.InverseDynamics.of(arm(), [swing(1)], 0.1))
    mass = free.names.index("arm/mass")
    assert found.standard_errors[mass] == pytest.approx(0.05, rel=1e-6)
    assert found.prior_share[mass] == pytest.approx(1.0) and found.prior_share[-1] < 1e-6
    normal = found.values[mass] + 0.05 * np.array((-1.96, 1.96))
    np.testing.assert_allclose(found.intervals[mass], normal, rtol=1e-4)
    assert any("held by the prior" in note and "arm/mass" in note for note in found.notes)


@pytest.mark.slow
def test_what_only_nearness_holds_has_its_error():
    """Guards errors by blocks of 0: the products of inertia about the axis act on no torque."""
    free = dl.Parameters(arm(), ["arm/inertial", "hinge/damping"])
    data = di.InverseDynamics.of(arm(), [swing(1)], 0.1)
    near = di.NominalPrior.of(arm(), 4.0)
    found = di.fit(free, (data, near))
    across = free.names.index("arm/I_xz")
    assert found.prior_share[across] == pytest.approx(1.0, abs=1e-6)
    alone = di.fit(dl.Parameters(arm(), ["arm/inertial"]), near, known_deviations=True)
    assert found.standard_errors[across] == pytest.approx(alone.white_errors[across], rel=0.2)
    assert found.prior_share[-1] < 0.1 and np.isfinite(found.standard_errors).all()


def test_the_profile_of_a_parameter_that_enters_linearly(fitted):
    """Is a parabola: the interval is that of the standard error."""
    found = di.profile(fitted, "hinge/damping", (0.08, 0.12))
    k = fitted.parameters.names.index("hinge/damping")
    assert {0.08, 0.12} <= set(found.values) and (np.diff(found.z) > 0).all()
    np.testing.assert_allclose(
        found.interval, fitted.intervals[k], atol=0.01 * fitted.standard_errors[k]
    )
    with pytest.raises(di.DataError, match="did you mean 'hinge/damping'"):
        di.profile(fitted, "hinge/dampin")


@pytest.mark.slow
def test_the_profile_of_a_parameter_that_does_not():
    """Of a centre of mass in much noise: ends by linear least squares in the other parameters."""
    free = dl.Parameters(arm(), ["arm/com_z", "hinge/damping", "hinge/friction"])
    problem = di.InverseDynamics.of(arm(), [swing(3, size=4.0)], 4.0)
    found = di.fit(free, problem, minimiser=di.LevenbergMarquardt(tolerance=1e-12))
    profile = di.profile(found, "arm/com_z")

    @jax.jit
    def residual(values):
        return problem.residual(free.with_values(values), jnp.zeros(0))

    def cost(com):
        none, one, two = (np.asarray(residual(np.array((com, *x)))) for x in np.eye(3)[:, 1:])
        J = np.stack((one - none, two - none), 1)
        return np.sum((none - J @ np.linalg.lstsq(J, none, rcond=None)[0]) ** 2) / 2

    ratio = found.information.inverse[0, 0] / found.standard_errors[0] ** 2
    limit = student(found.freedom[0]).ppf(0.975) ** 2
    best = found.values[0]
    for side, end in zip((-1, 1), profile.interval, strict=True):
        reach = best + side * 3 * abs(end - best)
        expected = brentq(lambda v: 2 * (cost(v) - cost(best)) * ratio - limit, best, reach)
        assert end == pytest.approx(expected, abs=0.01 * found.standard_errors[0])
    upper, lower = profile.interval[1] - best, best - profile.interval[0]
    assert abs(upper / lower - 1) > 0.05


@pytest.mark.slow
def test_the_bootstrap_has_the_spread_of_the_standard_errors(fitted):
    found = di.bootstrap(fitted, 100, seed=4)
    assert found.converged.all()
    np.testing.assert_allclose(found.standard_errors, fitted.standard_errors, rtol=0.3)
    lower, upper = found.intervals().T
    assert ((lower < fitted.values) & (fitted.values < upper)).all()


@pytest.mark.parametrize("free", [False, True])
def test_errors_of_motions_tell_their_times(free):
    """Windows that follow one another are one sequence in time; other recordings are others."""
    system = dl.chain([dl.Body(name="arm", joint=dl.Revolute(), mass=1.0, inertia=np.eye(3))])
    t, zero = DT * np.arange(21), np.zeros((21, 1))
    runs = [di.Recording(name, t, zero, zero, tau=zero) for name in ("one", "two")]
    problem = di.Shooting.of(system, runs, window=5, velocity=1.0, free=free)
    residuals = problem.residual(system, problem.own)
    where = problem.layout
    assert where.sequence.shape == where.time.shape == where.channel.shape == residuals.shape
    for k in range(2):
        steps = where.time[(where.sequence == k) & (where.channel == 0)]
        np.testing.assert_allclose(np.unique(steps.round(9)), t if free else t[1:], atol=1e-9)


@pytest.mark.slow
def test_the_variance_of_priors_is_estimated_from_what_is_told():
    """Guards errors of what only a prior holds, where its weight says three times too little."""
    random, told, found = np.random.default_rng(2), 30, []
    count = 2 * told
    for _ in range(40):
        off = 3 * random.normal(size=count)
        measured = 20 * random.normal(size=(600, count)) * (np.arange(count) < told)
        rows = np.concatenate((measured, np.eye(count)))
        y = np.concatenate((random.normal(size=600), off))
        x = np.linalg.lstsq(rows, y, rcond=None)[0]
        prior = np.arange(len(rows)) >= 600
        place = np.where(prior, -1, 0), np.arange(len(rows), dtype=float), 0 * prior
        kinds = Rows(~prior, prior, Layout(*place), prior.astype(int))
        known = information(rows, 1.0, tuple(map(str, range(count))))
        each = uncertainty(known, rows, rows @ x - y, kinds)
        found.append(each.standard_errors[told:].mean())
        assert each.freedom[-1] == pytest.approx(told, rel=0.05)
    assert np.mean(found) == pytest.approx(3, rel=0.1)

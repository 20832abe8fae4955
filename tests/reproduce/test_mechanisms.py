"""Every reference problem as it is built: against closed forms, printed starts, and short motions.

The squeezer is set beside the printed equations of its test set, written out in this file.
"""

import functools
import io
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console
from scipy.integrate import solve_ivp
from scipy.special import ellipj, ellipk

import difflie as dl
from difflie.constraints.equations import equations
from difflie.reproduce import REPRODUCTIONS
from difflie.reproduce.mechanisms import bodies, comparison, elliptic, pendulums
from difflie.reproduce.mechanisms.bodies import heavy_top
from difflie.reproduce.mechanisms.linkages import (
    COORDINATES,
    angle,
    bricard,
    four_bars,
    governor,
    slider_crank,
    squeezer,
    windows,
)
from difflie.reproduce.mechanisms.pendulums import babyboot
from difflie.system.kinematic_tree import Tree

PROBLEMS = [pytest.param(p, id=p.__name__) for p in comparison.PROBLEMS]


class State(NamedTuple):
    """What a machine does in a state under what drives it."""

    residual: np.ndarray
    jacobian: np.ndarray
    rate: np.ndarray
    acceleration: np.ndarray
    multipliers: np.ndarray
    energies: np.ndarray
    measured: np.ndarray


@functools.cache
def compiled(problem):
    p = problem()

    @jax.jit
    def state(system, q, v, drive):
        effort = dl.passive_force(system, q, v) + drive
        here = equations(Tree.of(system), q)
        motion = dl.constrained_dynamics(system, q, v, effort)
        energies = jnp.stack(dl.energy(system, q, v))
        given = here.residual(), here.jacobian(), here.rate(v), *motion, energies
        return State(*given, jnp.asarray(p.measured(q, v)))

    return p, state


def at(problem, q=None, v=None):
    """The state at the start, or at q and v."""
    p, state = compiled(problem)
    drive = jnp.zeros(p.system.nv) if p.drive is None else p.drive
    q, v = p.q if q is None else jnp.asarray(q), p.v if v is None else jnp.asarray(v)
    return State(*map(np.asarray, state(p.system, q, v, drive)))


@pytest.mark.parametrize("m", [0.0, 0.3, 0.926, 1 - 1e-9])
def test_elliptic_functions(m):
    u = np.linspace(-7, 9, 41)
    for ours, theirs in zip(elliptic.functions(u, m), ellipj(u, m)[:3], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=3e-13 if m < 0.99 else 1e-7)
    # The amplitude goes on where scipy's sn and cn come back.
    np.testing.assert_allclose(np.diff(elliptic.amplitude(u, m)) > 0, True)
    assert elliptic.quarter_period(m) == pytest.approx(ellipk(m), rel=1e-8)


@pytest.mark.slow
@pytest.mark.thorough(
    "squeezer", "rolling_disk", "bricard", "asymmetric_body", "symmetric_body", "slider_crank"
)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_start_keeps_the_constraints(problem):
    p, start = compiled(problem)[0], at(problem)
    assert np.abs(start.residual).max(initial=0) < 1e-15
    assert np.abs(start.rate).max(initial=0) < 1e-14
    assert len(p.quantities) == len(start.measured)
    assert np.all(np.asarray(p.scales) > 0) and np.all(np.isfinite(p.values))
    known = {"four_bars": 10, "bricard": 5, "slider_crank": 3, "squeezer": 9}
    if problem.__name__ in known:
        assert len(start.jacobian) == known[problem.__name__]
        assert p.system.nv - np.linalg.matrix_rank(start.jacobian) == 1


@pytest.mark.slow
def test_energies_at_the_start():
    energies = [
        (heavy_top, 5435.6968, 0.0),
        (four_bars, 1.5, 3.5 * 9.81),
        # Two rods hang half and one whole meter below, and one half.
        (bricard, 0.0, -3 * 9.81),
        (babyboot, 0.0, 0.0),
        # Crank, rod and slider, with the published twist of the rod.
        (slider_crank, 0.5 * 1e-4 * 36 + 0.25 * (0.12**2 + 0.24**2) + 0.0576, None),
    ]
    for problem, kinetic, potential in energies:
        found = at(problem).energies
        if problem is slider_crank:
            w, rod = np.array([1.92, -0.96, 0.48]), np.array([-0.2, 0.1, 0.2]) / 0.3
            kinetic += 0.5 * (4e-3 * w @ w - (4e-3 - 4e-4) * (w @ rod) ** 2)
        assert found[0] == pytest.approx(kinetic, rel=1e-7, abs=1e-14)
        if potential is not None:
            assert found[1] == pytest.approx(potential, rel=1e-12, abs=1e-14)


@pytest.mark.slow
def test_the_top_is_that_on_a_spherical_joint():
    p = heavy_top()
    body = p.system.bodies
    link = dl.Body(
        name="top",
        joint=dl.Spherical(),
        mass=float(body.mass[0]),
        com=(0, 1, 0),
        inertia=np.asarray(body.inertia[0]),
    )
    tree = dl.chain([link])
    expected = dl.forward_dynamics(tree, jnp.asarray([1.0, 0, 0, 0]), p.v[:3], jnp.zeros(3))
    a, force = at(heavy_top).acceleration, at(heavy_top).multipliers
    np.testing.assert_allclose(a[:3], expected, rtol=1e-12, atol=1e-11)
    # The force at the pivot moves the centre of mass, whose acceleration is a + w x v.
    centre = a[3:] + np.cross(p.v[:3], p.v[3:])
    np.testing.assert_allclose(force, 15 * (centre + np.array([0, 0, 9.81])), rtol=1e-12)


@pytest.mark.slow
def test_the_pendulum_swings_as_its_closed_form():
    def rate(t, x):
        return x[1], -9.81 * np.sin(x[0])

    known = solve_ivp(rate, (0, 1), (-np.pi / 2, 0), method="DOP853", rtol=1e-12, atol=1e-12)
    psi = known.y[0, -1]
    found = pendulums.position(1.0)
    np.testing.assert_allclose(np.abs(found), [abs(np.sin(psi)), np.cos(psi)], atol=1e-10)
    np.testing.assert_allclose(found, [0.986291751131875, -0.165010853125541], atol=1e-14)
    np.testing.assert_allclose(at(pendulums.pendulum).acceleration, [0, -9.81, 0], atol=1e-14)


@pytest.mark.slow
def test_four_bars_turn_as_their_closed_form():
    assert angle(1.0) == pytest.approx(3.3378708031051, abs=1e-12)
    assert angle(1.0, 40) == pytest.approx(3.2572069249098, abs=1e-12)
    # At an angle, where gravity acts.
    turning = np.asarray(four_bars().v)
    a = at(four_bars, 0.4 * turning).acceleration
    np.testing.assert_allclose(a, 3.5 * 9.81 / 3 * np.sin(0.4) * turning, rtol=1e-10)
    assert windows(3).nv == 7


def printed_squeezer(q, v):
    """M (7, 7) and f (7,) of the test set at its coordinates."""
    (_, th, ga, ph, _, om, _), (b1, t1, _, p1, d1, o1, e1) = q, v
    m2, m4, m6, da, rr, k, kp, zt, u = (
        0.00365,
        0.00706,
        0.00706,
        0.0115,
        0.007,
        0.00579,
        0.00579,
        0.04,
        0.04,
    )
    i2, i4, i6 = 4.410e-7, 5.667e-7, 5.667e-7
    m = np.zeros((7, 7))
    m[0, 0] = 0.04325 * 0.00092**2 + m2 * (rr**2 - 2 * da * rr * np.cos(th) + da**2) + 2.194e-6 + i2
    m[0, 1] = m[1, 0] = m2 * (da**2 - da * rr * np.cos(th)) + i2
    m[1, 1] = m2 * da**2 + i2
    m[2, 2] = 0.02373 * (0.01874**2 + 0.01043**2) + 5.255e-6
    m[3, 3] = m4 * k**2 + i4
    m[3, 4] = m[4, 3] = m4 * (k**2 + zt * k * np.sin(ph)) + i4
    m[4, 4] = m4 * (zt**2 + 2 * zt * k * np.sin(ph) + k**2) + i4
    m[4, 4] += 0.07050 * (0.02308**2 + 0.00916**2) + 1.169e-5
    m[5, 5] = m6 * kp**2 + i6
    m[5, 6] = m[6, 5] = m6 * (kp**2 - u * kp * np.sin(om)) + i6
    m[6, 6] = m6 * (kp**2 - 2 * u * kp * np.sin(om) + u**2) + i6
    m[6, 6] += 0.05498 * (0.01228**2 + 0.00449**2) + 1.912e-5
    c, s = np.cos(ga), np.sin(ga)
    end = np.array([-0.03635, 0.03273]) + 0.02 * np.array([c, s]) - 0.018 * np.array([-s, c])
    along = end - [0.014, 0.072]
    length = np.linalg.norm(along)
    force = -4530 * (length - 0.07785) / length * along
    f = [
        0.033 - m2 * da * rr * t1 * (t1 + 2 * b1) * np.sin(th),
        m2 * da * rr * b1**2 * np.sin(th),
        force @ (0.02 * np.array([-s, c]) + 0.018 * np.array([c, s])),
        m4 * zt * k * d1**2 * np.cos(ph),
        -m4 * zt * k * p1 * (p1 + 2 * d1) * np.cos(ph),
        -m6 * u * kp * e1**2 * np.cos(om),
        m6 * u * kp * o1 * (o1 + 2 * e1) * np.cos(om),
    ]
    return m, np.array(f)


@pytest.mark.slow
def test_the_squeezer_has_the_printed_equations():
    p = squeezer()
    order = [COORDINATES.index(x) for x in "beta Theta gamma Phi delta Omega epsilon".split()]
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=7), 100 * rng.normal(size=7)
    ours = np.empty((2, 7))
    ours[:, order] = q, v
    m, f = printed_squeezer(q, v)
    found = np.asarray(dl.mass_matrix(p.system, ours[0]))[np.ix_(order, order)]
    np.testing.assert_allclose(found, m, rtol=1e-12, atol=1e-18)
    # Not assembled there, but M a = f + A^T lambda holds everywhere.
    here = at(squeezer, *ours)
    forces = f + (here.jacobian.T @ here.multipliers)[order]
    np.testing.assert_allclose(m @ here.acceleration[order], forces, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_the_squeezer_starts_with_the_printed_accelerations():
    a, multipliers = at(squeezer).acceleration, at(squeezer).multipliers
    expected = np.zeros(7)
    expected[:2] = 14222.4439199541, -10666.8329399656
    np.testing.assert_allclose(a, expected, atol=1e-8)
    assert multipliers[:2] == pytest.approx([-98.56687039624, 6.12268834425566], rel=1e-12)
    np.testing.assert_allclose(multipliers[2:], 0, atol=1e-11)


@pytest.mark.slow
def test_the_governor_has_its_minimal_form():
    b, s, b1, s1, w = 0.45, 0.52, 0.3, -0.2, 6.0
    axial, across = 0.3 * 2e-4 / 12, 0.3 * 1.0001 / 12
    sb, cb = np.sin(b), np.cos(b)
    arm = [(0.3, 0.05 + 0.5 * cb, -0.5 * sb), (5.0, 0.05 + cb, -sb)]
    moment = axial + 3 * 0.02 / 12 + 2 * (across * cb**2 + axial * sb**2)
    moment += 2 * sum(m * r**2 for m, r, _ in arm)
    slope = 2 * (2 * (axial - across) * sb * cb + sum(2 * m * r * dr for m, r, dr in arm))
    length = np.hypot(0.5 * cb, 1 - 0.5 * sb - s)
    by_b = (-0.25 * cb * sb - 0.5 * cb * (1 - 0.5 * sb - s)) / length
    by_s = -(1 - 0.5 * sb - s) / length
    force = 8e5 * (length - 0.5) + 4e4 * (by_b * b1 + by_s * s1)
    expected = [
        -slope * b1 * w / moment,
        (-3 * 9.81 - 2 * force * by_s) / 3,
        (slope * w**2 / 2 + 2 * 9.81 * 5.15 * cb - 2 * force * by_b) / (2 * (0.075 + across + 5)),
    ]
    a = at(governor, [0.3, s, b, b], [w, s1, b1, b1]).acceleration
    np.testing.assert_allclose(a, [*expected, expected[2]], rtol=1e-10)


@pytest.mark.slow
def test_the_babyboot_has_kanes_equations():
    s, c = np.sin(1.1), np.cos(1.1)
    moment = 5e-6 + 0.01 * 0.075**2 + 0.1 * 0.2**2 + 2.5e-4 * c**2 + 5e-5 * s**2
    slope = -4e-4 * s * c
    gravity = 9.81 * (0.01 * 0.075 + 0.1 * 0.2) * np.sin(0.8)
    expected = (-gravity - slope * 3.0 * -2.0) / moment, slope * 9.0 / 2 / 2e-4
    a = at(babyboot, [0.8, 1.1], [3.0, -2.0]).acceleration
    np.testing.assert_allclose(a, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("exact", "moments"),
    [
        (bodies.precession, (0.04, 0.04, 0.02)),
        (bodies.tumbling, bodies.MOMENTS),
    ],
)
def test_free_bodies_turn_as_eulers_equations(exact, moments):
    inertia = np.array(moments)

    def rate(t, x):
        w, r = x[:3], x[3:].reshape(3, 3)
        skew = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        return np.concatenate((np.cross(inertia * w, w) / inertia, (r @ skew).ravel()))

    attitude, w = exact(0.0)
    start = np.concatenate((w, attitude.ravel()))
    known = solve_ivp(rate, (0, 3), start, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    attitude, w = exact(3.0)
    np.testing.assert_allclose(w, known[:3], atol=1e-9)
    np.testing.assert_allclose(attitude.ravel(), known[3:], atol=1e-9)


@pytest.mark.slow
def test_the_disk_rolls_in_its_circle():
    assert bodies.disk_precession() == pytest.approx(-0.4782051992, abs=1e-10)
    a = at(bodies.rolling_disk).acceleration
    # The twist stays the same but for the disk's own turning, seen from which it turns back.
    h = 1e-5
    before, after = (bodies.circling(t)[2] for t in (-h, h))
    np.testing.assert_allclose(a, (after - before) / (2 * h), atol=1e-7)


@pytest.mark.thorough
def test_the_comparison_and_its_pictures(tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "NAMES", ("RKMK4", "DormandPrince54"))
    monkeypatch.setattr(comparison, "TOLERANCES", (1e-9,))
    numbers = REPRODUCTIONS["mechanisms"].compute(tmp_path, problems=(heavy_top, babyboot))
    assert (tmp_path / "error_over_time.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "error_over_step.png").read_bytes().startswith(b"\x89PNG")
    for row in numbers.rows:
        assert row.target is None or row.error < row.target, row
    text = io.StringIO()
    REPRODUCTIONS["mechanisms"].show(numbers, Console(file=text, width=120))
    assert "babyboot" in text.getvalue() and "RKMK4" in text.getvalue()

"""Motions for measurements: within their limits, telling, and good enough to find an arm again."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import identify as di


def two_links(**limits):
    """About a slanted and a vertical axis."""

    def link(name, axis):
        hinge = dl.Revolute(axis=axis, damping=0.1, friction=0.1, friction_velocity=0.1, **limits)
        inertia = np.diag((0.02, 0.025, 0.015))
        return dl.Body(
            name=name, joint=hinge, mass=1.0, com=(0.1, 0.02, -0.2), inertia=inertia,
            position=(0.0, 0.0, -0.4),
        )  # fmt: skip

    return dl.chain([link("upper", (0.3, 1.0, 0.0)), link("lower", (0.0, 0.1, 1.0))])


SYSTEM = two_links(lower=-1.0, upper=2.0, max_velocity=3.0)
FREE = dl.Parameters(SYSTEM, ["*/inertial", "*/damping", "*/friction"])
HURRY = {"duration": 4.0, "harmonics": 3, "samples": 40, "deviation": (0.1, 0.2)}


@pytest.fixture(scope="module")
def found():
    return di.excitation(FREE, acceleration=(9.0, 20.0), **HURRY)


def logdet(recording):
    """That of the covariance of base parameters, by the linear problem."""
    silent = dataclasses.replace(recording, tau=np.zeros_like(recording.v))
    problem = di.InverseDynamics.of(SYSTEM, [silent], HURRY["deviation"])
    told = di.linear(SYSTEM, problem, joints=("damping", "friction"), known_deviations=True)
    return np.linalg.slogdet(told.information.covariance)[1], told


@pytest.mark.slow
def test_limits_hold_at_all_times(found):
    fine = found.at(np.linspace(0, 8, 40001))
    assert fine.q.min() > -1 and fine.q.max() < 2
    assert np.abs(fine.v).max() < 3
    assert (np.abs(fine.a).max(axis=0) < (9, 20)).all()
    # And the room is used: for each joint one of them is nearly reached.
    parts = np.stack(
        [
            np.maximum((0.5 - fine.q).max(axis=0), (fine.q - 0.5).max(axis=0)) / 1.5,
            np.abs(fine.v).max(axis=0) / 3,
            np.abs(fine.a).max(axis=0) / (9, 20),
        ]
    )
    assert (parts.max(axis=0) > 0.9).all()


def test_it_begins_at_rest_and_is_periodic(found):
    ends = found.at((0.0, 4.0, 8.0))
    np.testing.assert_allclose(ends.q, ends.q[[0, 0, 0]], atol=1e-12)
    np.testing.assert_allclose((ends.v, ends.a), 0, atol=1e-12)
    assert len(found.recording.t) == 40 and found.recording.tau is None
    again = found.at(found.recording.t)
    for name in ("q", "v", "a"):
        np.testing.assert_allclose(getattr(again, name), getattr(found.recording, name), atol=1e-12)


def test_velocities_and_accelerations_are_derivatives(found):
    h, t = 1e-4, np.linspace(0.1, 3.9, 50)
    above, at, below = (found.at(t + d) for d in (h, 0, -h))
    np.testing.assert_allclose((above.q - below.q) / (2 * h), at.v, atol=1e-6)
    np.testing.assert_allclose((above.v - below.v) / (2 * h), at.a, atol=1e-5)


@pytest.mark.slow
def test_information_is_that_of_the_base_parameters(found):
    """Up to a constant, whatever the unknowns: it is a determinant."""
    other = di.excitation(FREE, acceleration=3.0, **HURRY)
    (first, told), (last, _) = logdet(other.recording), logdet(found.recording)
    assert told.base.rank == found.rank == 4 + dl.base_parameters(SYSTEM).rank
    assert found.information - other.information == pytest.approx(first - last, rel=1e-7)
    assert found.information > other.information + 5
    assert found.information > found.before + 5


@pytest.mark.slow
def test_no_motion_at_random_tells_as_much(found):
    rng = np.random.default_rng(3)
    best = -np.inf
    for _ in range(100):
        waves = rng.normal(size=(2, 7))
        waves[:, 0] = 0
        trial = dataclasses.replace(found, waves=waves)
        fine = trial.at(np.linspace(0, 4, 400))
        largest = (np.abs(fine.q) / 1.5, np.abs(fine.v) / 3, np.abs(fine.a) / (9, 20))
        waves /= np.max(largest, axis=(0, 1))[:, None]
        waves[:, 0] = 0.5
        best = max(best, -logdet(dataclasses.replace(found, waves=waves).at(found.recording.t))[0])
    assert -logdet(found.recording)[0] > best


def test_efforts_are_limited():
    """Those of the machine, friction included; less is told than without the limit."""
    free = di.excitation(FREE, acceleration=20.0, **HURRY)
    strong = np.array((1.5, 0.4))
    weak = di.excitation(FREE, acceleration=20.0, effort=strong, **HURRY)
    needed = jax.jit(
        jax.vmap(lambda *x: dl.inverse_dynamics(SYSTEM, *x) - dl.passive_force(SYSTEM, *x[:2]))
    )

    def largest(motion):
        r = motion.recording
        return np.abs(np.asarray(needed(r.q, r.v, r.a))).max(axis=0)

    assert (largest(weak) <= strong).all()
    assert (largest(free) > strong).any()
    assert weak.information < free.information
    with pytest.raises(ValueError, match="no motion was found within the limits of effort"):
        di.excitation(FREE, effort=1e-3, **HURRY, steps=300)


@pytest.mark.slow
def test_priors_count_as_information():
    """In single precision as well as can be."""
    prior = dl.Parameter("upper/mass", prior=(1.0, 0.1))
    single = dl.Parameters(SYSTEM.astype(np.float32), [prior])
    found = di.excitation(single, **HURRY, steps=20)
    motion = dataclasses.replace(found.recording, tau=np.zeros((40, 2)))
    problem = di.InverseDynamics.of(SYSTEM, [motion], HURRY["deviation"])

    @jax.jit
    def residual(mass):
        return problem.residual(SYSTEM.replace(mass=mass), problem.own)

    # Linear in the mass, the logarithm of which is x.
    slope = residual(np.array((2.0, 1.0))) - residual(np.array((1.0, 1.0)))
    assert np.exp(found.information) == pytest.approx(100 + float(slope @ slope), rel=1e-4)


def test_what_cannot_be_designed_is_said():
    def refused(message, parameters=FREE, **changes):
        with pytest.raises(ValueError, match=message):
            di.excitation(parameters, **{**HURRY, **changes})

    refused("positive and finite", duration=0.0)
    refused("cannot begin at rest", harmonics=1)
    refused("miss some", samples=6)
    refused("one or more", steps=0)
    refused("no standard deviation", deviation=-1.0)
    refused("joint 'upper' has no room", position=(1.0, (1.0, 2.0)))
    refused("shape \\(3,\\); give a number, or 2", velocity=(1.0, 1.0, 1.0))
    refused("largest acceleration must be positive", acceleration=0.0)
    refused("cannot tell", samples=5, harmonics=2)
    endless = dl.Parameters(two_links(), ["*/mass"])
    refused("joint 'upper' has no velocity limit", endless)
    refused("has one position limit", endless, position=(-np.inf, 1.0), velocity=1.0)
    smooth = SYSTEM.replace(friction=np.zeros(2))
    refused("no torque depends", dl.Parameters(smooth, ["*/friction_velocity"]))
    free = dl.chain([dl.Body(name="ball", joint=dl.Free(), mass=1.0, inertia=np.eye(3))])
    refused("plain coordinates", dl.Parameters(free, ["*/mass"]))


@pytest.mark.thorough
def test_an_arm_is_found_again():
    """Seven joints, all inertial parameters, friction and armature; torques with noise."""
    arm = dl.load(dl.examples.path("arm7"))
    rub = {"damping": 0.4, "friction": 0.5, "armature": 0.1, "friction_velocity": 0.05}
    arm = arm.replace(**{name: np.full(7, value) for name, value in rub.items()})
    rng = np.random.default_rng(0)
    truth = arm.replace(
        mass=arm.bodies.mass * rng.uniform(0.8, 1.2, 9),
        damping=rng.uniform(0.2, 0.6, 7),
        friction=rng.uniform(0.2, 0.8, 7),
        armature=rng.uniform(0.05, 0.15, 7),
    )
    free = dl.Parameters(arm, ["link[1-7]/inertial", "*/damping", "*/friction", "*/armature"])
    deviation = np.array((0.6, 0.6, 0.4, 0.4, 0.1, 0.1, 0.1))
    design = di.excitation(free, duration=8.0, deviation=deviation)
    assert design.information > design.before + 2 * design.rank * np.log(2)

    r = design.recording
    assert (r.q > np.asarray(arm.joints.lower)).all() and (r.q < np.asarray(arm.joints.upper)).all()
    silent = di.InverseDynamics.of(arm, [dataclasses.replace(r, tau=np.zeros_like(r.v))], deviation)
    clean = dataclasses.replace(silent, tau=jax.jit(lambda s: silent.torques(s))(truth))
    exact = di.linear(arm, clean)
    expected = exact.of(truth)
    np.testing.assert_allclose(exact.values, expected, rtol=1e-8, atol=1e-11)
    assert exact.base.rank == design.rank

    def noisy():
        return dataclasses.replace(
            clean, tau=clean.tau + deviation * rng.normal(size=clean.tau.shape)
        )

    scores = []
    for _ in range(200):
        found = di.linear(arm, noisy())
        scores.append((found.values - expected) / found.standard_errors)
    covered = np.mean(np.abs(scores) < 1.96)
    assert 0.93 < covered < 0.97
    assert 0.9 < np.std(scores) < 1.1

    # And the nonlinear problem has the same minimum where bodies can have the linear solution.
    problem = dataclasses.replace(noisy(), deviation=jnp.asarray(deviation / 100))
    problem = dataclasses.replace(problem, tau=clean.tau + (problem.tau - clean.tau) / 100)
    found = di.linear(arm, problem)
    start = found.consistent(free)
    assert start.converged, start.message
    fitted = di.fit(free, problem, start=start.x)
    assert fitted.converged and fitted.steps < 20, fitted.message
    off = (found.of(fitted.system) - found.values) / found.standard_errors
    assert np.abs(off).max() < 0.01


@pytest.mark.slow
def test_limits_in_space_hold_at_all_times():
    """A box for the hand and a sphere that it keeps away from; without them both are left."""
    hand = dl.quantities.Point("lower", (0.3, 0.0, -0.4))
    post = dl.Frame(None, (0.2, 0.45, -1.1))
    away = dl.quantities.Distance(post, dl.Frame("lower", (0.3, 0.0, -0.4)))
    box = di.Bounded(hand, lower=(-0.7, -0.1, -1.3), upper=(0.25, 0.45, -0.45))
    free = di.excitation(FREE, acceleration=(9.0, 20.0), **HURRY)
    kept = di.excitation(
        FREE, acceleration=(9.0, 20.0), space=[box, di.Bounded(away, lower=0.15)], **HURRY
    )

    def along(quantity, excitation):
        motion = excitation.at(np.linspace(0, 4, 2001))
        at = jax.vmap(lambda q, v: quantity(SYSTEM, q, v, None, 0.0))
        return np.asarray(at(jnp.asarray(motion.q), jnp.asarray(motion.v)))

    def inside(excitation):
        x = along(hand, excitation)
        return (x >= np.asarray(box.lower)).all() and (x <= np.asarray(box.upper)).all()

    assert not (inside(free) and along(away, free).min() > 0.15)
    assert inside(kept) and along(away, kept).min() > 0.15
    assert kept.before < kept.information < free.information


@pytest.mark.slow
def test_unsuitable_limits_in_space_are_refused():
    hand = dl.quantities.Point("lower")
    with pytest.raises(ValueError, match=r"cannot stay between 1\.0 and 0\.0; give"):
        di.excitation(FREE, acceleration=9.0, space=[di.Bounded(hand, 1, 0)], **HURRY)
    with pytest.raises(ValueError, match="has no bound"):
        di.excitation(FREE, acceleration=9.0, space=[di.Bounded(hand)], **HURRY)
    with pytest.raises(ValueError, match=r"has the shape \(3,\), and a bound \(2,\)"):
        di.excitation(FREE, acceleration=9.0, space=[di.Bounded(hand, lower=(0.0, 0.0))], **HURRY)
    with pytest.raises(ValueError, match="effort and space"):
        di.excitation(FREE, acceleration=9.0, space=[di.Bounded(hand, lower=9.0)], **HURRY)

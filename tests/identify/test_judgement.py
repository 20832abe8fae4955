"""What a fit is worth, in words: predictions, noise, numbers that are told or not, and doubts."""

import dataclasses

import numpy as np
import pytest

import difflie as dl
from difflie import identify as di
from difflie.identify.assessment import Assessment, Estimates
from difflie.identify.readings import ReadingErrors
from difflie.identify.remarks import advice, implausible

RNG = np.random.default_rng(3)
T = 0.01 * np.arange(400)
TORQUE = np.column_stack((np.sin(3 * T), 2 * np.cos(2 * T)))
NAMES = "upper/mass", "hip/damping", "hip/friction", "knee/torque_bias"


def validation(error, start=None, name="walk"):
    """Torques (n, 2) of a hip and a knee that are predicted with an error (n, 2)."""
    nothing = np.zeros((0, 11, 2))
    return di.Validation(
        recording=di.Recording(name, T, TORQUE, tau=TORQUE),
        joints=("hip", "knee"),
        units=("rad", "m"),
        window=10,
        observed=1,
        torque=TORQUE + error,
        effort=TORQUE,
        motions=nothing,
        departure=nothing,
        readings=ReadingErrors((), np.zeros((0, 0)), np.zeros((0, 0))),
        raw=np.full_like(TORQUE, np.nan),
        target=np.full_like(TORQUE, np.nan),
        start=start,
    )


WHITE = 0.05 * RNG.normal(size=TORQUE.shape)
GOOD = validation(WHITE)


def judged(**changes) -> Assessment:
    errors = np.array([0.05, 0.01, 0.02, 0.01])
    numbers = Estimates(
        names=NAMES,
        units=("kg", "N m s/rad", "N m", "N"),
        start=np.array([1.0, 0.1, 0.2, 0.0]),
        values=np.array([1.1, 0.12, 0.25, 0.001]),
        standard_errors=errors,
        white_errors=errors,
        freedom=np.full(4, 40.0),
        intervals=np.zeros((4, 2)),
        at_bound=np.zeros(4, bool),
        prior_share=np.zeros(4),
        correlations=np.eye(4),
        variance=1.04,
        message="converged after 7 steps",
    )
    runs = {use: changes.pop(use, [GOOD]) for use in ("fitted", "unseen")}
    return Assessment(dataclasses.replace(numbers, **changes), **runs)


def test_a_good_fit_is_called_so():
    """With white errors, and a bias that is nothing; no word of what is bad."""
    said = judged(fitted=[validation(WHITE, validation(5 * WHITE))]).verdict
    assert said[0] == "the fit has converged after 7 steps"
    assert said[1].startswith(
        "torques are predicted well at all joints: R2 of held-out samples is 0.99"
    )
    assert "what is left of torques is white at all joints" in " ".join(said)
    told = "the data identifies all 4 numbers to 30% or better, of themselves or of their start"
    assert said[-1] == told
    assert not any(word in " ".join(said) for word in ("worse", "poorly", "no run", "told apart"))


def test_what_is_wrong_is_named():
    """Rows that are predicted poorly, an error that lasts, and a start that is no worse."""
    slow = np.column_stack((0.9 * np.sin(T), 0 * T))
    bad = validation(WHITE + slow, validation(WHITE + np.column_stack((0 * T, 0.5 + 0 * T))))
    said = " ".join(judged(fitted=[validation(WHITE + 0.2 * slow)], unseen=[bad]).verdict)
    assert "torques of held-out samples are predicted well (R2 of 0.95 or more): knee" in said
    assert "torques of held-out samples are predicted poorly: hip (R2 0." in said
    assert "the numbers at the start are no worse for the torque of hip" in said
    assert "worse than those of fitted samples: hip (0." in said
    # Of the error of the hip 0.05 N m are noise, and 0.13 N m its RMSE.
    assert "as noise does: hip (0.051 of 0.13 N m)" in said and "knee (0.0" not in said
    alone = " ".join(judged(unseen=[], message="not converged after 9 steps").verdict)
    assert alone.startswith("not converged") and "no run was kept aside" in alone


def test_numbers_that_are_not_told_are_named_with_the_motion_that_would():
    """What is at a bound is told; correlated ones are named together."""
    correlations = np.eye(4)
    correlations[1, 2] = correlations[2, 1] = -0.995
    found = judged(
        standard_errors=np.array([np.inf, 0.1, 0.2, 0.1]),
        at_bound=np.array([False, False, True, False]),
        correlations=correlations,
    )
    assert found.poorly_identified == ["upper/mass", "hip/damping"]
    said = " ".join(found.verdict)
    assert "of their start, and poorly or not: upper/mass, hip/damping" in said
    assert "strongly correlated: hip/damping and hip/friction (-0.995)" in said
    mass, damping, designed = advice(found.poorly_identified)
    assert mass.startswith("to tell upper/mass: rest") and "known load" in mass
    assert damping.startswith("to tell hip/damping: motions to and fro at several constant speeds")
    assert "difflie.identify.excitation" in designed and not list(advice([]))


def test_components_of_a_vector_are_told_beside_its_size():
    """A centre of mass that is nearly on an axis is known well though its part beside it is 0."""
    found = judged(
        names=("arm/com_x", "arm/com_z"),
        start=np.array([0.001, 0.5]),
        values=np.array([0.001, 0.5]),
        standard_errors=np.array([0.01, 0.01]),
        at_bound=np.zeros(2, bool),
        correlations=np.eye(2),
    )
    assert found.poorly_identified == []


def test_what_no_machine_has_is_doubted():
    """A far centre of mass, five times the mass, a torque turned round, an inertia of no body."""
    arm = dl.chain(
        [
            dl.Body(
                name="upper", mass=1.0, com=(0.2, 0, 0), joint=dl.Revolute(name="hip", armature=0.1)
            ),
            dl.Body(
                name="lower",
                mass=1.0,
                position=(0.4, 0, 0),
                joint=dl.Revolute(name="knee", armature=0.1),
            ),
        ]
    )
    arm = dl.attach(arm, dl.Drive("hip"), dl.Drive("knee"))
    assert not list(implausible(arm, arm))
    com = np.array(arm.bodies.com)
    com[0] = (1.4, 0, 0)
    parameters = dl.Parameters(arm, ["hip/torque_scale", "knee/torque_scale"])
    found = parameters.with_values(np.array([-1.0, 9.0])).replace(
        mass=np.array([1.0, 5.0]), com=com
    )
    said = list(implausible(arm, found))
    assert [sentence.partition(":")[0] for sentence in said] == ["upper", "lower", "hip", "knee"]
    assert "1.4 m from its joint, beyond the link of 0.4 m" in said[0]
    assert "5 kg, and 1 kg at the start" in said[1] and "turned round" in said[2]
    assert "side of the gear" in said[3]
    alone = dl.Parameters(arm, ["upper/I_xx"]).with_values([0.1])
    assert list(implausible(arm, alone)) == [
        "upper: no rigid body has the principal moments of inertia 0, 0, 0.1 kg m^2: each must be "
        "at most the sum of the others (triangle inequality); declare upper/inertia, which stays "
        "what a body can have"
    ]


@pytest.mark.parametrize(
    ("key", "expected"), [("torque_r2", 1 - 0.05**2 / 0.5), ("torque_noise", 0.05)]
)
def test_measures_of_torques_are_those_of_the_noise(key, expected):
    """R2 by the variance of the torque, and the noise by its differences."""
    assert getattr(GOOD, key)[0] == pytest.approx(expected, rel=0.1)

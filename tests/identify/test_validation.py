"""Machines are held against recordings, and what is said of them is right."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure

import difflie as dl
from difflie import identify as di
from difflie.view.report import Worked

NOISE = 0.05


def pendulum(mass):
    hinge = dl.Revolute(axis=(0.0, 1.0, 0.0), name="hinge", damping=0.1)
    inertia = np.diag((0.02, 0.02, 0.002))
    body = dl.Body(name="arm", joint=hinge, mass=mass, com=(0, 0, -0.3), inertia=inertia)
    return dl.chain([body])


TRUE, FREE = pendulum(1.3), dl.Parameters(pendulum(1.0), ["arm/mass", "hinge/damping"])


@pytest.fixture(scope="module")
def recordings():
    """A swing in steps of 5 ms with noisy torques: the first 2 s, to be fitted, and the rest."""
    t = 5e-3 * np.arange(601)
    tau = jnp.asarray(2 * np.sin(3 * t)[:, None])
    run = dl.simulate(TRUE, jnp.asarray([0.3]), jnp.zeros(1), dt=5e-3, steps=600, control=tau[:-1])
    a = jax.vmap(lambda q, v, u: dl.forward_dynamics(TRUE, q, v, u + dl.passive_force(TRUE, q, v)))(
        run.q, run.v, tau
    )
    noisy = tau + NOISE * np.random.default_rng(0).normal(size=tau.shape)
    whole = di.Recording("swing", t, run.q, run.v, a, noisy)
    return whole.between(0, 2), whole.between(2, 4)


@pytest.fixture(scope="module")
def found(recordings):
    return di.fit(FREE, di.InverseDynamics.of(FREE.system, [recordings[0]]))


@pytest.mark.slow
def test_errors_are_those_of_the_measurements(found, recordings):
    """Torques are off by their noise, which is white; motions by little in half a second."""
    (validation,) = found.validate(recordings[1])
    assert validation.joints == ("hinge",)
    np.testing.assert_allclose(validation.torque_rmse, NOISE, rtol=0.1)
    assert validation.torque_autocorrelation < 2 and 0 < validation.position_rmse < 5e-3
    assert validation.motions.shape == (2, 101, 1)
    row = validation.rows[0]
    assert (row.run, row.joint, row.torque_rmse) == ("swing", "hinge", validation.torque_rmse[0])
    wrong = di.fit(
        dl.Parameters(pendulum(0.9), ["hinge/damping"]), di.InverseDynamics.of(TRUE, recordings[:1])
    )
    (worse,) = wrong.validate([recordings[1]])
    assert worse.torque_rmse > 5 * validation.torque_rmse and worse.torque_autocorrelation > 5


@pytest.mark.slow
def test_what_is_not_measured_is_not_judged(found, recordings):
    """NaN in Python, null in JSON, a picture without it."""
    silent = di.Recording("silent", recordings[1].t, recordings[1].q)
    (validation,) = found.validate(silent)
    assert np.isnan(validation.torque_rmse) and np.isnan(validation.position_rmse)
    assert list(dataclasses.asdict(validation.rows[0]).values()).count(None) == 7
    (observed,) = found.validate(silent, observe=4, window=0.1)
    # Without torques the prediction is that of a pendulum that nobody drives.
    assert np.isnan(observed.torque_rmse) and observed.position_rmse > 1e-3
    assert len(observed.plot().axes) == 2 and len(found.validate(recordings[1])[0].plot().axes) == 4


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"window": 0.0}, "swing: a window has 0.0 s; it must be positive"),
        ({"observe": 1}, "observe is 1; give two rows or more"),
        ({"observe": 200}, "observe is 200, but a window of swing has 101 rows; take fewer"),
    ],
)
def test_windows_that_cannot_be_are_named(found, recordings, settings, words):
    with pytest.raises(di.DataError, match=words):
        found.validate(recordings[1], **settings)


@pytest.mark.slow
def test_recordings_are_left_out_in_turn(recordings):
    """Each is judged by what the others give, and none by nothing."""
    trials = [di.Trial.of(TRUE, recording) for recording in recordings]
    seen = []

    def fitted(others):
        seen.append(others)
        return di.fit(FREE, di.InverseDynamics.of(TRUE, others))

    for validation in di.leave_one_out(trials, fitted):
        np.testing.assert_allclose(validation.torque_rmse, NOISE, rtol=0.1)
    assert seen == [[recordings[1]], [recordings[0]]]
    short = recordings[0].between(0, 0.008)

    def few(others):
        return di.fit(dl.Parameters(TRUE, ["arm/inertial"]), di.InverseDynamics.of(TRUE, [short]))

    with pytest.warns(UserWarning, match="without swing: chain: 2 measurements are fewer"):
        assert di.leave_one_out(trials, few) == []


@pytest.mark.slow
def test_a_fit_is_reported(found, recordings, tmp_path):
    """On one page of HTML with its pictures, which are files beside it as well."""
    seen, unseen = (found.validate(each) for each in recordings)
    page = found.report(tmp_path / "report", unseen, seen).read_text()
    assert "<h1>" in page and "arm/mass" in page and "<td>N m s/rad</td>" in page
    assert page.count("<img") == 5 and "called from Python" in page
    assert (
        "The fit has converged" in page and "predicted well at all joints: R2 of held-out" in page
    )
    assert "Run 0: swing (fitted)" in page and "Run 1: swing (held out, not fitted)" in page
    for name in ("run_0.png", "run_1.png", "spectra.png", "correlations.png", "ellipses.png"):
        assert (tmp_path / "report" / name).stat().st_size > 10_000
    assert "Run 0" not in found.report(str(tmp_path)).read_text()


@pytest.mark.slow
def test_a_report_of_a_fit_is_data(found, recordings, tmp_path):
    """Guards what terminals show of a fit: tables without pictures, also of recordings left out."""
    seen, unseen = (found.validate(each) for each in recordings)
    shown = found.as_report(unseen, seen, left_out=seen, whole=False)
    titles = [section.title for section in shown.sections]
    assert titles == ["Numbers", "Errors of each run"] and shown.worked is Worked.YES
    uses = [row[1] for row in shown.sections[1].parts[0].rows]
    assert uses == ["fitted", "held out", "left out"]
    folder = found.save(tmp_path, unseen, seen, left_out=seen)
    results = json.loads((folder / "identification.json").read_text())
    rows = [dataclasses.asdict(row) for row in seen[0].rows]
    assert results["left_out"] == results["training"] == json.loads(json.dumps(rows))


def test_a_fit_is_plotted(found):
    """The parameters of a unit on one axis, each at its name, with an interval that has no end
    where it is not identifiable."""
    canvas = found.plot()
    assert isinstance(canvas, Figure)
    mass, damping = canvas.axes
    assert (mass.get_xlabel(), damping.get_xlabel()) == ("[kg]", "[N m s/rad]")
    assert [label.get_text() for label in mass.get_yticklabels()] == ["arm/mass"]
    low, high = damping.collections[0].get_paths()[0].vertices[:, 0]
    np.testing.assert_allclose((low, high), found.intervals[1])

"""Pictures of recordings beside predictions: what is in them, for few joints and many."""

import dataclasses

import numpy as np
import pytest

from difflie.view.compared import Run, Spectra, run_figure, run_spectra

N, WINDOW = 201, 50


def run(nv, *, torques=True, motions=True) -> Run:
    t = 0.01 * np.arange(N)
    q = np.sin(t[:, None] * np.arange(1, nv + 1))
    windows = np.stack([q[k * WINDOW : (k + 1) * WINDOW + 1] for k in range(4)])
    off = 0.01 * np.ones_like(windows)
    return Run(
        joints=[f"joint {k}" for k in range(nv)],
        units=["rad"] * nv,
        t=t,
        torque=q + 0.1 if torques else np.full_like(q, np.nan),
        effort=q,
        raw=q,
        q=q,
        target=np.full_like(q, np.nan),
        motions=windows + off if motions else windows[:0],
        departure=off if motions else off[:0],
        window=WINDOW,
    )


def shown(canvas):
    return [a for a in canvas.axes if a.get_visible()]


@pytest.mark.parametrize("nv", [1, 2, 6, 12])
def test_torques_and_motions_of_a_joint_are_side_by_side(nv):
    """Each above what is left of it, on one axis of time."""
    canvas = run_figure(run(nv))
    axes = shown(canvas)
    assert len(axes) == 4 * nv
    assert [a.get_title(loc="left") for a in axes[:2]] == ["joint 0", "joint 0"]
    assert axes[0].get_subplotspec().get_gridspec().ncols == 2
    assert axes[0].get_ylabel() == "[N m]" and axes[1].get_ylabel() == "[rad]"
    below = axes[2]
    assert axes[0].get_shared_x_axes().joined(axes[0], below)
    np.testing.assert_allclose(below.lines[0].get_ydata(), -0.1)
    width, height = canvas.get_size_inches()
    assert width < 20 and height < 40


def test_windows_are_broken_apart():
    """No line from the end of one to the start of the next; the last may be short."""
    (above, below) = shown(run_figure(run(1, torques=False)))
    measured, predicted = above.lines
    times, values = predicted.get_data()
    assert np.isnan(times).sum() == 4 and len(times) == 4 * (WINDOW + 2)
    np.testing.assert_allclose(values[:WINDOW], measured.get_ydata()[:WINDOW] + 0.01)
    np.testing.assert_allclose(np.nanmax(np.abs(below.lines[0].get_ydata())), 0.01)


def test_nothing_is_hidden_by_another_curve():
    """What is measured is wider than what is predicted, and a torque before its scale is dashed."""
    plain, scaled = run(1, motions=False), run(1, motions=False)
    scaled = dataclasses.replace(scaled, raw=2 * scaled.effort)
    (above, _), (more, _) = (shown(run_figure(each)) for each in (plain, scaled))
    measured, predicted = above.lines
    assert measured.get_linewidth() > 3 * predicted.get_linewidth()
    assert [line.get_label() for line in more.lines] == [
        *("measured", "as measured, before the drive", "predicted"),
    ]


def test_a_prediction_that_runs_away_does_not_flatten_the_others():
    away = run(1, torques=False)
    away = dataclasses.replace(away, motions=away.motions * np.linspace(1, 1e3, 51)[:, None])
    low, high = shown(run_figure(away))[0].get_ylim()
    assert -5.1 < low < high < 5.1


def test_spectra_peak_where_the_error_oscillates():
    """A ripple of 5 Hz in rows and in windows; none of less than eight rows."""
    t = 0.01 * np.arange(512)
    ripple = np.sin(2 * np.pi * 5 * t)[:, None]
    rows = Spectra.of_rows("", "N", ["a"], t, ripple)
    windows = Spectra.of_windows("", "m", ["a"], 0.01, ripple.reshape(4, 128, 1))
    for found in (rows, windows):
        assert found.hertz[found.powers[:, 0].argmax()] == pytest.approx(5, abs=1)
    assert Spectra.of_rows("", "N", ["a"], t[:5], ripple[:5]) is None
    assert Spectra.of_windows("", "m", ["a"], 0.01, np.full((1, 20, 1), np.nan)) is None
    assert len(shown(run_spectra(run(3), "walk"))) == 2

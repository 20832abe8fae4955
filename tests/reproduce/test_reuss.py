"""The formulas, motions and pictures of Reuss 2002."""

import io

import numpy as np
import pytest
from rich.console import Console

from difflie.reproduce import REPRODUCTIONS
from difflie.reproduce.reuss.chain import Chain, posture
from difflie.reproduce.reuss.check import Check
from difflie.reproduce.reuss.reference import Reference

REUSS = REPRODUCTIONS["reuss"]
MISPRINTS = {
    *("(9)", "(13)", "(15)", "(26)", "(32)", "(38)", "(50)", "6.1", "6.2", "6.3", "6.4"),
}


@pytest.mark.slow
def test_every_formula_holds_as_it_is_printed_or_corrected(tmp_path):
    """Guards all formulas against difflie's algorithms, and the list of misprints."""
    results = REUSS.compute(tmp_path, samples=2, joints="RP", steps={})
    rows = results.formulas
    assert not [r for r in rows if r.verdict == "fails"]
    assert {r.number for r in rows if r.verdict == "corrected"} == MISPRINTS
    assert len(rows) > 45
    for name in ("figure_1_architect", "figure_1_painter", "figure_2"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    text = io.StringIO()
    REUSS.show(results, Console(file=text, width=120))
    assert "- dPsi/dt w" in text.getvalue()
    assert f"{len(rows)} of {len(rows)} agree" in (tmp_path / "report.html").read_text()


def test_what_does_not_hold_is_said():
    """A residual above rounding fails, and so does a correction of what was right."""
    assert Check("(1)", "", 1e-3).verdict == "fails"
    assert Check("(1)", "", 1e-15, 1e-15, "other").verdict == "fails"
    assert Check("(1)", "", 1.0, 1e-3, "other").verdict == "fails"
    assert Check("(1)", "", None, 1e-15, "other").verdict == "corrected"


def test_a_sliding_body_stops_by_coulombs_law():
    """A body with the speed 1 m/s, mu g = 2.5 m/s^2, stops after 0.4 s and 0.2 m, and sticks."""
    body = Chain(
        KK=np.zeros((0, 4, 4)),
        screws=np.zeros((0, 6)),
        mass=np.array([2.0]),
        com=np.zeros((1, 3)),
        inertia=np.eye(3)[None],
        gravity=np.array([0, 0, -10.0]),
        stiffness=np.zeros(0),
        damping=np.zeros(0),
    )
    start = posture(body, np.eye(4), np.zeros(0)).q
    w = np.array([0, 0, 0, 0.6, 0.8, 0])
    foot = Reference(body, 0, np.zeros(3), friction=0.25)
    slides, sticks = foot.motion(np.linspace(0, 1, 11), np.concatenate((start, w)))
    assert (slides.mode, sticks.mode) == ("slides", "sticks")
    np.testing.assert_allclose(slides.t[-1], 0.4, atol=1e-7)
    np.testing.assert_allclose(slides.y[-1, 4:7], [0.12, 0.16, 0], atol=1e-7)
    np.testing.assert_allclose(slides.force, np.tile([-3.0, -4.0, 20.0], (5, 1)), atol=1e-6)
    np.testing.assert_allclose(sticks.force, np.tile([0, 0, 20.0], (8, 1)), atol=1e-10)
    np.testing.assert_allclose(sticks.y[:, 4:7] - slides.y[-1, 4:7], 0, atol=1e-12)


@pytest.mark.thorough
def test_motions_by_both_ways(tmp_path):
    """Guards multipliers and friction along motions against (29) to (32), and their pictures."""
    results = REUSS.compute(tmp_path, samples=2)
    free, held, sliding = (list(m.numbers.values()) for m in results.motions)
    assert max(free) < 1e-7
    assert max(held) < 1e-8
    apart, least, paper, difflie, lifted, force = sliding
    assert apart < 3e-3
    assert least > 5
    assert lifted <= 3
    assert force < 0.1
    np.testing.assert_allclose([paper, difflie], 1, rtol=1e-9)
    modes = [s.mode for s in results.motions[2].stretches]
    assert modes == ["slides", "sticks", "slides", "sticks", "slides"]
    assert len(list(tmp_path.glob("*.png"))) == 9

"""The figures of Goetz 2024: a few standard runs always, all with `-m thorough`."""

import io
import json
import re

import jax
import numpy as np
import pytest
from rich.console import Console

from difflie.io.results import save_json
from difflie.reproduce import REPRODUCTIONS
from difflie.reproduce.goetz.schemes import SCHEMES
from difflie.reproduce.goetz.study import (
    DURATION,
    STATE_TIME,
    STEP,
    energy_order,
    exact_angles,
    move,
    three_links,
)

LARGEST = {
    ("gravity", "energy-stable midpoint"): 1e-13,
    ("gravity", "energy-stable 2-point Gauss"): 1e-13,
    ("gravity", "energy-stable 3-point Gauss"): 1e-13,
    ("gravity", "energy-stable Gonzalez"): 1e-13,
    ("mono", "energy-stable 3-point Gauss"): 2e-13,
    ("mono", "energy-stable Gonzalez"): 2e-13,
    ("multi", "energy-stable 3-point Gauss"): 5e-13,
    ("multi", "energy-stable Gonzalez"): 2e-13,
}
EXPECTED = {
    ("gravity", "variational sine"): 1.9e-3,
    ("gravity", "variational exact angle"): 8.7e-5,
    ("gravity", "implicit midpoint"): 1.1e-4,
    ("mono", "energy-stable midpoint"): 1.59e-5,
    ("mono", "energy-stable 2-point Gauss"): 6.6e-10,
    ("mono", "variational sine"): 2.3e-3,
    ("mono", "variational exact angle"): 9.5e-5,
    ("mono", "implicit midpoint"): 1.2e-4,
    ("multi", "energy-stable midpoint"): 1.17e-4,
}
"""The largest energy errors of the standard run, in J."""


def check_energy(case, method, error):
    if (case, method) in LARGEST:
        assert error <= LARGEST[case, method]
    if (case, method) in EXPECTED:
        assert error == pytest.approx(EXPECTED[case, method], rel=0.05)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("gravity", (-1.142549991218, 0.529675097244, 0.421232142321)),
        ("mono", (-1.146361468719, 0.463948208894, 0.916165475931)),
    ],
)
def test_the_exact_motion(case, expected):
    """At t = 2 s, by an integrator of order 8 with error control to 1e-13 (DOP853)."""
    np.testing.assert_allclose(exact_angles(three_links(case), STATE_TIME), expected, atol=5e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "method"),
    [
        ("gravity", "variational sine"),
        ("gravity", "implicit midpoint"),
        ("mono", "energy-stable midpoint"),
        ("mono", "energy-stable 3-point Gauss"),
    ],
)
def test_a_standard_run(case, method):
    """Its length, and the magnitudes of its errors."""
    motion = move(SCHEMES[method], three_links(case), STEP, DURATION)
    assert motion.unsolved is None
    assert motion.t.shape == (5001,) and motion.phi.shape == motion.constraint.shape == (5001, 3)
    check_energy(case, method, np.max(np.abs(motion.energy_error)))
    assert np.max(np.abs(motion.constraint)) <= 5e-14
    assert motion.energy_error[0] == 0 and np.all(np.diff(motion.t) > 0)


def test_a_step_that_is_too_large_is_reported():
    """The sine velocity has no solution when a link turns too far in a step."""
    motion = move(SCHEMES["variational sine"], three_links("gravity"), 1.0, 50.0)
    assert motion.unsolved is not None and 0 < motion.unsolved < 50
    # The run ends with the last state that it reached.
    assert motion.t[-1] == pytest.approx(motion.unsolved - 1.0)
    assert len(motion.phi) == len(motion.t) and np.all(np.isfinite(motion.phi))


def test_runs_beyond_the_first_that_ended_early_show_no_order():
    """Which of them do not end, and where they wander, is a matter of rounding."""
    h = np.array([0.01, 0.02, 0.04, 0.08, 0.16])
    errors = np.array([1e-4, 4e-4, 16e-4, np.nan, 2.0])
    assert energy_order(h, errors) == pytest.approx(2)
    assert energy_order(h, 1e-9 * errors) is None


def test_single_precision_is_refused():
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(RuntimeError, match="jax_enable_x64"):
            REPRODUCTIONS["goetz"].compute()
    finally:
        jax.config.update("jax_enable_x64", True)


@pytest.mark.thorough
def test_everything(tmp_path):
    # One test, because the workers of a parallel run share no fixture.
    stages = []
    numbers = REPRODUCTIONS["goetz"].compute(tmp_path / "new", lambda *a: stages.append(a))
    assert len(numbers.rows) == 21
    for r in numbers.rows:
        case, method = r.case, r.method
        check_energy(case, method, r.max_energy_error)
        assert r.max_constraint_error <= 5e-14
        assert r.state_order == pytest.approx(2, abs=0.02)
        assert r.realtime_percent > 0
        stable, order = method.startswith("energy-stable"), r.energy_order
        if (stable and case == "gravity") or method.endswith("Gonzalez"):
            assert order is None
        else:
            expected = {"2-point Gauss": 4, "3-point Gauss": 6}.get(method[14:], 2)
            assert order == pytest.approx(expected, abs=0.1)
    assert {u.method for u in numbers.unsolved} <= {"variational sine"}

    save_json(tmp_path / "numbers.json", numbers)
    found = json.loads((tmp_path / "numbers.json").read_text())
    assert list(found) == ["name", "rows", "printed", "unsolved"]
    assert {"case", "method", "max_energy_error"} <= set(found["rows"][0])
    names = sorted([*(f"figure_5_{n}.png" for n in range(1, 9)), "all_methods.png", "report.html"])
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == names
    assert ("methods", 21, 21) in stages and ("timing", 21, 21) in stages
    assert stages[-1] == ("report", 1, 1)

    text = io.StringIO()
    REPRODUCTIONS["goetz"].show(numbers, Console(file=text, width=80))
    assert "powers of ten" in re.sub(r"\s+", " ", text.getvalue())

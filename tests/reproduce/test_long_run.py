"""The table of what each integrator keeps, on a few methods and fewer steps."""

import io

import numpy as np
import pytest
from rich.console import Console

from difflie.integrators import by_name
from difflie.reproduce import REPRODUCTIONS, long_run


@pytest.mark.slow
def test_a_fine_method_keeps_what_the_machines_keep():
    for machine in long_run.MACHINES.values():
        row, (t, errors) = long_run.measured(*machine(), by_name("RKMK4"), 2000)
        assert row["failed"] is None and t[-1] == pytest.approx(20.0) and errors.shape == t.shape
        assert row["energy_error"] < 1e-3 and row["angular_momentum_drift"] < 1e-3
        assert 0 < row["symplecticity_defect"] < 1e-5
        assert row["manifold_defect"] < 1e-13


@pytest.mark.thorough
def test_the_table_and_its_picture(tmp_path, monkeypatch):
    monkeypatch.setattr(long_run, "METHODS", (by_name("SemiImplicitEuler"), by_name("RKMK4")))
    numbers = REPRODUCTIONS["long-run"].compute(tmp_path, steps=2000)
    assert (tmp_path / "long_run.png").read_bytes().startswith(b"\x89PNG")
    assert len(numbers.rows) == 4
    euler = [r for r in numbers.rows if r.method == "SemiImplicitEuler"]
    fine = [r for r in numbers.rows if r.method == "RKMK4"]
    for a, b in zip(euler, fine, strict=True):
        assert a.energy_error > 100 * b.energy_error
        assert np.isfinite(a.symplecticity_defect)
    text = io.StringIO()
    REPRODUCTIONS["long-run"].show(numbers, Console(file=text, width=80))
    assert "spring pendulum" in text.getvalue() and "RKMK4" in text.getvalue()

"""What all papers share: lazy import, parts of the work, tables, and orders."""

import io
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

from difflie.reproduce import REPRODUCTIONS, convergence, runs, tables


def test_papers_are_imported_when_they_are_asked_for():
    """`difflie --help` imports the list, and must not wait for matplotlib and every paper."""
    code = (
        "import sys; from difflie.reproduce import REPRODUCTIONS;"
        "assert REPRODUCTIONS and 'matplotlib' not in sys.modules;"
        "assert not [m for m in sys.modules if m.startswith('difflie.reproduce.mechanisms')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_every_paper_computes_and_shows(name):
    assert callable(REPRODUCTIONS[name].paper.compute) and callable(REPRODUCTIONS[name].paper.show)


def test_parts_are_reported_in_their_order():
    told = []
    assert runs.each(lambda *a: told.append(a), "squares", lambda x: x**2, (3, 1, 2)) == [9, 1, 4]
    assert told == [("squares", k, 3) for k in range(4)]


def test_printed_numbers_are_read_from_beside_the_code(tmp_path):
    (tmp_path / "printed.toml").write_text("length = 1.5\n")
    assert tables.printed(str(tmp_path / "paper.py")) == {"length": 1.5}


def test_a_table_sets_computed_above_printed_numbers():
    text = io.StringIO()
    console = Console(file=text, width=60)
    rows = [("CG2", tables.beside("1.2", "1.3", False), tables.number(None)), ("[dim]others[/]",)]
    tables.show_table(console, "Drifts", ("method", "h = 1\n[J]", "order"), rows)
    tables.note(console, "no [markup]")
    lines = [line.strip() for line in text.getvalue().splitlines()]
    assert lines[0] == "Drifts" and lines[-1] == "no [markup]"
    assert any(line.split() == ["CG2", "1.2", "-"] for line in lines)
    assert any(line.split() == ["1.3"] for line in lines) and "others" in lines


def test_the_slope_of_errors():
    h = np.array([0.1, 0.2, 0.4])
    assert convergence.slope(h, 3.0 * h**4) == pytest.approx(4)


def test_zeros_have_a_place_on_logarithmic_axes():
    from difflie.view.figures import figure

    axes = figure()[1][0, 0]
    line = convergence.draw_errors(axes, [0.1, 0.2], [0.0, 1e-3], "exact")
    convergence.draw_slope(axes, [0.1, 0.2], 1e-3, 4, linestyle=":")
    np.testing.assert_allclose(line.get_ydata(), [1e-17, 1e-3])
    np.testing.assert_allclose(axes.lines[1].get_ydata(), [1e-3 / 16, 1e-3])
    assert axes.get_xscale() == axes.get_yscale() == "log"

"""What all papers share: lazy import, parts of the work, tables, and orders."""

import io
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest
from pages import Page
from rich.console import Console

from difflie.reproduce import REPRODUCTIONS, runs, tables
from difflie.reproduce.page import write_report
from difflie.view import errors
from difflie.view.figures import figure


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
    assert errors.slope(h, 3.0 * h**4) == pytest.approx(4)


def test_zeros_have_a_place_on_logarithmic_axes():
    axes = figure()[1][0, 0]
    line = errors.draw_errors(axes, [0.1, 0.2], [0.0, 1e-3], "exact")
    errors.draw_slope(axes, [0.1, 0.2], 1e-3, 4, linestyle=":")
    np.testing.assert_allclose(line.get_ydata(), [1e-17, 1e-3])
    np.testing.assert_allclose(axes.lines[1].get_ydata(), [1e-3 / 16, 1e-3])
    assert axes.get_xscale() == axes.get_yscale() == "log"


def paper(*compared):
    """A paper with one table; compared: of each of its numbers whether it agrees."""
    module = ModuleType("paper", "A result.\n\nWhat it says:\n\n* one <thing>;\n* another.\n")
    rows = [("CG2", *(tables.beside("1.2", "1.3", agree) for agree in compared))]

    def show(results, console):
        heads = ("method", *map(str, range(len(compared))))
        tables.show_table(console, "Drifts", heads, [*rows, ("[dim]others[/]",)])
        tables.note(console, "a note [with brackets]")

    module.show = show
    judged = [agree for agree in compared if agree is not None]
    if judged:
        found = tables.Agreement("Drifts", sum(judged), len(judged), "in all digits")
        module.agreements = lambda results: [found]
    return module


@pytest.mark.parametrize(
    ("compared", "sign", "said"),
    [
        ((True, None), "✓Worked", "Drifts: 1 of 1 agree (in all digits)."),
        ((True, False), "!Worked, with warnings", "Drifts: 1 of 2 agree (in all digits)."),
        ((False,), "✗Did not work", "Drifts: 0 of 1 agree (in all digits)."),
        ((None,), "?Not judged", "no number was compared"),
    ],
)
def test_pages_claim_only_what_was_compared(compared, sign, said, tmp_path):
    """Guards the sign of a page, its tables with marks for colours, its text and its figures."""
    figures = {"figure_1": figure()[0]}
    page = Page(write_report(tmp_path, "a-paper", paper(*compared), {}, figures))
    assert page.sign == sign and said in page.text
    marks = {True: "✓ 1.2 1.3", False: "✗ 1.2 1.3", None: "1.2 1.3"}
    assert f"CG2 {' '.join(marks[agree] for agree in compared)} others" in page.text
    assert "a note [with brackets]" in page.text and "* one <thing>; * another." in page.text
    assert page.values("alt") == ["Figure 1"] and (tmp_path / "figure_1.png").exists()


def test_papers_count_what_their_tables_compare():
    """Guards agreements: of all digits, within targets of at least one method."""
    counted = {name: REPRODUCTIONS[name].paper for name in REPRODUCTIONS}
    stars = [{"computed": 1.0, "printed": 1.0}, {"computed": 1.000000002, "printed": 1.0}]
    assert counted["pleiades"].agreements({"rows": stars})[0][1:3] == (1, 2)
    com = {"computed": [1.0, 2.0, 3.0], "published": [1.0, 2.0, 3.0000000004]}
    assert counted["mueller"].agreements({"com": com})[0][1:3] == (2, 3)
    drifts, counts = {"equal": 8, "compared": 9}, [{"computed": 1, "printed": 2}]
    found = counted["park-chung"].agreements({"agreement": drifts, "operations": counts})
    assert [each[1:3] for each in found] == [(8, 9), (0, 1)]
    rows = [
        {"problem": "top", "quantity": name, "error": error, "target": 1e-6}
        for name, error in (("x", 1e-3), ("x", 1e-8), ("y", 1e-3), ("energy [J]", 1e-9))
    ]
    (found,) = counted["mechanisms"].agreements({"rows": rows})
    assert found[:3] == ("top", 1, 2)

"""What all papers share: lazy import, parts of the work, tables, and orders."""

import io
import subprocess
import sys
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from pages import Page
from rich.console import Console

from difflie.io.results import Results
from difflie.reproduce import REPRODUCTIONS, papers
from difflie.reproduce.mechanisms.comparison import MechanismsResults, Reached
from difflie.reproduce.mueller.comparison import CenterRow
from difflie.reproduce.park_chung.comparison import Agreed
from difflie.reproduce.report import paper_report
from difflie.view import plots
from difflie.view.figures import figure
from difflie.view.report import Checked, Note, Section, Table
from difflie.view.report_page import write_html


@pytest.mark.slow
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
    assert all(callable(getattr(REPRODUCTIONS[name].paper, f)) for f in ("compute", "sections"))


def test_parts_are_reported_in_their_order():
    told = []
    assert papers.each(lambda *a: told.append(a), "squares", lambda x: x**2, (3, 1, 2)) == [9, 1, 4]
    assert told == [("squares", k, 3) for k in range(4)]


def test_printed_numbers_are_read_from_beside_the_code(tmp_path):
    (tmp_path / "printed.toml").write_text("length = 1.5\n")
    assert papers.printed(str(tmp_path / "paper.py")) == {"length": 1.5}


@dataclass(frozen=True, kw_only=True)
class Row(Results):
    method: str
    drift: float | None


def test_cells_are_numbers_in_their_formats():
    """Guards words, dashes for what is not known, and the order of the formats."""
    formats = {"drift": ".1e", "method": ""}
    rows = [Row(method="CG2", drift=x) for x in (0.123, None)]
    assert [papers.cells(row, formats) for row in rows] == [["1.2e-01", "CG2"], ["-", "CG2"]]


def test_the_slope_of_errors():
    h = np.array([0.1, 0.2, 0.4])
    assert plots.slope(h, 3.0 * h**4) == pytest.approx(4)


def test_zeros_have_a_place_on_logarithmic_axes():
    axes = figure()[1][0, 0]
    line = plots.draw_errors(axes, [0.1, 0.2], [0.0, 1e-3], "exact")
    plots.draw_slope(axes, [0.1, 0.2], 1e-3, 4, linestyle=":")
    np.testing.assert_allclose(line.get_ydata(), [1e-17, 1e-3])
    np.testing.assert_allclose(axes.lines[1].get_ydata(), [1e-3 / 16, 1e-3])
    assert axes.get_xscale() == axes.get_yscale() == "log"


def paper(*compared):
    """A paper with one table; compared: of each of its numbers whether it agrees."""
    module = ModuleType("paper", "A result.\n\nWhat it says:\n\n* one <thing>;\n* another.\n")
    cells = ("CG2", *(Checked("1.2", "1.3", agree) for agree in compared))
    table = Table(("method", *map(str, range(len(compared)))), [cells])
    module.sections = lambda results: [Section("Drifts", [table, Note("a note [with brackets]")])]
    judged = [agree for agree in compared if agree is not None]
    if judged:
        found = papers.Agreement("Drifts", sum(judged), len(judged), "in all digits")
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
    shown = paper_report("a-paper", paper(*compared), Results(), figures)
    page = Page(write_html(shown, tmp_path))
    assert page.sign == sign and said in page.text
    marks = {True: "✓ 1.2 1.3", False: "✗ 1.2 1.3", None: "1.2 1.3"}
    assert f"CG2 {' '.join(marks[agree] for agree in compared)} a note [with" in page.text
    assert "* one <thing>; * another." in page.text
    assert page.values("alt") == ["Figure 1"] and (tmp_path / "figure_1.png").exists()


def test_papers_count_what_their_tables_compare():
    """Guards agreements: of all digits, within targets of at least one method."""
    counted = {name: REPRODUCTIONS[name].paper for name in REPRODUCTIONS}
    stars = [SimpleNamespace(computed=x, printed=1.0) for x in (1.0, 1.000000002)]
    assert counted["pleiades"].agreements(SimpleNamespace(rows=stars))[0][1:3] == (1, 2)
    com = CenterRow(computed=[1.0, 2.0, 3.0], published=[1.0, 2.0, 3.0000000004])
    assert counted["mueller"].agreements(SimpleNamespace(com=com))[0][1:3] == (2, 3)
    drifts = SimpleNamespace(
        agreement=Agreed(equal=8, compared=9), operations=[SimpleNamespace(computed=1, printed=2)]
    )
    found = counted["park-chung"].agreements(drifts)
    assert [each[1:3] for each in found] == [(8, 9), (0, 1)]
    of = {"problem": "top", "method": "", "computed": 0.0, "reference": 0.0, "steps": 1}
    rows = [
        Reached(**of, quantity=name, error=error, target=1e-6, seconds=0.0)
        for name, error in (("x", 1e-3), ("x", 1e-8), ("y", 1e-3), ("energy [J]", 1e-9))
    ]
    results = MechanismsResults(rows=rows, convergence=[], machine={})
    (found,) = counted["mechanisms"].agreements(results)
    assert found[:3] == ("top", 1, 2)
    assert "1e-03" in printed_by("mechanisms", results)


def printed_by(name, results):
    """What a terminal shows of results."""
    text = io.StringIO()
    REPRODUCTIONS[name].show(results, Console(file=text, width=120))
    return text.getvalue()

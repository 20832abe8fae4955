"""Reports as pages and in terminals, and the pictures of identifications."""

import io
import re

import numpy as np
import pytest
from pages import Page
from rich.console import Console
from scipy.stats import chi2

from difflie.io.results import machine, provenance
from difflie.view.estimates import Estimated, ellipse_figure, estimate_figure
from difflie.view.figures import figure
from difflie.view.report import (
    Checked,
    Figure,
    Note,
    Report,
    Section,
    Table,
    Worked,
    notes,
    sentences,
)
from difflie.view.report_page import write_html
from difflie.view.report_terminal import print_report


def blank():
    return figure()[0]


def report(*sections, title="Title", worked=Worked.YES, verdict=("It <converged>.",), origin=None):
    return Report(title, "An <arm> was fitted.", worked, verdict, sections, origin or {})


def test_a_report_has_all_that_is_given(tmp_path):
    """Guards that what it says is text, however it looks, and pictures are in it and beside it."""
    shown = report(
        Section("", [Note("1 < 2")]),
        Section(
            "Numbers & names",
            [
                Table(("name", "value"), [("<a>", -0.0), ("b", np.nan), ("c", None)]),
                Table(("name", "value"), [("d", Checked("1.2", "<1.3>", False))]),
            ],
            look="What & why.",
        ),
        Section("Picture", [Figure(blank, "a picture.png")], look="Seen."),
        Section("Picture", [Table(("<n>",), [("two\nlines & more, broken as they are long",)])]),
        title="arm <7>",
        worked=Worked.PARTLY,
        verdict=["It <converged>.", "1 < 2."],
        origin={"jax": "1.0", "<key>": "a < b", "its text": "<x>\n<y>\n"},
    )
    path = write_html(shown, tmp_path / "new")
    page, source = Page(path), path.read_text()
    for said in (
        "An <arm> was fitted.",
        "It <converged>.",
        "Numbers & names : What & why.",
        "<key>",
    ):
        assert said in page.text
    assert "<title>arm &lt;7&gt;</title>" in source and "<p>1 &lt; 2</p>" in source
    for row in (("&lt;a&gt;", "0"), ("b", "not known"), ("c", "")):
        assert f'<td>{row[0]}</td><td class="n">{row[1]}</td>' in source
    assert "✗ 1.2<br>&lt;1.3&gt;" in source
    assert '<td class="long">two<br>lines &amp; more' in source
    assert "2 lines <x> <y>" in page.text and "jax 1.0" in page.text
    assert (path.parent / "a picture.png").read_bytes().startswith(b"\x89PNG")
    (image,) = (attributes for tag, attributes in page.tags if tag == "img")
    assert image["alt"] == "Picture" and image["src"].startswith("data:image/png;base64,")


def test_a_terminal_shows_what_is_brief():
    """Guards that a terminal says the same as a page, draws nothing, and leaves out long tables."""

    def never():
        raise AssertionError("a terminal draws no picture")

    shown = report(
        Section("Numbers [m]", [Table(("[name]", "value"), [("[a]", 0.5), ("b", np.nan)])]),
        Section("Compared", [Table(("n",), [[Checked("[1.2]", "1.3", True)]]), Note("[note]")]),
        Section("Long", notes("left out"), brief=False),
        Section("Picture", [Figure(never, "a.png")]),
    )
    text = io.StringIO()
    print_report(Console(file=text, width=60), shown)
    lines = [" ".join(line.split()) for line in text.getvalue().splitlines()]
    assert lines[:4] == ["An <arm> was fitted.", "Worked.", "It <converged>.", "Numbers [m]"]
    for said in ("[name] value", "[a] 0.5", "b not known", "Compared", "[1.2]", "1.3", "[note]"):
        assert said in lines
    assert "Long" not in lines and "left out" not in lines and "Picture" not in lines


def test_links_lead_to_sections_and_to_nothing_outside(tmp_path):
    """Guards anchors of sections with one title, and pages that are read without a network."""
    picture = Section("±", [Figure(blank, "run.png")], look="it")
    shown = report(Section("Runs", ()), Section("Runs", (), look="the last"), picture)
    page = Page(write_html(shown, tmp_path))
    ids, links = page.values("id"), page.values("href")
    assert len(set(ids)) == len(ids) == 4
    assert links[:2] == ["#runs-2", "#section"]
    assert {link[1:] for link in links if link.startswith("#")} == set(ids)
    assert [link for link in links if not link.startswith("#")] == ["run.png"]
    assert not re.search(r"https?://|@import|url\(", (tmp_path / "report.html").read_text())


@pytest.mark.parametrize("worked", Worked)
def test_the_first_screen_says_whether_it_worked(worked, tmp_path):
    """Guards that a word and a mark say it, not only a colour, before all sections."""
    shown = Report(
        *("Title", "What was done.", worked, ["How it ended."]),
        [Section("Next", (), look="At this.")],
        {"jax": "1"},
    )
    page = Page(write_html(shown, tmp_path))
    kind, mark, word = worked.value
    assert page.sign == f"{mark}{word}" and f"sign {kind}" in page.values("class")
    said = (
        f"Title What was done. {mark} {word} How it ended. What to look at Next : At this. Contents"
    )
    assert said in page.text


def test_provenance_is_of_the_command_or_of_python(tmp_path):
    """Guards command, configuration, versions, machine and date, and that nothing is invented."""
    made = provenance(machine(), configuration="a.toml", seed=None, its_text="[a]\n")
    page = Page(write_html(report(origin=made), tmp_path))
    assert "command none: called from Python configuration a.toml its text [a]" in page.text
    for name in ("processor", "cores", "device", "python", "jax", "numpy", "difflie"):
        assert name in made
    assert "seed" not in made
    assert re.search(r"page written \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", page.text)


def test_remarks_end_once():
    """A question gets no full stop."""
    assert sentences(["is it so?", "it is"]) == ["Is it so?", "It is."]


def test_what_is_not_identifiable_has_no_interval():
    """It is drawn, and named so; parameters without unit have an axis of their own."""
    parameters = {
        "a": Estimated("kg", start=2.0, value=1.0, std_error=np.inf),
        "b": Estimated("", start=1.0, value=3.0, std_error=0.1, interval=(2.7, 3.2)),
    }
    first, second = estimate_figure(parameters).axes
    # One legend, in which marks of both axes are named.
    named = ["estimate, 95 %", "not identifiable", "start"]
    assert sorted(text.get_text() for text in first.get_legend().get_texts()) == named
    assert second.get_legend() is None
    assert second.get_xlabel() == "without unit"
    (ends,) = second.containers[0].lines[2]
    np.testing.assert_allclose(ends.get_segments()[0][:, 0], (2.7, 3.2))


def test_ellipses_have_the_probability_they_say():
    """The line is where the squared distance is the 95 % quantile of chi-squared of two numbers."""
    covariance = np.array([[4.0, -1.8, 0.1], [-1.8, 1.0, 0.0], [0.1, 0.0, 9.0]])
    error = np.sqrt(np.diag(covariance))
    parameters = {
        "arm/mass": Estimated("kg", start=1.5, value=1.0, std_error=error[0]),
        "arm/I_yy": Estimated("kg m^2", start=-70.0, value=2.0, std_error=error[1]),
        "cube/I_yy/I_xx": Estimated("", start=3.0, value=3.0, std_error=error[2]),
    }
    correlations = covariance / np.outer(error, error)
    first, second = ellipse_figure(parameters, correlations).axes
    assert (first.get_xlabel(), first.get_ylabel()) == ("arm/mass [kg]", "arm/I_yy [kg m^2]")
    assert second.get_ylabel() == "cube/I_yy/I_xx"
    assert "start beyond: 1.5, -70" in {text.get_text() for text in first.texts}
    line = np.array(first.lines[0].get_data()) - np.array([[1.0], [2.0]])
    square = np.sum(line * np.linalg.solve(covariance[:2, :2], line), axis=0)
    np.testing.assert_allclose(square, chi2.ppf(0.95, 2), rtol=1e-12)
    assert ellipse_figure(parameters, np.full((3, 3), np.nan)) is None

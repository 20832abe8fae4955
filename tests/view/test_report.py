"""Pages of results, and the pictures of identifications."""

import re

import numpy as np
import pytest
from pages import Page
from scipy.stats import chi2

from difflie.io.results import machine, provenance
from difflie.view.estimates import ellipse_figure, estimate_figure
from difflie.view.figures import figure
from difflie.view.report import Overview, Section, Worked, sentences, write_report

OVERVIEW = Overview("An <arm> was fitted.", Worked.YES, ["It <converged>."])


def test_a_report_has_all_that_is_given(tmp_path):
    """Guards that what it says is text, however it looks, and pictures are in it and beside it."""
    picture, _ = figure()
    overview = Overview(
        *("An <arm> was fitted.", Worked.PARTLY, ["It <converged>.", "1 < 2."]),
        ["No & section.", ("What & why.", "Numbers & names"), ("Seen.", "Picture")],
    )
    sections = [
        Section(text=["1 < 2"]),
        Section("Numbers & names", ("name", "value"), [("<a>", -0.0), ("b", np.nan), ("c", None)]),
        Section("Picture", picture=picture, file="a picture.png"),
        Section("Picture", ("<n>",), [("two\nlines & more, broken as they are long",)]),
    ]
    origin = {"jax": "1.0", "<key>": "a < b", "its text": "<x>\n<y>\n"}
    path = write_report(tmp_path / "new", "arm <7>", overview, sections, origin)
    page, source = Page(path), path.read_text()
    for said in ("An <arm> was fitted.", "It <converged>.", "No & section.", "arm <7>", "<key>"):
        assert said in page.text
    assert "<title>arm &lt;7&gt;</title>" in source and "<p>1 &lt; 2</p>" in source
    for row in (("&lt;a&gt;", "0"), ("b", "not known"), ("c", "")):
        assert f'<td>{row[0]}</td><td class="n">{row[1]}</td>' in source
    assert '<td class="long">two<br>lines &amp; more' in source
    assert "2 lines <x> <y>" in page.text and "jax 1.0" in page.text
    assert (path.parent / "a picture.png").read_bytes().startswith(b"\x89PNG")
    (image,) = (attributes for tag, attributes in page.tags if tag == "img")
    assert image["alt"] == "Picture" and image["src"].startswith("data:image/png;base64,")


def test_links_lead_to_sections_and_to_nothing_outside(tmp_path):
    """Guards anchors of sections with one title, and pages that are read without a network."""
    picture, _ = figure()
    sections = [Section("Runs"), Section("Runs"), Section("±", picture=picture, file="run.png")]
    overview = Overview("Done.", Worked.YES, (), [("the last", "Runs"), ("it", "±")])
    page = Page(write_report(tmp_path, "Title", overview, sections, {}))
    ids, links = page.values("id"), page.values("href")
    assert len(set(ids)) == len(ids) == 4
    assert {link[1:] for link in links if link.startswith("#")} == set(ids)
    assert [link for link in links if not link.startswith("#")] == ["run.png"]
    assert not re.search(r"https?://|@import|url\(", (tmp_path / "report.html").read_text())
    with pytest.raises(ValueError, match="no section 'Run' to look at"):
        write_report(tmp_path, "Title", Overview("", Worked.NO, (), [("it", "Run")]), sections, {})


@pytest.mark.parametrize("worked", Worked)
def test_the_first_screen_says_whether_it_worked(worked, tmp_path):
    """Guards that a word and a mark say it, not only a colour, before all sections."""
    overview = Overview("What was done.", worked, ["How it ended."], ["At this."])
    page = Page(write_report(tmp_path, "Title", overview, [Section("Next")], {"jax": "1"}))
    kind, mark, word = worked.value
    assert page.sign == f"{mark}{word}" and f"sign {kind}" in page.values("class")
    said = f"Title What was done. {mark} {word} How it ended. What to look at At this. Contents"
    assert said in page.text


def test_provenance_is_of_the_command_or_of_python(tmp_path):
    """Guards command, configuration, versions, machine and date, and that nothing is invented."""
    made = provenance(machine(), configuration="a.toml", seed=None, its_text="[a]\n")
    page = Page(write_report(tmp_path, "Title", OVERVIEW, [], made))
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
        "a": {"unit": "kg", "value": 1.0, "start": 2.0, "std_error": np.inf},
        "b": {"unit": "", "value": 3.0, "start": 1.0, "std_error": 0.1, "interval": (2.7, 3.2)},
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
        "arm/mass": {"unit": "kg", "value": 1.0, "start": 1.5, "std_error": error[0]},
        "arm/I_yy": {"unit": "kg m^2", "value": 2.0, "start": -70.0, "std_error": error[1]},
        "cube/I_yy/I_xx": {"unit": "", "value": 3.0, "start": 3.0, "std_error": error[2]},
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

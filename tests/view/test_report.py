"""Pages of results, and the pictures of identifications."""

import numpy as np
from scipy.stats import chi2

from difflie.view.estimates import ellipse_figure, estimate_figure
from difflie.view.figures import figure
from difflie.view.report import Section, write_report


def test_a_report_has_all_that_is_given(tmp_path):
    """What it says is text, however it looks; pictures are in it and beside it."""
    picture, _ = figure()
    sections = [
        Section(text=["1 < 2"]),
        Section("Numbers & names", ("name", "value"), [("<a>", -0.0), ("b", np.nan), ("c", None)]),
        Section("Picture", picture=picture, file="picture.png"),
    ]
    path = write_report(tmp_path / "new", "arm <7>", sections, {"jax": "1.0"})
    page = path.read_text()
    assert "<title>arm &lt;7&gt;</title>" in page and "<p>1 &lt; 2</p>" in page
    assert "<h2>Numbers &amp; names</h2>\n<table>" in page
    for row in (("&lt;a&gt;", "0"), ("b", "not known"), ("c", "")):
        assert "".join(f"<td>{cell}</td>" for cell in row) in page
    assert page.count("<h2>") == 2 and "data:image/png;base64," in page and "jax: 1.0" in page
    assert (path.parent / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_not_identifiable_has_no_interval():
    """It is drawn, and named so; parameters without unit have an axis of their own."""
    parameters = {
        "a": {"unit": "kg", "value": 1.0, "start": 2.0, "std_error": np.inf},
        "b": {"unit": "", "value": 3.0, "start": 1.0, "std_error": 0.1, "interval": (2.7, 3.2)},
    }
    first, second = estimate_figure(parameters).axes
    assert first.get_legend_handles_labels()[1] == ["not identifiable", "start"]
    assert second.get_legend_handles_labels()[1] == ["start", "estimate, 95 %"]
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

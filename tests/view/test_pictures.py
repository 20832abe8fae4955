"""Pictures of motions, energies and errors: what they say, and what they refuse."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from difflie.quantities import Curve
from difflie.view import plots
from difflie.view.columns import Column
from difflie.view.compared import Compared
from difflie.view.estimates import Estimated
from difflie.view.figures import broken, colours, entitle, figure, label
from difflie.view.plots import Bounded

T = np.linspace(0.0, 4.0, 41)
LABELS = (("a", "rad"), ("b", "rad"))
Q = np.stack((np.sin(T), np.cos(T)), axis=1)

# What is seen without long, middle and short cones: Machado, Oliveira and Fernandes 2009, Table 1,
# of linear RGB.
LACKING = {
    "none": np.eye(3),
    "protanopia": [
        *([0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216]),
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        *([0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413]),
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        *([1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602]),
        [0.004733, 0.691367, 0.303900],
    ],
}
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375],
                [0.2126729, 0.7151522, 0.0721750],
                [0.0193339, 0.1191920, 0.9503041]])  # fmt: skip


def linear(rgb):
    rgb = np.asarray(rgb)
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(light):
    """CIE Lab (n, 3) of linear RGB (n, 3)."""
    x = light @ XYZ.T / XYZ.sum(axis=1)
    f = np.where(x > 216 / 24389, np.cbrt(x), (24389 / 27 * x + 16) / 116)
    return np.stack((116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])), 1)


@pytest.mark.parametrize("kind", LACKING)
def test_nine_colours_are_told_apart(kind):
    """By all kinds of colour vision, and from white."""
    light = linear([to_rgb(c) for c in colours(9)])
    seen = lab(np.clip(light @ np.asarray(LACKING[kind]).T, 0, 1))
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 25
    assert (1.05 / (light @ XYZ[1] + 0.05)).min() > 3


def test_many_colours_are_different():
    assert len({tuple(to_rgb(c)) for c in colours(20)}) == 20


def every():
    """One picture by each function."""
    ones = np.ones(2)
    x, y = (a.ravel() for a in np.meshgrid(np.arange(3.0), np.arange(4.0)))
    columns = (Column(n, v, u) for n, u, v in (("x", "m", x), ("y", "s", y), ("z", "J", x * y)))
    estimated = Estimated("kg", start=2.0, value=1.0, std_error=0.1, interval=(0.8, 1.2))
    return {
        "state": plots.state_figure(T, Q, Q, LABELS, LABELS, "arm: motion"),
        "energy": plots.energy_figure(T, {"kinetic": T, "potential": -T}, {"work": 0 * T}),
        "drift": plots.drift_figure(T, {"RKMK4": 1e-9 * T}, "J"),
        "violation": plots.violation_figure(T, {"loop": 1e-9 * T}, {"loop": 1e-8 * T}, 1e-6),
        "phase": plots.phase_figure(Q, Q, LABELS),
        "order": plots.order_figure(T[1:], {"RKMK4": T[1:] ** 4}, orders=(4,), rounding=1e-9),
        "error": plots.error_figure({"a": (T, T), "b": (T[::2], T[::2])}, "m"),
        "map": plots.map_figure([tuple(columns)]),
        "plan": plots.plan_figure([Bounded(Curve("q", T, Q, LABELS), -ones, ones)], T[::-1]),
        "compared": plots.compared_figure(
            [Compared("a", "N m", T, T, T, T + 1, -1 + 0 * T)], title="arm"
        ),
        "estimates": plots.estimate_figure({"mass": estimated}),
    }


@pytest.mark.slow
def test_every_picture_has_a_title_units_and_a_legend_beside_it():
    """The legend covers no axes, the settings of matplotlib stay, and no window is made."""
    before = dict(plt.rcParams)
    for name, canvas in every().items():
        canvas.draw_without_rendering()
        titles = [canvas.get_suptitle(), *(a.get_title(loc="left") for a in canvas.axes)]
        assert any(titles), name
        assert any("[" in a.get_xlabel() + a.get_ylabel() for a in canvas.axes), name
        legends = [a.get_legend() for a in canvas.axes if a.get_legend()] + canvas.legends
        boxes = [a.get_window_extent() for a in canvas.axes if a.get_visible()]
        for legend in legends:
            box = legend.get_window_extent()
            assert not any(box.shrunk(0.98, 0.98).overlaps(other) for other in boxes), name
            assert canvas.bbox.x1 >= box.x1 and canvas.bbox.y1 >= box.y1, name
    assert dict(plt.rcParams) == before and not plt.get_fignums()


def test_a_notebook_shows_them():
    """IPython asks for `_repr_png_` where pyplot is not in use."""
    picture = plots.drift_figure(T, {"a": T})._repr_png_()
    assert picture.startswith(b"\x89PNG") and len(picture) > 5000


def test_what_is_not_finite_is_said():
    """A curve is drawn up to there, also if numbers come after it."""
    q = Q.copy()
    q[20, 1] = np.nan
    canvas = plots.state_figure(T, q, Q, LABELS, LABELS)
    assert canvas.get_supxlabel() == "q b: not finite from t = 2 on, drawn up to there."
    assert np.isfinite(canvas.axes[0].lines[1].get_ydata()).sum() == 20
    canvas = plots.drift_figure(T, {"a": T, "b": np.full(len(T), np.inf)})
    assert canvas.get_supxlabel() == "b: not finite from the start, not drawn."
    canvas = plots.order_figure([1, 2, 3, 4], {"a": [1, 4, np.nan, 16]})
    assert canvas.get_supxlabel() == "a: 1 of 4 values are not finite and left out."
    assert canvas.axes[0].get_legend_handles_labels()[1] == ["a: slope 2.00"]
    canvas = plots.phase_figure(q, Q, LABELS)
    assert "b: not finite from row = 20 on" in canvas.get_supxlabel()


def test_one_lost_method_loses_no_others():
    """An error plot draws the others and names the one without a finite value."""
    canvas = plots.error_figure({"a": (T, T), "lost": (T, T * np.nan)})
    assert [text.get_text() for text in canvas.axes[0].get_legend().get_texts()] == ["a"]
    assert canvas.get_supxlabel() == "lost: no value is finite."


def test_one_value_and_zeros_are_seen():
    """A line of one value is a dot, and zeros on a logarithmic axis are said."""
    curve = Curve("q", T[:1], Q[:1], LABELS)
    assert [line.get_marker() for line in plots.curve_figure([curve]).axes[0].lines] == [".", "."]
    assert plots.drift_figure(T, {"a": T, "b": 0 * T}).get_supxlabel() == "b: zero throughout."


@pytest.mark.parametrize("n", [20, 40])
def test_long_names_and_many_leave_room(n):
    """Names are broken into lines and columns, and all lines are named."""
    labels = tuple((f"{k}_{'long_name_' * 7}", "m") for k in range(n))
    canvas = plots.curve_figure([Curve("q", T, T[:, None] + np.arange(n), labels)])
    canvas.draw_without_rendering()
    (axes,) = canvas.axes
    assert axes.get_position().height > 0.3 and axes.get_position().width > 0.25
    legend = axes.get_legend()
    assert len(legend.get_texts()) == n and not legend.get_title().get_text()
    inside = legend.get_window_extent()
    assert inside.y0 >= 0 and inside.y1 <= canvas.bbox.height and inside.x1 <= canvas.bbox.width


def test_more_lines_than_a_picture_can_name_are_said():
    labels = tuple((f"{k} long name of a line", "m") for k in range(1500))
    canvas = plots.curve_figure([Curve("q", T, T[:, None] + np.arange(1500), labels)])
    assert canvas.axes[0].get_legend().get_title().get_text().endswith("of 1500 lines")


def test_marks_of_all_axes_are_in_the_one_legend():
    """Estimates whose kinds of marks stand in different axes, and bounds and dots of a plan."""
    rows = {
        "a": Estimated("kg", start=2.0, value=1.0, std_error=0.1, interval=(0.5, 1.5)),
        "b": Estimated("m", start=2.0, value=1.0, std_error=np.inf),
    }
    first = plots.estimate_figure(rows).axes[0].get_legend()
    marks = [text.get_text() for text in first.get_texts()]
    assert sorted(marks) == ["estimate, 95 %", "not identifiable", "start"]
    curve = Curve("u", T, np.sin(T)[:, None], (("motor", "N m"),))
    bounded = Bounded(curve, np.array([-1.0]), np.array([np.inf]), seen=np.cos(T)[:, None])
    legend = plots.plan_figure([bounded], np.ones(3)).axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["motor", "simulated", "bounds"]


def test_slopes_do_not_count_rounding():
    h = np.geomspace(1e-4, 1.0, 9)
    canvas = plots.order_figure(h, {"a": h**3 + 1e-9}, rounding=2e-8, orders=(3,))
    names = canvas.axes[0].get_legend_handles_labels()[1]
    assert names == ["a: slope 3.00", "order 3", "rounding"]
    few = plots.order_figure(h[:2], {"a": h[:2]}).axes[0]
    assert few.get_legend_handles_labels()[1] == ["a"]


def test_the_energy_budget_is_balanced():
    """What is unaccounted is the change of the sum less what came in and went."""
    stored, flows = {"kinetic": T**2, "elastic": 1 - T}, {"work": T**2 + 5, "friction": -T}
    canvas = plots.energy_figure(T, stored, flows)
    above, below = canvas.axes
    np.testing.assert_allclose(below.lines[0].get_ydata(), 0, atol=1e-12)
    names = [*stored, *flows, "total stored"]
    assert above.get_legend_handles_labels()[1] == names


def test_names_are_text():
    """Dollars start no formula, and an underscore hides no name from a legend."""
    canvas = plots.drift_figure(T, {"_a": T, "$b": T}, title="$x_1$")
    names = [text.get_text() for text in canvas.axes[0].get_legend().get_texts()]
    assert [name.replace("\u200b", "") for name in names] == ["_a", r"\$b"]
    assert canvas.get_suptitle() == r"\$x_1\$"


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: plots.drift_figure(T, {"a": T[1:]}), r"drift: a has shape \(40,\), and t \(41,\)"),
        (lambda: plots.drift_figure(T, {}), "there is nothing to draw; give arrays by name"),
        (lambda: plots.drift_figure(T, {"a": np.nan * T}), "drift: no value of a is finite"),
        (lambda: plots.drift_figure(np.nan * T, {"a": T}), "values that are not finite"),
        (lambda: plots.drift_figure(T, {"a": "no"}), "drift: a is no array of real numbers"),
        (lambda: plots.state_figure(T, Q, Q, LABELS[:1], LABELS), r"q: .*\(41, 2\).* 1 names"),
        (lambda: plots.curve_figure([]), "give at least one"),
        (lambda: plots.energy_figure(T, {"a": T}, {"a": T}), "'a' is stored and a flow"),
        (lambda: plots.energy_figure(T, {}, {"a": T}), "nothing is stored"),
        (lambda: plots.energy_figure(T, {"a": np.append(np.nan, T[1:]), "b": T}), "at the start"),
        (lambda: plots.phase_figure(Q, Q[:, :1], LABELS), r"v \(41, 1\), and there are 2 names"),
        (lambda: plots.order_figure([0, 1], {"a": [1, 1]}), "h has values that are not positive"),
        (lambda: plots.error_figure({}), "there is nothing to draw"),
        (lambda: plots.map_figure([]), "give at least one"),
        (lambda: plots.compared_figure([]), "give at least one pair"),
        (
            lambda: plots.compared_figure([Compared("a", "N", T, Q, T, T, T)]),
            r"a: what is measured has shape \(41, 2\)",
        ),
        (
            lambda: plots.plan_figure(
                [Bounded(Curve("q", T, Q, LABELS), np.zeros(3), np.ones(2))], T
            ),
            r"q: lower has shape \(3,\)",
        ),
        (lambda: plots.estimate_figure({}), "give at least one parameter"),
    ],
)
def test_what_does_not_fit_is_refused(draw, said):
    """In one sentence that names the array."""
    with pytest.raises(ValueError, match=said):
        draw()


def test_titles_and_notes_cover_no_axes():
    canvas, [[axes]] = figure()
    label(axes, "x", "y")
    entitle(canvas, "title", ["note " * 40])
    canvas.draw_without_rendering()
    inside = axes.get_tightbbox()
    for text in canvas.texts or (canvas._suptitle, canvas._supxlabel):
        assert not inside.overlaps(text.get_window_extent())


def test_paths_are_broken_behind_a_slash():
    """Guards names of numbers beside axes, which a reader types as they stand."""
    assert broken("shoulder_lift_joint/torque_bias") == "shoulder_lift_joint/\ntorque_bias"
    assert broken("hinge/mass") == "hinge/mass"

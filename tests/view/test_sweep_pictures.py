"""Pictures of tables: what they name, which rows they show, and what has no value."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection, QuadMesh

from difflie.view.columns import Column, bins, edges, subsample, ticks
from difflie.view.sweep import (
    histogram_figure,
    map_figure,
    parallel_figure,
    scatter_figure,
    status_figure,
)

RNG = np.random.default_rng(0)


def columns(n, m):
    """Numbers and outputs of m rows: two that vary, one constant, one that never is."""
    x = RNG.uniform(0.5, 2.0, (m, n))
    y = x.sum(axis=1)
    if m > 9:
        y[:3] = np.nan
    numbers = [Column(f"$a{k}", x[:, k], "kg") for k in range(n)]
    return numbers, [
        Column("sum", y, "J"),
        Column("fast", np.exp(9 * x[:, 0])),
        Column("constant", np.full(m, 3.0)),
        Column("never", np.full(m, np.inf), "s"),
    ]


def draw(canvas):
    """Lays a figure out, which must warn of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        canvas.draw_without_rendering()
    return canvas


@pytest.mark.slow
@pytest.mark.thorough("50-12")
@pytest.mark.parametrize("n", [1, 2, 6, 12])
@pytest.mark.parametrize("m", [1, 50])
def test_all_sizes_are_drawn(n, m):
    """Guards names with units, and rows and outputs without values."""
    numbers, outputs = columns(n, m)
    parallel = draw(parallel_figure(numbers, outputs))
    named = [text.get_text() for text in parallel.axes[0].get_xticklabels()]
    assert named == [c.label for c in (*numbers, *outputs)]
    for output in (outputs[0], outputs[3]):
        scatter = draw(scatter_figure(output, numbers))
        seen = [a.get_xlabel() for a in scatter.axes if a.get_visible() and a.get_xlabel()]
        assert seen == [number.label for number in numbers]
    if n > 1:
        maps = draw(map_figure([(*numbers[:2], output) for output in outputs]))
        assert [a.get_xlabel() for a in maps.axes[:4]] == [r"\$a0 [kg]"] * 4
    draw(histogram_figure(outputs))
    # Pictures leave the state of pyplot alone.
    assert not plt.get_fignums()


def test_names_of_outputs_are_text():
    """Two dollar signs make no formula of a title, and a long name no margin."""
    numbers, (output, *_) = columns(2, 20)
    output = output._replace(name="$x_1$ " + "long_name_" * 8)
    for canvas in (
        map_figure([(*numbers, output)]),
        scatter_figure(output, numbers),
        histogram_figure([output]),
        parallel_figure(numbers, [output]),
    ):
        draw(canvas)
        said = [canvas.get_suptitle(), *(a.get_title(loc="left") for a in canvas.axes)]
        assert any(r"\$x_1\$" in each for each in said)


def test_many_rows_are_drawn_in_part_and_said():
    """Guards the number of lines and points, the same each time, with the extremes."""
    numbers, outputs = columns(2, 100_000)
    canvas = parallel_figure(numbers, outputs[:2])
    said = canvas.axes[0].get_title(loc="left").replace("\n", " ")
    assert "of 99997 rows, drawn at random, coloured by sum [J]" in said
    assert "grey, dashed, without a value of it: 3 rows" in said
    dashed, lines = (c for c in canvas.axes[0].collections if isinstance(c, LineCollection))
    assert len(dashed.get_segments()) == 3 and 1000 < len(lines.get_segments()) <= 1502
    heights = np.array([s[2, 1] for s in lines.get_segments()])
    assert heights.min() == 0 and heights.max() == 1
    again = parallel_figure(numbers, outputs[:2]).axes[0].collections
    lines_again = [c for c in again if isinstance(c, LineCollection)][1]
    np.testing.assert_array_equal(lines_again.get_segments(), lines.get_segments())
    title = scatter_figure(outputs[0], numbers).get_suptitle().replace("\n", " ")
    assert "3000 of 99997 rows, drawn at random" in title and "without a value: 3 rows" in title


def test_lines_have_gaps():
    """Guards values that are not finite in the middle of a line, and those alone between gaps."""
    x = Column("x", np.array([0.0, 1.0]))
    broken = Column("broken", np.array([np.nan, 1.0]))
    (axes, _) = parallel_figure([x, broken, x], [x]).axes
    lines = next(
        c for c in axes.collections if isinstance(c, LineCollection) and len(c.get_segments())
    )
    missing = [
        ~np.isfinite(np.ma.filled(c.vertices, np.nan)).all(axis=1) for c in lines.get_paths()
    ]
    assert sum(int(m.sum()) for m in missing) == 1
    dots = [c.get_offsets() for c in axes.collections if isinstance(c, PathCollection)]
    assert sum(len(d) for d in dots) == 1


def test_maps_of_grids_show_means_and_gaps():
    """Guards the mean of the rows in a cell, cells without a value, and points elsewhere."""
    x, y, z = (a.ravel() for a in np.meshgrid([1.0, 2.0, 4.0], [0.0, 1.0], [0.0, 1.0]))
    value = x + 10 * y + z
    value[(x == 2.0) & (y == 1.0)] = np.nan
    value[(x == 1.0) & (y == 0.0) & (z == 1.0)] = np.nan
    canvas = map_figure([(Column("x", x), Column("y", y), Column("value", value))])
    mesh = next(c for c in canvas.axes[0].collections if isinstance(c, QuadMesh))
    cells = np.ma.filled(mesh.get_array(), np.nan).reshape(2, 3)
    np.testing.assert_array_equal(cells, [[1.0, 2.5, 4.5], [11.5, np.nan, 14.5]])
    said = canvas.axes[0].get_title(loc="left").replace("\n", " ")
    assert said == "value: means of about 2 rows; hatched, without a value: 1 of 6 cells"
    scattered = [Column(n, RNG.normal(size=30)) for n in "abc"]
    scattered[2].values[:5] = np.inf
    axes = map_figure([tuple(scattered)]).axes[0]
    assert [len(c.get_offsets()) for c in axes.collections] == [5, 25]
    assert "crosses, without a value: 5 rows" in axes.get_title(loc="left")


def test_scales_suit_the_values():
    """Guards logarithmic axes, outliers, and bins of grids."""
    assert Column("x", np.geomspace(1e-3, 1e3, 9)).is_logarithmic
    assert not Column("x", np.linspace(1.0, 100.0, 9)).is_logarithmic
    assert not Column("x", np.array([-1.0, 1e3])).is_logarithmic
    wild = Column("x", np.concatenate((RNG.normal(size=1000), [1e6])))
    assert wild.limits[1] < 5 and wild.beyond > 1 and wild.ends[1] == 1e6
    np.testing.assert_allclose(
        bins(Column("x", np.repeat([1.0, 2.0, 3.0], 4))), [0.5, 1.5, 2.5, 3.5]
    )
    np.testing.assert_allclose(edges(np.array([1.0, 4.0]), True), [0.5, 2.0, 8.0])
    close = ticks(Column("x", np.array([1.0, 1.00001])))[1]
    assert len(set(close)) == len(close) and close[-1] == "1.00001"
    np.testing.assert_array_equal(subsample(np.arange(50), 9), subsample(np.arange(50), 9))


def test_statuses_are_counted():
    """Guards the bars of how rows ended, with what they say."""
    (axes,) = draw(status_figure({"done": 3, "failed": 1})).axes
    assert [bar.get_width() for bar in axes.patches] == [3, 1]
    assert [text.get_text() for text in axes.texts] == ["3 (75 %)", "1 (25 %)"]

"""Means, deviations and percentiles over the rows of a sweep, and the rows that do not count."""

import sys
import tracemalloc

import jax.numpy as jnp
import numpy as np
import pytest
from small import PENDULUM

import difflie as dl
from difflie import quantities as dq
from difflie.cli.sweep import column_ends
from difflie.sweep import statistics


def outputs(numbers):
    x, y = numbers["x"], numbers["y"]
    return {
        "sum": x + 2 * y,
        "root": jnp.sqrt(x),
        "never": jnp.where(y > 0, jnp.inf, y),
        "path": jnp.outer(jnp.arange(1.0, 4.0), jnp.stack((x, y))),
    }


DESIGN = dl.Listed({"x": [0.5, 1.0, -2.0, 3.0, 4.0], "y": [-1.0, 0.5, -0.5, 0.0, 2.0]})


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Five rows, of which one is not finite, read from a folder in chunks of two."""
    return dl.sweep(outputs, DESIGN, tmp_path_factory.mktemp("few") / "store", chunk=2)


def test_against_numpy(table):
    """Mean, deviation, percentiles and ends, of rows that are done; others are named."""
    found = statistics(table, "sum", percentiles=(0, 10, 50.0, 97.5))
    fine = np.array([-1.5, 2.0, 3.0, 8.0])
    assert (found.rows, found.output) == (4, "sum")
    assert {word: rows.tolist() for word, rows in found.left_out.items()} == {"not finite": [2]}
    assert found.mean == pytest.approx(fine.mean(), rel=1e-15)
    assert found.deviation == pytest.approx(fine.std(ddof=1), rel=1e-15)
    for p, value in found.percentiles.items():
        assert value == pytest.approx(np.percentile(fine, p), rel=1e-15)
    assert list(found.percentiles) == [0.0, 10.0, 50.0, 97.5]
    assert (found.least, found.least_row, found.greatest, found.greatest_row) == (-1.5, 0, 8.0, 4)
    assert str(statistics(table, "sum", [50])) == (
        "sum of 4 rows, without 1 not finite (row 2): mean 2.875, deviation 3.92375, least -1.5, "
        "50 % 2.5, greatest 8"
    )


def test_infinite_values_are_left_out_by_name(table):
    """Rows that are done but have no finite value, such as the time of what never happens."""
    found = statistics(table, "never")
    assert {w: rows.tolist() for w, rows in found.left_out.items()} == {
        "not finite": [2],
        "infinite": [1, 4],
    }
    assert (found.rows, found.mean) == (2, -0.5)
    numbers = statistics(table, "x")
    assert numbers.rows == 4 and numbers.mean == pytest.approx(8.5 / 4)


def test_nothing_that_counts():
    """One row, and none: what is not known is NaN, and no warning is given."""
    one = statistics(dl.sweep(outputs, dl.Listed({"x": [1.0], "y": [0.0]})), "sum")
    assert (one.mean, one.least_row) == (1.0, 0) and np.isnan(one.deviation)
    none = statistics(dl.sweep(outputs, dl.Listed({"x": [-1.0], "y": [0.0]})), "sum")
    assert (none.rows, none.greatest_row) == (0, -1)
    assert np.isnan([none.mean, none.deviation, none.least, *none.percentiles.values()]).all()


@pytest.mark.parametrize("at_once", [1, 7, 2**22])
def test_columns_with_several_entries(table, at_once, monkeypatch):
    """Each entry by itself, however many are read at once."""
    monkeypatch.setattr(sys.modules["difflie.sweep.statistics"], "_AT_ONCE", at_once)
    found = statistics(table, "path", [25, 75])
    whole = table["path"].values[[0, 1, 3, 4]]
    assert np.shape(found.mean) == (3, 2)
    np.testing.assert_allclose(found.mean, whole.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(found.deviation, whole.std(axis=0, ddof=1), rtol=1e-14)
    for p in (25, 75):
        expected = np.percentile(whole, p, axis=0)
        np.testing.assert_allclose(found.percentiles[p], expected, rtol=1e-14)
    np.testing.assert_array_equal(found.greatest_row, [[4, 4]] * 3)


def test_units_and_refused_rows():
    """Of motions, with the reasons of a sweep."""
    swings = dl.Motions(PENDULUM, {"peak": dq.Peak(dq.Velocities())}, dt=1e-2, steps=5)
    made = dl.sweep(swings, dl.Random({"bob/mass": dl.Normal(1.0, 1.0)}, 32, seed=2))
    found = statistics(made, "peak hinge")
    refused = np.flatnonzero(made.status == "refused")
    assert found.unit == "rad/s" and refused.size
    np.testing.assert_array_equal(found.left_out["refused"], refused)
    assert statistics(made, "bob/mass").unit == "kg" and str(found).endswith(" rad/s")


@pytest.mark.parametrize(
    ("output", "percentiles", "words"),
    [
        ("sun", (50,), "the table has no column 'sun'; did you mean 'sum'"),
        ("status", (50,), "the table has no column 'status'"),
        ("sum", (50, 101), "a percentile is 101; give numbers from 0 to 100"),
        ("sum", (float("nan"),), "a percentile is nan"),
    ],
)
def test_wrong_arguments_are_refused(table, output, percentiles, words):
    """In one sentence each."""
    with pytest.raises(ValueError, match=words):
        statistics(table, output, percentiles)


def test_results_of_several_entries_have_ends_only(table):
    """A median of unlike numbers says nothing."""
    ends = column_ends(statistics(table, "path"))
    assert (ends.finite, ends.least, ends.greatest) == (4, -3.0, 12.0)
    assert np.isnan([ends.median, ends.mean, ends.p5]).all()
    assert ends.left_out == {"not finite": 1}


@pytest.mark.slow
def test_a_large_table_takes_little_memory(tmp_path, monkeypatch):
    """1e5 rows of 60 numbers, 48 MB, of which few are held at once."""

    def wide(numbers):
        return {"path": numbers["x"] * jnp.arange(60.0).reshape(30, 2)}

    design = dl.Random({"x": dl.Uniform(0.0, 1.0)}, 100_000, seed=1)
    # zarr holds some ten chunks at a time.
    made = dl.sweep(wide, design, tmp_path / "store", chunk=1000)
    monkeypatch.setattr(sys.modules["difflie.sweep.statistics"], "_AT_ONCE", 2**19)
    tracemalloc.start()
    found = statistics(made, "path")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < made["path"].nbytes / 2
    np.testing.assert_allclose(found.mean[-1, -1], 59 * float(made["x"].mean()), rtol=1e-9)

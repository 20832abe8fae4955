"""Pages and pictures of sweeps: finished, unfinished, with failures, and of all sizes."""

import re
import sys

import jax.numpy as jnp
import numpy as np
import pytest
from pages import Page
from small import PENDULUM

import difflie as dl
from difflie import quantities as dq
from difflie.sweep import StoreError, plot, report
from difflie.sweep.report import _known
from difflie.sweep.summary import Summary


def text_of(page):
    return Page(page).text


def sums(numbers):
    values = jnp.stack(list(numbers.values()))
    first = values[0]
    return {
        "sum": values @ jnp.arange(1.0, 1 + len(values)),
        "root": jnp.sqrt(first - 0.05),
        "constant": 0.0 * first + 7.0,
        "never": jnp.inf + first,
        "pair": jnp.stack((first, first)).reshape(1, 2),
    }


def names(n):
    return [f"number {k}" for k in range(n)]


@pytest.mark.slow
def test_a_page_of_a_sweep_with_failures(tmp_path):
    """Guards what a page says of rows, numbers, outputs, sensitivity and its origin."""
    of = {name: dl.Uniform(0.0, 1.0) for name in names(3)}
    design = dl.Saltelli(of, 128, seed=9)
    table = dl.sweep(sums, design, tmp_path / "table", chunk=640, about={"file": "mine"}).load()
    page = report(tmp_path / "table", tmp_path / "page")
    said = text_of(page)
    bad = int((table.status == "not finite").sum())
    assert 0 < bad < 64
    assert Page(page).sign == "!Worked, with warnings"
    assert f"Rows: {640 - bad} done, {bad} not finite." in said
    assert "3 numbers, 128 draws by Saltelli with seed 9: 640 rows, with 4 outputs each." in said
    first = int(np.flatnonzero(table.status == "not finite")[0])
    assert f" {first} not finite number 0 = " in said
    assert "number 0 Uniform(lower=0.0, upper=1.0)" in said
    fine = table["sum"].values[table.status == "done"]
    levels = [np.quantile(fine, q) for q in (0, 0.05, 0.5, 0.95, 1)]
    numbers = " ".join(f"{x:.5g}" for x in (fine.mean(), fine.std(ddof=1), *levels))
    assert f"sum {640 - bad} {bad} not finite {numbers}" in said
    lost = np.flatnonzero(table.status != "done")
    named = ", ".join(map(str, lost[:6]))
    assert f"Left out of all outputs: {bad} not finite (rows {named} and {bad - 6} more)." in said
    row = int(np.argmax(np.where(table.status == "done", table["sum"], -1.0)))
    assert f"sum greatest {row} number 0 = " in said
    assert re.search(r"sum depends most on number 2 \(\d+ ± \d+ % of the variance alone, \d+", said)
    assert "constant has no indices: it is 7 in all rows." in said
    assert "never has no indices: no row is done with a finite value." in said
    assert "Only in the table, as they are no single real numbers: pair." in said
    assert '"seed": 9' in said and 'file "mine"' in said and "jax 0." in said
    pictures = {path.name for path in (tmp_path / "page").glob("*.png")}
    assert pictures == {
        *("status.png", "parallel.png", "maps.png", "scatter_0.png", "scatter_1.png"),
        "histograms.png",
    }


class Enough(Exception):
    pass


@pytest.mark.slow
def test_a_page_of_a_sweep_that_has_not_ended(tmp_path):
    """Guards that a page is made at any time, and says of which rows it is."""

    def stop(done, size):
        if done > 100:
            raise Enough

    design = dl.Grid({name: np.linspace(0.1, 1.0, 20) for name in names(2)})
    with pytest.raises(Enough):
        dl.sweep(sums, design, tmp_path / "table", chunk=80, progress=stop)
    page = report(tmp_path / "table", tmp_path)
    said = text_of(page)
    assert Page(page).sign == "!Worked, with warnings"
    assert re.search(r"Not finished: (320|240) of 400 rows are pending", said)
    assert "The same sweep goes on where it ended" in said
    assert "By rank correlation it goes most with number 1" in said


@pytest.mark.slow
def test_failures_say_why(tmp_path):
    """Guards the reasons of rows that are refused, a system's units, and derivatives."""
    swings = dl.Motions(PENDULUM, {"peak": dq.Peak(dq.Velocities())}, dt=1e-2, steps=5)
    masses = dl.Grid({"bob/mass": [1.0, 2.0, 3.0]}) * dl.Listed({"q0/hinge": [0.1, 0.2]})
    drawn = dl.Random({"bob/mass": dl.Normal(1.0, 1.0)}, 64, seed=2)
    dl.sweep(swings, drawn, tmp_path / "drawn", chunk=64)
    said = text_of(report(tmp_path / "drawn", tmp_path / "first"))
    assert "it must not be negative" in said and " more; the column `status` names them" in said
    dl.sweep(swings, masses, tmp_path / "slopes", chunk=6, gradient=True)
    said = text_of(report(tmp_path / "slopes", tmp_path / "second"))
    assert "with 1 output and 2 derivatives each" in said
    assert "q0/hinge rad 2 values 0.1 0.2" in said
    assert "d peak hinge / d q0/hinge rad/s / (rad) 6 0 " in said


RELATIONS = "scatter_0", "scatter_1"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "rows", "pictures"),
    [
        (1, 40, ("parallel", *RELATIONS)),
        (13, 40, ("parallel", "maps", *RELATIONS)),
        (2, 1, ()),
    ],
)
def test_pictures_of_all_sizes(count, rows, pictures, tmp_path):
    """Guards one number, more than fit, and one row, without a store."""
    table = dl.sweep(sums, dl.Random({n: dl.Uniform(0.1, 1.0) for n in names(count)}, rows))
    paths = plot(table, tmp_path)
    assert all(path.exists() for path in paths)
    assert [path.stem for path in paths] == [*pictures, "histograms"]


@pytest.mark.slow
def test_designs_of_ones_own_are_given(tmp_path):
    """Guards designs that descriptions do not tell, and places without a store."""

    class Mine(dl.Listed):
        @property
        def described(self):
            return {"mine": 1}

    design = Mine({name: [0.1, 0.5, 0.9] for name in names(2)})
    dl.sweep(sums, design, tmp_path / "table", chunk=3)
    assert "by a design of another class" in text_of(report(tmp_path / "table", tmp_path))
    given = text_of(report(tmp_path / "table", tmp_path, design))
    assert "3 rows of a list" in given and "number 0 3 values" in given
    with pytest.raises(StoreError, match="there is no store"):
        report(tmp_path / "elsewhere", tmp_path)


def test_summaries_know_what_is_influential():
    """Guards the order of numbers by indices, and by rank correlations without them."""
    table = dl.sweep(sums, dl.Grid({n: [0.1, 0.4, 1.0] for n in names(3)}), chunk=27)
    summary = Summary(table)
    found, correlations = _known(summary)["sum"]
    assert found.first is None and correlations[0] < correlations[1] < correlations[2]
    assert summary.other == ["pair"] and summary.outputs[-1] == "never"


@pytest.mark.slow
def test_pages_of_many_rows_say_of_how_many_they_are(tmp_path, monkeypatch):
    """Guards tables larger than pictures hold: ends of all rows, pictures of some."""
    monkeypatch.setattr(sys.modules[Summary.__module__], "_ROWS", 100)
    design = dl.Random({n: dl.Uniform(0.1, 1.0) for n in names(2)}, 500, seed=1)
    table = dl.sweep(sums, design, tmp_path / "table", chunk=500).load()
    said = text_of(report(tmp_path / "table", tmp_path))
    assert "All pictures are of 100 of 500 rows, drawn at random; the tables are of all." in said
    assert f"sum 500 0 {float(table['sum'].mean()):.5g}" in said


def test_times_at_which_nothing_happened_are_no_outputs(tmp_path):
    """Guards that a page of motions that are all well does not read like one of failures."""
    motions = dl.Motions(PENDULUM, {"peak": dq.Peak(dq.Velocities())}, [0.3], dt=1e-2, steps=5)
    dl.sweep(motions, dl.Sobol({"dt": dl.Uniform(0.01, 0.02)}, 4), tmp_path / "table")
    said = text_of(report(tmp_path / "table", tmp_path / "page"))
    assert "no motion failed (failed at), no joint was beyond a limit (limit at)" in said
    assert "failed at has no indices" not in said and "Left out of" not in said
    assert "4 rows, with 1 output each" in said


def test_another_function_is_named_in_words(tmp_path):
    """Guards that a store refuses a changed function without its digests alone."""
    design = dl.Grid({"a": [1.0, 2.0]})
    dl.sweep(lambda x: x["a"], design, tmp_path)
    with pytest.raises(StoreError, match=r"what is computed is another function.*steps, dt"):
        dl.sweep(lambda x: 2 * x["a"], design, tmp_path)

"""Sensitivity indices of sweeps, against the closed form of the Ishigami function."""

import functools
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.sweep import sensitivity
from difflie.sweep.samples import described_design

A, B = 7.0, 0.1
NAMES = "x", "y", "z"
OF = {name: dl.Uniform(-np.pi, np.pi) for name in NAMES}


def exact():
    """First-order and total indices. Ishigami, Homma 1990."""
    parts = np.array([(1 + B * np.pi**4 / 5) ** 2 / 2, A**2 / 8, 0.0])
    both = B**2 * np.pi**8 * (1 / 18 - 1 / 50)
    variance = parts.sum() + both
    return parts / variance, (parts + np.array([both, 0.0, both])) / variance


def ishigami(numbers):
    x, y, z = (numbers[name] for name in NAMES)
    value = jnp.sin(x) + A * jnp.sin(y) ** 2 + B * z**4 * jnp.sin(x)
    return {
        "value": value,
        "few": jnp.where(x > 0, value, jnp.inf),
        "most": jnp.where(x > 3.0, jnp.inf, value),
        "constant": 0.0 * x + 3.0,
        "rounded": jnp.cos(x) ** 2 + jnp.sin(x) ** 2 + 1e-13 * jnp.sin(1e9 * y),
        "of two": x + 2.0 * y,
    }


@functools.cache
def table_of(kind, count):
    return dl.sweep(ishigami, kind(OF, count, seed=3), chunk=count).load()


def test_indices_of_saltellis_design():
    """Guards first and total indices, and that their intervals are neither too wide nor narrow."""
    found = sensitivity(table_of(dl.Saltelli, 1024), "value")
    first, total = exact()
    assert found.names == NAMES and found.rows == 5120 and not found.left_out and not found.why
    for (index, interval), of in ((found.first, first), (found.total, total)):
        np.testing.assert_allclose(index, of, atol=0.03)
        assert (np.abs(index - of) <= 1.5 * interval + 1e-9).all() and (interval < 0.15).all()
    again = sensitivity(table_of(dl.Saltelli, 1024), "value")
    np.testing.assert_array_equal(found.total.intervals, again.total.intervals)
    head, *lines = str(found).splitlines()
    assert head.startswith("value of 5120 rows: Sobol's indices") and len(lines) == 3
    assert lines[1].startswith(f"y  alone {found.first.values[1]:.3f} +- ")


@pytest.mark.parametrize("kind", [dl.Random, dl.LatinHypercube, dl.Sobol])
def test_indices_of_random_designs(kind):
    """Guards first-order indices of designs that are not made for them."""
    found = sensitivity(table_of(kind, 2048), "value")
    np.testing.assert_allclose(found.first.values, exact()[0], atol=0.05)
    assert found.total is None and (found.first.intervals < 0.15).all()


def test_indices_of_sobol_sequences_do_not_resonate():
    """Guards the order in a Sobol sequence, which all its rows together take for influence."""
    design = dl.Sobol({str(k): dl.Uniform(0.0, 1.0) for k in range(4)}, 4096, seed=1)
    weights = np.array([9.0, 0.0, 4.0, 0.0])
    table = dl.sweep(lambda x: {"y": 9.0 * x["0"] + 4.0 * x["2"]}, design, chunk=4096)
    found = sensitivity(table, "y")
    np.testing.assert_allclose(found.first.values, weights**2 / (weights**2).sum(), atol=0.04)


@pytest.mark.parametrize(("kind", "count"), [(dl.Saltelli, 1024), (dl.Random, 2048)])
def test_what_does_not_depend_says_so(kind, count):
    """Guards that indices of rounding, and numbers without any influence, are told."""
    table = table_of(kind, count)
    said = sensitivity(table, "rounded").remark
    assert "rounded varies by" in said and "indices of noise, and it depends on none" in said
    two = sensitivity(table, "of two")
    assert two.remark == ("of two does not depend on z at all" if kind is dl.Saltelli else "")
    assert sensitivity(table, "value").remark == sensitivity(table, "constant").remark == ""


@pytest.mark.parametrize(("kind", "count"), [(dl.Saltelli, 1024), (dl.Random, 2048)])
def test_missing_rows_are_left_out_and_said(kind, count):
    """Guards rows without finite values: few are left out, with many there are no indices."""
    table = table_of(kind, count)
    few = sensitivity(table, "most")
    missing = ~np.isfinite(table["most"].values)
    if kind is dl.Saltelli:
        missing = np.repeat(missing.reshape(-1, 5).any(axis=1), 5)
    assert few.left_out == missing.sum() > 0 and few.rows == (~missing).sum()
    np.testing.assert_allclose(few.first.values, exact()[0], atol=0.1)
    many = sensitivity(table, "few")
    assert many.first is None and "lack a finite value" in many.why
    assert "it is 3 in all rows" in sensitivity(table, "constant").why


def test_pending_rows_are_no_loss():
    """Guards indices of a sweep that has not ended."""
    table = table_of(dl.Saltelli, 1024).copy(deep=True)
    table["status"][2562:] = "pending"
    table["value"][2562:] = np.nan
    found = sensitivity(table, "value")
    assert found.rows == 2560 and found.left_out == 0
    np.testing.assert_allclose(found.total.values, exact()[1], atol=0.06)


def test_designs_that_tell_nothing_say_so():
    """Guards grids, rows that are too few, and what is asked wrongly."""
    grid = dl.sweep(ishigami, dl.Grid({n: [0.0, 1.0] for n in NAMES}), chunk=8)
    assert "best by Saltelli" in sensitivity(grid, "value").why
    assert sensitivity(table_of(dl.Sobol, 2048), "value").rows == 1024
    few = dl.sweep(ishigami, dl.Random(OF, 20), chunk=20)
    assert "20 rows are too few" in sensitivity(few, "value").why
    with pytest.raises(ValueError, match=r"no output is named 'valu'.*'value'"):
        sensitivity(grid, "valu")
    with pytest.raises(ValueError, match="the design is of"):
        sensitivity(grid, "value", dl.Grid({"a": [1.0]}))


def test_without_salib_the_extra_is_named(monkeypatch):
    """Guards what is said where the extra is not installed."""
    monkeypatch.setitem(sys.modules, "SALib.analyze.rbd_fast", None)
    with pytest.raises(ImportError, match="SALib is needed; install the extra 'sweep'"):
        sensitivity(table_of(dl.Random, 2048), "value")


def test_designs_are_read_from_their_descriptions():
    """Guards the way back from `described`, which is None for what is not known."""
    drawn = dl.Sobol({"a": dl.Normal(0.0, 2.0), "b": dl.LogUniform(1.0, 3.0)}, 16, seed=4)
    design = dl.Grid({"c": [1.0, 2.0]}) * dl.Listed({"d": [0.5]}) * drawn
    again = described_design(design.described)
    assert again is not None and again.described == design.described
    np.testing.assert_array_equal(again.rows(3, 20), design.rows(3, 20))
    assert described_design({"product": [{"listed": {"a": [1.0]}}, {"mine": 3}]}) is None
    assert described_design({"drawn": "Sobol", "of": {"a": {"distribution": "Mine"}}}) is None

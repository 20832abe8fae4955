"""Designs: rows that do not depend on what is asked for first, and their distributions."""

import numpy as np
import pytest
from scipy import stats

from difflie import (
    Grid,
    LatinHypercube,
    Listed,
    LogUniform,
    Normal,
    Random,
    Saltelli,
    Sobol,
    Uniform,
)

OF = {"a": Uniform(-1.0, 3.0), "b": LogUniform(0.1, 10.0), "c": Normal(2.0, 0.5)}
DESIGNS = {
    "grid": Grid({"a": [1.0, 2.0], "b": [0.0, 0.5, 1.0]}),
    "listed": Listed({"a": [1.0, 2.0, 5.0], "b": [0.0, 0.5, -1.0]}),
    "random": Random(OF, 5000, seed=1),
    "latin": LatinHypercube(OF, 100, seed=1),
    "sobol": Sobol(OF, 1000, seed=1),
    "saltelli": Saltelli(OF, 64, seed=1),
    "product": Grid({"d": [0.0, 1.0, 7.0]}) * Sobol(OF, 333) * Listed({"e": [4.0, 2.0]}),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_rows_in_pieces_are_those_of_the_whole(name):
    """Guards that a row depends on its index alone, bit for bit."""
    design = DESIGNS[name]
    whole = design.rows(0, design.size)
    assert whole.shape == (design.size, len(design.names))
    for first, last in ((0, 1), (design.size // 3, design.size // 2 + 1), (design.size - 1,) * 2):
        np.testing.assert_array_equal(design.rows(first, last), whole[first:last])
    low, high = design.support
    assert (whole >= low).all() and (whole <= high).all()


@pytest.mark.parametrize("kind", [Random, LatinHypercube, Sobol])
def test_numbers_have_their_distributions(kind):
    """Guards the quantile functions, by the test of Kolmogorov and Smirnov."""
    rows = kind(OF, 2048, seed=3).rows(0, 2048)
    true = stats.uniform(-1, 4), stats.loguniform(0.1, 10), stats.norm(2, 0.5)
    for column, distribution in zip(rows.T, true, strict=True):
        assert stats.kstest(column, distribution.cdf).pvalue > 1e-3
    assert np.abs(np.corrcoef(rows.T) - np.eye(3)).max() < 0.1
    other = kind(OF, 2048, seed=4).rows(0, 2048)
    assert (rows != other).all(axis=1).mean() > 0.99


def test_a_grid_has_all_combinations_the_last_name_fastest():
    """Guards the order of a grid."""
    np.testing.assert_array_equal(
        DESIGNS["grid"].rows(0, 6), [[1, 0], [1, 0.5], [1, 1], [2, 0], [2, 0.5], [2, 1]]
    )


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Grid({}), "the grid is empty"),
        (lambda: Grid({"a": []}), "the values of 'a' are .*one finite number or more"),
        (lambda: Listed({"a": [1.0], "b": [1.0, 2.0]}), "lengths"),
        (lambda: Grid({"a": [np.nan]}), "finite"),
        (lambda: Uniform(2.0, 1.0), "lower must be less than upper"),
        (lambda: LogUniform(0.0, 1.0), "0 < lower < upper"),
        (lambda: Normal(0.0, 0.0), "deviation must be positive"),
        (lambda: Sobol(OF, 0), "count is 0; it must be a whole number, 1 or more"),
        (lambda: Random({"a": 3.0}, 5), "give a distribution"),
        (lambda: Grid({"a": [1.0]}) * Random(OF, 3), "'a' is varied twice"),
    ],
)
def test_wrong_designs_are_refused(made, said):
    """Guards the sentences for designs that are none."""
    with pytest.raises(ValueError, match=said):
        made()


def test_a_design_without_a_count_or_names_is_answered():
    """Guards what is missing, by the name of the design."""
    for kind in (LatinHypercube, Sobol, Saltelli, Random):
        with pytest.raises(
            ValueError, match=rf"{kind.__name__}: count is 0.*such as {kind.__name__}\(.*1024"
        ):
            kind({"arm/mass": Uniform(1.0, 2.0)})
        with pytest.raises(ValueError, match=rf"{kind.__name__}: .*; give distributions by name"):
            kind(["arm/mass"], 4)

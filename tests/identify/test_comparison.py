"""Two models: equal ones are told apart by chance only, better ones surely."""

import numpy as np
import pytest

from difflie import identify as di

JOINTS = ("hip", "knee")


def errors(rng, scale=1.0, rows=400):
    """Alike over some ten rows, as of smoothed measurements."""
    white = rng.normal(size=(rows + 9, 2))
    return scale * np.stack([np.convolve(column, np.ones(10), "valid") for column in white.T], 1)


def test_a_better_model_is_found():
    rng = np.random.default_rng(0)
    first = errors(rng)
    second = first * (0.8, 1.0) + 0.05 * errors(rng)
    found = di.compare(first, second, JOINTS)
    assert np.isclose(found.ratios[0], 0.64, atol=0.03)
    assert found.intervals[0, 1] < 1 < found.intervals[1, 1]
    assert found.verdict.startswith("the second model predicts better")
    assert "the second is better at hip" in found.verdict
    back = di.compare(second, first, JOINTS)
    assert np.allclose(back.ratios, 1 / found.ratios)
    assert back.verdict.startswith("the first model predicts better")


def test_intervals_cover_what_is_equal():
    """95 % of the intervals of two equally good models contain 1, although errors are alike."""
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(300):
        lower, upper = di.compare(errors(rng), errors(rng), JOINTS).interval
        inside.append(lower <= 1 <= upper)
    assert 0.91 < np.mean(inside) < 0.98


def test_gaps_are_left_out():
    rng = np.random.default_rng(2)
    first, second = errors(rng), errors(rng, 2.0)
    gaps = np.where(np.arange(400)[:, None] % 3 == 0, np.nan, second)
    assert np.isclose(di.compare(first, gaps, JOINTS).ratio, 4, rtol=0.5)
    silent = di.compare(first * (1, np.nan), second, JOINTS)
    assert np.isnan(silent.ratios[1]) and np.isfinite(silent.ratio)


def test_unlike_errors_are_refused():
    first = np.ones((20, 2))
    with pytest.raises(di.DataError, match="judge both models by the same rows"):
        di.compare(first, np.ones((21, 2)), JOINTS)
    with pytest.raises(di.DataError, match="no 30 blocks"):
        di.compare(first, first, JOINTS, blocks=30)
    with pytest.raises(di.DataError, match="in no row"):
        di.compare(first * np.nan, first, JOINTS)

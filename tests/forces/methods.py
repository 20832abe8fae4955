"""Three kinds of methods: of fields, of a discrete action, of discrete gradients."""

import pytest

import difflie as dl

three_methods = pytest.mark.parametrize(
    "method",
    [
        dl.RKMK4(),
        pytest.param(dl.VariationalMidpoint(), marks=pytest.mark.slow),
        pytest.param(dl.EnergyMomentum(), marks=pytest.mark.slow),
    ],
    ids=lambda m: m.name,
)

"""Every map of the groups, its first and its second derivatives against the exact maps.

The error of an entry is measured in units of max(1, angle) * max(1, largest entry of the exact
result), times the condition number of the map where it has a singularity in reach.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, tan

import accuracy
import exact_maps as exact
import numpy as np
import pytest
from accuracy import PRECISIONS, SMALL, TOLERANCE

from difflie.groups import quaternion, se3, so3

TO_TURN = (*SMALL, pi - 1e-8, pi, 4.0, 5.0, 2 * pi - 1e-3)  # dexp^-1 ends at 2 pi
ALL = (*TO_TURN, 2 * pi, 9.0, 13.0, 20.0)


@dataclass(frozen=True)
class Map:
    """A map of coordinates (size,), with the exact map of fixed-point coordinates."""

    function: Callable
    exact: Callable[..., exact.Jet]
    size: int
    angles: tuple[float, ...] = ALL
    cayley: bool = False  # the coordinates are tan(angle / 2) times the axis
    singular: bool = False  # at an angle in reach

    def __str__(self) -> str:
        return f"{self.function.__module__.rsplit('.')[-1]}.{self.function.__name__}"

    def samples(self, axes: int, dtype: type) -> np.ndarray:
        lengths = [tan(a / 2) if self.cayley else a for a in self.angles]
        return accuracy.samples(lengths, self.size, axes, dtype)

    def scale(self, values: list[np.ndarray]) -> np.ndarray:
        scale = np.repeat(np.maximum(1.0, self.angles), len(values) // len(self.angles))
        if self.singular:
            scale *= np.linalg.cond(exact.to_float(np.array(values)))
        return scale


CAYLEY = {"angles": SMALL, "cayley": True}
INVERSE = {"angles": TO_TURN, "singular": True}
MAPS = [
    Map(quaternion.exp, exact.quaternion_exp, 3),
    Map(so3.exp, exact.exp, 3),
    Map(so3.dexp, exact.dexp, 3),
    Map(so3.dexp_inv, exact.dexp_inv, 3, **INVERSE),
    Map(so3.cay, exact.cay, 3, **CAYLEY),
    Map(so3.dcay, exact.dcay, 3, **CAYLEY),
    Map(so3.dcay_inv, exact.dcay_inv, 3, **CAYLEY),
    Map(se3.exp, exact.exp, 6),
    Map(se3.dexp, exact.dexp, 6),
    Map(se3.dexp_inv, exact.dexp_inv, 6, **INVERSE),
    Map(se3.ad, exact.ad, 6),
    Map(se3.cay, exact.cay, 6, **CAYLEY),
    Map(se3.dcay, exact.dcay, 6, **CAYLEY),
    Map(se3.dcay_inv, exact.dcay_inv, 6, **CAYLEY),
]


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("m", MAPS, ids=str)
def test_value(m, dtype):
    x = m.samples(4, dtype)
    y = accuracy.compiled(m.function)(x)
    assert y.dtype == dtype
    reference = [m.exact(exact.fixed(row), derivatives=False).value for row in x]
    error = accuracy.scaled_error(y, np.array(reference), m.scale(reference))
    assert error <= TOLERANCE[dtype]["value"]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("m", MAPS, ids=str)
def test_derivatives(m, dtype):
    x = m.samples(1, dtype)
    jets = [m.exact(exact.fixed(row)) for row in x]
    errors = accuracy.derivative_errors(m.function, jets, m.scale([j.value for j in jets]), x)
    assert errors["forward"] <= TOLERANCE[dtype]["first"]
    assert errors["reverse"] <= TOLERANCE[dtype]["first"]
    assert errors["second"] <= TOLERANCE[dtype]["second"]

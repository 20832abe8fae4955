"""Maps of group elements: logarithms, inverse Cayley maps, adjoints, inverses.

The argument is a rounded element, and the exact map is that of the rotation nearest to it. The
derivatives are taken along the group, at u = 0 of f(g exp(u)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import pi, tan

import accuracy
import exact_maps as exact
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from accuracy import PRECISIONS, SMALL, TOLERANCE

from difflie.groups import quaternion, se3, so3


def around_pi(dtype: type) -> tuple[float, ...]:
    ulp = float(np.spacing(dtype(pi)))
    steps = (-1000, -100, -10, -3, -2, -1, 1, 2, 3, 10, 100, 1000)
    return (pi - 1e-8, *(float(dtype(pi)) + k * ulp for k in steps), pi + 1e-8)


@dataclass(frozen=True)
class ElementMap:
    """A map of group elements; an element is the rounded `element` of coordinates (size,)."""

    function: Callable
    size: int
    element: Callable[..., exact.Jet]
    exact: Callable[[np.ndarray], np.ndarray]
    jet: Callable[[np.ndarray, np.ndarray], exact.Jet]  # of the element and of its computed image
    cayley: bool = False

    def __str__(self) -> str:
        return f"{self.function.__module__.rsplit('.')[-1]}.{self.function.__name__}"

    def samples(self, axes: int, dtype: type) -> tuple[np.ndarray, np.ndarray]:
        """Rounded elements, and the scale of their errors.

        A rounded element knows c = tan(angle / 2) only to a relative error of |c| ulps.
        """
        angles = np.array(SMALL if self.cayley else (*SMALL, *around_pi(dtype), 4.0, 5.0, 6.0))
        lengths = np.tan(angles / 2) if self.cayley else angles
        x = accuracy.samples(lengths, self.size, axes)
        elements = [exact.to_float(self.element(exact.fixed(row), False).value) for row in x]
        scale = np.maximum(1.0, np.minimum(angles, pi)) * (np.maximum(1, lengths) if self.cayley else 1.0)
        return np.array(elements, dtype=dtype), np.repeat(scale, axes)


def moved(g: np.ndarray) -> exact.Jet:
    """g exp(u) at u = 0."""
    step = exact.exp(np.zeros(6, dtype=object))
    return exact.constant(g, step) @ step


def inverse_jet(g: np.ndarray, _: np.ndarray) -> exact.Jet:
    return exact.inverse(moved(g))


def adjoint_jet(g: np.ndarray, _: np.ndarray) -> exact.Jet:
    """Column i is vee(g E_i g^-1)."""
    m = moved(g)
    inverse = exact.inverse(m)
    return exact.columns([(m @ exact.constant(e, m) @ inverse).map(exact.vee) for e in exact.hat(np.zeros(6, dtype=object)).first])


def rate_jet(rate: Callable[[np.ndarray], exact.Jet]) -> Callable:
    return lambda g, y: exact.along_group(y, rate)


LOG = {"jet": rate_jet(exact.dexp_inv)}
CAYLEY = {"jet": rate_jet(exact.dcay_inv), "cayley": True}
MAPS = [
    ElementMap(quaternion.log, 3, exact.quaternion_exp, exact.quaternion_log, **LOG),
    ElementMap(so3.log, 3, exact.exp, exact.log, **LOG),
    ElementMap(se3.log, 6, exact.exp, exact.log, **LOG),
    ElementMap(so3.cay_inv, 3, exact.cay, exact.cay_inv, **CAYLEY),
    ElementMap(se3.cay_inv, 6, exact.cay, exact.cay_inv, **CAYLEY),
    ElementMap(se3.inverse, 6, exact.exp, lambda g: inverse_jet(g, g).value, inverse_jet),
    ElementMap(se3.Ad, 6, exact.exp, lambda g: adjoint_jet(g, g).value, adjoint_jet),
]


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("m", MAPS, ids=str)
def test_value(m, dtype):
    g, scale = m.samples(4, dtype)
    y = accuracy.compiled(m.function)(g)
    assert y.dtype == dtype
    reference = np.array([m.exact(exact.fixed(row)) for row in g])
    print(m,dtype.__name__,accuracy.scaled_error(y, reference, scale)/TOLERANCE[dtype]["value"])
    assert accuracy.scaled_error(y, reference, scale) <= TOLERANCE[dtype]["value"]


@cache
def along_group(f: Callable) -> Callable:
    def of_step(u: jax.Array, g: jax.Array) -> jax.Array:
        if g.shape == (4,):
            return f(quaternion.multiply(g, quaternion.exp(u)))
        return f(g @ (so3.exp(u) if u.shape == (3,) else se3.exp(u)))

    return of_step


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("m", MAPS, ids=str)
def test_derivatives(m, dtype):
    g, scale = m.samples(1, dtype)
    y = accuracy.compiled(m.function)(g)
    jets = [m.jet(*map(exact.fixed, pair)) for pair in zip(g, y)]
    errors = accuracy.derivative_errors(along_group(m.function), jets, scale, np.zeros((len(g), m.size), dtype), g)
    print(m,dtype.__name__,errors)

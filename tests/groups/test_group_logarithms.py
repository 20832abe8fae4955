"""Maps of group elements: logarithms, inverse Cayley maps, adjoints, inverses.

The argument is a rounded element, and the exact map is that of the rotation nearest to it. The
derivatives are taken along the group, at u = 0 of f(g exp(u)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import pi

import accuracy
import exact_maps as exact
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from accuracy import PRECISIONS, SMALL, TOLERANCE

from difflie.groups import quaternion, se3, so3

Jet = exact.Jet


def around_pi(dtype: type, ulps: tuple[int, ...]) -> tuple[float, ...]:
    middle, ulp = float(dtype(pi)), float(np.spacing(dtype(pi)))
    return tuple(middle + sign * k * ulp for k in ulps for sign in (-1, 1))


@dataclass(frozen=True)
class ElementMap:
    """A map of group elements; an element is the rounded `element` of coordinates (size,)."""

    function: Callable
    size: int
    element: Callable[..., Jet]
    value: Callable[[np.ndarray], np.ndarray]  # of the element
    jet: Callable[[np.ndarray, np.ndarray], Jet]  # of the element and its computed image
    cayley: bool = False

    def __str__(self) -> str:
        return f"{self.function.__module__.rsplit('.')[-1]}.{self.function.__name__}"

    def samples(
        self, angles: tuple[float, ...], axes: int, dtype: type
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rounded elements, and the scale of their errors."""
        lengths = scale = np.array(angles)
        if self.cayley:
            # A rounded element has c = tan(angle / 2) to |c| ulps only, relative to c.
            angles = np.minimum(angles, pi - 1e-3)
            lengths = np.tan(angles / 2)
            scale = angles * np.maximum(1.0, lengths)
        rows = accuracy.samples(lengths, self.size, axes)
        elements = [exact.to_float(self.element(exact.fixed(x), False).value) for x in rows]
        return np.array(elements, dtype=dtype), np.repeat(np.maximum(1.0, scale), axes)


def moved(g: np.ndarray, derivatives: bool = True) -> Jet:
    """g exp(u) at u = 0."""
    step = exact.exp(np.zeros(6, dtype=object), derivatives)
    return exact.constant(g, len(step.first)) @ step


def inverse(g: np.ndarray, derivatives: bool = True) -> Jet:
    return exact.inverse(moved(g, derivatives))


def adjoint(g: np.ndarray, derivatives: bool = True) -> Jet:
    """Column i is vee(g E_i g^-1)."""
    left, right = moved(g, derivatives), inverse(g, derivatives)
    basis = exact.hat(np.zeros(6, dtype=object)).first
    columns = [left @ exact.constant(e, len(left.first)) @ right for e in basis]
    return exact.columns([c.map(exact.vee) for c in columns])


def logarithm(
    function: Callable, size: int, element: Callable, value: Callable, cayley: bool = False
) -> ElementMap:
    rate = exact.dcay_inv if cayley else exact.dexp_inv
    jet = lambda g, y: exact.along_group(y, rate)  # noqa: E731
    return ElementMap(function, size, element, value, jet, cayley)


def of_pose(function: Callable, jet: Callable[..., Jet]) -> ElementMap:
    return ElementMap(function, 6, exact.exp, lambda g: jet(g, False).value, lambda g, y: jet(g))


MAPS = [
    logarithm(quaternion.log, 3, exact.quaternion_exp, exact.quaternion_log),
    logarithm(so3.log, 3, exact.exp, exact.log),
    logarithm(se3.log, 6, exact.exp, exact.log),
    logarithm(so3.cay_inv, 3, exact.cay, exact.cay_inv, cayley=True),
    logarithm(se3.cay_inv, 6, exact.cay, exact.cay_inv, cayley=True),
    of_pose(se3.inverse, inverse),
    of_pose(se3.Ad, adjoint),
]


@cache
def along_group(f: Callable) -> Callable:
    """f(g exp(u)), with exp up to its second derivatives at u = 0, all that is asked for."""

    def of_step(u: jax.Array, g: jax.Array) -> jax.Array:
        if g.shape == (4,):
            return f(quaternion.multiply(g, jnp.append(1 - u @ u / 8, u / 2)))
        u_hat = so3.hat(u) if u.shape == (3,) else se3.hat(u)
        return f(g + g @ (u_hat + u_hat @ u_hat / 2))

    return of_step


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("m", MAPS, ids=str)
def test_value(m, dtype):
    near = around_pi(dtype, (1, 2, 3, 10, 30, 1000, 100_000))
    g, scale = m.samples((*SMALL, *near, 4.0, 5.0, 6.0), 4, dtype)
    y = accuracy.compiled(m.function)(g)
    assert y.dtype == dtype
    reference = np.array([m.value(exact.fixed(row)) for row in g])
    assert accuracy.scaled_error(y, reference, scale) <= TOLERANCE[dtype]["value"]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("m", MAPS, ids=str)
def test_derivatives_along_the_group(m, dtype):
    g, scale = m.samples((*SMALL, *around_pi(dtype, (3,)), 5.0), 1, dtype)
    if m.function in (so3.log, se3.log):
        half_turns = accuracy.half_turns(m.size, dtype)[::3]
        g = np.concatenate((g, half_turns))
        scale = np.append(scale, np.full(len(half_turns), pi))
    y = accuracy.compiled(m.function)(g)
    jets = [m.jet(exact.fixed(a), exact.fixed(b)) for a, b in zip(g, y, strict=True)]
    u = np.zeros((len(g), m.size), dtype)
    errors = accuracy.derivative_errors(along_group(m.function), jets, scale, u, g)
    assert errors["forward"] <= TOLERANCE[dtype]["first"]
    assert errors["reverse"] <= TOLERANCE[dtype]["first"]
    assert errors["second"] <= TOLERANCE[dtype]["second"]

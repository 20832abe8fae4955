"""Every map of the groups, its first and its second derivatives against the exact maps.

The error of an entry is measured in units of max(1, angle) * max(1, largest entry of the exact
result), times the condition number of the result where the map has a singularity in reach.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import pi, tan

import exact_maps as exact
import jax
import numpy as np
import pytest

from difflie.groups import quaternion, se3, so3

SMALL = (0.0, 1e-160, 1e-30, 1e-16, 1e-8, 1e-4, 1e-3, 0.01, 0.1, 0.5, 1.0, 2.0, 3.0, pi - 1e-3)
TO_TURN = (*SMALL, pi - 1e-8, pi, 4.0, 5.0, 2 * pi - 1e-3)  # dexp^-1 ends at 2 pi
ALL = (*TO_TURN, 2 * pi, 9.0, 13.0, 20.0)

PRECISIONS = (np.float64, np.float32)
# An ulp or two of value, and derivatives hardly worse: a coefficient that is evaluated outside its
# range shows in the derivatives first.
TOLERANCE = {np.float64: (1e-15, 1e-14, 1e-13), np.float32: (5e-7, 5e-6, 5e-5)}


@dataclass(frozen=True)
class Map:
    """A map under test, with the exact map of a fixed-point argument."""

    function: Callable
    exact: Callable[..., exact.Jet]
    size: int  # of the coordinates, 3 or 6
    angles: tuple[float, ...] = ALL
    cayley: bool = False  # the coordinates are tan(angle / 2) times the axis
    singular: bool = False  # in reach of the angles

    def __str__(self) -> str:
        return f"{self.function.__module__.rsplit('.')[-1]}.{self.function.__name__}"

    def samples(self, axes: int, dtype: type) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates (count, size) in the given precision and their angles (count,).

        Translations have length 1. The first axis is random, the second one of the coordinate
        axes or their opposites, and so on.
        """
        rng = np.random.default_rng(7)
        rows = []
        for i, angle in enumerate(self.angles):
            for j in range(axes):
                axis, shift = (a / np.linalg.norm(a) for a in rng.normal(size=(2, 3)))
                if j % 2:
                    axis = np.roll([(-1.0) ** (i + j // 2), 0.0, 0.0], i + j // 2)
                length = tan(angle / 2) if self.cayley else angle
                rows.append(np.concatenate((length * axis, shift))[: self.size])
        return np.array(rows, dtype=dtype), np.repeat(self.angles, axes)

    def scale(self, value: np.ndarray, angles: np.ndarray) -> np.ndarray:
        """max(1, angle), times the condition number of a value near the singularity."""
        condition = np.linalg.cond(exact.to_float(value)) if self.singular else 1.0
        return np.maximum(1.0, angles) * condition


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


def relative_errors(
    measured: np.ndarray, reference: np.ndarray, scale: np.ndarray
) -> np.ndarray:
    """The largest error of every sample over scale * max(1, its largest entry)."""
    flat = (len(scale), -1)
    error = np.abs(exact.error(measured, reference)).reshape(flat).max(axis=1)
    return error / scale / np.maximum(1.0, np.abs(exact.to_float(reference)).reshape(flat).max(1))


@cache
def all_derivatives(f: Callable) -> Callable:
    """First derivatives [n, ..., i] by forward and by reverse mode, and second ones [n, ..., i, j].

    Every pair of an entry of the result and a direction is a row of one large batch, which
    compiles several times faster than nested Jacobians.
    """

    @jax.jit
    @jax.vmap
    def row(x, entry, direction):
        def value_and_gradient(x):
            value, pullback = jax.vjp(f, x)
            return value, pullback(entry.reshape(value.shape))[0]

        (_, gradient), (forward, second) = jax.jvp(value_and_gradient, (x,), (direction,))
        return forward, gradient, second

    def evaluate(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shape = jax.eval_shape(f, x[0]).shape
        n, k, entries = len(x), x.shape[1], int(np.prod(shape))
        grid = (n, entries, k)
        rows = (
            np.broadcast_to(x[:, None, None], (*grid, k)),
            np.broadcast_to(np.eye(entries, dtype=x.dtype)[:, None], (*grid, entries)),
            np.broadcast_to(np.eye(k, dtype=x.dtype), (*grid, k)),
        )
        forward, gradient, second = row(*(a.reshape(-1, a.shape[-1]) for a in rows))
        assert {a.dtype for a in (forward, gradient, second)} == {x.dtype}
        forward = np.asarray(forward).reshape(*grid, entries)[:, 0].swapaxes(1, 2)
        gradient = np.asarray(gradient).reshape(*grid, k)[:, :, 0]
        second = np.asarray(second).reshape(*grid, k)
        return (
            forward.reshape(n, *shape, k),
            gradient.reshape(n, *shape, k),
            second.reshape(n, *shape, k, k),
        )

    return evaluate


def value_errors(m, dtype):
    x, angles = m.samples(4, dtype)
    y = jax.jit(jax.vmap(m.function))(x)
    assert y.dtype == dtype
    reference = np.array([m.exact(exact.fixed(row), derivatives=False).value for row in x])
    return relative_errors(y, reference, m.scale(reference, angles))


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("m", MAPS, ids=str)
def test_value(m, dtype):
    assert value_errors(m, dtype).max() <= TOLERANCE[dtype][0]


def derivative_errors(m, dtype):
    x, angles = m.samples(1, dtype)
    jets = [m.exact(exact.fixed(row)) for row in x]
    scale = m.scale(np.array([j.value for j in jets]), angles)
    first = np.moveaxis(np.array([j.first for j in jets]), 1, -1)
    second = np.moveaxis(np.array([j.second for j in jets]), (1, 2), (-2, -1))
    forward, reverse, mixed = all_derivatives(m.function)(x)
    return [relative_errors(*a, scale) for a in ((forward, first), (reverse, first), (mixed, second))]

"""Weighted least squares of an arm's base parameters (IDIM-WLS), and which of them are essential.

Each joint's equations are weighted by the standard deviation of its own residuals, in some rounds.
Gautier 1997; Khalil and Dombre 2002, section 12.4.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dynamics.identifiable import BaseParameters, independent_columns
from ..torque_rows import names_of
from .equations import Equations

_ROUNDS = 4
# Directions of numbers that the motion tells worse than the best by this factor are left at zero.
_LEAST_TOLD = 1e-3
# The least part of the torques' root mean square that their noise is.
_LEAST_NOISE = 1e-6
# A base parameter with a larger relative error is a candidate for being left out, as long as the
# mean square of the residuals grows by no more than chance makes it grow.
_CERTAIN = 0.1
_CHANCE = 4.0


@dataclasses.dataclass(frozen=True)
class Solution:
    """The base parameters of an arm that explain its torques best, whatever bodies have them.

    x (p,): numbers of the model with these base parameters, zero for columns that stand for none.
    deviations (nv,): of the residuals, in N m or N. base, names (rank,), values and standard_errors
    (rank,), which allow for correlated residuals. essential (rank,): a mask of those without which
    torques are explained worse. condition: of the columns with lengths 1. independent (nv,): how
    many of the equations of each joint count as independent.
    """

    x: NDArray
    deviations: NDArray
    base: BaseParameters
    names: tuple[str, ...]
    values: NDArray
    standard_errors: NDArray
    essential: NDArray
    condition: float
    independent: NDArray

    @property
    def table(self) -> list[dict[str, Any]]:
        """A row by name for each."""
        keys = "name", "value", "std_error", "relative_error", "essential"
        columns = (
            *(self.names, self.values.tolist(), self.standard_errors.tolist()),
            *(self.relative_errors.tolist(), self.essential.tolist()),
        )
        return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]

    @property
    def relative_errors(self) -> NDArray:
        """Standard errors over values (rank,), without unit."""
        values = np.abs(self.values)
        return self.standard_errors / np.where(values > 0, values, np.finfo(float).tiny)


def weights_and_solution(
    equations: Equations, rows: NDArray | None = None
) -> tuple[NDArray, NDArray]:
    """x (p,) of least norm, and the deviations (nv,) of its residuals, by which it is weighted."""
    counts = equations.counts if rows is None else equations.counts & rows[:, None]
    weight = counts * equations.weight[:, None]
    total = np.maximum(weight.sum(axis=0), np.finfo(float).tiny)
    size = np.sqrt(np.sum(weight * equations.torque**2, axis=0) / total)
    size = np.where(size > 0, size, 1)
    deviations, x = size, np.zeros(equations.columns.shape[2])
    for _ in range(_ROUNDS):
        triangle = equations.triangle(deviations, rows)
        x = least_squares(triangle)
        off = np.where(counts, equations.residual(x), 0)
        mean = np.sum(weight * off**2, axis=0) / total
        deviations = np.maximum(np.sqrt(mean), _LEAST_NOISE * size)
    return x, deviations


def least_squares(triangle: NDArray) -> NDArray:
    """The solution (p,) of least norm, in columns of length 1, for a triangle (., p + 1)."""
    w, y = triangle[:, :-1], triangle[:, -1]
    size = np.linalg.norm(w, axis=0)
    scale = np.where(size > 0, size, 1)
    return np.linalg.lstsq(w / scale, y, rcond=_LEAST_TOLD)[0] / scale


def solved(equations: Equations, names: Sequence[str]) -> Solution:
    """The base parameters of equations with numbers of these names (p,)."""
    _, deviations = weights_and_solution(equations)
    triangle = equations.triangle(deviations)
    base = independent_columns(triangle[:, :-1])
    w, y = triangle[:, base.columns], triangle[:, -1]
    size = np.linalg.norm(w, axis=0)
    values = np.linalg.lstsq(w / size, y, rcond=None)[0] / size
    x = np.zeros(len(names))
    x[base.columns] = values
    independent = independent_rows(equations, x)
    part = equations.counts.sum() / max(float(independent.sum()), 1.0)
    singular = np.linalg.svd(w / size, compute_uv=False)
    inverse = np.linalg.pinv(w / size)
    errors = np.linalg.norm(inverse, axis=1) / size * np.sqrt(part)
    return Solution(
        x=x,
        deviations=deviations,
        base=base,
        names=names_of(base, tuple(names)),
        values=values,
        standard_errors=errors,
        essential=_essential(w, y, part),
        condition=float(singular[0] / max(singular[-1], np.finfo(float).tiny)),
        independent=independent,
    )


def independent_rows(equations: Equations, x: NDArray) -> NDArray:
    """How many equations of each joint (nv,) are independent, by their autocorrelations.

    n / (1 + 2 sum_k rho_k), the sum up to the first rho_k that is not positive.
    """
    found = []
    for residual, counts in zip(equations.residual(x).T, equations.counts.T, strict=True):
        r = np.where(counts, residual, 0)
        power = np.fft.irfft(np.abs(np.fft.rfft(r, 2 * len(r))) ** 2)[: len(r)]
        rho = power / power[0] if power[0] > 0 else np.eye(1, len(r))[0]
        last = int(np.argmax(rho <= 0)) if (rho <= 0).any() else len(rho)
        found.append(counts.sum() / (1 + 2 * rho[1:last].sum()))
    return np.array(found)


def _essential(w: NDArray, y: NDArray, part: float) -> NDArray:
    """A mask (rank,) of what is left when the least certain are left out one after the other.

    part: equations for each independent one, by which squares count less.
    """
    kept = np.arange(w.shape[1])
    least = None
    while len(kept) > 1:
        q, r = np.linalg.qr(w[:, kept])
        x = np.linalg.solve(r, q.T @ y)
        square = float(y @ y - (q.T @ y) @ (q.T @ y))
        least = square if least is None else least
        error = np.linalg.norm(np.linalg.inv(r), axis=1) * np.sqrt(part)
        relative = error / np.maximum(np.abs(x), np.finfo(float).tiny)
        worst = int(np.argmax(relative))
        # Without this one the sum of squares grows by (x / error)^2 parts.
        if relative[worst] < _CERTAIN or relative[worst] ** -2 > _CHANCE:
            break
        kept = np.delete(kept, worst)
    return np.isin(np.arange(w.shape[1]), kept)

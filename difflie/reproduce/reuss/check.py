"""A formula of the paper, evaluated as it is printed and as it should read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

HOLDS = 1e-10
"""A formula holds if its residual, relative to what it gives, stays below this."""


class Check(NamedTuple):
    """The largest residual of a formula over random states.

    number: that of the paper. states: what was compared with what. printed: as it is printed, None
    if that cannot be evaluated. corrected: with the correction, None if none is needed.
    """

    number: str
    states: str
    printed: float | None
    corrected: float | None = None
    correction: str = ""

    @property
    def verdict(self) -> str:
        """ "as printed", "corrected" or "fails"."""
        if self.correction:
            right = self.corrected is not None and self.corrected < HOLDS
            wrong = self.printed is None or self.printed >= HOLDS
            return "corrected" if right and wrong else "fails"
        return "as printed" if self.printed is not None and self.printed < HOLDS else "fails"


def residual(found: ArrayLike, right: ArrayLike) -> float:
    """The largest difference of two arrays of one shape, over the largest entry if that is > 1."""
    found, right = np.asarray(found, float), np.asarray(right, float)
    return float(np.max(np.abs(found - right)) / max(1.0, float(np.max(np.abs(right)))))


def largest(samples: list[dict[str, float]]) -> dict[str, float]:
    """The largest residuals by name over samples."""
    return {key: float(max(sample[key] for sample in samples)) for key in samples[0]}

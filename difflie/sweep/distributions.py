"""Distributions of numbers to draw, by their quantile functions."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True)
class Distribution(abc.ABC):
    """A distribution of one number."""

    @abc.abstractmethod
    def quantile(self, u: NDArray) -> NDArray:
        """The values (...) below which the shares u (...) lie, 0 < u < 1."""

    @property
    @abc.abstractmethod
    def support(self) -> tuple[float, float]:
        """The least and the greatest value."""

    @property
    def described(self) -> dict[str, Any]:
        """Its class and numbers, for files."""
        return {"distribution": type(self).__name__, **dataclasses.asdict(self)}

    def _check(self, right: bool, rule: str) -> None:
        given = ", ".join(f"{k}={v}" for k, v in dataclasses.asdict(self).items())
        if not (np.isfinite(list(dataclasses.asdict(self).values())).all() and right):
            raise ValueError(f"{type(self).__name__}({given}): {rule}")


@dataclasses.dataclass(frozen=True)
class Uniform(Distribution):
    """Uniform from lower to upper."""

    lower: float
    upper: float

    def __post_init__(self) -> None:
        self._check(self.lower < self.upper, "lower must be less than upper, both finite")

    def quantile(self, u: NDArray) -> NDArray:
        return self.lower + (self.upper - self.lower) * u

    @property
    def support(self) -> tuple[float, float]:
        return self.lower, self.upper


@dataclasses.dataclass(frozen=True)
class LogUniform(Distribution):
    """Uniform in the logarithm, from lower to upper, both positive."""

    lower: float
    upper: float

    def __post_init__(self) -> None:
        self._check(0 < self.lower < self.upper, "0 < lower < upper is needed, both finite")

    def quantile(self, u: NDArray) -> NDArray:
        return self.lower * (self.upper / self.lower) ** u

    @property
    def support(self) -> tuple[float, float]:
        return self.lower, self.upper


@dataclasses.dataclass(frozen=True)
class Normal(Distribution):
    """Normal, with its mean and standard deviation."""

    mean: float
    deviation: float

    def __post_init__(self) -> None:
        self._check(self.deviation > 0, "the deviation must be positive, both finite")

    def quantile(self, u: NDArray) -> NDArray:
        from scipy.special import ndtri

        return self.mean + self.deviation * ndtri(u)

    @property
    def support(self) -> tuple[float, float]:
        return -np.inf, np.inf

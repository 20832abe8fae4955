"""Distributions, and designs that are drawn from them, each number independently of the others.

The same seed gives the same rows in every process, whatever is asked for first.

Designs are also made from the descriptions that stores keep of them.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..system.validation import format_value
from .design import Design, Listed, Product


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
    """Uniform from lower to upper, in the unit of the number."""

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
    """Uniform in the logarithm, from lower to upper, both positive, in the unit of the number."""

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
    """Normal, with its mean and standard deviation, in the unit of the number."""

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


# Rows that are drawn together, from a stream of random numbers of their own.
_BLOCK = 4096
_MOST_OF_SOBOL = 2**30


@dataclasses.dataclass(frozen=True)
class Drawn(Design):
    """count rows of numbers with these distributions, by name."""

    of: Mapping[str, Distribution]
    count: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        kind = type(self).__name__
        if not isinstance(self.of, Mapping):
            raise ValueError(
                f"{kind}: {format_value(self.of)} was given; give distributions by name, such as "
                '{"arm/mass": Uniform(1.0, 2.0)}'
            )
        for name, distribution in self.of.items():
            if not isinstance(distribution, Distribution):
                raise ValueError(
                    f"{kind}: {name!r} has {format_value(distribution)}; give a distribution such "
                    "as Uniform(lower, upper)"
                )
        if not self.of:
            raise ValueError(f"{kind}: no number is drawn; give a distribution by name")
        for field, least in (("count", 1), ("seed", 0)):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise ValueError(
                    f"{kind}: {field} is {format_value(value)}; it must be a whole number, {least} "
                    f"or more, such as {kind}({{...}}, 1024, seed=0)"
                )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.of)

    @property
    def size(self) -> int:
        return self.count

    @property
    def support(self) -> NDArray:
        return np.array([d.support for d in self.of.values()]).T

    @property
    def described(self) -> dict[str, Any]:
        of = {name: distribution.described for name, distribution in self.of.items()}
        return {"drawn": type(self).__name__, "count": self.count, "seed": self.seed, "of": of}

    def _values(self, u: NDArray) -> NDArray:
        """The values (k, n) at the quantiles u (k, n)."""
        columns = zip(self.of.values(), u.T, strict=True)
        return np.stack([distribution.quantile(column) for distribution, column in columns], axis=1)


class Random(Drawn):
    """Independent rows.

    of: a distribution of each number, by name, such as {"arm/mass": Uniform(1.0, 2.0)}; count: of
    the rows; seed: of the random numbers, with which the same rows are drawn again.
    """

    def rows(self, first: int, last: int) -> NDArray:
        blocks = range(first // _BLOCK, -(-last // _BLOCK))
        u = [_uniform(self.seed, block, len(self.of)) for block in blocks]
        start = first - _BLOCK * (first // _BLOCK)
        drawn = np.concatenate([*u, np.zeros((0, len(self.of)))])
        return self._values(drawn[start : start + last - first])


def _uniform(seed: int, block: int, width: int) -> NDArray:
    """Uniform numbers (rows of a block, width), neither 0 nor 1."""
    stream = np.random.Generator(np.random.Philox(np.random.SeedSequence((seed, block))))
    return (stream.integers(0, 2**52, (_BLOCK, width)) + 0.5) / 2**52


class LatinHypercube(Drawn):
    """A Latin hypercube: of each number one value in each of `count` equally likely intervals.

    Scrambled, by `scipy.stats.qmc`. Arguments as of `Random`. McKay, Beckman, Conover 1979. All
    rows are held in memory.
    """

    def rows(self, first: int, last: int) -> NDArray:
        return self._values(_latin(len(self.of), self.count, self.seed)[first:last])


@functools.lru_cache(maxsize=2)
def _latin(width: int, count: int, seed: int) -> NDArray:
    from scipy.stats import qmc

    return _inside(qmc.LatinHypercube(width, rng=np.random.default_rng(seed)).random(count))


class Sobol(Drawn):
    """A scrambled Sobol sequence, by `scipy.stats.qmc`; most even where count is a power of two.

    Arguments as of `Random`. Raises ValueError for more than 2^30 rows. Owen 1998.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.count > _MOST_OF_SOBOL:
            raise ValueError(
                f"Sobol: count is {self.count}; it must be at most 2^30, or draw Random rows"
            )

    def rows(self, first: int, last: int) -> NDArray:
        from scipy.stats import qmc

        if last <= first:
            return np.zeros((0, len(self.of)))
        sequence = qmc.Sobol(len(self.of), rng=np.random.default_rng(self.seed))
        if first:
            sequence.fast_forward(first)
        with warnings.catch_warnings():
            # It tells of a count that is no power of two, of the part as of the whole.
            warnings.simplefilter("ignore", UserWarning)
            return self._values(_inside(sequence.random(last - first)))


class Saltelli(Drawn):
    """Rows for Sobol's sensitivity indices: count (n + 2) rows for n numbers, by SALib.

    Two Sobol sequences, and the first with each column of the second in turn. Arguments as of
    `Random`. Saltelli 2002. Needs the extra `sweep`.
    """

    @property
    def size(self) -> int:
        return self.count * (len(self.of) + 2)

    def rows(self, first: int, last: int) -> NDArray:
        return self._values(_saltelli(len(self.of), self.count, self.seed)[first:last])


@functools.lru_cache(maxsize=2)
def _saltelli(width: int, count: int, seed: int) -> NDArray:
    from SALib.sample import sobol

    problem = {
        "num_vars": width,
        "names": [str(k) for k in range(width)],
        "bounds": [[0.0, 1.0]] * width,
    }
    return _inside(sobol.sample(problem, count, calc_second_order=False, seed=seed))


def _inside(u: NDArray) -> NDArray:
    """Quantiles without 0 and 1, where a normal distribution is infinite."""
    return np.clip(u, 2.0**-53, 1 - 2.0**-53)


_DRAWN: dict[str, type[Drawn]] = {c.__name__: c for c in (LatinHypercube, Random, Saltelli, Sobol)}
_OF: dict[str, type[Distribution]] = {c.__name__: c for c in (LogUniform, Normal, Uniform)}


def described_design(described: Mapping[str, Any]) -> Design | None:
    """The design whose `described` this is; None where its class is not one of difflie's."""
    if "listed" in described:
        return Listed(described["listed"])
    if "product" in described:
        parts = [described_design(part) for part in described["product"]]
        known = tuple(part for part in parts if part is not None)
        return Product(known) if len(known) == len(parts) else None
    kind = _DRAWN.get(described.get("drawn", ""))
    of = {name: _distribution(d) for name, d in described.get("of", {}).items()}
    known = {name: distribution for name, distribution in of.items() if distribution is not None}
    if kind is None or len(known) < len(of):
        return None
    return kind(known, described["count"], described["seed"])


def _distribution(described: Mapping[str, Any]) -> Distribution | None:
    numbers = dict(described)
    kind = _OF.get(numbers.pop("distribution", ""))
    return None if kind is None else kind(**numbers)

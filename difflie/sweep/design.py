"""Designs: which values the numbers of a sweep take, row by row.

A design knows the values of any rows without those before them, so that a sweep may compute them in
any order and in pieces of any size. Designs are multiplied: each row of the first with each of the
second.

    Grid({"joint2/damping": [0.1, 0.2]}) * Sobol({"link7/mass": Uniform(0.5, 2.0)}, 1024)
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..system.validation import format_value


class Design(abc.ABC):
    """The values (size, n) of n numbers with names."""

    @property
    @abc.abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names (n,) of the numbers."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """The number of rows."""

    @abc.abstractmethod
    def rows(self, first: int, last: int) -> NDArray:
        """The rows (last - first, n) from first on, before last."""

    @property
    @abc.abstractmethod
    def support(self) -> NDArray:
        """The least and the greatest value (2, n) of each number; infinite for no bound."""

    @property
    @abc.abstractmethod
    def described(self) -> dict[str, Any]:
        """All that its rows depend on, in plain types, for files."""

    def __mul__(self, other: Design) -> Product:
        if not isinstance(other, Design):
            return NotImplemented
        return Product((*_factors(self), *_factors(other)))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Listed(Design):
    """Rows that are given: a table of values by name, all of one length, in the numbers' units."""

    table: Mapping[str, Sequence[float]]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.names)}: {self.size} rows)"

    def __post_init__(self) -> None:
        columns = {}
        for name, values in self.table.items():
            try:
                column = np.asarray(values, float)
            except (TypeError, ValueError):
                column = np.full(0, np.nan)
            if column.ndim != 1 or not column.size or not np.isfinite(column).all():
                raise ValueError(
                    f"sweep: the values of {name!r} are {format_value(values)}; give a list of one "
                    "finite number or more"
                )
            columns[name] = column
        lengths = {name: len(column) for name, column in columns.items()}
        if not columns or len(set(lengths.values())) > 1:
            raise ValueError(
                f"sweep: the lists have the lengths {lengths}; give one name or more, with lists "
                "of one length, or a grid of all combinations"
            )
        object.__setattr__(self, "table", columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.table)

    @property
    def size(self) -> int:
        return len(next(iter(self.table.values())))

    def rows(self, first: int, last: int) -> NDArray:
        return np.stack([np.asarray(column)[first:last] for column in self.table.values()], axis=1)

    @property
    def support(self) -> NDArray:
        return np.stack([(np.min(c), np.max(c)) for c in self.table.values()], axis=1)

    @property
    def described(self) -> dict[str, Any]:
        return {"listed": {name: np.asarray(c).tolist() for name, c in self.table.items()}}


@dataclasses.dataclass(frozen=True, eq=False)
class Product(Design):
    """Each row of the first part with each of the second, and so on; the last changes fastest."""

    parts: tuple[Design, ...]

    def __post_init__(self) -> None:
        names = self.names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"sweep: {twice[0]!r} is varied twice; leave one of them out")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for part in self.parts for name in part.names)

    @property
    def size(self) -> int:
        size = 1
        for part in self.parts:
            size *= part.size
        return size

    def rows(self, first: int, last: int) -> NDArray:
        at, columns = np.arange(first, last), []
        for part in self.parts[::-1]:
            at, k = np.divmod(at, part.size)
            low, high = int(k.min(initial=part.size)), int(k.max(initial=-1)) + 1
            columns.append(part.rows(low, max(low, high))[k - low])
        return np.concatenate(columns[::-1], axis=1)

    @property
    def support(self) -> NDArray:
        return np.concatenate([part.support for part in self.parts], axis=1)

    @property
    def described(self) -> dict[str, Any]:
        return {"product": [part.described for part in self.parts]}


class Grid(Product):
    """All combinations of values by name; the last name changes fastest.

    axes: the values of each number, by name, in its unit. Raises ValueError for an empty grid or
    list, and for values that are not finite.

    >>> dl.Grid({"mass": [1.0, 2.0], "length": [0.3, 0.4]}).rows(0, 4).tolist()
    [[1.0, 0.3], [1.0, 0.4], [2.0, 0.3], [2.0, 0.4]]
    """

    def __init__(self, axes: Mapping[str, Sequence[float]]) -> None:
        if not axes:
            raise ValueError("sweep: the grid is empty; give values for one name or more")
        super().__init__(tuple(Listed({name: values}) for name, values in axes.items()))


def _factors(design: Design) -> tuple[Design, ...]:
    return design.parts if isinstance(design, Product) else (design,)

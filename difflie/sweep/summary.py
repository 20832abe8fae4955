"""What the table of a sweep comes to: outputs, their statistics, and what they go with."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..view.columns import Column, subsample
from .design import Design
from .samples import described_design
from .sensitivity import Indices, Sensitivity, number_names, sensitivity
from .statistics import Statistics, statistics
from .variants import STATUS

if TYPE_CHECKING:
    import xarray

# Rows of pictures and of rank correlations: their columns are held in memory.
_ROWS = 2**16
_RANKED = 20_000
# Columns of times, infinite where nothing of the kind happened, and what that means.
_TIMES = {
    "failed at": "no motion failed",
    "limit at": "no joint was beyond a limit",
    "ended at": "no motion ended by an event",
}


class Summary:
    """A table of a sweep, of which large columns are read one by one.

    design: by default what the table says, None where it is not known. computed (k,): the indices
    of the rows that are not pending.
    """

    def __init__(self, table: xarray.Dataset, design: Design | None = None) -> None:
        self.table, self.names = table, number_names(table)
        self.configuration: dict[str, Any] = json.loads(table.attrs["configuration"])
        self.design = design or described_design(self.configuration["design"])
        self.status = np.asarray(table["status"].values)
        self.computed = np.flatnonzero(self.status != "pending")
        self.rows = subsample(self.computed, _ROWS)
        self._columns: dict[str, Column] = {}

    @property
    def counts(self) -> dict[str, int]:
        """How many rows have each status, those that occur."""
        found = {word: int((self.status == word).sum()) for word in (*STATUS, "pending")}
        return {word: count for word, count in found.items() if count}

    @functools.cached_property
    def outputs(self) -> list[str]:
        """The outputs that are real numbers, without derivatives; those that are rare come last."""
        outputs = [n for n in self.real if n not in self.slopes]
        done = int((self.status[self.rows] == "done").sum())
        return sorted(outputs, key=lambda n: self.column(n).finite.size < 0.9 * done)

    @property
    def real(self) -> list[str]:
        """The columns that are one real number in each row, derivatives after the others."""
        names = [str(n) for n in self.table.data_vars if n != "status"]
        names = [n for n in names if not self._is_never(n)]
        real = [n for n in names if self.table[n].ndim == 1 and self.table[n].dtype.kind in "fiub"]
        return sorted(real, key=lambda name: name in self.slopes)

    @functools.cached_property
    def never(self) -> dict[str, str]:
        """Columns of times at which nothing happened in any row that is done, and what that means.

        They are no outputs, as they have no values.
        """
        done = self.status == "done"
        return {
            name: said
            for name, said in _TIMES.items()
            if name in self.table.data_vars
            and done.any()
            and np.isposinf(np.asarray(self.table[name].values, float)[done]).all()
        }

    @property
    def other(self) -> list[str]:
        """The other columns: with several entries in each row, or complex."""
        names = [str(n) for n in self.table.data_vars if n != "status"]
        return [n for n in names if n not in self.real and not self._is_never(n)]

    def _is_never(self, name: str) -> bool:
        """Whether a column is one of `never`, or a derivative of one."""
        return any(name == n or name.startswith(f"d {n} / d ") for n in self.never)

    @property
    def slopes(self) -> set[str]:
        """The names of derivatives."""
        if not self.configuration.get("gradient"):
            return set()
        columns = [str(n) for n in self.table.data_vars if not self._is_never(str(n))]
        return {f"d {c} / d {n}" for c in columns for n in self.names} & set(columns)

    def unit(self, name: str) -> str:
        """The unit of a number or an output."""
        return str(self.table[name].attrs.get("units", ""))

    def column(self, name: str) -> Column:
        """The values (k,) of a number or an output in `rows`, NaN where an output has none."""
        if name not in self._columns:
            values = self._all(name)[self.rows]
            self._columns[name] = Column(name, values, self.unit(name))
        return self._columns[name]

    def statistics(self, name: str) -> Statistics:
        """The statistics of an output, of all rows."""
        return statistics(self.table, name)

    def numbers(self, row: int) -> str:
        """The numbers of a row, in words."""
        said = []
        for name in self.names:
            value = float(self.table[name][row])
            said.append(f"{name} = {value:.6g} {self.unit(name)}".strip())
        return ", ".join(said)

    def sensitivity(self, output: str) -> Sensitivity:
        """Sobol's indices of an output."""
        return sensitivity(self.table, output, self.design)

    def correlations(self, output: str) -> NDArray:
        """Spearman's rank correlations (n,) of an output with each number; 0 where one is fixed."""
        from scipy.stats import spearmanr

        y = self.column(output)
        there = subsample(np.flatnonzero(y.there), _RANKED)
        found = np.zeros(len(self.names))
        for k, name in enumerate(self.names):
            x = self.column(name).at(there)
            if len(there) > 2 and not (x.is_constant or y.at(there).is_constant):
                ranked: Any = spearmanr(x.values, y.values[there])
                found[k] = ranked.statistic
        return found

    def _all(self, name: str) -> NDArray:
        """A column (size,) of all rows; outputs are NaN in rows that are not done."""
        values = np.asarray(self.table[name].values, float)
        if name in self.names:
            return values
        return np.where(self.status == "done", values, np.nan)


def influence(found: Sensitivity, correlations: NDArray) -> NDArray:
    """How much an output depends on each number (n,), to order these: what is known best."""
    known = found.total or found.first
    return np.abs(correlations) if known is None else np.maximum(known.values, 0.0)


def influence_sentence(found: Sensitivity, correlations: NDArray) -> str:
    """Which numbers an output depends on, in a sentence or two."""
    output, order = found.output, np.argsort(-influence(found, correlations), kind="stable")
    known = found.total or found.first
    if known is None or found.first is None:
        return f"{found.why}. {_ranked(found, correlations, order)}".strip()
    said = []
    for k in order[:3]:
        if known.values[k] < max(0.01, known.intervals[k]):
            break
        share = f"{_percent(found.first, k)} of the variance alone"
        if found.total is not None:
            share += f", {_percent(found.total, k)} with interactions"
        said.append(f"{found.names[k]} ({share}{_direction(float(correlations[k]))})")
    more = f" {found.remark}." if found.remark else ""
    if not said:
        return (
            more.strip()
            or f"{output} depends on no number so clearly that it stands out of the noise."
        )
    rest = len(order) - len(said)
    others = f"; on the other {rest} less" if rest > 1 else f"; on {found.names[order[-1]]} less"
    return f"{output} depends most on {', then on '.join(said)}{others * (rest > 0)}.{more}"


def _percent(indices: Indices, k: int) -> str:
    value, interval = (100 * float(x[k]) for x in indices)
    # An estimate may be beyond what a share can be.
    return f"{np.clip(value, 0, 100):.0f} ± {max(interval, 1.0):.0f} %"


def _direction(correlation: float) -> str:
    if abs(correlation) < 0.3:
        return ""
    return ", rising with it" if correlation > 0 else ", falling with it"


def _ranked(found: Sensitivity, correlations: NDArray, order: NDArray) -> str:
    """What rank correlations say where there are no indices."""
    clear = [k for k in order[:3] if abs(correlations[k]) >= 0.1]
    if not clear:
        return ""
    said = ", ".join(f"{found.names[k]} ({correlations[k]:+.2f})" for k in clear)
    return f"By rank correlation it goes most with {said}."

"""Columns of tables as pictures show them: their names, scales and colours, some of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib import colormaps, colors, ticker
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .figures import broken, plain

# Its lightness rises evenly, so that it can be read without seeing colours, or printed grey. Its
# last part is left out, which is too light for thin lines.
COLOURS = colors.ListedColormap(colormaps["viridis"](np.linspace(0.0, 0.94, 256)), "sweep")
MISSING = "#8a8a8a"
_PART = 1000


class Column(NamedTuple):
    """A column (m,) of a table: its name, values, which are NaN where there are none, and unit."""

    name: str
    values: NDArray
    unit: str = ""

    @property
    def full(self) -> str:
        """The name with the unit."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    @property
    def label(self) -> str:
        """The name with the unit, as it is drawn, in lines that are not long."""
        return broken(plain(self.full))

    @property
    def there(self) -> NDArray:
        """Which values (m,) are finite."""
        return np.isfinite(self.values)

    @property
    def finite(self) -> NDArray:
        """The finite values."""
        return self.values[self.there]

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest finite value; 0 and 0 if there is none."""
        finite = self.finite
        return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)

    @property
    def is_constant(self) -> bool:
        """Whether all finite values are one, but for rounding."""
        low, high = self.ends
        return high - low <= 1e-12 * max(abs(low), abs(high))

    @property
    def limits(self) -> tuple[float, float]:
        """Between which values a picture shows it: its ends, but for what lies far outside.

        These are the middle 98 % where they would take up less than a fifth of the picture.
        """
        low, high = self.ends
        if self.is_constant or self.is_logarithmic:
            return low, high
        inner = np.quantile(self.finite, (0.01, 0.99))
        if 0 < inner[1] - inner[0] < (high - low) / 5:
            low, high = map(float, inner)
        return low, high

    @property
    def beyond(self) -> int:
        """How many finite values are outside of the limits."""
        low, high = self.limits
        return int(((self.finite < low) | (self.finite > high)).sum())

    @property
    def is_logarithmic(self) -> bool:
        """Whether the median is nearer to the middle of a logarithmic axis than of another."""
        low, high = self.ends
        # A ratio that is not finite, too.
        if not (low > 0 and 10 * low < high):
            return False
        middle = float(np.median(self.finite))
        even = abs((middle - low) / (high - low) - 0.5)
        return abs(np.log(middle / low) / np.log(high / low) - 0.5) < even

    def at(self, rows: NDArray) -> Column:
        """The same with some rows, given by their indices or by a mask."""
        return self._replace(values=self.values[rows])


def subsample(of: NDArray, most: int) -> NDArray:
    """These indices (m,) of rows, or so many of them, drawn at random but always the same."""
    if len(of) <= most:
        return of
    # Every n-th row would follow the order of a grid.
    return np.sort(np.random.default_rng(0).choice(of, most, replace=False))


def caption(shown: int, of: int) -> str:
    """How many rows a picture shows."""
    rows = "1 row" if of == 1 else f"{of} rows"
    return rows if shown == of else f"{shown} of {rows}, drawn at random"


def scaled(column: Column) -> colors.Normalize:
    """The norm that gives values their colours; those beyond the limits have the colours there."""
    low, high = column.limits
    if column.is_logarithmic:
        return colors.LogNorm(low, high)
    if column.is_constant:
        margin = max(abs(low), 1e-300) * 0.01
        low, high = low - margin, high + margin
    return colors.Normalize(low, high)


def colour_bar(canvas: Figure, axes: Axes, column: Column) -> None:
    """A colour bar for a column beside axes, where it has finite values."""
    if not column.finite.size:
        return
    less, more = np.not_equal(column.limits, column.ends)
    extend = ("both" if more else "min") if less else ("max" if more else "neither")
    mapped = ScalarMappable(scaled(column), COLOURS)
    bar = canvas.colorbar(mapped, ax=axes, extend=extend, pad=0.02)
    bar.set_label(column.label)
    if column.is_logarithmic:
        _log_ticks(bar.ax.yaxis, *column.ends)
    if column.is_constant:
        bar.set_ticks([column.ends[0]], labels=[f"{column.ends[0]:.6g}"])


def edges(values: NDArray, logarithmic: bool) -> NDArray:
    """The edges (n + 1,) of cells around ascending values (n,)."""
    x = np.log(values) if logarithmic else values
    if len(x) == 1:
        middle = np.array([x[0] - 0.5, x[0] + 0.5])
    else:
        inner = (x[1:] + x[:-1]) / 2
        middle = np.concatenate(([2 * x[0] - inner[0]], inner, [2 * x[-1] - inner[-1]]))
    return np.exp(middle) if logarithmic else middle


def scale_axis(axes: Axes, which: str, column: Column) -> None:
    """Gives an axis, "x" or "y", the scale and the limits of a column."""
    low, high = column.limits
    axis = axes.xaxis if which == "x" else axes.yaxis
    if column.is_logarithmic:
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
        margin = (high / low) ** 0.04
        limits = low / margin, high * margin
        _log_ticks(axis, low, high)
    else:
        margin = 0.04 * (high - low)
        if column.is_constant:
            margin = 0.05 * abs(low) or 1.0
        limits = low - margin, high + margin
        axis.set_major_locator(ticker.MaxNLocator(4))
    (axes.set_xlim if which == "x" else axes.set_ylim)(*limits)


def _log_ticks(axis: Axis, low: float, high: float) -> None:
    """Ticks of a logarithmic axis between two ends, as plain numbers where these are near."""
    locator = ticker.LogLocator(numticks=5)
    if high < 1e3 * low:
        # Powers of ten alone would be too few.
        subs = (1.0, 2.0, 5.0) if high < 30 * low else (1.0, 3.0)
        locator = ticker.LogLocator(subs=subs, numticks=12)
        axis.set_major_formatter(ticker.FuncFormatter(lambda x, _: f"{x:g}"))
    axis.set_major_locator(locator)
    axis.set_minor_formatter(ticker.NullFormatter())


def bins(column: Column) -> NDArray:
    """The edges of the bins of a histogram within the limits, or around each value of a grid."""
    low, high = column.limits
    log = column.is_logarithmic
    if column.is_constant:
        margin = 0.01 * abs(low) or 0.5
        return np.array([low - margin, high + margin])
    few = np.unique(column.finite[:_PART])
    steps = np.diff(np.log(few) if log else few)
    is_grid = 0 < len(steps) < 40 and steps.max() < 1.5 * steps.min()
    if is_grid and np.isin(column.finite, few).all():
        return edges(few, log)
    count = int(np.clip(np.sqrt(column.finite.size), 5, 40))
    found = (np.geomspace if log else np.linspace)(low, high, count + 1)
    found[0], found[-1] = low, high
    return found


def ticks(column: Column) -> tuple[NDArray, Sequence[str]]:
    """A few round values between the ends of a column, and the ends, with their texts."""
    low, high = column.ends
    if not column.finite.size:
        return np.zeros(1), ["none"]
    if column.is_constant:
        return np.array([low]), [f"{low:.4g}"]
    log = column.is_logarithmic
    locator = ticker.LogLocator(subs=(1.0, 3.0) if high < 1e3 * low else (1.0,))
    inner = (locator if log else ticker.MaxNLocator(4)).tick_values(low, high)
    where = places(column._replace(values=np.asarray(inner, float)), (low, high), log)
    inner = np.asarray(inner)[(where > 0.08) & (where < 0.92)]
    if log and len(inner) > 4:
        inner = inner[:: -(-len(inner) // 4)]
    digits = 3
    if not log:
        digits += max(0, int(np.log10(max(abs(low), abs(high)) / (high - low))))
    return np.array([low, *inner, high]), [
        f"{low:.{digits}g}",
        *(f"{x:.{digits + 3}g}" for x in inner),
        f"{high:.{digits}g}",
    ]


def places(column: Column, ends: tuple[float, float], logarithmic: bool) -> NDArray:
    """Where values (m,) lie between two ends, from 0 to 1; NaN where they are not finite."""
    low, high = ends
    x = np.where(column.there, column.values, np.nan)
    if high <= low:
        return np.where(column.there, 0.5, np.nan)
    if logarithmic:
        return np.log(x / low) / np.log(high / low)
    return (x - low) / (high - low)

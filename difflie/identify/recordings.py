"""Measured motions: files with a column for each quantity, their resampling and smoothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..io.study import QUANTITIES
from ..system.validation import nearest


class DataError(ValueError):
    """Measurements that cannot be used; the message names the file, the column and the mend."""


@dataclasses.dataclass(frozen=True)
class Smoothing:
    """What smoothing did to a recording, which a fit of torques allows for.

    kernel (k,), without unit, odd and symmetric: smoothed accelerations are the true ones averaged
    with these weights, of sum 1. tau (n, nv): the efforts as they were measured, or None.
    """

    kernel: NDArray
    tau: NDArray | None


@dataclasses.dataclass(frozen=True)
class Recording:
    """A measured motion of one machine.

    t (n,) in s, increasing, in steps of any length. q (n, nq), v, a, tau (n, nv): configuration,
    velocity, acceleration and the effort of the drives (N m or N), None where not measured. NaN is
    a gap: an entry that was not measured. weight: as how many of it a fit counts it. smoothing:
    what `smoothed` did, None where nothing was smoothed.
    """

    name: str
    t: NDArray
    q: NDArray | None = None
    v: NDArray | None = None
    a: NDArray | None = None
    tau: NDArray | None = None
    weight: float = 1.0
    smoothing: Smoothing | None = None

    def __post_init__(self) -> None:
        t = np.asarray(self.t, float)
        if t.ndim != 1 or len(t) < 2:
            raise DataError(f"{self.name}: times have shape {t.shape}; two or more are needed")
        if not np.isfinite(t).all():
            at = int(np.flatnonzero(~np.isfinite(t))[0])
            raise DataError(f"{self.name}: time {at} is {t[at]}; take that row out")
        if (np.diff(t) <= 0).any():
            at = int(np.flatnonzero(np.diff(t) <= 0)[0])
            raise DataError(
                f"{self.name}: time {t[at + 1]} s of row {at + 1} is not after {t[at]} s; "
                "sort the rows, and take those out that are there twice"
            )
        if not 0 < self.weight < np.inf:
            raise DataError(f"{self.name}: the weight is {self.weight}; it must be positive")
        object.__setattr__(self, "t", t)
        for quantity in QUANTITIES:
            values = getattr(self, quantity)
            if values is None:
                continue
            values = np.asarray(values, float)
            if values.ndim != 2 or len(values) != len(t):
                raise DataError(
                    f"{self.name}: {quantity} has shape {values.shape} for {len(t)} times; "
                    "one row for each is needed"
                )
            if np.isinf(values).any():
                raise DataError(f"{self.name}: {quantity} is infinite; leave gaps as NaN")
            object.__setattr__(self, quantity, values)

    def between(self, first: float, last: float) -> Recording:
        """The rows with first <= t < last (s). Raises DataError where fewer than two are left."""
        kept = (self.t >= first) & (self.t < last)
        return self._with(self.t[kept], lambda x: x[kept])

    def before_jump(self, coordinate: int, limit: float) -> Recording:
        """The rows before the first jump of a coordinate's second derivative, such as an impact.

        Its second difference departs there from the median of those before, three or more, by more
        than the limit (per s^2). The last row before it is left out too: the jump may begin there.
        All rows where there is none. Raises DataError where q is missing.
        """
        if self.q is None:
            raise DataError(f"{self.name}: there is no q to find a jump in")
        slope = np.diff(self.q[:, coordinate]) / np.diff(self.t)
        second = np.diff(slope) / ((self.t[2:] - self.t[:-2]) / 2)
        for k in range(3, len(second)):
            if abs(second[k] - np.nanmedian(second[:k])) > limit:
                return self.between(-np.inf, self.t[k + 1])
        return self

    def resampled(self, dt: float) -> Recording:
        """On a uniform grid from the first time in steps of dt (s), linear in between.

        Gaps stay gaps. For configurations that are numbers: angles and displacements.
        """
        self._check_unsmoothed()
        grid = np.arange(self.t[0], self.t[-1], dt)

        def values(x: NDArray) -> NDArray:
            return np.stack([np.interp(grid, self.t, column) for column in x.T], axis=1)

        return self._with(grid, values)

    def smoothed(self, window: int, order: int = 2) -> Recording:
        """Savitzky-Golay: q, its derivatives as v and a, and tau, of a uniform recording.

        window (rows, odd) and order of the polynomials, two or more. The ends, half a window each,
        are those of the first and the last polynomial. For configurations that are numbers: angles
        and displacements. Raises DataError where steps are not uniform, q is missing, or there are
        gaps.
        """
        from scipy.signal import savgol_coeffs, savgol_filter

        self._check_unsmoothed()
        steps = np.diff(self.t)
        dt = float(steps.mean())
        if np.abs(steps - dt).max() > 1e-6 * dt:
            raise DataError(f"{self.name}: its steps are not uniform; call resampled first")
        if self.q is None:
            raise DataError(f"{self.name}: there is no q to smooth")
        if not 2 <= order < window:
            raise DataError(
                f"{self.name}: the polynomials have order {order}; accelerations need 2 or more, "
                f"and less than the window, {window}"
            )
        if window > len(self.t):
            raise DataError(f"{self.name}: {len(self.t)} rows are fewer than the window, {window}")
        for quantity in ("q", "tau"):
            values = getattr(self, quantity)
            if values is not None and np.isnan(values).any():
                raise DataError(f"{self.name}: {quantity} has gaps, which smoothing would spread")

        def filtered(x: NDArray, derivative: int) -> NDArray:
            return np.asarray(savgol_filter(x, window, order, deriv=derivative, delta=dt, axis=0))

        tau = None if self.tau is None else filtered(self.tau, 0)
        q, v, a = (filtered(self.q, k) for k in range(3))
        # The second derivative's weights are the second differences of the kernel.
        second = savgol_coeffs(window, order, deriv=2, use="dot")
        smoothing = Smoothing(np.cumsum(np.cumsum(second))[:-2], self.tau)
        return dataclasses.replace(self, q=q, v=v, a=a, tau=tau, smoothing=smoothing)

    def _check_unsmoothed(self) -> None:
        if self.smoothing is not None:
            raise DataError(f"{self.name}: it is smoothed already; resample first and smooth once")

    def _with(self, t: NDArray, values) -> Recording:
        q, v, a, tau = (
            None if x is None else values(x) for x in (self.q, self.v, self.a, self.tau)
        )
        smoothing = self.smoothing
        if smoothing is not None and smoothing.tau is not None:
            smoothing = dataclasses.replace(smoothing, tau=values(smoothing.tau))
        return dataclasses.replace(self, t=t, q=q, v=v, a=a, tau=tau, smoothing=smoothing)


def read_recording(
    path: str | Path,
    *,
    time: str = "time",
    names: Sequence[str] | None = None,
    rate: float | None = None,
    scale: Mapping[str, float] | None = None,
    **columns: Sequence[str],
) -> Recording:
    """A recording from a CSV file with a header, or an npz file with an array for each column.

    time: the column of times (s). names: those of the columns of a CSV file without a header. rate:
    rows in a second, of a file without times, which then begin at zero. columns: for q, v, a, tau
    the columns that hold them, in the order of the system, so that q is (n, nq) of n rows. scale:
    factors by quantity that take the file's units to SI, such as {"q": pi / 180}. Empty cells and
    NaN are gaps.

    Raises DataError for a missing file, a column that is not there (with the nearest one), cells
    that are not numbers, and what `Recording` refuses.
    """
    path = Path(path)
    known = _by_quantity(columns)
    table = _table(path, names)

    def column(name: str) -> NDArray:
        if name not in table:
            raise DataError(f"{path}: there is no column {name!r}{nearest(name, list(table))}")
        return table[name]

    scale = _by_quantity(scale or {})
    values = {
        quantity: scale.get(quantity, 1.0) * np.stack([column(n) for n in names], axis=1)
        for quantity, names in known.items()
    }
    q, v, a, tau = (values.get(quantity) for quantity in QUANTITIES)
    t = column(time) if rate is None else np.arange(len(next(iter(table.values())))) / rate
    return Recording(path.name, t, q, v, a, tau)


def _by_quantity(columns: Mapping[str, Any]) -> dict[str, Any]:
    """What is given by quantity; raises DataError for what is none."""
    for quantity in columns:
        if quantity not in QUANTITIES:
            raise DataError(
                f"columns or scales of {quantity!r} are not known"
                f"{nearest(quantity, QUANTITIES)}; "
                f"quantities are {', '.join(QUANTITIES)}"
            )
    return dict(columns)


def _table(path: Path, names: Sequence[str] | None) -> dict[str, NDArray]:
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return {name: np.asarray(arrays[name], float) for name in arrays.files}
    with path.open(encoding="utf-8-sig") as lines:
        first = 2 if names is None else 1
        header = [name.strip() for name in names or next(lines, "").split(",")]
        rows = [line.strip().split(",") for line in lines if line.strip()]
    for name in header:
        if header.count(name) > 1:
            raise DataError(f"{path}: there are {header.count(name)} columns {name!r}; name them")
    values = np.empty((len(rows), len(header)))
    for k, row in enumerate(rows):
        if len(row) != len(header):
            raise DataError(
                f"{path}: row {k + first} has {len(row)} cells, but the header {len(header)}"
            )
        for j, cell in enumerate(row):
            try:
                values[k, j] = float(cell) if cell.strip() else np.nan
            except ValueError:
                raise DataError(
                    f"{path}: row {k + first}, column {header[j]!r}: {cell!r} is not a number"
                ) from None
    return dict(zip(header, values.T, strict=True))

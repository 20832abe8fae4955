"""Recordings: measured motions, read from files, resampled and smoothed."""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ..groups import Manifold
from ..io.study import QUANTITIES, Quantity
from ..system.validation import nearest, shown
from .columns import DataError, read_columns

# The most bytes of the samples of one recording, and the part of a step that is rounding.
_MEMORY = 2**30
_ROUNDING = 1e-6


@dataclasses.dataclass(frozen=True)
class Smoothing:
    """How a recording was smoothed, for fits of torques.

    kernel (k,), without unit, k odd, symmetric: smoothed accelerations are the true ones averaged
    with these weights, whose sum is 1. tau (n, nv): the efforts as measured, or None.
    """

    kernel: NDArray
    tau: NDArray | None


@dataclasses.dataclass(frozen=True)
class Recording:
    """A measured motion of one machine.

    t (n,) in s, increasing, in steps of any length. q (n, nq), v, a (n, nv), tau (n, nu):
    configuration, velocity, acceleration, and the commands of the actuators in their units, or
    without actuators the effort in N m or N; None where not measured. NaN is a gap: an entry that
    was not measured. weight: the recording counts in a fit like so many equal ones. smoothing: how
    it was smoothed, None if it was not.
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
            raise DataError(f"{self.name}: t[{at}] is {t[at]}; take that row out")
        if (np.diff(t) <= 0).any():
            at = int(np.flatnonzero(np.diff(t) <= 0)[0])
            raise DataError(
                f"{self.name}: t[{at + 1}], {t[at + 1]} s, is not after t[{at}], {t[at]} s; "
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
                k, j = np.argwhere(np.isinf(values))[0]
                raise DataError(
                    f"{self.name}: {quantity}[{k}, {j}] is {values[k, j]}; leave gaps as NaN"
                )
            object.__setattr__(self, quantity, values)

    def steps_in(self, window: float) -> int:
        """The number of steps, of their median length, in a window in s: one or more.

        Raises DataError for a window that is not positive and finite.
        """
        if not 0 < window < np.inf:
            raise DataError(f"{self.name}: a window has {window} s; it must be positive and finite")
        return max(1, round(window / float(np.median(np.diff(self.t)))))

    def between(self, first: float, last: float) -> Recording:
        """The rows with first <= t < last (s). Raises DataError where fewer than two are left."""
        kept = (self.t >= first) & (self.t < last)
        return self._with(self.t[kept], lambda x: x[kept])

    def before_jump(self, coordinate: int, limit: float) -> Recording:
        """The rows before the first jump of a coordinate's second derivative, such as at an impact.

        The jump is where its second difference departs from the median of those before, three or
        more, by more than the limit (per s^2). The last row before it is left out too: the jump may
        begin there. All rows if there is none. Raises DataError where q is missing.
        """
        if self.q is None:
            raise DataError(f"{self.name}: there is no q to find a jump in")
        slope = np.diff(self.q[:, coordinate]) / np.diff(self.t)
        second = np.diff(slope) / ((self.t[2:] - self.t[:-2]) / 2)
        for k, median in enumerate(_medians(second)):
            if k >= 3 and abs(second[k] - median) > limit:
                return self.between(-np.inf, self.t[k + 1])
        return self

    def resampled(self, dt: float, manifold: Manifold | None = None) -> Recording:
        """The recording, interpolated on a uniform grid from the first time in steps of dt (s).

        The last time is included if it is a whole number of steps from the first, up to rounding.
        Gaps stay gaps. manifold: that of the configurations, `system.manifold`, for interpolation
        along its geodesics; without it q are plain numbers, angles and displacements. Raises
        DataError for a step that is not positive, and for one so short that the samples would take
        more than 1 GiB.
        """
        self._check_unsmoothed()
        if not 0 < dt < np.inf:
            raise DataError(f"{self.name}: the step is {dt} s; it must be positive and finite")
        steps = (self.t[-1] - self.t[0]) / dt
        given = [x for x in (self.q, self.v, self.a, self.tau) if x is not None]
        memory = 8 * (steps + 1) * (1 + sum(x.shape[1] for x in given))
        if not memory <= _MEMORY:
            raise DataError(
                f"{self.name}: steps of {dt:.4g} s make {steps + 1:.3g} samples, "
                f"{memory / 2**30:.3g} GiB; resample at longer ones"
            )
        grid = self.t[0] + dt * np.arange(int(steps + _ROUNDING) + 1)
        if len(grid) < 2:
            raise DataError(
                f"{self.name}: one step of {dt:.4g} s is longer than all of it, "
                f"{self.t[-1] - self.t[0]:.4g} s; resample at shorter ones"
            )

        def values(x: NDArray) -> NDArray:
            return np.stack([np.interp(grid, self.t, column) for column in x.T], axis=1)

        found = self._with(grid, values)
        if manifold is None or self.q is None:
            return found
        k = np.clip(np.searchsorted(self.t, grid, side="right") - 1, 0, len(self.t) - 2)
        share = np.clip((grid - self.t[k]) / (self.t[k + 1] - self.t[k]), 0, 1)

        def between(q0: jax.Array, q1: jax.Array, share: jax.Array) -> jax.Array:
            return manifold.retract(q0, share * manifold.difference(q0, q1))

        ends = (jnp.asarray(x) for x in (self.q[k], self.q[k + 1], share))
        return dataclasses.replace(found, q=np.asarray(jax.jit(jax.vmap(between))(*ends)))

    def smoothed(self, window: int, order: int = 2) -> Recording:
        """Savitzky-Golay smoothing of q and tau on a uniform grid; v and a are derivatives of q.

        window (rows, odd) and order of the polynomials, two or more. The ends, half a window each,
        are from the first and the last polynomial. Configurations must be plain numbers: angles and
        displacements. Raises DataError where steps are not uniform, q is missing, or there are
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


def _medians(values: NDArray) -> Iterator[float]:
    """The median of those before each of the values (n,), NaN left out and where there is none."""
    # Heaps of the lower half, negated, and of the upper one, which has as many or one less.
    lower: list[float] = []
    upper: list[float] = []
    for value in values.tolist():
        if not lower:
            yield np.nan
        else:
            yield -lower[0] if len(lower) > len(upper) else (upper[0] - lower[0]) / 2
        if not np.isnan(value):
            heapq.heappush(upper, -heapq.heappushpop(lower, -value))
            if len(upper) > len(lower):
                heapq.heappush(lower, -heapq.heappop(upper))


def read_recording(
    path: str | Path,
    *,
    time: str = "time",
    names: Sequence[str] | None = None,
    rate: float | None = None,
    scale: Mapping[Quantity, float] | None = None,
    **columns: Sequence[str],
) -> Recording:
    """A `Recording` from a CSV file with a header, or an npz file with an array for each column.

    time: the column of times (s). names: the columns of a CSV file without a header. rate: rows per
    second, for a file without times, which then start at zero. columns: for q, v, a, tau the names
    of their columns, in the order of the system, so that q is (n, nq) for n rows. scale: factors by
    quantity that convert the file's units to SI, such as {"q": pi / 180}. Empty cells and NaN are
    gaps. Cells may be quoted, separated by semicolons or tabs, and lines that begin with # are
    comments.

    Raises DataError for a missing file, an unknown column (with the nearest one), cells that are
    not numbers, with line and column, and for faults that `Recording` reports.
    """
    path = Path(path)
    known, scale = _by_quantity(columns), _by_quantity(scale or {})
    for quantity, given in known.items():
        if isinstance(given, str) or not given:
            raise DataError(
                f"{path}: the columns of {quantity} are {given!r}; give a list of names"
            )
    if not known:
        raise DataError(f"{path}: no columns are named; give those of q")
    for quantity, factor in scale.items():
        if not np.isfinite(factor) or factor == 0:
            raise DataError(
                f"{path}: the scale of {quantity} is {factor}; it must be finite and not zero"
            )
    if rate is not None and not 0 < rate < np.inf:
        raise DataError(f"{path}: the rate is {rate}; it must be positive and finite")
    found = read_columns(path, names)
    values = {k: found.scaled(given, scale.get(k, 1.0)) for k, given in known.items()}
    rows = len(next(iter(values.values())))
    t = found.times(time) if rate is None else np.arange(rows) / rate
    q, v, a, tau = (values.get(quantity) for quantity in QUANTITIES)
    return Recording(path.name, t, q, v, a, tau)


def _by_quantity(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options by quantity; raises DataError for an unknown quantity."""
    for quantity in given:
        if quantity not in QUANTITIES:
            raise DataError(
                f"columns or scales of {shown(quantity)} are not known"
                f"{nearest(quantity, QUANTITIES)}; quantities are {', '.join(QUANTITIES)}"
            )
    return dict(given)

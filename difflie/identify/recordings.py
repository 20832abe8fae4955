"""Recordings: measured motions, cut, resampled, smoothed and thinned.

Two filters of uniformly sampled motions give velocities and accelerations, Savitzky and Golay's and
Butterworth's. Both are symmetric, so that nothing is delayed, and both give accelerations that are
averages of the true ones: a smoothed second difference of q is the smoothed one of the second
difference. The weights of these averages are the filter's impulse response, by which fits of
torques average the model's torques as well (see `InverseDynamics`). Khalil and Dombre 2002, section
12.6.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ..collision.pairs import Pair
from ..groups import Manifold
from ..system.shown import some
from ..system.validation import format_value, warn
from .reading.columns import DataError, refuse

_Names = Literal["q", "v", "a", "tau"]
Quantity = Annotated[str, _Names]
QUANTITIES: tuple[str, ...] = get_args(_Names)

# The part of an impulse response, of its largest number, that is neglected at its ends.
_NEGLIGIBLE = 1e-4


@dataclasses.dataclass(frozen=True)
class Smoothing:
    """How a recording was smoothed, for fits of torques.

    kernel (k,), without unit, k odd, symmetric: smoothed accelerations are the true ones averaged
    with these weights, whose sum is 1. tau (n, nv): the efforts as measured, or None.
    """

    kernel: NDArray
    tau: NDArray | None


@dataclasses.dataclass(frozen=True)
class Filter:
    """A filter of columns (n, k) sampled in steps of dt, and its kernel.

    derivatives: the filtered columns and their first two derivatives. kernel: see `Smoothing`.
    """

    derivatives: Callable[[NDArray], tuple[NDArray, ...]]
    kernel: NDArray


def savitzky_golay(window: int, order: int, dt: float) -> Filter:
    """Polynomials of an order, fitted to as many rows as a window has; Savitzky and Golay 1964.

    window is odd, and order 2 or more and less than that; dt in s. The ends, half a window each,
    are from the first and the last polynomial.
    """
    from scipy.signal import savgol_coeffs, savgol_filter

    def derivatives(x: NDArray) -> tuple[NDArray, ...]:
        settings = {"window_length": window, "polyorder": order, "delta": dt, "axis": 0}
        return tuple(np.asarray(savgol_filter(x, deriv=k, **settings)) for k in range(3))

    # The second derivative's weights are the second differences of the kernel.
    second = savgol_coeffs(window, order, deriv=2, use="dot")
    return Filter(derivatives, np.cumsum(np.cumsum(second))[:-2])


def butterworth(cutoff: float, order: int, dt: float) -> Filter:
    """A low-pass filter run forwards and backwards, and differences of what it gives.

    cutoff in Hz, where the gain is 1/2; order of each of the two passes; dt in s. The ends are
    continued by their reflection in the end point. The kernel is the response to a single 1,
    without its ends below 1e-4 of its largest number.
    """
    from scipy.signal import butter, sosfiltfilt

    sections = butter(order, cutoff, fs=1 / dt, output="sos")

    def derivatives(x: NDArray) -> tuple[NDArray, ...]:
        # Continued by as much as the filter rings.
        y = np.asarray(sosfiltfilt(sections, x, axis=0, padlen=min(len(x) - 1, len(kernel))))
        second = np.diff(y, 2, axis=0) / dt**2
        return y, np.gradient(y, dt, axis=0), np.concatenate((second[:1], second, second[-1:]))

    half = int(np.ceil(20 * order / (cutoff * dt)))
    single = np.zeros(2 * half + 1)
    single[half] = 1
    response = np.asarray(sosfiltfilt(sections, single, padlen=0))
    kept = np.flatnonzero(np.abs(response) > _NEGLIGIBLE * np.abs(response).max())
    reach = int(np.abs(kept - half).max())
    kernel = response[half - reach : half + reach + 1]
    kernel = (kernel + kernel[::-1]) / (2 * kernel.sum())
    return Filter(derivatives, kernel)


def filled(t: NDArray, values: NDArray) -> NDArray:
    """Values (n, k) at t (n,) with gaps interpolated linearly; zero where nothing was measured."""
    columns = []
    for column in values.T:
        known = ~np.isnan(column)
        columns.append(np.interp(t, t[known], column[known]) if known.any() else np.zeros(len(t)))
    return np.stack(columns, axis=1)


# The most bytes of the samples of one recording, the samples that may be more than so many for each
# measured row, and the part of a step that is rounding.
_MEMORY = 2**30
_SAMPLES, _FOR_A_ROW = 10**6, 10
_ROUNDING = 1e-6
# A step that is so many times longer than most are, and longer than those of a new grid, is a gap.
_GAP = 4.0


@dataclasses.dataclass(frozen=True)
class Recording:
    """A measured motion of one machine.

    t (n,) in s, increasing, in steps of any length. q (n, nq), v, a (n, nv), tau (n, nu):
    configuration, velocity, acceleration, and the commands of the actuators in their units, or
    without actuators the effort in N m or N; None where not measured. NaN is a gap: an entry that
    was not measured. readings: those of other sensors by name, each (n, k) in the units of the
    sensor, see `Sensor`. weight: the recording counts in a fit like so many equal ones. smoothing:
    how it was smoothed, None if it was not. counts (n, 1) or (n, nv): whether the torque of each
    joint counts in a fit, see `thinned` and `without_slow`; None where all do. closed: masks (n,)
    of the rows in which contacts are closed, by the name of a shape, such as a foot, or the two
    names of a pair; fits of torques eliminate their reactions (`with_closed_contacts`). columns: by
    quantity the names of the columns in the file. notes: what was done to the numbers as they were
    read.

    >>> t = np.arange(0, 2, 0.01)
    >>> log = dl.identify.Recording("wave", t, q=np.sin(t)[:, None]).smoothed(window=11)
    >>> log.v.shape, log.between(0.5, 0.995).t.size
    ((200, 1), 50)
    """

    name: str
    t: NDArray
    q: NDArray | None = None
    v: NDArray | None = None
    a: NDArray | None = None
    tau: NDArray | None = None
    readings: Mapping[str, NDArray] = dataclasses.field(default_factory=dict)
    weight: float = 1.0
    smoothing: Smoothing | None = None
    counts: NDArray | None = None
    closed: Mapping[str | Pair, NDArray] = dataclasses.field(default_factory=dict)
    columns: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()

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
            if (values := getattr(self, quantity)) is not None:
                object.__setattr__(self, quantity, self._checked(quantity, values))
        checked = {name: self._checked(name, values) for name, values in self.readings.items()}
        object.__setattr__(self, "readings", checked)
        masks = {name: np.asarray(mask, float) for name, mask in self.closed.items()}
        for name, mask in masks.items():
            if mask.shape != t.shape:
                raise DataError(
                    f"{self.name}: closed[{name!r}] has shape {mask.shape} for {len(t)} times; a "
                    "mask, one number for each, is needed"
                )
        closed = {name: np.isfinite(mask) & (mask != 0) for name, mask in masks.items()}
        object.__setattr__(self, "closed", closed)

    def __repr__(self) -> str:
        there = {name: getattr(self, name) for name in QUANTITIES} | {**self.readings}
        sizes = [f"{name} ({x.shape[1]})" for name, x in there.items() if x is not None]
        return (
            f"Recording {self.name!r}: {len(self.t)} rows, t = {self.t[0]:.6g} to "
            f"{self.t[-1]:.6g} s, with {some(sizes)}"
        )

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

    def resampled(self, dt: float, manifold: Manifold | None = None) -> Recording:
        """The recording, interpolated on a uniform grid from the first time in steps of dt (s).

        The last time is included if it is a whole number of steps from the first, up to rounding.
        Gaps stay gaps, and times within a step of four times the median or more are gaps, too, of
        which it warns: rows are missing there. manifold: that of the configurations,
        `system.manifold`, for interpolation along its geodesics; without it q are plain numbers,
        angles and displacements. Raises DataError for a step that is not positive, and for one so
        short that the samples would take more than 1 GiB, or be more than a million and more than
        ten for each measured row.
        """
        self._check_unsmoothed()
        refuse(
            self.name,
            (self.counts is not None, "rows count or not already; resample first"),
            (not 0 < dt < np.inf, f"the step is {dt} s; it must be positive and finite"),
        )
        steps = (self.t[-1] - self.t[0]) / dt
        given = [x for x in (self.q, self.v, self.a, self.tau) if x is not None]
        given += self.readings.values()
        memory = 8 * (steps + 1) * (1 + sum(x.shape[1] for x in given))
        made = f"steps of {dt:.4g} s make {steps + 1:.3g} samples"
        refuse(
            self.name,
            (
                not memory <= _MEMORY,
                f"{made}, {memory / 2**30:.3g} GiB; resample at longer ones",
            ),
            (
                steps + 1 > max(_SAMPLES, _FOR_A_ROW * len(self.t)),
                f"{made} of {len(self.t)} measured rows; resample near their own step, "
                f"{np.median(np.diff(self.t)):.4g} s",
            ),
        )
        grid = self.t[0] + dt * np.arange(int(steps + _ROUNDING) + 1)
        if len(grid) < 2:
            raise DataError(
                f"{self.name}: one step of {dt:.4g} s is longer than all of it, "
                f"{self.t[-1] - self.t[0]:.4g} s; resample at shorter ones"
            )

        k = np.clip(np.searchsorted(self.t, grid, side="right") - 1, 0, len(self.t) - 2)
        share = np.clip((grid - self.t[k]) / (self.t[k + 1] - self.t[k]), 0, 1)
        missing = self._missing(dt)[k] & (np.minimum(share, 1 - share) > _ROUNDING)

        def values(x: NDArray) -> NDArray:
            found = np.stack([np.interp(grid, self.t, column) for column in x.T], axis=1)
            return np.where(missing[:, None], np.nan, found)

        found = self._with(grid, values)
        if manifold is None or self.q is None:
            return found

        def between(q0: jax.Array, q1: jax.Array, share: jax.Array) -> jax.Array:
            return manifold.retract(q0, share * manifold.difference(q0, q1))

        ends = (jnp.asarray(x) for x in (self.q[k], self.q[k + 1], share))
        q = np.asarray(jax.jit(jax.vmap(between))(*ends))
        return dataclasses.replace(found, q=np.where(missing[:, None], np.nan, q))

    def smoothed(self, window: int, order: int = 2) -> Recording:
        """Savitzky-Golay smoothing of q and tau on a uniform grid; v and a are derivatives of q.

        Readings of other sensors stay as they are.         window (rows, odd) and order of the
        polynomials, two or more; see `savitzky_golay`. Configurations must be plain numbers: angles
        and displacements. Rows whose window reaches to a gap become gaps, of which it warns. Raises
        DataError where steps are not uniform, q is missing, or nothing is left.
        """
        dt = self._uniform_step()
        refuse(
            self.name,
            (
                not 2 <= order < window,
                f"the polynomials have order {order}; accelerations need 2 or more, and less than "
                f"the window, {window}",
            ),
            (window > len(self.t), f"{len(self.t)} rows are fewer than the window, {window}"),
        )
        return self._filtered(savitzky_golay(window, order, dt))

    def lowpassed(self, cutoff: float, order: int = 4) -> Recording:
        """Butterworth's low-pass filter of q and tau, without delay; v and a are differences of q.

        cutoff in Hz and order of each of its two passes; see `butterworth`. Raises DataError as
        `smoothed` does, and for a cutoff that is not below half of the rows in a second, or has not
        one period in the recording.
        """
        dt = self._uniform_step()
        lasts = self.t[-1] - self.t[0]
        refuse(
            self.name,
            (
                not 0 < cutoff < 0.5 / dt,
                f"the cutoff is {cutoff:.4g} Hz; it must be positive and below {0.5 / dt:.4g} Hz, "
                "half of the rows in a second",
            ),
            (
                cutoff * lasts < 1,
                f"the cutoff is {cutoff:.4g} Hz and the recording lasts {lasts:.4g} s; give a "
                f"cutoff above {1 / lasts:.4g} Hz",
            ),
            (not 1 <= order <= 10, f"the filter has order {order}; give one from 1 to 10"),
        )
        return self._filtered(butterworth(cutoff, order, dt))

    def thinned(self, every: int) -> Recording:
        """Fits of torques count one row of so many; the others stay, for averages and delays.

        Raises DataError for a number below 1.
        """
        if every < 1:
            raise DataError(f"{self.name}: one row of {every} cannot count; give 1 or more")
        return self._counting((np.arange(len(self.t)) % every == 0)[:, None])

    def without_slow(self, limit: float | Sequence[float]) -> Recording:
        """Fits of torques count a joint's torque only where it moves at the limit or faster.

        limit (rad/s or m/s): one for all joints, or one for each of nv. Raises DataError where v is
        missing, limits are negative, and where a joint is never that fast.
        """
        if self.v is None:
            raise DataError(f"{self.name}: v is not measured; name its columns, or smooth q")
        limits = np.asarray(limit, float)
        if limits.shape not in ((), self.v.shape[1:]) or not (limits >= 0).all():
            raise DataError(
                f"{self.name}: {limit} is no limit of slow rows; give one number, 0 or more, or "
                f"{self.v.shape[1]}"
            )
        fast = np.abs(self.v) >= limits
        for j in np.flatnonzero(~fast.any(axis=0))[:1]:
            limit = float(np.broadcast_to(limits, fast.shape[1:])[j])
            raise DataError(
                f"{self.name}: {self.column('v', int(j))} is never as fast as {limit:.4g} rad/s "
                "or m/s; give a lower limit, or 0 for this joint"
            )
        return self._counting(fast)

    @property
    def counted(self) -> NDArray | bool:
        """A mask (n, 1) or (n, nv) of the torques that count in a fit; True where all do."""
        return True if self.counts is None else self.counts

    def column(self, quantity: str, j: int) -> str:
        """The name of column j of a quantity, for messages: that in the file where it is known."""
        names = self.columns.get(quantity, ())
        return repr(names[j]) if j < len(names) else f"{quantity}[{j}]"

    def _missing(self, dt: float) -> NDArray:
        """Whether rows are missing within each step (n - 1,), as seen on a grid of dt; warns."""
        steps = np.diff(self.t)
        missing = steps > max(_GAP * float(np.median(steps)), (1 + _ROUNDING) * dt)
        for first in np.flatnonzero(missing)[:1]:
            more = f" and at {missing.sum() - 1} other places" if missing.sum() > 1 else ""
            warn(
                f"{self.name}: rows are missing from {self.t[first]:.6g} to "
                f"{self.t[first + 1]:.6g} s{more}; these are gaps, and no motion is assumed in them"
            )
        return missing

    def _checked(self, quantity: str, values: NDArray) -> NDArray:
        """Values (n, k) as an array; raises DataError for another shape and infinite ones."""
        values = np.asarray(values, float)
        if values.ndim != 2 or len(values) != len(self.t):
            raise DataError(
                f"{self.name}: {quantity} has shape {values.shape} for {len(self.t)} times; "
                "one row for each is needed"
            )
        if np.isinf(values).any():
            k, j = np.argwhere(np.isinf(values))[0]
            raise DataError(
                f"{self.name}: {quantity}[{k}, {j}] is {values[k, j]}; leave gaps as NaN"
            )
        return values

    def _counting(self, counts: NDArray) -> Recording:
        return dataclasses.replace(self, counts=counts & self.counted)

    def _uniform_step(self) -> float:
        """The step (s); raises DataError for what a filter cannot take."""
        self._check_unsmoothed()
        steps = np.diff(self.t)
        dt = float(steps.mean())
        uneven = np.abs(steps - dt).max() > 1e-6 * dt
        refuse(
            self.name,
            (uneven, "its steps are not uniform; call resampled first (data.resample)"),
            (self.q is None, "there is no q to smooth"),
        )
        return dt

    def _filtered(self, by: Filter) -> Recording:
        assert self.q is not None
        reach = len(by.kernel) // 2 + 1
        q, lost = self._bridged("q", self.q, reach)
        q, v, a = (np.where(lost, np.nan, x) for x in by.derivatives(q))
        if np.isnan(q).any(axis=1).all():
            raise DataError(
                f"{self.name}: gaps leave no row of q whose neighbours are all measured; smooth "
                "over fewer rows"
            )
        tau = measured = None
        if self.tau is not None:
            tau, lost = self._bridged("tau", self.tau, reach)
            measured, tau = (np.where(lost, np.nan, x) for x in (tau, by.derivatives(tau)[0]))
        return dataclasses.replace(
            self, q=q, v=v, a=a, tau=tau, smoothing=Smoothing(by.kernel, measured)
        )

    def _bridged(self, quantity: str, values: NDArray, reach: int) -> tuple[NDArray, NDArray]:
        """Values (n, k) with gaps filled, and a mask of the rows that reach to a gap."""
        from scipy.ndimage import maximum_filter1d

        gaps = np.isnan(values)
        lost = maximum_filter1d(gaps, 2 * reach + 1, axis=0, mode="constant")
        for j in np.flatnonzero(gaps.any(axis=0)):
            first = self.t[np.argmax(gaps[:, j])]
            warn(
                f"{self.name}: {self.column(quantity, int(j))} has {gaps[:, j].sum()} empty cells, "
                f"the first at {first:.6g} s; {lost[:, j].sum()} rows, those within the smoothing, "
                "are left out"
            )
        return filled(self.t, values), lost

    def _check_unsmoothed(self) -> None:
        if self.smoothing is not None:
            raise DataError(f"{self.name}: it is smoothed already; resample first and smooth once")

    def _with(self, t: NDArray, values: Callable[[NDArray], NDArray]) -> Recording:
        """The recording at other times, with the values of its arrays there."""
        given = {k: getattr(self, k) for k in (*QUANTITIES, "counts")}
        found = {k: None if x is None else values(x) for k, x in given.items()}
        smoothing = self.smoothing
        if smoothing is not None and smoothing.tau is not None:
            smoothing = dataclasses.replace(smoothing, tau=values(smoothing.tau))
        readings = {name: values(x) for name, x in self.readings.items()}
        # Between a row where a contact is closed and one where it is not it is not.
        closed = {name: values(x[:, None])[:, 0] == 1 for name, x in self.closed.items()}
        found |= {"readings": readings, "closed": closed, "smoothing": smoothing}
        return dataclasses.replace(self, t=t, **found)


def check_recording(given: Any) -> None:
    """Raises TypeError for what is no recording, such as the path of a log."""
    if not isinstance(given, Recording):
        raise TypeError(
            f"{format_value(given)} is no Recording; give what di.read_recording(path) returns, "
            "or di.Recording(name, t, q, ...)"
        )


def as_recordings(given: Recording | Sequence[Recording]) -> list[Recording]:
    """The recordings, also of a single one; raises TypeError for what is none."""
    several: Sequence[Any] = [given]
    if isinstance(given, Sequence) and not isinstance(given, str):
        several = given
    for recording in several:
        check_recording(recording)
    return list(several)

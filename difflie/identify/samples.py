"""Logs as rows for linear identification: filtered, differentiated and thinned.

Positions are low-passed and differentiated at a cutoff well above the motion, and then both sides
of the equations, columns and measured torques alike, are low-passed again and thinned ("parallel
decimation"). Without cutoffs these are multiples of the motion's own bandwidth. Gautier 1997;
Khalil and Dombre 2002, section 12.6.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..system.system import System
from .reading.columns import DataError
from .recordings import Recording, filled

# Cutoffs of positions and of both sides, in bandwidths of the motion.
_POSITIONS, _BOTH_SIDES = 10.0, 5.0
# The part of the velocity's power within the bandwidth.
_POWER = 0.95
# Noise alone exceeds what is taken for it in one of so many recordings.
_CHANCE = 1e-2
# Faster than so many times what is faster than all but a hundredth is a jump.
_JUMP, _OFTEN = 3.0, 0.99
# Rows for which columns are computed at a time.
CHUNK = 2048
# Rows in a period of the cutoff of both sides: where columns are computed, and where they count.
_FINE, _KEPT = 25.0, 4.0
# A cutoff is at most this part of the rows in a second.
_HIGHEST = 0.4
_ORDER = 4
# The part of an average's weight that must be there.
_ENOUGH = 0.3
# Rows that are all but uniform in time are not interpolated.
_UNIFORM = 1e-6


@dataclasses.dataclass(frozen=True)
class Samples:
    """A recording where the columns of the torque model are computed.

    t (m,) in s; q, v, a (m, nv) and tau (m, nv) in N m or N, low-passed; there (m, nv): whether the
    torque of a joint is measured and its motion known. window (k,): the weights of the averages of
    both sides; rows (r,): about which rows they count; counts (r, nv): whether those of a joint do.
    cutoffs: of each joint's position (nv,), and of both sides, in Hz.
    """

    recording: Recording
    t: NDArray
    q: NDArray
    v: NDArray
    a: NDArray
    tau: NDArray
    there: NDArray
    window: NDArray
    rows: NDArray
    counts: NDArray
    cutoffs: tuple[NDArray, float]

    def averaged(self, values: NDArray) -> NDArray:
        """The averages (r, nv, ...) of values (m, nv, ...) about `rows`, over what is there."""
        return self.averages(lambda part: values[part])

    def averages(self, values: Callable[[slice], NDArray]) -> NDArray:
        """As `averaged`, of values that are computed for some rows at a time."""
        weights = windows(self.rows, len(self.t), self.window)
        total, shape = np.zeros(()), ()
        for first in range(0, len(self.t), CHUNK):
            part = slice(first, min(first + CHUNK, len(self.t)))
            own = values(part)
            there = self.there[part].reshape(*own.shape[:2], *(1,) * (own.ndim - 2))
            flat = np.where(there, own, 0).reshape(len(own), -1)
            total, shape = total + weights[:, part] @ flat, own.shape[1:]
        weight = np.where(self.counts, weights @ self.there.astype(float), 1)
        more = (..., *(None,) * (len(shape) - 1))
        return np.where(self.counts[more], total.reshape(-1, *shape) / weight[more], 0)


def windows(rows: NDArray, count: int, window: NDArray) -> Any:
    """The weights (r, count), a sparse matrix, of a window (k,) about each of some rows (r,)."""
    from scipy.sparse import csc_array

    half = len(window) // 2
    at = rows[:, None] + np.arange(-half, half + 1)
    inside = (at >= 0) & (at < count)
    row = np.broadcast_to(np.arange(len(rows))[:, None], at.shape)
    return csc_array(
        (np.broadcast_to(window, at.shape)[inside], (row[inside], at[inside])),
        shape=(len(rows), count),
    )


def bandwidth(recording: Recording) -> NDArray:
    """The frequencies (nv,) in Hz below which each velocity has 95 % of its power; 0: still.

    The noise of positions, white as in the upper half of their spectrum, is left out: at each
    frequency its power has an exponential distribution, of which the largest of all frequencies
    exceeds the mean times log(n / chance) by chance only. Raises DataError where no joint moves.
    """
    step = float(np.median(np.diff(recording.t)))
    # Differences have no jump between the ends, which a window need not hide.
    v = np.diff(filled(np.arange(len(recording.t)), _known(recording, "q")), axis=0)
    # Nor are jumps of a sensor motions.
    most = _JUMP * np.quantile(np.abs(v), _OFTEN, axis=0)
    v = np.clip(v, -most, most)
    frequency = np.fft.rfftfreq(len(v), step)
    window = np.hanning(len(v))[:, None]
    power = np.abs(np.fft.rfft(window * (v - v.mean(axis=0)), axis=0)) ** 2
    gain = (2 * np.sin(np.pi * np.maximum(frequency, frequency[1]) * step)[:, None]) ** 2
    # The mean has the noise of both ends, which the window has at its first two frequencies.
    gain[:2] += np.array([[4.0], [1.0]]) / (3 * len(v))
    noise = np.median((power / gain)[len(frequency) // 2 :], axis=0) / np.log(2)
    power = np.where(power > np.log(len(frequency) / _CHANCE) * noise * gain, power, 0)
    total = power.sum(axis=0)
    if not total.any():
        raise DataError(f"{recording.name}: no joint moves; record a motion")
    part = np.cumsum(power, axis=0) / np.where(total > 0, total, 1)
    return np.where(total > 0, frequency[np.maximum(np.argmax(part >= _POWER, axis=0), 1)], 0.0)


def samples(system: System, recording: Recording, motion: NDArray | float | None = None) -> Samples:
    """The rows of a recording with q and tau, of which v and a follow unless it is smoothed.

    motion (Hz): the bandwidth, or that of each joint (nv,), by default those of the recording. Both
    sides and positions are low-passed for the fastest joint, as each equation has the motions of
    all; positions of joints that stand still are low-passed as both sides. Raises DataError for
    other columns than the machine has, and for recordings too short for their filter.
    """
    for quantity in ("q", "tau"):
        width = _known(recording, quantity).shape[1]
        if width != system.nv:
            raise DataError(
                f"{recording.name}: {quantity} has {width} columns, the machine {system.nv} joints;"
                " name a column for each, and lock the other joints (system.locked)"
            )
    recording = _uniform(recording)
    motion = bandwidth(recording) if motion is None else np.asarray(motion, float)
    rate, fastest = 1 / float(np.median(np.diff(recording.t))), float(np.max(motion))
    both = min(_BOTH_SIDES * fastest, _HIGHEST * rate)
    highest = min(_POSITIONS * fastest, _HIGHEST * rate)
    cutoffs = np.where(motion > 0, highest, both) * np.ones(system.nv)
    smooth = _differentiated(recording, cutoffs)
    fine = max(1, int(rate / (_FINE * both)))
    t, q, v, a, tau = (
        x[::fine] for x in (smooth.t, smooth.q, smooth.v, smooth.a, smooth.tau) if x is not None
    )
    # Hann's window: at the cutoff its gain is one half.
    window = np.hanning(2 * max(1, round(rate / fine / both / 2)) + 1)
    rows = np.arange(0, len(t), max(1, round(rate / fine / (_KEPT * both))))
    there = ~np.isnan(np.concatenate((q, v, a), axis=1)).any(axis=1, keepdims=True) & ~np.isnan(tau)
    # A torque that is the same all the time was not measured.
    measured = _known(recording, "tau")
    there &= np.nanmax(measured, axis=0) > np.nanmin(measured, axis=0)
    if smooth is not recording:  # at the ends positions are continued by guesses
        end = round(rate / fine / cutoffs.min() / 2)
        there[:end], there[len(there) - end :] = False, False
    counts = windows(rows, len(t), window / window.sum()) @ there.astype(float) > _ENOUGH
    if smooth.counts is not None:
        counts &= np.broadcast_to(smooth.counts[::fine][rows], counts.shape)
    if not counts.any():
        raise DataError(
            f"{recording.name}: no row counts: {recording.t[-1] - recording.t[0]:.3g} s are too "
            f"short for motions of {fastest:.3g} Hz, or all have gaps; record a longer motion"
        )
    # Any row will do in gaps, but internal states go on through them.
    q, v, a, tau = (filled(t, x) for x in (q, v, a, tau))
    return Samples(recording, t, q, v, a, tau, there, window, rows, counts, (cutoffs, both))


def _uniform(recording: Recording) -> Recording:
    """The recording in steps of one length, where it is to be low-passed; gaps stay gaps."""
    steps = np.diff(recording.t)
    step = float(np.median(steps))
    if _has_rates(recording) or np.abs(steps - step).max() <= _UNIFORM * step:
        return recording
    return recording.resampled(step)


def _has_rates(recording: Recording) -> bool:
    return recording.smoothing is not None or (recording.v is not None and recording.a is not None)


def _differentiated(recording: Recording, cutoffs: NDArray) -> Recording:
    """The recording with v and a: as it is where it is smoothed or has them, else low-passed.

    cutoffs (nv,): of each joint, whose torque has the same filter.
    """
    if _has_rates(recording):
        return recording
    q, tau = _known(recording, "q"), _known(recording, "tau")
    found: list[Recording] = []
    for j, cutoff in enumerate(cutoffs.tolist()):
        columns = {name: names[j : j + 1] for name, names in recording.columns.items()}
        own = {"q": q[:, [j]], "tau": tau[:, [j]], "v": None, "a": None}
        joint = dataclasses.replace(recording, **own, readings={}, counts=None, columns=columns)
        found.append(joint.lowpassed(cutoff, _ORDER))
    joined = {
        name: np.concatenate([np.asarray(getattr(r, name)) for r in found], axis=1)
        for name in ("q", "v", "a", "tau")
    }
    return dataclasses.replace(recording, **joined)


def _known(recording: Recording, quantity: str) -> NDArray:
    values = getattr(recording, quantity)
    if values is None:
        raise DataError(f"{recording.name}: {quantity} is not measured; name its columns")
    return values

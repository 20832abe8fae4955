"""Filters of uniformly sampled motions, which give velocities and accelerations.

Both are symmetric, so that nothing is delayed, and both give accelerations that are averages of the
true ones: a smoothed second difference of q is the smoothed one of the second difference. The
weights of these averages are the filter's impulse response, by which fits of torques average the
model's torques as well (see `InverseDynamics`). Khalil and Dombre 2002, section 12.6.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

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
    """A filter of columns (n, k) sampled in steps of dt: functions of these, and its kernel.

    value, rate and acceleration: the filtered columns and their first two derivatives. kernel: see
    `Smoothing`.
    """

    value: Callable[[NDArray], NDArray]
    rate: Callable[[NDArray], NDArray]
    acceleration: Callable[[NDArray], NDArray]
    kernel: NDArray


def savitzky_golay(window: int, order: int, dt: float) -> Filter:
    """Polynomials of an order, fitted to as many rows as a window has; Savitzky and Golay 1964.

    window is odd, and order 2 or more and less than that; dt in s. The ends, half a window each,
    are from the first and the last polynomial.
    """
    from scipy.signal import savgol_coeffs, savgol_filter

    def derivative(k: int) -> Callable[[NDArray], NDArray]:
        return lambda x: np.asarray(savgol_filter(x, window, order, deriv=k, delta=dt, axis=0))

    # The second derivative's weights are the second differences of the kernel.
    second = savgol_coeffs(window, order, deriv=2, use="dot")
    kernel = np.cumsum(np.cumsum(second))[:-2]
    return Filter(derivative(0), derivative(1), derivative(2), kernel)


def butterworth(cutoff: float, order: int, dt: float) -> Filter:
    """A low-pass filter run forwards and backwards, and differences of what it gives.

    cutoff in Hz, where the gain is 1/2; order of each of the two passes; dt in s. The ends are
    continued by their reflection in the end point. The kernel is the response to a single 1,
    without its ends below 1e-4 of its largest number.
    """
    from scipy.signal import butter, sosfiltfilt

    sections = butter(order, cutoff, fs=1 / dt, output="sos")

    def value(x: NDArray) -> NDArray:
        # Continued by as much as the filter rings.
        return np.asarray(sosfiltfilt(sections, x, axis=0, padlen=min(len(x) - 1, len(kernel))))

    def rate(x: NDArray) -> NDArray:
        return np.gradient(value(x), dt, axis=0)

    def acceleration(x: NDArray) -> NDArray:
        second = np.diff(value(x), 2, axis=0) / dt**2
        return np.concatenate((second[:1], second, second[-1:]))

    half = int(np.ceil(20 * order / (cutoff * dt)))
    single = np.zeros(2 * half + 1)
    single[half] = 1
    response = np.asarray(sosfiltfilt(sections, single, padlen=0))
    kept = np.flatnonzero(np.abs(response) > _NEGLIGIBLE * np.abs(response).max())
    reach = int(np.abs(kept - half).max())
    kernel = response[half - reach : half + reach + 1]
    kernel = (kernel + kernel[::-1]) / (2 * kernel.sum())
    return Filter(value, rate, acceleration, kernel)


def filled(t: NDArray, values: NDArray) -> NDArray:
    """Values (n, k) at t (n,) with gaps interpolated linearly; zero where nothing was measured."""
    columns = []
    for column in values.T:
        known = ~np.isnan(column)
        columns.append(np.interp(t, t[known], column[known]) if known.any() else np.zeros(len(t)))
    return np.stack(columns, axis=1)

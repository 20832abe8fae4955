"""The runs behind the figures: the energy over 50 s, and errors over the step size."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...view.errors import slope
from .motion import Motion, exact_angles, move, three_links
from .schemes import SCHEMES

# In s: of the standard run; of the order plots, (5.7); and of the runs whose ends are compared with
# the exact motion.
STEP, DURATION = 0.01, 50.0
ORDER_STEPS, ORDER_DURATION = np.arange(1, 201) / 1000, 10.0
STATE_STEPS, STATE_TIME = (0.04, 0.02, 0.01, 0.005), 2.0

TIMED_RUNS = 10

# Mean energy errors below, in J, are too near to rounding to show an order.
SMALLEST_FITTED = 1e-11


class Study(NamedTuple):
    """What is computed of one method in one case.

    long: the standard run. averages: the mean energy errors (5.5) in J, one for each of the order
    steps, not a number where a run ended early. state_errors (4,): in rad, for STATE_STEPS.
    """

    long: Motion
    averages: np.ndarray
    state_errors: np.ndarray


def study(case: str, method: str) -> Study:
    """The runs of a method of SCHEMES in a case."""
    scheme, chain = SCHEMES[method], three_links(case)
    long = move(scheme, chain, STEP, DURATION)
    averages = [_mean_energy_error(move(scheme, chain, h, ORDER_DURATION)) for h in ORDER_STEPS]
    exact = exact_angles(chain, STATE_TIME)
    apart = [move(scheme, chain, h, STATE_TIME).phi[-1] - exact for h in STATE_STEPS]
    return Study(
        long, np.array(averages), np.max(np.abs(np.angle(np.exp(1j * np.array(apart)))), 1)
    )


def _mean_energy_error(motion: Motion) -> float:
    """(5.5) in J; not a number where the run ended early."""
    return np.nan if motion.unsolved else float(np.mean(np.abs(motion.energy_error[1:])))


def energy_order(h: np.ndarray, averages: np.ndarray) -> float | None:
    """The exponent of the mean energy errors where they show one; None where they do not.

    h (k,): the step sizes in s, ascending; averages (k,): in J.
    """
    part = showing_order(averages)
    return slope(h[part], averages[part]) if np.sum(part) >= 3 else None


def showing_order(averages: np.ndarray) -> np.ndarray:
    """Which errors (k,) are above rounding, and of steps smaller than all with which a run ended
    early. A run of larger ones that does not end wanders: its steps find solutions far away.
    """
    return (averages > SMALLEST_FITTED) & ~np.maximum.accumulate(np.isnan(averages))


def seconds(case: str, method: str) -> float:
    """Processor time of the standard run in s, without compilation: the least of TIMED_RUNS."""
    scheme, chain = SCHEMES[method], three_links(case)
    return min(move(scheme, chain, STEP, DURATION).seconds for _ in range(TIMED_RUNS))

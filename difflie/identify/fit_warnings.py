"""Warnings of how a fit of declared numbers starts and ends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..parameters import Parameters, SharedParameters
from ..system.validation import warn

# Warn beyond so many deviations from a prior.
_FAR = 3.0


def warn_of_small_starts(parameters: Parameters | SharedParameters) -> None:
    """Warns of zero damping, friction and armature, which start at a small value instead."""
    start = np.asarray(parameters.values(parameters.start))
    rows = zip(parameters.names, start, np.asarray(parameters.initial), strict=True)
    leaves = "damping", "friction", "armature"
    small = ", ".join(
        f"{name} at {s:.3g}"
        for name, s, first in rows
        if s > 0 and first == 0 and name.rpartition("/")[2].startswith(leaves)
    )
    if small:
        warn(
            f"{parameters.title}: zero has no logarithm, and the fit starts {small} (SI "
            "units); give `start` for another"
        )


def warn_of_ends(
    parameters: Parameters | SharedParameters, x: NDArray, values: NDArray, at_bound: NDArray
) -> None:
    """Warns of each estimate that is far from its prior or at a bound.

    x (n,): the free numbers; values and at_bound (p,): the estimates, and whether they are there.
    """
    off_prior = np.asarray(parameters.residual(x))
    for name, off in zip(parameters.prior_names, off_prior, strict=True):
        if abs(off) > _FAR:
            warn(f"{name} is {abs(off):.3g} deviations from its prior; is this right?")
    for k in np.flatnonzero(at_bound):
        value, name = values[k], parameters.names[k]
        bound = min((limit[k] for limit in parameters.limits), key=lambda bound: abs(value - bound))
        warn(f"{name} is {value:.4g}, at its bound {bound:.4g}; is this right?")

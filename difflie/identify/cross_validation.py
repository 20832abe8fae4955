"""Cross-validation: each recording predicted by a fit to the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..system.validation import warn
from .fitting import Fit
from .recordings import DataError, Recording
from .validation import Trial, Validation


def leave_one_out(
    trials: Sequence[Trial], fitted: Callable[[list[Recording]], Fit]
) -> list[Validation]:
    """Leave-one-out cross-validation: each recording predicted by a fit to all others.

    fitted(recordings): the fit to some of the recordings. A recording whose others do not suffice
    for a fit is skipped with a warning; fits that did not converge are warned of too.
    """
    validations = []
    for k, trial in enumerate(trials):
        others = [t.recording for t in (*trials[:k], *trials[k + 1 :])]
        try:
            without = fitted(others)
        except DataError as error:
            warn(f"without {trial.recording.name}: {error}")
            continue
        if not without.converged:
            warn(f"without {trial.recording.name}: {without.message}")
        validations.append(trial.validation(without.system))
    return validations

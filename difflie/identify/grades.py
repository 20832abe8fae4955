"""How well joints are predicted, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

GOOD, FAIR = 0.95, 0.8


def grades(what: str, scores: Sequence[tuple[str, float]], subject: str = "") -> Iterator[str]:
    """Sentences on the R2 of joints that are predicted well or fairly.

    what: is predicted, for one sentence where all are, such as "all joints are predicted well: R2
    of rows not fitted". subject: begins the other sentences. A joint may have several scores.
    """
    good = [joint for joint, r2 in scores if r2 >= GOOD]
    fair = [f"{joint} (R2 {r2:.3f})" for joint, r2 in scores if FAIR <= r2 < GOOD]
    if len(good) == len(scores) > 0:
        yield f"{what} is {min(r2 for _, r2 in scores):.3f} or more"
    elif good:
        yield f"{subject}predicted well (R2 of {GOOD} or more): {', '.join(dict.fromkeys(good))}"
    if fair:
        yield f"{subject}predicted fairly: {', '.join(fair)}"


def poor(scores: Sequence[tuple[str, float]]) -> list[int]:
    """The indices of the scores of joints that are predicted poorly."""
    return [k for k, (_, r2) in enumerate(scores) if not r2 >= FAIR]

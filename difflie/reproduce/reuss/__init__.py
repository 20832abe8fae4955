"""Reuss 2002: every formula on random chains, motions, and both perspectives.

J. D. Reuss, "Some practical uses of the Lie group SE(3) in computers visualization", 2002: a sheet
of formulas for drawing in perspective and for the dynamics of a free chain of bodies, constraints
and Coulomb friction among them. The author says that the dynamics are "yet not tested". Here each
formula is evaluated on random chains and compared with difflie's algorithms, by which it is either
right as it is printed or right with a correction:

* (13) and (32) lack the dots of time derivatives; with (32) as printed the last term vanishes.
* (38) has Ad on its left, which must be its dual.
* The recursion of 6.2 starts with delta_{n+1} = F_{n+1}, otherwise the wrench at the tip is lost.
* The recursion of 6.3 starts with (0, -g): the first Ad turns gravity into the frame of body 0.
* (50) is meant with the inertias J of the bodies, and the kinetic energy is half of w^T D w.
* Section 6.1 needs 6 + n recursions, since body 0 is free.
* (9) is right, and useless near half a turn; (15) holds for a fixed axis only.

The chain of figure 2 then moves free in space, with its tip held, and with a foot on a floor with
Coulomb friction, by difflie and by (29) to (32) with an integrator of order 8. All of it is drawn
in the architect's and in the painter's perspective.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...io.results import Results
from ...view.report import Checked, Section, Table, notes
from ..papers import Agreement, Computed, Progress, each, number
from . import chain_checks, perspective, rigid_body
from .check import HOLDS
from .motion import MOTIONS, Compared

_TITLES = {
    "free": "Free chain, without gravity",
    "held": "Chain whose tip is held",
    "sliding": "Chain whose foot slides and sticks",
}


@dataclass(frozen=True, kw_only=True)
class Formula(Results):
    """A `Check` with its verdict: "as printed", "corrected" or "fails"."""

    number: str
    states: str
    printed: float | None
    corrected: float | None
    correction: str
    verdict: str


@dataclass(frozen=True, kw_only=True)
class StretchRow(Results):
    """A part of a motion in which a foot sticks or slides, between two times in s."""

    mode: str
    from_: float
    to: float


@dataclass(frozen=True, kw_only=True)
class MotionRow(Results):
    """A motion: what was measured of it by name with unit, and its parts."""

    name: str
    numbers: dict[str, float]
    stretches: list[StretchRow]


@dataclass(frozen=True, kw_only=True)
class ReussResults(Results):
    """All formulas, and all motions."""

    name: str = "reuss"
    formulas: list[Formula]
    motions: list[MotionRow]


def compute(
    progress: Progress,
    samples: int = 10,
    joints: str = "RPRRP",
    steps: dict[str, int] | None = None,
) -> Computed:
    """Formulas at `samples` random states, and motions by so many steps, by name.

    joints: of the random chains, R for revolute and P for prismatic.
    """
    rng = np.random.default_rng(2002)
    parts = [
        lambda: rigid_body.checks(rng, samples),
        lambda: perspective.checks(rng),
        lambda: chain_checks.checks(rng, samples, joints),
    ]
    found = each(progress, "formulas", lambda part: part(), parts, workers=1)
    rows = [
        Formula(**check._asdict(), verdict=check.verdict) for checks in found for check in checks
    ]
    chosen = MOTIONS.items() if steps is None else [(name, MOTIONS[name]) for name in steps]
    motions = each(
        progress,
        "motions",
        lambda of: of[1](**({} if steps is None else {"steps": steps[of[0]]})),
        chosen,
    )
    results = ReussResults(formulas=rows, motions=[_row(motion) for motion in motions])

    def figures() -> dict[str, Any]:
        # Here, since matplotlib takes long to import.
        from .figures import draw_all

        return draw_all({motion.name: motion for motion in motions})

    return results, figures


def _row(motion: Compared) -> MotionRow:
    stretches = [
        StretchRow(mode=s.mode, from_=float(s.t[0]), to=float(s.t[-1])) for s in motion.stretches
    ]
    return MotionRow(name=motion.name, numbers=motion.numbers, stretches=stretches)


def agreements(results: ReussResults) -> list[Agreement]:
    """The formulas that hold, as they are printed or with the correction."""
    rows = results.formulas
    right = sum(r.verdict != "fails" for r in rows)
    printed = sum(r.verdict == "as printed" for r in rows)
    rule = f"within {HOLDS:g}; {printed} as printed, {right - printed} with a correction"
    return [Agreement("Formulas", right, len(rows), rule)]


def sections(results: ReussResults) -> list[Section]:
    """The residual of every formula, and what was measured of the motions."""
    agree = {"as printed": True, "corrected": None, "fails": False}
    lines = [
        (
            r.number,
            r.states,
            number(r.printed),
            number(r.corrected) if r.correction else "",
            Checked(r.correction or r.verdict, agrees=agree[r.verdict]),
        )
        for r in results.formulas
    ]
    head = "", "compared", "residual\nas printed", "residual\ncorrected", ""
    table = Table(head, lines, names=2)
    return [
        Section("Formulas, largest residuals at random states", [table]),
        *map(_motion, results.motions),
    ]


def _motion(motion: MotionRow) -> Section:
    rows = [(name, number(value, ".4g")) for name, value in motion.numbers.items()]
    ends = ", ".join(f"{s.mode} to {s.to:.4f} s" for s in motion.stretches)
    said = notes(f"The foot {ends}.") if len(motion.stretches) > 1 else ()
    return Section(_TITLES[motion.name], [Table(("", "largest"), rows), *said])

"""How a control problem shows itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from ..system.text import some


def problem_text(problem: Any) -> str | None:
    """A `Problem` in some lines; None for one whose leaves are no arrays, such as a mask."""
    if not isinstance(problem.dt, jax.Array | np.ndarray):
        return None
    number = isinstance(problem.dt, Tracer) or np.ndim(problem.dt)
    step = "a step that is batched or traced" if number else f"{float(problem.dt):.6g} s"
    free = "" if problem.duration is None else ", of free duration"
    lines = [
        f"Problem of {problem.system.name!r}: {problem.steps} steps of {step}{free}",
        f"method: {type(problem.method).__name__}, controls {problem.interpolation} in a step",
        f"inputs: {type(problem.inputs).__name__}, {problem.nu} controls",
    ]
    for name in ("running", "final"):
        terms: Sequence[Any] = getattr(problem, name)
        lines += [f"{name}: {some([_term(t) for t in terms])}"] if terms else []
    given = [
        name
        for name in ("q_lower", "q_upper", "v", "u_lower", "u_upper")
        if getattr(problem.limits, name) is not None
    ]
    return "\n".join([*lines, *([f"limits: of {', '.join(given)}"] if given else [])])


def _term(term: Any) -> str:
    kind = type(term).__name__
    name = term.name
    return kind if name.lower().replace(" ", "") == kind.lower() else f"{kind} ({name})"

"""What a plan comes to, in words: how far its end is from its goals, and its largest control."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import jax
import numpy as np
from numpy.typing import NDArray

from ..quantities.along import Motion
from ..quantities.bounded import Bounded
from ..quantities.deviation import is_deviation
from .checks import evaluated
from .costs import Cost
from .problem import Problem

# Of controls that are at a bound, in parts of the way between both bounds.
_AT_BOUND = 1e-4


class Commanded(Motion, Protocol):
    """A motion with its controls, such as a plan."""

    @property
    def u(self) -> jax.Array: ...


def outcome(problem: Problem, plan: Commanded) -> list[str]:
    """A sentence on each goal of a problem at the end, then one on the largest control.

    The distances are the largest entries of what costs and bounds measure, in its units.
    """
    return [*_misses(problem, plan), *_largest_control(problem, plan)]


def _misses(problem: Problem, plan: Commanded) -> Iterator[str]:
    """How far the end is from each goal; entries of weight zero do not count."""
    p = problem
    aims = [term for term in p.final if _has_goal(term)]
    kinds = [type(term).__name__ for term in aims]
    for term, kind in zip(aims, kinds, strict=True):
        away = np.asarray(evaluated(term, p.system, plan.q[-1], plan.v[-1], None, plan.t[-1]))
        weight = np.broadcast_to(term.weight if isinstance(term, Cost) else 1.0, away.shape)
        labels = term.quantity.labels(p.system)
        if len(labels) != away.size:
            labels = tuple((f"[{i}]", "") for i in range(away.size))
        found = _largest_by_unit(np.abs(away), weight, labels)
        if found:
            name = kind if kinds.count(kind) == 1 else f"{kind} ({term.name})"
            listed = " and ".join(filter(None, (", ".join(found[:-1]), found[-1])))
            yield f"at the end {listed} from the goal of {name}"


def _has_goal(term: Cost | Bounded) -> bool:
    """Whether a term is zero at a goal."""
    return is_deviation(term.quantity) or (isinstance(term, Bounded) and term.is_equality)


def _largest_by_unit(away: NDArray, weight: NDArray, labels: tuple) -> list[str]:
    largest: dict[str, tuple[float, str]] = {}
    for (label, unit), x, w in zip(labels, away, weight, strict=True):
        # Not <=, so that what is not finite is told.
        if w and not x <= largest.get(unit, (-1.0, ""))[0]:
            largest[unit] = float(x), label
    return [f"{_measure(x, unit)} ({label!r})" for unit, (x, label) in largest.items()]


def _largest_control(problem: Problem, plan: Commanded) -> Iterator[str]:
    """The control that is largest beside its bound, and at how many steps one is active."""
    u = np.asarray(plan.u)
    if not u.size:
        return
    lower, upper = (
        np.asarray(bound) for bound in problem.limits.of_controls(problem.system, problem.inputs)
    )
    bound = np.broadcast_to(np.where(u < 0, lower, upper), u.shape)
    share = np.divide(np.abs(u), np.abs(bound), out=np.zeros_like(u), where=bound != 0)
    size = share if share.any() else np.abs(u)
    k, i = np.unravel_index(int(size.argmax()), u.shape)
    name, unit = problem.inputs.labels(problem.system)[i]
    said = f"the largest control is {_measure(u[k, i], unit)} ({name!r}), "
    if not (np.isfinite(lower) | np.isfinite(upper)).any():
        yield f"{said}without bounds"
        return
    width = np.where(np.isfinite(upper - lower), upper - lower, 1 + np.abs(u).max(axis=0))
    active = (u <= lower + _AT_BOUND * width) | (u >= upper - _AT_BOUND * width)
    knots = "steps" if len(u) < len(plan.t) else "knots"
    yield (
        f"{said}its bound {_measure(bound[k, i], unit)}; a bound is active at "
        f"{np.sum(active.any(axis=1))} of {len(u)} {knots}"
    )


def _measure(x: float, unit: str) -> str:
    return f"{x + 0.0:.3g} {unit}".rstrip()

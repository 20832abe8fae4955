"""The solution of a control problem, and how it is printed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer

from ..system.provenance import Leafless
from .outcome import outcome
from .problem import Problem
from .result import Result

if TYPE_CHECKING:
    from ..io.appearance.shape import Appearance


class Origin(Leafless):
    """The problem that a plan is of; None where that is lost."""

    def __init__(self, problem: Problem | None = None) -> None:
        self.problem = problem


class Plan(eqx.Module):
    """The solution of a control problem with N steps, or the best that was found.

    t (N + 1,) in s; q (N + 1, nq), v (N + 1, nv); u (N, nu), or (N + 1, nu) for linear controls.
    gains K (N, nu, nx): u_k + K dx is the best control near the plan, where dx (nx,) is the tangent
    from the plan to the point: (dq, dv), internal states, what is held from knot to knot. cost ().
    gaps (N, nx): the ends of the steps less the next points. costates (N + 1, nx): the derivative
    of the cost-to-go. multipliers: of the bounds along the motion (N, m), and at the end (m,);
    positive at upper bounds. duration () in s. z (N + 1, nz): see `difflie.control.discretization`.
    result: how the search ended. own: the internal states (N + 1, system.nz) in a tuple, which is
    empty for systems without any. origin: the problem, for what is printed.
    """

    t: jax.Array
    q: jax.Array
    v: jax.Array
    u: jax.Array
    gains: jax.Array
    cost: jax.Array
    gaps: jax.Array
    costates: jax.Array
    multipliers: tuple[jax.Array, jax.Array]
    z: jax.Array
    result: Result
    own: tuple[jax.Array, ...] = ()
    origin: Origin = eqx.field(default=Origin(), repr=False)

    @property
    def duration(self) -> jax.Array:
        """The last time () in s."""
        return self.t[-1]

    def report(
        self,
        problem: Problem,
        folder: str | os.PathLike[str],
        *,
        about: Mapping[str, object] = MappingProxyType({}),
        appearance: Appearance | None = None,
    ) -> Path:
        """Writes `report.html` and its pictures into a folder; returns the path of the page.

        The page of `difflie control`: how the search ended, the motion and the controls with their
        bounds, and what is left of the conditions of an optimum. about: more to say of its origin,
        by name. appearance: what the machine looks like, as of `difflie.io.read_appearance`; by
        default its bodies are drawn as their inertia ellipsoids. Raises OSError for a folder that
        cannot be written.
        """
        from ..view.report_page import write_html
        from .report import control_report, control_results

        results = control_results(problem, self)
        return write_html(control_report(problem, self, results, about, appearance), Path(folder))

    def __repr__(self) -> str:
        return plan_text(self) or super().__repr__()


def plan_text(plan: Any) -> str | None:
    """A `Plan` in some lines; None for one whose leaves are no arrays, such as a mask."""
    if not isinstance(plan.cost, jax.Array | np.ndarray):
        return None
    if isinstance(plan.cost, Tracer) or np.ndim(plan.cost):
        return f"Plan({plan.result})"
    problem = plan.origin.problem
    said = [] if problem is None else outcome(problem, plan)
    return "\n".join([f"Plan(cost {float(plan.cost):.6g}, {plan.result})", *said])

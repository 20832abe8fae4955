"""A plan as curves with their limits, for figures, tables and archives."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import jax
import numpy as np

from ..quantities import Curve
from ..simulate import Trajectory
from ..view.control import Bounded, plan_figure
from .problem import Problem
from .result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Planned(Protocol):
    """What is shown of a `Plan`."""

    @property
    def t(self) -> jax.Array: ...
    @property
    def q(self) -> jax.Array: ...
    @property
    def v(self) -> jax.Array: ...
    @property
    def u(self) -> jax.Array: ...
    @property
    def cost(self) -> jax.Array: ...
    @property
    def duration(self) -> jax.Array: ...
    @property
    def result(self) -> Result: ...


def curves_of(problem: Problem, plan: Planned) -> list[Bounded]:
    """q, v and u of a plan at its knots, with their limits; controls held are so over a step."""
    t, limits, topology = np.asarray(plan.t), problem.limits, problem.system.topology
    u = np.asarray(plan.u)
    held = len(u) < len(t)
    u = np.concatenate((u, u[-1:])) if held else u
    positions = np.full((2, topology.nq), np.inf) * [[-1], [1]]
    dofs = np.flatnonzero(np.isin(np.arange(topology.n_dofs), topology.mimic_dofs, invert=True))
    dofs = dofs[topology.dof_coordinate[dofs] >= 0]
    for row, bound in zip(positions, (limits.q_lower, limits.q_upper), strict=True):
        if bound is not None:
            row[topology.dof_coordinate[dofs]] = np.broadcast_to(bound, topology.n_dofs)[dofs]
    speed = np.broadcast_to(np.inf if limits.v is None else limits.v, topology.nv)
    box = [np.asarray(b) for b in limits.of_controls(problem.system, problem.inputs)]
    return [
        Bounded(Curve("q", t, np.asarray(plan.q), topology.coordinate_labels), *positions),
        Bounded(Curve("v", t, np.asarray(plan.v), topology.velocity_labels), -speed, speed),
        Bounded(
            Curve("u", t, u, problem.inputs.labels(problem.system)),
            *box,
            held=held,
        ),
    ]


def plot(problem: Problem, plan: Planned, run: Trajectory | None = None) -> Figure:
    """q, v and u of a plan over time with their limits, and the cost of every iteration.

    run: a `replay` of it, drawn as dots.
    """
    curves = curves_of(problem, plan)
    if run is not None:
        seen = np.asarray(run.q), np.asarray(run.v)
        curves[:2] = [replace(b, seen=x) for b, x in zip(curves, seen, strict=False)]
    title = f"{problem.system.name}: plan, {plan.result}"
    return plan_figure(curves, np.asarray(plan.result.costs), title)

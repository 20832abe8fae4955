"""Checks of a problem before it is compiled; of traced numbers only shapes can be checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .. import quantities as dq
from ..constraints import start_error
from ..formulations import formulation_of
from ..quantities.bounded import Bounded
from ..system.frame import Frame
from ..system.named_frames import placement
from ..system.shown import some
from ..system.system import System
from ..system.validation import ModelError, check_shape
from .costs import Cost
from .problem import Problem

# By how much a start may lie outside of its bounds, relative to them.
_TOLERANCE = 1e-9


def check_problem(problem: Problem) -> None:
    """Raises ValueError for a problem that cannot be solved as it stands; see `solve`."""
    p = problem
    formulation_of(p.method, p.system)
    _check_frames(p)
    _check_sizes(p)
    concrete = not any(isinstance(a, Tracer) for a in jax.tree.leaves(p))
    if not concrete:
        return
    _check_numbers(p)
    start_error(p.system, p.q0, p.v0)
    for name, lower, upper in _all_bounds(p):
        _check_pair(name, lower, upper)
    _check_efforts(p)
    _check_start(p)
    for bound in (*p.running, *p.final):
        if isinstance(bound, Bounded) and bound.is_equality:
            _check_reach(p, bound)


def _check_frames(p: Problem) -> None:
    for term in (*p.running, *p.final):
        is_frame = lambda x: isinstance(x, Frame)  # noqa: E731
        for frame in filter(is_frame, jax.tree.leaves(term, is_leaf=is_frame)):
            if frame.body is not None:
                try:
                    p.system.frame(frame.body)
                except ModelError as error:
                    raise ValueError(f"Problem: {term.name}: {error}") from None


def _check_sizes(p: Problem) -> None:
    """Every term is of numbers that fit its weight, its goal and its bounds."""
    at_start = jnp.zeros(p.nu, p.system.dtype)
    terms = [("running", term, at_start) for term in p.running]
    terms += [("final", term, None) for term in p.final]
    for where, term, u in terms:  # all goals before a function of the user is called
        _check_goal(p, where, term, u)
    for where, term, u in terms:
        value = _shape_of(p, where, term, u)
        given = (term.weight,) if isinstance(term, Cost) else (term.lower, term.upper)
        for array in given:
            if jnp.shape(array) not in ((), value.shape):
                kind = "weight" if isinstance(term, Cost) else "bound"
                raise ValueError(
                    f"Problem: {where}: {term.name} has {value.size} entries, and its {kind} "
                    f"the shape {jnp.shape(array)}; give one number, or one for each entry"
                )
    limits = p.limits
    for name, array, size in (
        ("q_lower", limits.q_lower, p.system.topology.n_dofs),
        ("q_upper", limits.q_upper, p.system.topology.n_dofs),
        ("v", limits.v, p.system.nv),
        ("u_lower", limits.u_lower, p.nu),
        ("u_upper", limits.u_upper, p.nu),
    ):
        if array is not None and jnp.shape(array) != ():
            check_shape("Problem", f"limits.{name}", jnp.shape(array), (size,))
    made = jax.eval_shape(lambda u: p.inputs.command(p.system, p.q0, p.v0, u, p.dt), _controls(p))
    if made.shape != (p.system.nu,):
        raise ValueError(
            f"Problem: the inputs make a command of shape {made.shape}; {p.system.name} takes one "
            f"of shape {(p.system.nu,)}"
        )


def _controls(p: Problem) -> jax.Array:
    return jnp.zeros(p.nu, p.system.dtype)


def _shape_of(p: Problem, where: str, term: Any, u: Any) -> Any:
    try:
        return eqx.filter_eval_shape(evaluated, term, p.system, p.q0, p.v0, u, p.dt)
    except _RAISED as error:
        reason = str(error).split("\n")[0]
        hint = "; at the end there is no control, and u is None" * _only_with_control(p, term, u)
        raise ValueError(
            f"Problem: {where}: {term.name} cannot be evaluated at the start: {reason}{hint}"
        ) from error


_RAISED = TypeError, ValueError, AttributeError


def _only_with_control(p: Problem, term: Any, u: Any) -> bool:
    """Whether a term that cannot be evaluated could be with a control."""
    if u is not None:
        return False
    try:
        eqx.filter_eval_shape(evaluated, term, p.system, p.q0, p.v0, _controls(p), p.dt)
    except _RAISED:
        return False
    return True


def _check_goal(p: Problem, where: str, term: Any, u: Any) -> None:
    """A goal has as many numbers as what it is of."""
    measured, t = term.quantity, p.system.topology
    if isinstance(measured, dq.StateDeviation | dq.ConfigurationDeviation):
        goals = [("q", measured.q, (p.system.nq,), t.coordinate_labels)]
        if isinstance(measured, dq.StateDeviation) and measured.v is not None:
            goals.append(("v", measured.v, (p.system.nv,), t.velocity_labels))
    elif isinstance(measured, dq.Deviation) and np.shape(measured.goal):
        inner = measured.quantity
        try:
            found = eqx.filter_eval_shape(evaluated, Cost(inner), p.system, p.q0, p.v0, u, p.dt)
        except _RAISED:
            return  # which is told of the term
        goals = [("goal", measured.goal, found.shape, inner.labels(p.system))]
    else:
        return
    for name, goal, shape, labels in goals:
        # Of a quantity with rows and columns the goal has them, too.
        if np.size(goal) != shape[0] or (name != "goal" and np.ndim(goal) > 1):
            each = f", for {some([repr(label) for label, _ in labels])}" if labels else ""
            raise ValueError(
                f"Problem: {where}: {name} of {type(term).__name__} has the shape "
                f"{np.shape(goal)}, needed is {shape}{each}"
            )


@eqx.filter_jit  # so that a term is traced once, however often its problem is solved
def evaluated(term: Any, system: Any, q: Any, v: Any, u: Any, t: Any) -> Any:
    """The residual (n,) of a cost, or the entries (n,) of a bound."""
    return (term.residual if isinstance(term, Cost) else term.value)(system, q, v, u, t)


def _all_bounds(p: Problem) -> Iterator[tuple[str, Any, Any]]:
    limits = p.limits
    if limits.q_lower is not None and limits.q_upper is not None:
        yield "limits of q", limits.q_lower, limits.q_upper
    if limits.v is not None:
        yield "limits of v", -limits.v, limits.v
    yield "limits of u", *limits.of_controls(p.system, p.inputs)
    for term in (*p.running, *p.final):
        if isinstance(term, Bounded):
            yield f"bounds of {term.name}", term.lower, term.upper


def _check_pair(name: str, lower: Any, upper: Any) -> None:
    lower, upper = np.broadcast_arrays(np.asarray(lower), np.asarray(upper))
    if np.any(np.isnan(lower)) or np.any(np.isnan(upper)):
        raise ValueError(f"Problem: the {name} are not numbers; give infinite ones for no bound")
    if np.any(lower > upper):
        i = tuple(int(n) for n in np.argwhere(lower > upper)[0])
        raise ValueError(
            f"Problem: the {name} contradict each other: the lower one{list(i) or ''} is "
            f"{lower[i]:g}, the upper one {upper[i]:g}"
        )


def _check_efforts(p: Problem) -> None:
    """A limit of zero, which some files have for none, would leave nothing to control with."""
    lower, upper = (np.asarray(bound) for bound in p.limits.of_controls(p.system, p.inputs))
    labels = p.inputs.labels(p.system)
    for i in np.flatnonzero((lower == 0) & (upper == 0))[:1]:
        raise ValueError(
            f"Problem: the limits of the control {labels[i][0]!r} are both zero; give it other "
            "ones by Limits(u_lower=..., u_upper=...), infinite for none, or leave it out"
        )


def _check_start(p: Problem) -> None:
    """The start keeps the limits of the state."""
    t, limits = p.system.topology, p.limits
    own = np.flatnonzero(np.isin(np.arange(t.n_dofs), t.mimic_dofs, invert=True))
    own = own[t.dof_coordinate[own] >= 0]
    positions = np.asarray(p.q0)[t.dof_coordinate[own]]
    names = t.velocity_labels
    shape, inf = (t.n_dofs,), np.inf
    lower = np.broadcast_to(-inf if limits.q_lower is None else limits.q_lower, shape)[own]
    upper = np.broadcast_to(inf if limits.q_upper is None else limits.q_upper, shape)[own]
    labels = [names[t.dof_velocity[i]][0] for i in own]
    _check_inside("position", labels, positions, lower, upper)
    if limits.v is not None:
        most = np.broadcast_to(limits.v, (t.nv,))
        _check_inside("velocity", [name for name, _ in names], np.asarray(p.v0), -most, most)


def _check_inside(what: str, names: Any, value: Any, lower: Any, upper: Any) -> None:
    slack = _TOLERANCE * (1 + np.abs(value))
    for i in np.flatnonzero((value < lower - slack) | (value > upper + slack))[:1]:
        raise ValueError(
            f"Problem: the start is outside of the limits: the {what} of {names[i]!r} is "
            f"{value[i]:.6g}, and it must be between {lower[i]:.6g} and {upper[i]:.6g}"
        )


def _check_numbers(p: Problem) -> None:
    """Goals and weights are finite, weights not negative; bounds may be infinite."""
    for term in (*p.running, *p.final):
        measured = (term.quantity, term.weight) if isinstance(term, Cost) else term.quantity
        for array in jax.tree.leaves(measured):
            if eqx.is_inexact_array(array) and not np.all(np.isfinite(array)):
                raise ValueError(
                    f"Problem: a number of {term.name} is {np.asarray(array).tolist()}; its goal "
                    "and its weight must be finite"
                )
        if isinstance(term, Cost) and np.any(np.asarray(term.weight) < 0):
            raise ValueError(f"Problem: {term.name} has a negative weight; none may be negative")


def not_finite(p: Problem) -> ValueError:
    """The error of costs that are not finite at the guess, which names the term."""
    controls = jnp.zeros(p.nu, p.system.dtype)
    for terms, u in ((p.running, controls), (p.final, None)):
        for term in terms:
            value = _value(term.quantity, p.system, p.q0, p.v0, u, p.steps * p.dt)
            if not np.all(np.isfinite(value)):
                return ValueError(
                    f"Problem: {term.name} is {np.asarray(value).tolist()} at the start; it must "
                    "be finite where the search begins"
                )
    return ValueError(
        "solve: at the guess a cost is not finite, or a step of the machine is not solved; give "
        "another guess, a smaller dt, or another method"
    )


@eqx.filter_jit
def _value(quantity: Any, system: System, q: Any, v: Any, u: Any, t: Any) -> jax.Array:
    return jnp.ravel(quantity(system, q, v, u, t))


def _check_reach(p: Problem, bound: Bounded) -> None:
    """The goal of a frame is not farther away than the machine is long."""
    quantity, goal, frame = bound.quantity, None, None
    if isinstance(quantity, dq.PoseDeviation):
        frame, goal = quantity.frame, np.asarray(quantity.goal)[:3, 3]
    elif isinstance(quantity, dq.Deviation) and isinstance(quantity.quantity, dq.Origin):
        frame, goal = quantity.quantity.frame, np.asarray(quantity.goal)
    if frame is None or goal is None or frame.body is None or goal.shape != (3,):
        return
    body, inner = placement(p.system, frame, p.system.dtype)
    if body is None:
        return
    t, positions = p.system.topology, np.asarray(p.system.joints.position)
    length, b = float(np.linalg.norm(inner.translation.to_array())), t.bodies.index(body)
    while b != -1:
        if any(kind != "revolute" for kind in t.kinds[b]) or len(t.kinds[b]) > 1:
            return
        if t.parents[b] == -1:
            break
        length += float(np.linalg.norm(positions[b]))
        b = t.parents[b]
    away = float(np.linalg.norm(goal - positions[b]))
    if away > length:
        raise ValueError(
            f"Problem: the goal of {bound.name} is out of reach: it is {away:.4g} m from the first "
            f"joint, and the machine reaches {length:.4g} m at most"
        )

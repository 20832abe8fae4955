"""The problem of optimal control: what moves, for how long, at what cost, within what bounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from ..constraints import Projection, Stabilisation
from ..deprecated import renamed
from ..integrators import Method, SemiImplicitEuler
from ..quantities.bounded import Bounded
from ..simulate.arguments import checked_dt, chosen_method
from ..simulate.resolution import look_once
from ..system.arguments import checked
from ..system.shown import some
from ..system.system import System
from ..system.validation import format_value
from .costs import Cost, Duration, as_cost
from .inputs import Commands, Input, as_input
from .limits import Limits

Terms = Sequence[Any]


@renamed(aimed="with_goal")
class Problem(eqx.Module):
    """Controls u_0 ... u_{N-1} (nu,) of least cost for the motion of a system from q0, v0.

        sum_k dt l(x_k, u_k) + l_N(x_N)  ->  min,     x_{k+1} = step(x_k, u_k),  x_0 = (q0, v0)

    system; q0 (nq,), v0 (nv,): its start. dt in s, steps N: the horizon. running: costs and bounds
    along the motion, such as `Pose(...)` or `MinDistance(...)`; a function (system, q, v, u, t) ->
    residual is a cost, sum r^2 / 2. final: those at the end, where u is None. limits: of positions,
    velocities and controls, by default what the inputs can do by themselves; those in the robot's
    file are `Limits.of(system)`. inputs: what the controls are, one or several of `Motors`,
    `Thrusters`, `Map`; by default the system's own commands.

    method: an integrator. A machine with constraints needs one that keeps them, by the
    stabilisation. interpolation: "constant" controls within a step, or "linear" ones, then there
    are N + 1 of them, and a step costs the mean of l over its controls. duration: None, or two
    numbers, the least and the largest duration of the whole horizon in s, if that is free; dt is
    then the first guess.

    Every number is a leaf. Raises ValueError or TypeError for wrong shapes, values that are not
    finite, dt <= 0, no steps, a term that is none, and actuators with a memory.

    >>> cart = dl.chain([dl.Body(name="cart", joint=dl.Prismatic(axis=(1, 0, 0)), mass=2.0)])
    >>> costs = dict(running=[dl.control.Effort()], final=[dl.control.State([1.0], weight=1e3)])
    >>> problem = dl.control.Problem(cart, [0.0], [0.0], dt=0.1, steps=10, **costs)
    >>> problem.nu, problem.steps
    (1, 10)
    """

    system: System
    q0: jax.Array
    v0: jax.Array
    dt: jax.Array
    running: tuple[Cost | Bounded, ...]
    final: tuple[Cost | Bounded, ...]
    limits: Limits
    inputs: Input
    duration: tuple[jax.Array, jax.Array] | None
    stabilisation: Stabilisation
    steps: int = eqx.field(static=True)
    method: Method = eqx.field(static=True)
    interpolation: str = eqx.field(static=True)

    def __init__(
        self,
        system: System,
        q0: Any,
        v0: Any,
        *,
        dt: Any,
        steps: int,
        running: Terms = (),
        final: Terms = (),
        limits: Limits = Limits(),
        inputs: Input | Sequence[Input] = Commands(),
        method: Method | str = SemiImplicitEuler(),
        interpolation: str = "constant",
        duration: Sequence[Any] | None = None,
        stabilisation: Stabilisation = Projection(),
    ) -> None:
        q0, v0 = checked(system, q0=(q0, (system.nq,)), v0=(v0, (system.nv,)))
        self.system, self.q0, self.v0 = system, q0, v0
        self.dt = checked_dt("Problem", dt, system.dtype)
        if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
            raise ValueError(f"Problem: steps is {steps!r}; it must be a whole number, 1 or more")
        self.steps = int(steps)
        self.running, self.final = _terms("running", running), _terms("final", final)
        if not any(isinstance(term, Cost) for term in (*self.running, *self.final)):
            raise ValueError("Problem: there is no cost; give one in running or final")
        if any(isinstance(term, Duration) for term in self.running):
            raise ValueError(
                "Problem: Duration is among the running costs, but the time counts once, at the "
                "end; give it in final"
            )
        if not isinstance(limits, Limits):
            raise TypeError(
                f"Problem: limits is {format_value(limits)}; give a difflie.control.Limits"
            )
        self.limits, self.inputs = limits, as_input(inputs)
        self.method, self.stabilisation = chosen_method(method), stabilisation
        if interpolation not in ("constant", "linear"):
            raise ValueError(
                f"Problem: interpolation is {format_value(interpolation)}; it is 'constant' or "
                "'linear'"
            )
        self.interpolation = interpolation
        look_once("Problem", self.method, system, q0, v0, self.dt)
        self.duration = None if duration is None else _bounds_of_time(duration, system.dtype)
        for actuator in system.actuators:
            if actuator.has_state:
                raise ValueError(
                    f"Problem: {actuator} has a memory, and the state of a problem is q and v; "
                    "take an actuator without delay and lag"
                )

    def __repr__(self) -> str:
        return problem_text(self) or super().__repr__()

    @property
    def nu(self) -> int:
        """The number of controls."""
        return self.inputs.size(self.system)

    def replace(self, **changes: Any) -> Problem:
        """The same with other arguments, all checked again."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        if unknown := changes.keys() - fields.keys():
            raise TypeError(
                f"Problem.replace: {format_value(sorted(unknown)[0])} is no argument; it has "
                f"{', '.join(fields)}"
            )
        return Problem(**{**fields, **changes})

    def with_goal(self, goal: ArrayLike) -> Problem:
        """The same with another goal in all terms whose goal has the shape of this one.

        Raises ValueError if there is none.
        """
        aim = lambda terms: tuple(term.with_goal(goal) for term in terms)  # noqa: E731
        running, final = aim(self.running), aim(self.final)
        if all(
            new is old
            for new, old in zip((*running, *final), (*self.running, *self.final), strict=True)
        ):
            raise ValueError(
                f"Problem: no term has a goal of shape {jnp.shape(goal)}; give one of the shape of "
                "a Pose, a Point, or another goal of the problem"
            )
        return self.replace(running=running, final=final)


def _terms(name: str, terms: Terms) -> tuple[Cost | Bounded, ...]:
    if not isinstance(terms, list | tuple):
        raise TypeError(
            f"Problem: {name} is {format_value(terms)}; give a list of costs and bounds"
        )
    return tuple(term if isinstance(term, Bounded) else as_cost(term) for term in terms)


def _bounds_of_time(duration: Any, dtype: Any) -> tuple[jax.Array, jax.Array]:
    if not isinstance(duration, list | tuple) or len(duration) != 2:
        raise ValueError(
            f"Problem: duration is {format_value(duration)}; give the least and the largest one in "
            "s"
        )
    least, most = (checked_dt("Problem: duration", t, dtype) for t in duration)
    if not any(isinstance(t, Tracer) for t in (least, most)) and least > most:
        raise ValueError(f"Problem: the least duration {least} is more than the largest {most}")
    return least, most


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

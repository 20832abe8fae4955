"""The function `simulate`: its arguments checked, its loop run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from numpy.typing import ArrayLike

from ..constraints import Projection, Stabilisation, start_error
from ..formulations import formulation_of
from ..integrators import RKMK4, Method
from ..native import staging
from ..quantities.reductions import Reduction
from ..system.arguments import check_system, checked_arrays
from ..system.frozen import is_frozen
from ..system.kinematic_tree import Tree
from ..system.system import System, carried_tree
from ..system.user_functions import users_code, watched
from .adjoint import Adjoint, Direct
from .arguments import (
    check_memory,
    checked_reductions,
    checked_times,
    chosen_method,
    started_at,
)
from .error_estimate import Refinement
from .events import Until, events_of
from .free_flight_check import flies
from .inputs import Input, Sampled, check_clock, finer_input, sampled_input
from .loop import Run, trajectory
from .resolution import may_exceed, warn_of
from .trajectory import Trajectory, repeated_by

_PROJECTION = Projection()


def simulate(
    system: System,
    q0: ArrayLike,
    v0: ArrayLike,
    *,
    z0: ArrayLike | None = None,
    dt: ArrayLike = 1e-3,
    steps: int | None = None,
    duration: float | None = None,
    method: Method | str = RKMK4(),
    control: Input = None,
    wrench: Input = None,
    save_every: int = 1,
    until: Until = None,
    reductions: Mapping[str, Reduction] | None = None,
    adjoint: Adjoint = Direct(),
    stabilisation: Stabilisation = _PROJECTION,
    progress: Callable[[int, int], None] | None = None,
) -> Trajectory:
    """The motion of a system from the state q0 (nq,), v0 (nv,), in steps of dt (s).

    z0 (nz,): the internal states at the start, of a system with any, in the order of
    `system.state_labels`; by default those that its parts hold.

    Main arguments:
      steps, duration: how many, by default 1000, or in its place the time in s that they take: a
        whole number of dt to rounding, also of adaptive methods, which divide each step.
      method: an integrator such as `RKMK4()`, or its name (see `register`).
      control: the commands (nu,) of the system's actuators, in their order and units; without
        actuators the generalised force (nv,) in N m or N. Springs, damping and friction are added
        to it. A function of (t, q, v), a `ZeroOrderHold` or `FirstOrderHold`, an array (nu,) that
        stays, an array (steps, nu) of values held over each step, a digital controller with its
        rate and memory (`Sampled`), or None for zero. The command of an actuator with a memory,
        such as a delay, is held over each step in any case.
      wrench: external wrenches (nb, 6) in N m and N on the bodies, in body frames; as `control`.

    Other arguments:
      save_every: save every k-th state; the trajectory has steps // save_every + 1 of them.
      until: an event, or a list of them: functions of (t, q, v), positive at the start. The motion
        stops at the first zero of one of them, found to rounding by a shorter last step; see
        `Trajectory.result.ending`. Later rows repeat the last one, its time included. In a batch
        each run stops by itself. A function that is negative only within a step is not noticed; NaN
        is an event. Where a function jumps over zero the time of the end has no derivatives.
      reductions: what is kept of quantities along all steps, until an event or a failed step, by
        names of your choice, such as {"drift": Drift(Energy())}: see `difflie.quantities`. Their
        values are in `Trajectory.reduced`, also where save_every leaves the motion out.
      adjoint: how the loop is differentiated: `Direct`, `RecursiveCheckpoint` with a budget of
        memory, `Forward`, or, for methods that are symmetric in time, `Reversible`.
      stabilisation: how explicit and Gauss methods stay on constraints (see `constrain`).
      progress: called as progress(steps done, steps) now and then in a long run whose arguments
        are all concrete. Such a run is made in pieces, between which it can be interrupted.

    What a function closes over or reads is part of the compiled program, which is compiled anew
    after a change of it. Make what changes often an argument: a leaf of an Equinox module.

    Differentiable with respect to every leaf of the system, the state, dt and the inputs, in
    forward and reverse mode as the adjoint allows. Raises ValueError or TypeError for a wrong shape
    or precision, a concrete NaN, dt <= 0, a duration that is no whole number of steps (with the
    nearest ones), an unknown method (with the nearest name) or one that the adjoint does not
    support, an actuator with a memory if the adjoint steps back, and a concrete start that violates
    a constraint, which it names, or at which an event has come. `Trajectory.result` says what came
    in the motion (a state that is not finite, a step that is not solved, a singular configuration,
    an exceeded limit) and of a traced start; the state stays as before the first step that failed.

    >>> ball = dl.chain([dl.Body(name="ball", joint=dl.Prismatic(), mass=2.0)])
    >>> run = dl.simulate(ball, [1.0], [0.0], dt=0.01, duration=0.2)
    >>> print(run.q.shape, run.q[-1].round(4), run.result.ok)
    (21, 1) [0.8038] True
    """
    check_system(system)
    method = chosen_method(method)
    kind = formulation_of(method, system)
    adjoint.check(method, kind.time_symmetric(method), _remembering(system, control))
    q0, v0 = checked_arrays(system, q0=(q0, (system.nq,)), v0=(v0, (system.nv,)))
    system = started_at(system, z0)
    dt, steps, save_every = checked_times(system, dt, steps, duration, save_every)
    check_memory(system, steps // save_every, control is not None)
    inputs = _inputs(system, control, wrench, dt, steps)
    events = () if until is None else events_of(system, until, (jnp.zeros_like(dt), q0, v0))
    start, how = (_tree(system, dt), q0, v0, dt), (kind, method, adjoint, stabilisation)
    run = _run(system, start, *inputs, events, checked_reductions(reductions, adjoint, method), how)
    made = trajectory(run, _start_error(system, run), steps, save_every, progress)
    warn_of(made.result.resolution, "simulate")
    if system.not_modelled:
        result = replace(made.result, not_modelled=system.not_modelled)
        made = replace(made, result=result)
    finer = functools.partial(_finer, system, run, steps, save_every)
    return repeated_by(made, Refinement(finer, method.order, method.name))


def _tree(system: System, dt: jax.Array) -> Tree | System:
    """The tree of a system, made once for one whose numbers are known and cannot change.

    The system itself where making the tree is a part of a program, and so of the run's.
    """
    if is_frozen(system) or carried_tree(system) is not None:
        return Tree.of(system)
    if (known := vars(system).get(_KNOWN)) is not None and not isinstance(dt, Tracer):
        return known
    if staging() or any(isinstance(a, Tracer) for a in jax.tree.leaves((system, dt))):
        return system
    known = Tree.of(system)
    leaves = jax.tree.leaves(known)
    if all(isinstance(a, jax.Array) and not isinstance(a, Tracer) for a in leaves):
        object.__setattr__(system, _KNOWN, known)
    return known


# The attribute of a system with its tree. Copies with other numbers have none.
_KNOWN = "_tree_of_simulate"


def _start_error(system: System, run: Run) -> Any:
    """The error of the start, see `start_error`; states without constraints have been checked.

    None where the tree is not made yet, and the run looks at its start.
    """
    tree, q0, v0, _ = run.start
    traced = any(isinstance(a, Tracer) for a in jax.tree.leaves((system, q0, v0)))
    if traced and isinstance(tree, System):
        return None
    if traced or system.constraints:
        return start_error(tree.carried() if isinstance(tree, Tree) else system, q0, v0)
    return np.zeros((), q0.dtype)


def _remembering(system: System, control: Input) -> list[Any]:
    """What has a memory: actuators of the system, and a sampled control."""
    actuators: list[Any] = [actuator for actuator in system.actuators if actuator.has_state]
    return actuators + ([control] if isinstance(control, Sampled) else [])


def _inputs(
    system: System, control: Input, wrench: Input, dt: jax.Array, steps: int
) -> tuple[Any, Any]:
    """The control and the wrench, checked, of which samples are arrays for all steps."""
    check_clock(control, wrench, dt)
    shapes = (system.nu,), (len(system.body_names), 6)
    return (
        sampled_input(system, "control", control, shapes[0], steps),
        sampled_input(system, "wrench", wrench, shapes[1], steps),
    )


def _run(
    system: System,
    start: Any,
    control: Input,
    wrench: Input,
    events: Any,
    kept: dict[str, Reduction],
    how: Any,
) -> Run:
    """The loop with users' functions watched for changes."""
    method = how[1]
    control, wrench = _watched(control), watched(wrench)
    events = tuple(map(watched, events))
    controller = control.controller if isinstance(control, Sampled) else None
    quantities = [r.quantity for r in kept.values()]
    code = users_code(system, control, controller, wrench, *events, *quantities)
    looked_at = ("resolution",) * may_exceed(method, system)
    looked_at += ("flight",) * flies(system, control is not None or wrench is not None)
    return Run(start, control, wrench, events, kept, how, looked_at, code)


def _watched(control: Input) -> Any:
    if isinstance(control, Sampled):
        return replace(control, controller=watched(control.controller))
    return watched(control)


def _finer(system: System, run: Run, steps: int, save_every: int, n: int) -> Trajectory:
    """The same run with steps n times as short."""
    (_, q0, v0, dt), control, wrench, events, kept, (_, method, adjoint, stabilisation), *_ = run
    return simulate(
        replace(system, actuators=tuple(a.refined(n) for a in system.actuators)),
        q0,
        v0,
        dt=dt / n,
        steps=n * steps,
        method=method.refined(n),
        control=finer_input(control, n),
        wrench=finer_input(wrench, n),
        save_every=n * save_every,
        until=events or None,
        reductions=kept,
        adjoint=adjoint,
        stabilisation=stabilisation,
    )

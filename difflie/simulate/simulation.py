"""The function `simulate`: its arguments checked, its loop run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
from numpy.typing import ArrayLike

from ..constraints import Projection, Stabilisation, start_error
from ..formulations import formulation_of
from ..integrators import RKMK4, Method
from ..quantities.reductions import Reduction
from ..system.arguments import check_system, checked_arrays
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.user_functions import users_code, watched
from .adjoint import Adjoint, Direct
from .arguments import (
    check_forgetting,
    check_memory,
    checked_counts,
    checked_dt,
    checked_reductions,
    chosen_method,
)
from .error_estimate import Refinement
from .events import Until, events_of
from .free_flight_check import flies
from .inputs import Input, Sampled, check_clock, finer_input, sampled_input
from .loop import Run, trajectory
from .resolution import may_exceed, warn_of
from .trajectory import Trajectory

_PROJECTION = Projection()


def simulate(
    system: System,
    q0: ArrayLike,
    v0: ArrayLike,
    *,
    dt: ArrayLike = 1e-3,
    steps: int = 1000,
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

    Main arguments:
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
        stops at the first zero of one of them, found to rounding by a shorter last step.
        `Trajectory.result.ending` says which event came, and when; rows after the end repeat the
        last one, its time included. In a batch each run stops by itself. A function that is
        negative only within a step is not noticed; NaN counts as an event. Where a function jumps
        over zero the time of the end has no valid derivatives. Without an event all steps are made.
      reductions: what is kept of quantities along all steps, by names of your choice, such as
        {"drift": Drift(Energy())}: see `difflie.quantities`. Their values are in
        `Trajectory.reduced`, also where save_every leaves the motion out. After an event or a
        failed step nothing more is counted.
      adjoint: how the loop is differentiated: `Direct`, `RecursiveCheckpoint` with a budget of
        memory, `Forward`, or, for methods that are symmetric in time, `Reversible`.
      stabilisation: how explicit and Gauss methods stay on the constraints of a system with
        constraints (see `constrain`).
      progress: called as progress(steps done, steps) now and then in a long run whose arguments
        are all concrete. Such a run is made in pieces, between which it can be interrupted.

    What a function closes over or reads is part of the compiled program. It is compared at every
    call, and after a change, as of a global number, an attribute or an entry of an array of NumPy,
    the program is compiled anew. Make what changes often an argument: a leaf of an Equinox module.

    Differentiable with respect to every leaf of the system, the state, dt and the inputs, in
    forward and reverse mode as the adjoint allows. Raises ValueError or TypeError for a wrong shape
    or precision, a concrete NaN, dt <= 0, an unknown method (with the nearest name) or one that the
    adjoint does not support, an actuator with a memory if the adjoint steps back, and a concrete
    start that violates a constraint, which it names, or at which an event has come. What happens
    during the motion (a state that is not finite, a step that is not solved, a singular
    configuration, an exceeded limit) is reported in `Trajectory.result`, as is a traced start that
    violates a constraint; the state stays as it was before the first step that failed.

    >>> ball = dl.chain([dl.Body(name="ball", joint=dl.Prismatic(), mass=2.0)])
    >>> run = dl.simulate(ball, [1.0], [0.0], dt=0.01, steps=20)
    >>> print(run.q.shape, run.q[-1].round(4), run.result.ok)
    (21, 1) [0.8038] True
    """
    check_system(system)
    method = chosen_method(method)
    kind = formulation_of(method, system)
    remembering: list[Any] = [actuator for actuator in system.actuators if actuator.has_state]
    remembering += [control] if isinstance(control, Sampled) else []
    adjoint.check(method, kind.time_symmetric(method), remembering)
    q0, v0 = checked_arrays(system, q0=(q0, (system.nq,)), v0=(v0, (system.nv,)))
    steps, save_every = checked_counts(steps, save_every)
    check_memory(system, steps // save_every, control is not None)
    dt = checked_dt("simulate", dt, system.dtype)
    check_forgetting(system, dt, steps)
    check_clock(control, wrench, dt)
    n_bodies = len(system.body_names)
    control = sampled_input(system, "control", control, (system.nu,), steps)
    wrench = sampled_input(system, "wrench", wrench, (n_bodies, 6), steps)
    events = events_of(system, until, (jnp.zeros_like(dt), q0, v0))
    kept = checked_reductions(reductions, adjoint)
    control, wrench = _watched(control), watched(wrench)
    events = tuple(map(watched, events))
    controller = control.controller if isinstance(control, Sampled) else None
    quantities = [r.quantity for r in kept.values()]
    code = users_code(system, control, controller, wrench, *events, *quantities)
    tree = Tree.of(system)
    error = start_error(tree.carried(), q0, v0)
    state = tree, q0, v0, dt
    looked_at = ("resolution",) * may_exceed(method, system)
    looked_at += ("flight",) * flies(system, control is not None or wrench is not None)
    how = kind, method, adjoint, stabilisation
    run = Run(state, control, wrench, events, kept, how, looked_at, code)
    made = trajectory(run, error, steps, save_every, progress)
    warn_of(made.result.resolution, "simulate")
    finer = functools.partial(_finer, system, run, steps, save_every)
    return replace(made, refinement=Refinement(finer, method.order, method.name))


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

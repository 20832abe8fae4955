"""The function `simulate`: its arguments checked, its loop run."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..constraints import Projection, Stabilisation, start_error
from ..formulations import formulation_of
from ..integrators import RKMK4, Method
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.validation import checked
from .adjoint import Adjoint, Direct
from .error_estimate import Refinement
from .events import Until, events_of
from .inputs import Input, checked_dt, finer_input, sampled_input
from .loop import Run, trajectory
from .step import chosen_method
from .trajectory import Trajectory

_PROJECTION = Projection()


def simulate(
    system: System,
    q0: Any,
    v0: Any,
    *,
    dt: Any = 1e-3,
    steps: int = 1000,
    method: Method | str = RKMK4(),
    control: Input = None,
    wrench: Input = None,
    save_every: int = 1,
    until: Until = None,
    adjoint: Adjoint = Direct(),
    stabilisation: Stabilisation = _PROJECTION,
    progress: Callable[[int, int], None] | None = None,
) -> Trajectory:
    """The motion of a system from the state q0 (nq,), v0 (nv,), in steps of dt (s).

    Main arguments:
      method: an integrator such as `RKMK4()`, or its name (see `register`).
      control: what is commanded (nu,) to the actuators of the system, in their order and units,
        or without actuators the generalised force (nv,) in N m or N; springs, damping and friction
        are added to it. A function of (t, q, v), a `ZeroOrderHold` or `FirstOrderHold`, an array
        (steps, nu) of values held over each step, or None for zero. The command of an actuator with
        a memory, such as a delay, is held over each step in any case.
      wrench: external wrenches (nb, 6) on the bodies, in body frames; given as `control` is.

    Other arguments:
      save_every: save every k-th state; the trajectory has steps // save_every + 1 of them.
      until: an event, or a list of them: functions of (t, q, v), positive at the start. At the
        first zero of one of them the motion stops; it is found to rounding, by a last step that is
        shorter. `Trajectory.result.ending` says which came, and when; rows after the end repeat it,
        in their times as well. In a batch each run stops for itself. What is zero or negative only
        within a step is not seen; what is no number has come. Where a function jumps over zero the
        time of the end has no right derivatives. Where none comes the motion has all its steps.
      adjoint: how the loop is differentiated: `Direct`, `RecursiveCheckpoint` with a budget of
        memory, `Forward`, or, for methods that are symmetric in time, `Reversible`.
      stabilisation: how explicit and Gauss methods stay on the constraints of a system that has
        some (see `constrain`).
      progress: called now and then in a run of many steps whose arguments are all concrete, as
        progress(steps done, steps). Such a run is made in pieces, between which it can be stopped.

    Differentiable with respect to every leaf of the system, the state, dt and the inputs, in
    forward and reverse mode as the adjoint allows. Raises ValueError or TypeError for a wrong shape
    or precision, a concrete NaN, dt <= 0, an unknown method (with the nearest name) or one that the
    adjoint does not differentiate, an actuator with a memory where it steps back, a concrete start
    that breaks a constraint, which it names, or at which an event has come. What happens on the way
    (a state that is not finite, a step that is not solved, a singular configuration, a limit that
    is left), and a traced start that breaks a constraint, stands in `Trajectory.result`; a motion
    stays where it was before the first step that fails.
    """
    checked(system)
    method = chosen_method(method)
    remembering = [actuator for actuator in system.actuators if actuator.remembers]
    adjoint.check(method, formulation_of(method, system).time_symmetric(method), remembering)
    q0, v0 = checked(system, q0=(q0, (system.nq,)), v0=(v0, (system.nv,)))
    steps, save_every = _count("steps", steps), _count("save_every", save_every)
    if save_every > steps:
        raise ValueError(
            f"simulate: save_every is {save_every} and there are {steps} steps, so that no step is "
            "saved; save every one of them, or take more"
        )
    saved_commands = (control is not None) + bool(remembering)
    width = 1 + system.nq + system.nv + saved_commands * system.nu
    _check_memory(system, steps // save_every, width)
    dt = checked_dt("simulate", dt, system.dtype)
    if not isinstance(dt, Tracer):
        for actuator in remembering:
            for fault in actuator.forgets(float(dt), steps):
                raise ValueError(f"simulate: {actuator}: {fault}")
    n_bodies = len(system.body_names)
    control = sampled_input(system, "control", control, (system.nu,), steps)
    wrench = sampled_input(system, "wrench", wrench, (n_bodies, 6), steps)
    events = events_of(system, until, (jnp.zeros_like(dt), q0, v0))
    error = start_error(system, q0, v0)
    state = Tree.of(system), q0, v0, dt
    run = Run(state, control, wrench, events, (method, adjoint, stabilisation))
    made = trajectory(run, error, steps, save_every, progress)

    def finer(n: int) -> Trajectory:
        """The same run with steps n times as short."""
        return simulate(
            replace(system, actuators=tuple(a.finer(n) for a in system.actuators)),
            q0,
            v0,
            dt=dt / n,
            steps=n * steps,
            method=method.finer(n),
            control=finer_input(control, n),
            wrench=finer_input(wrench, n),
            save_every=n * save_every,
            until=events or None,
            adjoint=adjoint,
            stabilisation=stabilisation,
        )

    return replace(made, refinement=Refinement(finer, method.order))


# Steps are counted with 32 bits, and the last number stands for never.
_MOST_STEPS = np.iinfo(np.int32).max - 1


def _count(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"simulate: {name} is {value!r}; it must be a whole number, 1 or more")
    if value > _MOST_STEPS:
        raise ValueError(f"simulate: {name} is {value}; it must be at most {_MOST_STEPS}")
    return int(value)


def _check_memory(system: System, saved: int, width: int) -> None:
    """Raises ValueError for more saved rows, of so many numbers, than there is memory for."""
    size = (saved + 1) * width * system.dtype.itemsize
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # where the machine does not tell
        return
    if size > there:
        raise ValueError(
            f"simulate: {saved} saved states of {system.name} take {size / 1e9:.4g} GB, and there "
            f"are {there / 1e9:.4g} GB of memory; raise save_every"
        )

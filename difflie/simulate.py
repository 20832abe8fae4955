"""The time loop: a system, an initial state and a method in, a trajectory out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from . import native
from .adjoint import Adjoint, Direct, Steps
from .constraints import Projection, Stabilisation, start_error
from .forces.delays import held
from .forces.drives import delayed, late
from .forces.inputs import SampledInput, ZeroOrderHold
from .formulations import Formulation, Inputs, formulated, formulation_of
from .integrators import RKMK4, Method, by_name
from .integrators.method import chosen
from .result import Trajectory, Watch
from .system.linkage import Linkage, linkage
from .system.system import System
from .system.validation import check_shape, checked, real_numbers

_PROJECTION = Projection()

Input = Callable[[jax.Array, jax.Array, jax.Array], Any] | SampledInput | jax.Array | None


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
    adjoint: Adjoint = Direct(),
    stabilisation: Stabilisation = _PROJECTION,
    progress: Callable[[int, int], None] | None = None,
) -> Trajectory:
    """The motion of a system from the state q0 (nq,), v0 (nv,), in steps of dt (s).

    Main arguments:
      method: an integrator such as `RKMK4()`, or its name.
      control: the generalised force (nv,) in N m or N of the drives; springs, damping and
        friction are added to it. A function of (t, q, v), a `ZeroOrderHold` or `FirstOrderHold`,
        an array (steps, nv) of values held over each step, or None. Where a drive has a delay it
        must be held.
      wrench: external wrenches (nb, 6) on the bodies, in body frames; given as `control` is.

    Other arguments:
      save_every: save every k-th state; the trajectory has steps // save_every + 1 of them.
      adjoint: how the loop is differentiated: `Direct`, `RecursiveCheckpoint` with a budget of
        memory, `Forward`, or, for methods that are symmetric in time, `Reversible`.
      stabilisation: how explicit and Gauss methods stay on the constraints of a system that has
        some (see `constrain`).
      progress: called now and then in a run of many steps whose arguments are all concrete, as
        progress(steps done, steps). Such a run is made in pieces, between which it can be stopped.

    Differentiable with respect to every leaf of the system, the state, dt and the inputs, in
    forward and reverse mode as the adjoint allows. Raises ValueError or TypeError for a wrong shape
    or precision, a concrete NaN, dt <= 0, an unknown method (with the nearest name) or one that the
    adjoint does not differentiate, a control that no delay suits, a concrete start that breaks a
    constraint, which it names. What happens on the way (a state that is not finite, a step that is
    not solved, a singular configuration, a limit that is left), and a traced start that breaks a
    constraint, stands in `Trajectory.result`; a motion stays where it was before the first step
    that fails.
    """
    checked(system)
    method = by_name(method) if isinstance(method, str) else method
    adjoint.check(method, formulation_of(method, system).time_symmetric(method))
    q0, v0 = checked(system, q0=(q0, (system.nq,)), v0=(v0, (system.nv,)))
    steps, save_every = _count("steps", steps), _count("save_every", save_every)
    if save_every > steps:
        raise ValueError(
            f"simulate: save_every is {save_every} and there are {steps} steps, so that no step is "
            "saved; save every one of them, or take more"
        )
    _check_memory(system, steps // save_every)
    dt = real_numbers("simulate", "dt", dt)
    check_shape("simulate", "dt", dt.shape, ())
    if not isinstance(dt, Tracer) and not 0 < float(dt) < np.inf:
        raise ValueError(f"simulate: dt is {dt}; it must be positive and finite (s)")
    n_bodies = len(system.body_names)
    control = _input(system, "control", control, (system.nv,), steps)
    wrench = _input(system, "wrench", wrench, (n_bodies, 6), steps)
    _check_delays(system, control)
    error = start_error(system, q0, v0)
    state = linkage(system), q0, v0, dt.astype(system.dtype)
    how = method, adjoint, stabilisation
    if steps > _PIECE and _whole(adjoint, system, state, control, wrench):
        given = system, state, control, wrench, how
        return _in_pieces(given, error, steps, save_every, progress)
    return _simulate(system, state, error, control, wrench, how, steps, save_every)


@eqx.filter_jit
def _simulate(system, state, error, control, wrench, how, steps, save_every):
    """Compiled once for each topology, method, number of steps, and function among the inputs."""
    link, q0, v0, dt = state
    method, adjoint, stabilisation = how
    saved = steps // save_every
    control = _arriving(system, control, steps, dt)
    inputs = tuple(_samples(u, steps, saved, save_every) for u in (control, wrench))
    functions = _functions(system, control, wrench, (dt, q0, v0))
    arrays, fixed = eqx.partition(functions, eqx.is_array)

    def run(arrays, system, link, q0, v0, dt, inputs):
        functions = eqx.combine(arrays, fixed)
        formulation = formulated(system, link, method, stabilisation)
        loop = _steps(system, link, formulation, functions, dt)
        start, before = _start(system, link, formulation, functions, inputs, (q0, v0, dt))
        end, states = adjoint.loop(loop, start, inputs, (saved, save_every))
        found = adjoint.reconstruction(loop, start, end, inputs, (saved, save_every))
        q_and_v, own = states
        own = jax.tree.map(lambda a, b: jnp.concatenate((a, b)), before, own)
        return end[2], found, q_and_v, own

    watch, found, (q, v), own = native.mark(run)(arrays, system, link, q0, v0, dt, inputs)
    q, v = jnp.concatenate((q0[None], q)), jnp.concatenate((v0[None], v))
    return _trajectory(system, dt, (q, v, own), save_every, watch, error, found)


def _trajectory(system, dt, states, save_every, watch, error, found):
    q, v, own = states
    steps = (len(q) - 1) * save_every
    t = jnp.arange(len(q), dtype=dt.dtype) * save_every * dt
    return Trajectory(t, q, v, watch.result(system, dt, steps, error, found), own)


def _start(system, link, formulation, functions, inputs, state):
    """The state of the loop at the beginning, and what is recorded of it, (1, ...)."""
    q0, v0, dt = state
    t0 = jnp.zeros_like(dt)
    rows = jax.tree.map(lambda a: a[0, 0], inputs)
    # What is typed with a few digits is put on the manifold, where stepping back leads.
    on_manifold = system.manifold.retract(q0, jnp.zeros_like(v0))
    first = formulation.init(t0, on_manifold, v0, dt, _inputs(functions, rows, t0, dt))
    start = (jnp.zeros((), jnp.int32), first, Watch.start(system, link, q0))
    return start, jax.tree.map(lambda a: a[None], formulation.record(first))


def _functions(system: System, control: Input, wrench: Input, at: tuple) -> tuple:
    """Those of the inputs that are functions, checked; None for the others."""
    shapes = {"control": (system.nv,), "wrench": (len(system.body_names), 6)}
    return tuple(
        _function(system, name, u, shape, at) if callable(u) else None
        for (name, shape), u in zip(shapes.items(), (control, wrench), strict=True)
    )


# A long run is made in pieces of about so many steps: the compiled code of one is not left before
# its end, whatever the user may want.
_PIECE = 20_000


def _whole(adjoint, system, state, control, wrench) -> bool:
    """Whether nothing that a run depends on is traced, what its functions close over included."""
    given = jax.tree.leaves((system, state, control, wrench))
    for u in (control, wrench):
        if callable(u):
            given += jax.make_jaxpr(u)(state[3], *state[1:3]).consts
    traced = any(isinstance(a, Tracer) for a in given)
    return isinstance(adjoint, Direct) and not traced


def _in_pieces(given, error, steps: int, save_every: int, progress) -> Trajectory:
    """`_simulate` piece by piece, with the same numbers."""
    system, (link, q0, v0, dt), control, wrench, how = given
    saved = steps // save_every
    control = _arriving(system, control, steps, dt)
    rows = tuple(_samples(u, steps, 1, saved * save_every) for u in (control, wrench))
    given = system, (link, q0, v0, dt), *map(_only_function, (control, wrench)), how
    state, before = _begun(given, _rows(rows, 0, (1, 1)))
    kept, done, waiting = [], 0, None
    for length, every in _pieces(saved, save_every):
        here = _rows(rows, done, (length, every))
        state, states = _continued(given, state, here, (length, every))
        # One piece is computed while the next is prepared.
        jax.block_until_ready(waiting)
        waiting = states
        done += length * every
        if done % save_every == 0:
            kept.append(states)
        if progress is not None:
            progress(done, saved * save_every)
    (q, v), own = jax.tree.map(lambda *a: jnp.concatenate(a), ((q0[None], v0[None]), before), *kept)
    return eqx.filter_jit(_trajectory)(system, dt, (q, v, own), save_every, state[2], error, None)


def _rows(rows, first: int, shape: tuple[int, int]):
    """Some of the rows (1, n, ...) of the inputs, from the first on, in a shape (m, k, ...)."""
    last = first + shape[0] * shape[1]
    return jax.tree.map(lambda a: a[0, first:last].reshape((*shape, *a.shape[2:])), rows)


def _only_function(given: Input) -> Input:
    return None if isinstance(given, SampledInput) else given


@eqx.filter_jit
def _begun(given, inputs):
    system, (link, q0, v0, dt), control, wrench, how = given
    functions = _functions(system, control, wrench, (dt, q0, v0))
    method, _, stabilisation = how
    formulation = formulated(system, link, method, stabilisation)
    return _start(system, link, formulation, functions, inputs, (q0, v0, dt))


@eqx.filter_jit
def _continued(given, start, inputs, shape):
    """The state of the loop after a piece, and what is saved of it."""
    system, (link, _, _, dt), control, wrench, (method, adjoint, stabilisation) = given
    arrays, fixed = eqx.partition((control, wrench), eqx.is_array)

    def run(arrays, system, link, dt, start, inputs):
        formulation = formulated(system, link, method, stabilisation)
        loop = _steps(system, link, formulation, eqx.combine(arrays, fixed), dt)
        return adjoint.loop(loop, start, inputs, shape)

    return native.mark(run)(arrays, system, link, dt, start, inputs)


def _pieces(saved: int, every: int) -> Iterator[tuple[int, int]]:
    """The rows of the pieces and the steps of each row; long rows are in several pieces."""
    if every >= _PIECE:
        for _ in range(saved):
            yield from ((1, length) for length in _parts(every, _PIECE))
    else:
        yield from ((length, every) for length in _parts(saved, _PIECE // every))


def _parts(n: int, size: int) -> list[int]:
    """n as a sum of numbers of at most about that size: equal ones where that is possible."""
    fewest = -(-n // size)
    for count in range(fewest, 2 * fewest):
        if n % count == 0:
            return count * [n // count]
    rest = [n % size] if n % size else []
    return n // size * [size] + rest


def _steps(
    system: System, link: Linkage, formulation: Formulation, functions: tuple, dt: jax.Array
) -> Steps:
    """What one time step does, and what leads back; the state is (step, inner, watch)."""

    def begun(step, rows):
        t = step.astype(dt.dtype) * dt
        return t, _inputs(functions, rows, t, dt)

    def one_step(state, rows):
        step, inner, watch = state
        t, acting = begun(step, rows)
        here = t, *formulation.read(inner)
        acting = acting.held(*here) if formulation.reads_once else acting
        effort = acting.effort(system, *here)
        after, solved = formulation.step(t, inner, dt, acting)
        step = step + 1
        q, v = formulation.read(after)
        watch = watch.after(system, link, step, q, v, effort, solved)
        return step, chosen(watch.going, after, inner), watch

    def back(state, rows):
        step, inner, watch = state
        t, acting = begun(step - 1, rows)
        return step - 1, formulation.step(t + dt, inner, -dt, acting)[0], watch

    def read(state):
        return formulation.read(state[1]), formulation.record(state[1])

    small = formulation.small
    return Steps(native.kernel(one_step) if small else one_step, back, read, small)


def _inputs(functions, rows, t0, dt) -> Inputs:
    return Inputs(*(_at(f, row, t0, dt) for f, row in zip(functions, rows, strict=True)))


def _at(function, row, t0, dt):
    """An input during the step that begins at t0, as a function of (t, q, v)."""
    if function is not None:
        return lambda t, q, v: jnp.asarray(function(t, q, v)).astype(q.dtype)
    if row is None:
        return None
    value, slope = row
    return lambda t, q, v: value + slope * ((t - t0) / dt)


def _arriving(system: System, control: Input, steps: int, dt: jax.Array) -> Input:
    """The control, late where drives have delays."""
    if not isinstance(control, ZeroOrderHold) or not delayed(system):
        return control
    told, _ = control.rows(steps)
    at = jnp.arange(steps + 1, dtype=told.dtype)
    return ZeroOrderHold(late(system, told, lambda u, delay: held(at, u, delay / dt)))


def _samples(given, steps: int, saved: int, save_every: int):
    """The rows of a sampled input, (saved, save_every, ...); None for other inputs."""
    if not isinstance(given, SampledInput):
        return None
    used = saved * save_every
    return jax.tree.map(
        lambda a: a[:used].reshape((saved, save_every, *a.shape[1:])), given.rows(steps)
    )


def _input(system: System, name: str, given: Input, shape: tuple[int, ...], steps: int):
    if given is None or (callable(given) and not isinstance(given, SampledInput)):
        return given
    sampled = given if isinstance(given, SampledInput) else ZeroOrderHold(given)
    needed = sampled.needed(steps)
    values = real_numbers(system.name, name, sampled.values)
    if values.ndim == len(shape) + 1 and values.shape[0] > needed:
        values = values[:needed]
    (values,) = checked(system, **{name: (values, (needed, *shape))})
    return type(sampled)(values, sampled.every)


def _function(system: System, name: str, function: Callable, shape: tuple[int, ...], at: tuple):
    """The function. Raises ValueError or TypeError where it returns something else than needed."""

    def returned(t: jax.Array, q: jax.Array, v: jax.Array) -> jax.Array:
        return real_numbers(system.name, f"what the function {name} returns", function(t, q, v))

    found = jax.eval_shape(returned, *at).shape
    check_shape(system.name, f"what the function {name} returns", found, shape)
    return function


def _check_delays(system: System, control: Input) -> None:
    """Raises ValueError where it is not known what was told before."""
    if control is None or isinstance(control, ZeroOrderHold):
        return
    for drive, _ in delayed(system):
        kind = "a FirstOrderHold" if isinstance(control, SampledInput) else "a function"
        raise ValueError(
            f"simulate: {drive} has a delay, and the control is {kind}; give an array or a "
            "ZeroOrderHold, or a drive without delay"
        )


# Steps are counted with 32 bits, and the last number stands for never.
_MOST_STEPS = np.iinfo(np.int32).max - 1


def _count(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"simulate: {name} is {value!r}; it must be a whole number, 1 or more")
    if value > _MOST_STEPS:
        raise ValueError(f"simulate: {name} is {value}; it must be at most {_MOST_STEPS}")
    return int(value)


def _check_memory(system: System, saved: int) -> None:
    """Raises ValueError for more saved states than the machine has memory for."""
    size = (saved + 1) * (system.nq + system.nv + 1) * system.dtype.itemsize
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # where the machine does not tell
        return
    if size > there:
        raise ValueError(
            f"simulate: {saved} saved states of {system.name} take {size / 1e9:.4g} GB, and there "
            f"are {there / 1e9:.4g} GB of memory; raise save_every"
        )

"""The time loop, in one call or in pieces between which it can be interrupted.

A motion may end at an event. The loop detects that a function g(t, q, v) is no longer positive at
the end of a step, and stays where that step began. The step is then repeated from there, with the
length h at which the smallest of the functions is zero,

    min_i g_i(t_k + h, q(h), v(h)) = 0,    0 < h <= dt

by bisection to the last digit, with derivatives by the implicit function theorem.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer

from .. import native
from ..constraints import Stabilisation, start_error
from ..forces.actuators.acting import timed
from ..forces.inputs import SampledInput
from ..formulations import BesideTheMotion, Formulation
from ..integrators import Method
from ..integrators.embedded_munthe_kaas import EmbeddedMuntheKaas
from ..integrators.method import chosen
from ..quantities.reductions import Reduction
from ..solvers.root import Bisection, root
from ..system.kinematic_tree import Tree
from .adjoint import Adjoint, Direct
from .events import Event, least, named
from .free_flight_check import flight
from .inputs import Input, Sampled, check_functions, samples
from .result import Crowded, Ending, Impacts, Reconstruction
from .step_status import StepStatus
from .time_steps import LoopState, TimeSteps
from .trajectory import Trajectory

Progress = Callable[[int, int], None] | None


class Run(NamedTuple):
    """The ingredients of a loop, except its length.

    start: the tree, or the system of which `prepared` makes it, q (nq,), v (nv,) and dt () in s.
    how: formulation, method, adjoint, stabilisation, which fit each other.
    looked_at: which of "resolution" and "flight" the result is to have. code: what methods of
    users' classes read, None without any.
    """

    start: tuple[Any, jax.Array, jax.Array, jax.Array]
    control: Input
    wrench: Input
    events: tuple[Event, ...]
    reductions: Mapping[str, Reduction]
    how: tuple[type[Formulation], Method, Adjoint, Stabilisation]
    looked_at: tuple[str, ...] = ()
    code: Any = None

    def prepared(self) -> Run:
        """The same run with the tree."""
        system, *state = self.start
        return self if isinstance(system, Tree) else self._replace(start=(Tree.of(system), *state))

    def time_steps(self) -> TimeSteps:
        """The steps of it."""
        (tree, _, _, dt), control, wrench, events, kept, (kind, method, _, stabilisation), *_ = self
        sampled = control if isinstance(control, Sampled) else None
        control, wrench = (u if callable(u) else None for u in (control, wrench))
        formulation = BesideTheMotion.around(kind.of(tree, method, stabilisation))
        return TimeSteps(formulation, (control, wrench), events, dt, sampled, kept)

    def check(self) -> None:
        """Raises TypeError or ValueError for a function that returns something else than it must.

        Functions are traced for it, so this is asked where the steps are traced first.
        """
        (tree, q0, v0, dt), control, wrench, *_ = self
        check_functions(tree.system, control, wrench, (dt, q0, v0))
        if isinstance(control, Sampled):
            control.check(tree.system, (dt, q0, v0))

    def rows(self, steps: int, shape: tuple[int, int]) -> tuple[Any, Any]:
        """The rows (m, k, ...) of control and wrench, None where they are not sampled."""
        control, wrench = (samples(u, steps, *shape) for u in (self.control, self.wrench))
        return control, wrench


def trajectory(
    run: Run, error: jax.Array | None, steps: int, save_every: int, progress: Progress
) -> Trajectory:
    """The motion as a `Trajectory` with m + 1 rows (m + 1, ...), m = steps / save_every."""
    if steps > _PIECE and error is not None and _concrete(run):
        return _in_pieces(run, error, steps, save_every, progress)
    return _at_once(run, error, steps, save_every)


def _compiled(f: Callable[..., Any]) -> Callable[..., Any]:
    """f, compiled for each structure of its arguments and their leaves that are no arrays.

    As `equinox.filter_jit`, in a fifth of the time a call.
    """

    @functools.wraps(f)
    def on_arrays(structure: Any, others: tuple, arrays: list[Any]) -> Any:
        filled = iter(arrays)
        leaves = [next(filled) if x is _ARRAY else x for x in others]
        with native.collector_off():
            return native.stored(f, *jax.tree.unflatten(structure, leaves))

    jitted = jax.jit(on_arrays, static_argnums=(0, 1))

    def call(*args: Any) -> Any:
        leaves, structure = jax.tree.flatten(args)
        others = tuple(_ARRAY if eqx.is_array(x) else x for x in leaves)
        return jitted(structure, others, [x for x in leaves if eqx.is_array(x)])

    return call


# What stands for an array among other leaves.
_ARRAY = object()


@_compiled
def _at_once(run: Run, error: jax.Array | None, steps: int, save_every: int) -> Trajectory:
    """The same as one program, compiled for each topology, method, length and input function.

    Without the error of the start, see `start_error`, this is looked at first.
    """
    run = run.prepared()
    (tree, q0, v0, _), (_, _, adjoint, _) = run.start, run.how
    if error is None:
        error = start_error(tree.carried(), q0, v0)
    run.check()
    shape = steps // save_every, save_every
    rows, loop = run.rows(steps, shape), run.time_steps()
    start, record = loop.start(q0, v0, rows, save_every)
    end, saved = adjoint.loop(loop, start, rows, shape)
    reconstruction = adjoint.reconstruction(loop, start, end, rows, shape)
    saved = _behind_start(run, record, [saved], shape[0])
    return _trajectory(run, loop, rows, end, saved, save_every, error, reconstruction)


def _behind_start(run: Run, record: Any, pieces: list[Any], length: int) -> Any:
    """The saved arrays of a loop, its pieces joined: (q, v) and records with the start, commands.

    After an event ended the loop the last row is repeated to the full length.
    """
    _, q0, v0, _ = run.start
    first = jax.tree.map(lambda a: a[None], ((q0, v0), record))
    moved, commanded = [saved[:2] for saved in pieces], [saved[2] for saved in pieces]
    moved = jax.tree.map(lambda *a: _filled(jnp.concatenate(a), length + 1), first, *moved)
    commanded = jax.tree.map(lambda *a: _filled(jnp.concatenate(a), length), *commanded)
    return *moved, commanded


def _filled(rows: jax.Array, length: int) -> jax.Array:
    """The rows, the last one repeated to the length."""
    missing = length - len(rows)
    return jnp.concatenate((rows, jnp.repeat(rows[-1:], missing, axis=0))) if missing else rows


def _trajectory(
    run: Run,
    loop: TimeSteps,
    rows: Any,
    end: LoopState,
    saved: Any,
    save_every: int,
    error: jax.Array,
    reconstruction: Reconstruction | None,
) -> Trajectory:
    tree, _, _, dt = run.start
    (q, v), record, commanded = saved
    watch, ending = end.watch, None
    if end.command is not None:
        commanded = jax.tree.map(
            lambda a, b: jnp.concatenate((a, b[None])), commanded, end.command.latest
        )
    t = jnp.arange(len(q), dtype=dt.dtype) * save_every * dt
    motion = t, q, v, record, commanded
    made = jnp.minimum(end.step, watch.last - 1).astype(dt.dtype)
    inner = end.inner
    last: Any = made * dt, tuple(loop.formulation.read(inner)), loop.formulation.states(inner)
    if (noticed := watch.stopped) is not None:
        stop = located(loop, rows, end)
        # If the last, shorter step is not solved, the motion ends where it began.
        watch = watch.with_last_step(stop.solved)
        motion = stopped_at(stop, watch, motion, save_every)
        last = chosen(watch.came, (stop.t, tuple(stop.state[:2]), stop.state[2][1]), last)
        event = jnp.where(watch.came, stop.event, -1)
        ending = Ending(event, motion[0][-1], noticed, named(run.events))
    t, q, v, (record, z), (u, torques) = motion
    steps = (len(q) - 1) * save_every
    method, looked = run.how[1], {}
    if "resolution" in run.looked_at:
        start, command = run.start[1:3], None if u is None else u[0]
        looked["resolution"] = loop.resolution(start, last[1][:2], command)
    if "flight" in run.looked_at:
        looked["flight"] = flight(tree, q, v, last[0], dt, method)
    if isinstance(method, EmbeddedMuntheKaas):
        looked["substeps"] = method.substeps
    if (impacts := loop.formulation.impacts(inner)) is not None:
        looked["impacts"] = Impacts(jax.lax.stop_gradient(impacts), method.name)
    if (crowded := loop.formulation.crowded(inner)) is not None:
        count, most = crowded
        looked["crowded"] = Crowded(jax.lax.stop_gradient(count), most, method.name)
    result = watch.result(tree.system, dt, steps, error, reconstruction, ending, **looked)
    reduced = _reduced(loop, end, *last)
    return Trajectory(t, q, v, result, record, u, torques, z, reduced=reduced)


def _reduced(
    loop: TimeSteps,
    end: LoopState,
    t: jax.Array,
    state: tuple[jax.Array, jax.Array],
    z: jax.Array | None,
) -> dict[str, jax.Array] | None:
    """The values of the reductions of a motion that ends at t () in s; None without any."""
    if not loop.reductions:
        return None
    commanded = (None, None) if end.command is None else end.command.latest

    def at_end(t: jax.Array, state: Any, commanded: Any, z: Any, kept: Any) -> dict[str, jax.Array]:
        kept = loop.reduced(kept, t, *state, *commanded, z)
        return {name: r.result(kept[name]) for name, r in loop.reductions.items()}

    at_end = native.kernel(at_end) if loop.small else at_end
    return at_end(t, state, commanded, z, end.reduced)


# A long run is made in pieces of about so many steps, since compiled code cannot be interrupted.
_PIECE = 20_000


def _concrete(run: Run) -> bool:
    """Whether nothing in a run is traced, closures of its functions included."""
    if not isinstance(run.start[0], Tree):
        return False
    leaves = jax.tree.leaves((run.start, run.control, run.wrench))
    _, q0, v0, dt = run.start
    for u in (run.control, run.wrench, *run.events):
        u = u.begin if isinstance(u, Sampled) else u
        if callable(u):
            leaves += jax.make_jaxpr(u)(dt, q0, v0).consts
    traced = any(isinstance(a, Tracer) for a in leaves)
    return isinstance(run.how[2], Direct) and not traced


def _in_pieces(
    run: Run, error: jax.Array, steps: int, save_every: int, progress: Progress
) -> Trajectory:
    """The same in pieces; after an event there are no more pieces."""
    saved = steps // save_every
    rows = run.rows(steps, (1, saved * save_every))
    control, wrench = (
        None if isinstance(u, SampledInput) else u for u in (run.control, run.wrench)
    )
    run = run._replace(control=control, wrench=wrench)
    state, record = _started(run, _some(rows, 0, (1, 1)), save_every)
    kept, done, waiting = [], 0, None
    for length, every in _pieces(saved, save_every):
        state, piece = _continued(run, state, _some(rows, done, (length, every)), (length, every))
        # One piece is computed while the next is prepared.
        jax.block_until_ready(waiting)
        waiting = piece
        done += length * every
        came = bool(run.events) and bool(state.watch.came)
        # A row with an event began with a command, and is filled up later.
        if came or done % save_every == 0:
            kept.append(piece)
        if progress is not None:
            progress(done, saved * save_every)
        if came:
            break
    return _ended(run, rows, state, record, kept, saved, save_every, error)


def _some(rows: Any, first: int, shape: tuple[int, int]) -> Any:
    """Some of the rows (1, n, ...) of the inputs, from the first on, in a shape (m, k, ...)."""
    last = first + shape[0] * shape[1]
    return jax.tree.map(lambda a: a[0, first:last].reshape((*shape, *a.shape[2:])), rows)


@_compiled
def _started(run: Run, rows: Any, save_every: int) -> tuple[LoopState, Any]:
    run.check()
    _, q0, v0, _ = run.start
    return run.time_steps().start(q0, v0, rows, save_every)


@_compiled
def _continued(run: Run, state: LoopState, rows: Any, shape: tuple[int, int]) -> Any:
    """The state of the loop after a piece, and what is saved of it."""
    return run.how[2].loop(run.time_steps(), state, rows, shape)


@_compiled
def _ended(
    run: Run,
    rows: Any,
    end: LoopState,
    record: Any,
    pieces: list[Any],
    saved: int,
    save_every: int,
    error: jax.Array,
) -> Trajectory:
    rows_saved = _behind_start(run, record, pieces, saved)
    return _trajectory(run, run.time_steps(), rows, end, rows_saved, save_every, error, None)


def _pieces(saved: int, every: int) -> Iterator[tuple[int, int]]:
    """The rows of the pieces and the steps of each row; long rows are in several pieces."""
    if every >= _PIECE:
        for _ in range(saved):
            yield from ((1, length) for length in _parts(every, _PIECE))
    else:
        yield from ((length, every) for length in _parts(saved, _PIECE // every))


def _parts(n: int, size: int) -> list[int]:
    """n as a sum of numbers of at most about that size, equal ones if possible."""
    fewest = -(-n // size)
    for count in range(fewest, 2 * fewest):
        if n % count == 0:
            return count * [n // count]
    remainder = [n % size] if n % size else []
    return n // size * [size] + remainder


class Stop(NamedTuple):
    """Where a motion stops.

    event (): the index of the event, -1 for none. t () in s. state: that of the trajectory, without
    meaning if there is no event. solved (): whether the last, shorter step was solved.
    """

    event: jax.Array
    t: jax.Array
    state: Any
    solved: jax.Array


def located(loop: TimeSteps, rows: Any, last: LoopState) -> Stop:
    """The stop of a loop with this last state; rows (m, k, ...) are its inputs."""
    steps, inner, watch, memories, command, held, _ = last
    formulation, events, dt = loop.formulation.resumed(inner), loop.events, loop.dt
    commanded = (None, None) if command is None else command.latest
    stopped = watch.stopped
    assert stopped is not None
    k = jnp.where(watch.came, jnp.maximum(stopped - 1, 0), steps)
    row = jax.tree.map(lambda a: a.reshape((-1, *a.shape[2:]))[k], rows)
    t0, given, _ = loop.inputs_over_step(k, row, inner, held)
    q, v = formulation.read(inner)
    given = given.begun(loop.tree.system, t0, q, v)

    def reached(h: jax.Array) -> tuple[Any, Any, Any]:
        kept = None if memories is None else timed(memories, h)
        acting = given.remembering(loop.tree.system, kept)
        acting = acting.held(t0, q, v) if formulation.reads_once else acting
        again = formulation.method.steps_alike
        state = formulation.init(t0, q, v, h, acting) if again else inner
        torques = loop.delivered(formulation.tree, acting, q, v)
        return *formulation.step(t0, state, h, acting), torques

    def at(h: jax.Array) -> jax.Array:
        return least(events, t0 + h, *formulation.read(reached(h)[0]))[0]

    def shorter(_: None) -> Stop:
        # Methods that begin anew may need a little more than dt, which is looked at first.
        (h,), found = root(lambda h: at(h[0])[None], dt[None], Bisection())
        state, solved, torques = reached(h)
        # Actuators with a memory deliver the mean over the shorter step.
        torques = None if memories is None else torques
        y = formulation.read(state)
        which = least(events, t0 + h, *y)[1]
        saved = *y, loop.recorded(state), (commanded[0], torques)
        return Stop(which, t0 + h, saved, found & solved)

    def whole(_: None) -> Stop:
        y = formulation.read(inner)
        which = jnp.where(stopped == 0, least(events, t0, *y)[1], -1)
        return Stop(which, t0, (*y, loop.recorded(inner), commanded), jnp.asarray(True))

    return jax.lax.cond(watch.came & (stopped > 0), shorter, whole, None)


def stopped_at(end: Stop, watch: StepStatus, rows: Any, every: int) -> Any:
    """The saved rows (m + 1, ...) of t, q, v, records and commands, the end repeated after a stop.

    every: the steps between two rows.
    """
    assert watch.stopped is not None
    *moved, commanded = rows
    begun = every * jnp.arange(len(moved[0]))

    def filled(first: jax.Array) -> Callable[[jax.Array, jax.Array], jax.Array]:
        after = watch.came & (begun >= first)
        return lambda rows, last: jnp.where(after.reshape((-1,) + (1,) * last.ndim), last, rows)

    *states, last = end.state
    moved = jax.tree.map(filled(watch.stopped), moved, [end.t, *states])
    # Commands and torques belong to the step that begins at the time of a row.
    return *moved, jax.tree.map(filled(watch.stopped - 1), commanded, last)

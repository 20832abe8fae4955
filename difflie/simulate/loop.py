"""The time loop, whole or in pieces between which it can be stopped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer

from .. import native
from ..constraints import Stabilisation
from ..forces.inputs import SampledInput
from ..formulations import Formulation, formulated
from ..integrators import Method
from ..system.kinematic_tree import Tree
from .adjoint import Adjoint, Direct
from .command import Command
from .events import End, Event, come, located, named, stopped_at
from .inputs import Input, checked_functions, inputs_at, samples
from .result import Ending
from .step import memories_at_start, time_steps
from .trajectory import Trajectory
from .watch import Watch


class Run(NamedTuple):
    """What a loop is made of, besides its length.

    start: the tree, q (nq,), v (nv,) and dt () in s. how: method, adjoint, stabilisation.
    """

    start: tuple[Tree, jax.Array, jax.Array, jax.Array]
    control: Input
    wrench: Input
    events: tuple[Event, ...]
    how: tuple[Method, Adjoint, Stabilisation]


def trajectory(run: Run, error, steps: int, save_every: int, progress) -> Trajectory:
    """The motion in so many steps, of which every so manieth is saved."""
    if steps > _PIECE and _concrete(run):
        return _in_pieces(run, error, steps, save_every, progress)
    return _at_once(run, error, steps, save_every)


@eqx.filter_jit
def _at_once(run: Run, error, steps: int, save_every: int) -> Trajectory:
    """Compiled once for each topology, method, number of steps, and function among the inputs."""
    (tree, q0, v0, dt), control, wrench, events, (method, adjoint, stabilisation) = run
    saved = steps // save_every
    inputs = tuple(samples(u, steps, saved, save_every) for u in (control, wrench))
    functions = checked_functions(tree.system, control, wrench, (dt, q0, v0))
    arrays, fixed = eqx.partition((functions, events), eqx.is_array)

    def looped(arrays, tree, q0, v0, dt, inputs):
        functions, events = eqx.combine(arrays, fixed)
        formulation = formulated(tree, method, stabilisation)
        loop = time_steps(tree, formulation, functions, events, dt)
        state = q0, v0, dt
        given = functions, inputs, save_every
        start, before = _start(tree, formulation, events, given, state)
        end, states = adjoint.loop(loop, start, inputs, (saved, save_every))
        found = adjoint.reconstruction(loop, start, end, inputs, (saved, save_every))
        q_and_v, own, commanded = states
        own = jax.tree.map(lambda a, b: jnp.concatenate((a, b)), before, own)
        stop = _stop(formulation, functions, events, inputs, end, dt)
        return end[2:], found, q_and_v, own, commanded, stop

    made = looped(arrays, tree, q0, v0, dt, inputs)
    ended, found, (q, v), own, commanded, stop = made
    q, v = jnp.concatenate((q0[None], q)), jnp.concatenate((v0[None], v))
    return _trajectory(run, (q, v, own, commanded), save_every, ended, error, found, stop)


def _trajectory(run: Run, states, save_every, ended, error, found, stop) -> Trajectory:
    """ended: what was noticed on the way, memories, and what was commanded in the last step."""
    tree, _, _, dt = run.start
    q, v, own, commanded = states
    watch, _, command = ended
    if command is not None:
        commanded = jax.tree.map(
            lambda a, b: jnp.concatenate((a, b[None])), commanded, command.latest
        )
    steps = (len(q) - 1) * save_every
    rows = jnp.arange(len(q), dtype=dt.dtype) * save_every * dt, q, v, own, commanded
    ending = None
    if stop is not None and (noticed := watch.stopped) is not None:
        # Where the last, shorter step is not solved, the motion stays where it began.
        watch = watch.with_last_step(stop.solved)
        rows = stopped_at(stop, watch, rows, save_every)
        event = jnp.where(watch.came, stop.event, -1)
        ending = Ending(event, rows[0][-1], noticed, named(run.events))
    t, q, v, own, (u, torques) = rows
    result = watch.result(tree.system, dt, steps, error, found, ending)
    return Trajectory(t, q, v, result, own, u, torques)


def _start(tree, formulation, events, given, state):
    """The state of the loop at the beginning, and what is recorded of it, (1, ...)."""
    functions, inputs, save_every = given
    first_rows = jax.tree.map(lambda a: a[:1, :1], inputs)

    def begun(state, inputs):
        return _begin(tree, formulation, events, (functions, inputs, save_every), state)

    begun = native.kernel(begun) if tree.topology.unrolled else begun
    return begun(state, first_rows)


def _begin(tree, formulation, events, given, state):
    functions, inputs, save_every = given
    q0, v0, dt = state
    t0 = jnp.zeros_like(dt)
    rows = jax.tree.map(lambda a: a[0, 0], inputs)
    # What is typed with a few digits is put on the manifold, where stepping back leads.
    on_manifold = tree.topology.manifold.retract(q0, jnp.zeros_like(v0))
    acting = inputs_at(functions, rows, t0, dt)
    memories = memories_at_start(tree, acting, t0, on_manifold, v0, dt)
    acting = acting.remembering(tree.system, memories, t0, on_manifold, v0)
    first = formulation.init(t0, on_manifold, v0, dt, acting)
    happened = come(events, t0, q0, v0) if events else None
    controlled = functions[0] is not None or inputs[0] is not None
    zero = jnp.zeros(tree.system.nu, v0.dtype)
    none = zero if controlled else None, None if memories is None else zero
    command = Command(none, none, save_every) if controlled or memories is not None else None
    watch = Watch.start(tree, q0, happened)
    start = jnp.zeros((), jnp.int32), first, watch, memories, command
    return start, jax.tree.map(lambda a: a[None], formulation.record(first))


def _stop(formulation: Formulation, functions, events, inputs, end, dt) -> End | None:
    """Where the loop has stopped; inputs have two leading axes, which are the steps."""
    if not events:
        return None
    rows = jax.tree.map(lambda a: a.reshape((-1, *a.shape[2:])), inputs)

    def acting(k: jax.Array):
        here = jax.tree.map(lambda a: a[k], rows)
        return inputs_at(functions, here, k.astype(dt.dtype) * dt, dt)

    return located(formulation, events, acting, end, dt)


# A long run is made in pieces of about so many steps: the compiled code of one is not left before
# its end, whatever the user may want.
_PIECE = 20_000


def _concrete(run: Run) -> bool:
    """Whether nothing that a run depends on is traced, what its functions close over included."""
    given = jax.tree.leaves((run.start, run.control, run.wrench))
    _, q0, v0, dt = run.start
    for u in (run.control, run.wrench, *run.events):
        if callable(u):
            given += jax.make_jaxpr(u)(dt, q0, v0).consts
    traced = any(isinstance(a, Tracer) for a in given)
    return isinstance(run.how[1], Direct) and not traced


def _in_pieces(run: Run, error, steps: int, save_every: int, progress) -> Trajectory:
    """The same piece by piece; after an event there are no more pieces."""
    _, q0, v0, _ = run.start
    saved = steps // save_every
    inputs = run.control, run.wrench
    rows = tuple(samples(u, steps, 1, saved * save_every) for u in inputs)
    functions = (None if isinstance(u, SampledInput) else u for u in inputs)
    run = run._replace(**dict(zip(("control", "wrench"), functions, strict=True)))
    state, before = _begun(run, _rows(rows, 0, (1, 1)), save_every)
    kept, done, waiting = [], 0, None
    for length, every in _pieces(saved, save_every):
        here = _rows(rows, done, (length, every))
        state, states = _continued(run, state, here, (length, every))
        # One piece is computed while the next is prepared.
        jax.block_until_ready(waiting)
        waiting = states
        done += length * every
        came = bool(run.events) and bool(state[2].came)
        # A row in which an event came began with a command, and is filled up later.
        if came or done % save_every == 0:
            kept.append(states)
        if progress is not None:
            progress(done, saved * save_every)
        if came:
            break
    first = (q0[None], v0[None]), before
    moved, commanded = [states[:2] for states in kept], [states[2] for states in kept]
    states = jax.tree.map(lambda *a: _filled(jnp.concatenate(a), saved + 1), first, *moved)
    commanded = jax.tree.map(lambda *a: _filled(jnp.concatenate(a), saved), *commanded)
    states = *states, commanded
    return _ended(run, state, rows, states, error, save_every)


def _filled(rows: jax.Array, length: int) -> jax.Array:
    """The rows, and the last of them until there are so many."""
    missing = length - len(rows)
    return jnp.concatenate((rows, jnp.repeat(rows[-1:], missing, axis=0))) if missing else rows


def _rows(rows, first: int, shape: tuple[int, int]):
    """Some of the rows (1, n, ...) of the inputs, from the first on, in a shape (m, k, ...)."""
    last = first + shape[0] * shape[1]
    return jax.tree.map(lambda a: a[0, first:last].reshape((*shape, *a.shape[2:])), rows)


@eqx.filter_jit
def _begun(run: Run, inputs, save_every: int):
    (tree, q0, v0, dt), control, wrench, events, (method, _, stabilisation) = run
    functions = checked_functions(tree.system, control, wrench, (dt, q0, v0))
    formulation = formulated(tree, method, stabilisation)
    given = functions, inputs, save_every
    return _start(tree, formulation, events, given, (q0, v0, dt))


@eqx.filter_jit
def _continued(run: Run, start, inputs, shape):
    """The state of the loop after a piece, and what is saved of it."""
    (tree, _, _, dt), control, wrench, events, (method, adjoint, stabilisation) = run
    arrays, fixed = eqx.partition(((control, wrench), events), eqx.is_array)

    def looped(arrays, tree, dt, start, inputs):
        functions, events = eqx.combine(arrays, fixed)
        formulation = formulated(tree, method, stabilisation)
        loop = time_steps(tree, formulation, functions, events, dt)
        return adjoint.loop(loop, start, inputs, shape)

    return looped(arrays, tree, dt, start, inputs)


@eqx.filter_jit
def _ended(run: Run, end, inputs, states, error, save_every: int) -> Trajectory:
    (tree, _, _, dt), control, wrench, events, (method, _, stabilisation) = run
    arrays, fixed = eqx.partition(((control, wrench), events), eqx.is_array)

    def stopped(arrays, tree, dt, end, inputs):
        functions, events = eqx.combine(arrays, fixed)
        formulation = formulated(tree, method, stabilisation)
        return _stop(formulation, functions, events, inputs, end, dt)

    stop = stopped(arrays, tree, dt, end, inputs)
    (q, v), own, commanded = states
    return _trajectory(run, (q, v, own, commanded), save_every, end[2:], error, None, stop)


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

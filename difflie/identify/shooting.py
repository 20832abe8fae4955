"""The motion error: measured motions cut into windows, each simulated from its initial state.

Windows of one step are the one-step error; one window for a recording is the full rollout. Windows
in between, with estimated initial states, are multiple shooting (Bock 1981). The time grid contains
every measurement. Measured torques, the commands of actuators, are held from one to the next, as
are the actuators' memories. A window starts with the memories that result from the rows before it,
and with the internal states of its first row along the measured motion (`internal_states.py`).
Readings of other sensors are compared with those along the simulated motion.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Shaped
from numpy.typing import NDArray

from .. import native
from ..constraints import bilateral, start_error
from ..forces.actuators.acting import first_memories, next_memories, recalled, remember, timed
from ..integrators import RKMK4, Method
from ..integrators.method import chosen
from ..sensors.sensor import to_measured, to_true
from ..simulate import simulate
from ..simulate.result import NEVER
from ..system.arguments import check_system
from ..system.kinematic_tree import Tree
from ..system.system import System
from .internal_states import last_there, states_between
from .problem import Deviation, Layout, Problem, deviations, in_deviations, needed
from .readings import SimulatedReadings
from .recordings import DataError, Recording, as_recordings


class Simulated(NamedTuple):
    """Simulated windows: q (w, s + 1, nq), v (w, s + 1, nv), memories (w, s + 1, ...).

    z (w, s + 1, nz): the internal states. None for memories and states that a machine has not.
    """

    q: jax.Array
    v: jax.Array
    memories: Any
    z: jax.Array | None


class Shooting(Problem):
    """Windows (w,) of s steps.

    dt (w, s) in s; q (w, s + 1, nq), v (w, s + 1, nv), tau (w, s, nu); deviation (w, 2 nv) of the
    configuration's coordinates (rad or m) and the velocity's. follows (w,): whether the window
    starts where the one before ends. substeps: of the method between two measurements. free:
    whether the initial states are unknowns, which should then be continuous, weighted like the
    measurements: velocities only where their deviation is finite. memories (w, ...): of the
    actuators at the starts; None to compute them from the rows before. states (w, nz): internal
    states at the starts; None to compute them likewise. readings: of other sensors, which are more
    columns of each row; None for none.
    """

    dt: jax.Array
    q: jax.Array
    v: jax.Array
    tau: jax.Array
    deviation: jax.Array
    follows: jax.Array
    free: bool = eqx.field(static=True, default=False)
    substeps: int = eqx.field(static=True, default=1)
    method: Method = eqx.field(static=True, default=RKMK4())
    memories: Any = None
    states: jax.Array | None = None
    readings: SimulatedReadings | None = None

    @staticmethod
    def of(
        system: System,
        recordings: Sequence[Recording],
        *,
        window: int | None = None,
        position: Deviation = 1.0,
        velocity: Deviation = np.inf,
        free: bool = False,
        substeps: int = 1,
        method: Method = RKMK4(),
        readings: Mapping[str, Deviation] | None = None,
    ) -> Shooting:
        """The problem of recordings with q, v and tau, cut into windows of `window` steps.

        None, or more than there are: one window for each recording. Where v was not measured,
        windows start with differences of q, a guess for `free` to correct; without tau commands are
        0. position, velocity: standard deviations, in rad or m and rad/s or m/s; an infinite one
        leaves the velocities out. readings: those of other sensors by name, in their units. With
        these, position may be infinite too: then q only gives initial states, for `free` to
        correct, and without q that is the neutral one at rest. The missing rows of a shorter last
        window are gaps. Raises DataError for missing quantities, for gaps in torques and at the
        starts of windows, and for readings as `Readings.of` does.
        """
        check_system(system)
        recordings = as_recordings(recordings)
        widths = {"q": system.nq, "v": system.nv, "tau": system.nu}
        if window is not None and window < 1:
            raise DataError(f"a window has {window} steps; give it one or more")
        longest = max(len(r.t) for r in recordings) - 1
        length = min(window or longest, longest)
        windows, follows, each, spans = [], [], [], []
        for recording in recordings:
            recording = _completed(system, recording, position, velocity)
            given = needed(recording, widths, system)
            deviation = [
                deviations(*of, system.nv, recording.weight)
                for of in (("q", position), ("v", velocity))
            ]
            if np.isnan(given["tau"]).any():
                raise DataError(f"{recording.name}: tau has gaps; fill them, or cut there")
            for k, first in enumerate(range(0, len(recording.t) - 1, length)):
                last = min(first + length, len(recording.t) - 1)
                windows.append(_window(recording.t, given, first, last, length))
                follows.append(k > 0)
                spans.append((recording, first, last))
                each.append(np.concatenate(deviation))
                if np.isnan(windows[-1][1][0]).any() or np.isnan(windows[-1][2][0]).any():
                    raise DataError(
                        f"{recording.name}: the window that begins at {recording.t[first]} s "
                        "begins in a gap; cut the recording there"
                    )
        dt, q, v, tau = (np.stack(x) for x in zip(*windows, strict=True))
        dt, q, v, tau, deviation = (
            jnp.asarray(x, system.dtype) for x in (dt, q, v, tau, np.stack(each))
        )
        given = dt, q, v, tau, deviation, jnp.asarray(follows)
        other = SimulatedReadings.of(system, spans, length, readings) if readings else None
        return Shooting(*given, free=free, substeps=substeps, method=method, readings=other)

    @property
    def own(self) -> jax.Array:
        w, nv = len(self.dt), self.v.shape[-1]
        return jnp.zeros(w * 2 * nv if self.free else 0, self.q.dtype)

    @property
    def _width(self) -> int:
        """The residuals of each row."""
        others = 0 if self.readings is None else self.readings.given.shape[-1]
        return 2 * self.v.shape[-1] + others

    @property
    def windows(self) -> NDArray:
        w, edges, nv = self.v.shape
        each = np.repeat(np.arange(w), (edges if self.free else edges - 1) * self._width)
        # A jump depends on the state that the next window starts with.
        return np.concatenate((each, np.repeat(np.arange(w - 1 if self.free else 0), 2 * nv)))

    def motions(
        self, system: System, own: jax.Array
    ) -> tuple[Float[Array, "w edges nq"], Float[Array, "w edges nv"]]:
        """What encoders read in the simulated windows: q (w, s + 1, nq) and v (w, s + 1, nv)."""
        return to_measured(system, *self.simulated(system, own)[:2])

    def simulated(self, system: System, own: jax.Array) -> Simulated:
        """The simulated windows."""
        q0, v0 = self.q[:, 0], self.v[:, 0]
        if self.free:
            # In deviations, so that all unknowns are of similar size.
            change = own.reshape(len(q0), -1) * jnp.where(
                jnp.isfinite(self.deviation), self.deviation, 1
            )
            shift, push = jnp.split(change, 2, axis=1)
            q0, v0 = jax.vmap(system.manifold.retract)(q0, shift), v0 + push
        q0, v0 = to_true(system, q0, v0)
        tree, memories = Tree.of(system), self.remembered(system)
        loops = bilateral(system)
        z0 = self.first_states(system)
        n = self.substeps

        def substep(start: tuple, row: tuple) -> tuple[tuple, tuple]:
            ((q, v, z), memories, acting), (begins, dt, tau) = start, row
            if memories is not None:
                # Commands are held over a row, and remembered once.
                now = timed(memories, dt)
                acting = chosen(begins, now, acting)
                memories = chosen(begins, next_memories(tree, tau, q, v, now), memories)
            run = simulate(
                recalled(system, acting),
                q,
                v,
                z0=z,
                dt=dt / n,
                steps=1,
                control=tau[None],
                method=self.method,
            )
            # A motion that fails is like no measurement. Measured starts may overlap at contacts.
            failed = jnp.minimum(run.result.nonfinite_step, run.result.unsolved_step) < NEVER
            moves = ~failed & (start_error(loops, q, v) <= 1)
            ends = run.q, run.v, run.z
            state = tuple(None if x is None else jnp.where(moves, x[-1], jnp.nan) for x in ends)
            return (state, memories, acting), (state, memories)

        def motion(q0, v0, z0, dt, tau, memories):
            start, acting = ((q0, v0, z0), memories), memories and timed(memories, dt[0])
            rows = jnp.tile(jnp.arange(n) == 0, len(dt)), *(jnp.repeat(x, n, 0) for x in (dt, tau))
            _, rest = native.scan(substep, (*start, acting), rows, n * len(dt), every=n)
            whole = jax.tree.map(lambda x, xs: jnp.concatenate((x[None], xs)), start, rest)
            (q, v, z), memories = whole
            return Simulated(q, v, memories, z)

        return jax.vmap(motion)(q0, v0, z0, self.dt, self.tau, memories)

    def first_states(self, system: System) -> Float[Array, "w nz"] | None:
        """The internal states (w, nz) at the starts of the windows; None without any.

        Computed along the measured states, from those that the system holds at the first row of
        each recording.
        """
        if self.states is not None or not system.nz:
            return self.states
        gap = jnp.isnan(self.q).any(axis=-1) | jnp.isnan(self.v).any(axis=-1)
        held = jax.vmap(lambda x, gap: x[last_there(gap)])
        rows = to_true(system, held(self.q, gap), held(self.v, gap))
        before, after = (
            tuple(x[:, part].reshape(-1, x.shape[-1]) for x in rows)
            for part in (slice(-1), slice(1, None))
        )
        w, s = self.dt.shape
        begins = (~self.follows[:, None] & (jnp.arange(s) == 0)).ravel()
        commands = self.tau.reshape(w * s, -1)
        found = states_between(system, begins, self.dt.ravel(), before, after, commands)
        return found.reshape(w, s, -1)[:, 0]

    def remembered(self, system: System) -> Any:
        """The actuators' memories at the starts of the windows (w, ...); None without any.

        Computed along the measured states, from the first row of each recording.
        """
        if self.memories is not None or not remember(system):
            return self.memories
        tree = Tree.of(system)
        q, v = to_true(
            system,
            jnp.where(jnp.isnan(self.q), system.neutral(), self.q)[:, :-1],
            jnp.where(jnp.isnan(self.v), 0, self.v)[:, :-1],
        )

        def turn(memories: Any, row: tuple) -> tuple[Any, None]:
            tau, q, v, dt = row
            return next_memories(tree, tau, q, v, timed(memories, dt)), None

        def window(memories: Any, given: tuple) -> tuple[Any, Any]:
            follows, rows = given
            memories = chosen(follows, memories, first_memories(tree, *(x[0] for x in rows)))
            return jax.lax.scan(turn, memories, rows)[0], memories

        rows = self.tau, q, v, self.dt
        begin = first_memories(tree, *(x[0, 0] for x in rows))
        return jax.lax.scan(window, begin, (self.follows, rows))[1]

    def departure(
        self, system: System, q: Float[Array, "w edges nq"]
    ) -> Float[Array, "w edges nv"]:
        """The tangent (w, s + 1, nv) from measured to simulated configurations, zero at gaps."""
        gap = jnp.isnan(self.q).any(axis=-1, keepdims=True)
        return jax.vmap(jax.vmap(system.manifold.difference))(jnp.where(gap, q, self.q), q)

    def beginnings(self, rows: int) -> Shooting:
        """The windows up to so many rows, as independent ones, with free initial states."""
        return dataclasses.replace(
            self,
            dt=self.dt[:, : rows - 1],
            q=self.q[:, :rows],
            v=self.v[:, :rows],
            tau=self.tau[:, : rows - 1],
            follows=jnp.zeros_like(self.follows),
            free=True,
            readings=None if self.readings is None else self.readings.beginnings(rows),
        )

    def residual(self, system: System, own: jax.Array) -> Float[Array, " k"]:
        simulated = self.simulated(system, own)
        q, v = to_measured(system, *simulated[:2])
        nv = v.shape[-1]
        gap = jnp.isnan(self.q).any(axis=-1, keepdims=True)
        off = self.departure(system, q)
        at = jnp.where(gap, jnp.nan, 0)
        parts = [
            in_deviations(off, jnp.broadcast_to(at, off.shape), self.deviation[:, None, :nv]),
            in_deviations(v, self.v, self.deviation[:, None, nv:]),
        ]
        if self.readings is not None:
            errors = self.readings.errors(system, *simulated)
            parts.append(errors / self.readings.deviation[:, None])
        residual = jnp.concatenate(parts, axis=-1)
        if not self.free:
            return residual[:, 1:].ravel()
        moved = jax.vmap(system.manifold.difference)(q[1:, 0], q[:-1, -1])
        jump = jnp.concatenate((moved, v[:-1, -1] - v[1:, 0]), axis=-1)
        jump = jnp.where(self.follows[1:, None], jump, 0) / self.deviation[1:]
        return jnp.concatenate((self._counted(residual).ravel(), jump.ravel()))

    def _counted(self, rows: Shaped[Array, "w edges k"]) -> Shaped[Array, "w edges k"]:
        """Zero in the first row of a window that follows: it is the last of the one before."""
        first = (jnp.arange(rows.shape[1]) == 0)[:, None]
        return jnp.where(self.follows[:, None, None] & first, jnp.zeros_like(rows), rows)

    @property
    def measured(self) -> Bool[Array, " k"]:
        return _measured(self)

    @property
    def layout(self) -> Layout:
        dt, follows = np.asarray(self.dt), np.asarray(self.follows)
        sequence = np.cumsum(~follows) - 1
        # Windows that follow start where the one before ends.
        long, begin = dt.sum(axis=1), np.zeros(len(dt))
        for k in np.flatnonzero(follows):
            begin[k] = begin[k - 1] + long[k - 1]
        time = begin[:, None] + np.pad(np.cumsum(dt, axis=1), ((0, 0), (1, 0)))
        time = time if self.free else time[:, 1:]
        each = np.broadcast_to(sequence[:, None], time.shape)
        rows = Layout.of_rows(each.ravel(), time.ravel(), self._width)
        if not self.free:
            return rows
        jumps = Layout.of_rows(sequence[1:], begin[1:], 2 * self.v.shape[-1])
        jumps = jumps._replace(channel=self._width + jumps.channel)
        return Layout(*(np.concatenate(x) for x in zip(rows, jumps, strict=True)))


@eqx.filter_jit
def _measured(problem: Shooting) -> Bool[Array, " k"]:
    gap = jnp.isnan(problem.q).any(axis=-1, keepdims=True)
    there = jnp.concatenate(
        (jnp.broadcast_to(~gap, problem.v.shape), ~jnp.isnan(problem.v)), axis=-1
    ) & jnp.isfinite(problem.deviation[:, None])
    if problem.readings is not None:
        there = jnp.concatenate((there, problem.readings.there), axis=-1)
    if not problem.free:
        return there[:, 1:].ravel()
    jumps = problem.follows[1:, None] & jnp.isfinite(problem.deviation[1:])
    return jnp.concatenate((problem._counted(there).ravel(), jumps.ravel()))


def _completed(
    system: System, recording: Recording, position: Deviation, velocity: Deviation
) -> Recording:
    """The recording with differences of q for v, and zero for tau, if not measured.

    Where positions do not count, also with the neutral configuration for q.
    """
    if recording.q is None and not np.isfinite(position).any():
        q = np.tile(np.asarray(system.neutral()), (len(recording.t), 1))
        recording = dataclasses.replace(recording, q=q)
    if recording.v is None:
        if np.isfinite(velocity).any():
            raise DataError(
                f"{recording.name}: v is not measured; leave its deviation out, or call smoothed"
            )
        q = jnp.asarray(needed(recording, {"q": system.nq}, system)["q"])
        steps = jax.vmap(system.manifold.difference)(q[:-1], q[1:])
        v = np.asarray(steps) / np.diff(recording.t)[:, None]
        v = np.concatenate((v, v[-1:]))
        if system.nz:
            # Internal states follow the velocity at a row, not that after it.
            v[1:-1] = (v[:-2] + v[1:-1]) / 2
        recording = dataclasses.replace(recording, v=v)
    if recording.tau is None:
        recording = dataclasses.replace(recording, tau=np.zeros((len(recording.t), system.nu)))
    return recording


def _window(
    t: NDArray, given: dict[str, NDArray], first: int, last: int, length: int
) -> tuple[NDArray, ...]:
    """dt (s,), q (s + 1, nq), v (s + 1, nv) and tau (s, nv) of a window, padded at its end."""
    missing = length - (last - first)
    dt = np.pad(np.diff(t[first : last + 1]), (0, missing), mode="edge")
    q, v = (
        np.pad(given[k][first : last + 1], ((0, missing), (0, 0)), constant_values=np.nan)
        for k in ("q", "v")
    )
    return dt, q, v, np.pad(given["tau"][first:last], ((0, missing), (0, 0)))

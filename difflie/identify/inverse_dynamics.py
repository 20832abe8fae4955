"""The torque error: the torque that the measured motion needs, less the measured torque.

    r = (M(q) a + bias(q, v) - passive(q, v) - effort(tau, q, v)) / (gain deviation)

The effort is what the actuators of the system deliver for the measured commands (see `Actuator`),
or without actuators the measured torque itself; the gain is its derivative by these. Residuals are
errors of the measured commands: otherwise a small gain and small inertias would explain everything.
A saturated actuator, which does not depend on its command, gives no information. q, v and a are
corrected by the encoders. The error is linear in the inertial parameters and in friction. It needs
accelerations, and attributes their noise to the torque. Start with this error. Atkeson, An,
Hollerbach 1986. Internal states follow the measured motion, see `internal_states.py`; the gain of
an actuator with some is that of a shift of the commands which has lasted as long as the recording.
Reactions at closed contacts are eliminated, see `reactions.py`.

Smoothing averages accelerations over its window, but the mean of friction is not friction at the
mean velocity. So with smoothed recordings all other torques are averaged like the accelerations,
those of the model as well as the measured ones. Khalil and Dombre 2002, section 12.6, filter both
sides likewise. Neighbouring residuals are then correlated, which standard errors allow for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float
from numpy.typing import NDArray

from ..dynamics.rnea import rnea
from ..forces.actuators.acting import (
    dof_commands,
    first_memories,
    generalised,
    joint_gears,
    next_memories,
    remember,
    timed,
    torques,
)
from ..forces.passive import passive
from ..integrators.method import chosen
from ..sensors.sensor import to_true
from ..system.arguments import check_system
from ..system.internal_states import tree_with_states
from ..system.kinematic_tree import Tree
from ..system.system import System
from .internal_states import last_there, lasting_change, states_at_rows
from .problem import Deviation, Layout, Problem, deviations, needed
from .reactions import closed_pairs, motions_left, without_contacts
from .recordings import DataError, Recording, as_recordings, filled

# With closed contacts a torque that does not depend on its command counts with so many deviations.
_SILENT = 1e4


class InverseDynamics(Problem):
    """Samples q (n, nq), v, a (n, nv), tau (n, nu) of any number of recordings.

    deviation (n, nv): standard deviations of the measurements at each degree of freedom. t (n,) in
    s, increasing over all recordings; first (n,): the first row of each row's recording. there (n,
    nv): whether it was measured; in gaps tau is interpolated, since delayed rows need it. kernel
    (k,): the weights of the averages that smoothed accelerations are, without unit, None for none;
    tau is as it was before smoothing. left (n, nv, nv): the motions that closed contacts leave, on
    which errors are projected, over deviations, and zeros; None without closed contacts.
    """

    t: jax.Array
    first: jax.Array
    q: jax.Array
    v: jax.Array
    a: jax.Array
    tau: jax.Array
    there: jax.Array
    deviation: jax.Array
    kernel: jax.Array | None
    left: jax.Array | None = None

    @staticmethod
    def of(
        system: System,
        recordings: Sequence[Recording],
        deviation: Deviation = 1.0,
        unactuated: Deviation | None = None,
    ) -> InverseDynamics:
        """The problem of recordings with q, v, a and tau.

        deviation: of tau, in the units of the commands, N m or N without actuators. unactuated: of
        the generalised force at dofs without an actuator, in N m or N, one number or nv; an
        infinite one leaves these degrees of freedom out.

        Rows in which q, v or a has a gap are gaps, and so are those at the ends of smoothed
        recordings, whose averages would reach beyond them, and torques that do not count
        (`Recording.counts`). Raises DataError for missing quantities, for recordings that are
        smoothed differently or too short for it, for systems with constraints, whose reactions are
        not measured, for several actuators at one degree of freedom, and for closed contacts that
        leave no motion of which all torques are known.
        """
        check_system(system)
        recordings = as_recordings(recordings)
        if system.constraints:
            raise DataError(
                f"{system.name}: reactions in closed loops are not identifiable from torques; fit "
                "motions (Shooting)"
            )
        commands = _commands(system)
        widths = {"q": system.nq, "v": system.nv, "a": system.nv, "tau": system.nu}
        kernel = _kernel(recordings)
        parts = [needed(_as_measured(recording), widths, system) for recording in recordings]
        q, v, a, tau = (np.concatenate([p[k] for p in parts]) for k in widths)
        lost = np.any(np.isnan(np.concatenate((q, v, a), axis=1)), axis=1, keepdims=True)
        gaps = np.column_stack((np.isnan(tau), np.zeros(len(tau), bool)))[:, commands]
        # A force along an axis, or of a tendon, may act on every dof.
        along = [i for i, a in enumerate(system.actuators) if a.single_dof(system) is None]
        there = ~(lost | gaps | np.isnan(tau[:, along]).any(axis=1, keepdims=True))
        contacts = any(recording.closed for recording in recordings)
        if unactuated is None:
            unactuated = float(np.mean(deviation)) if contacts else np.inf
        times = [recording.t for recording in recordings]
        tau = np.concatenate([filled(t, p["tau"]) for t, p in zip(times, parts, strict=True)])
        t, first = _one_after_the_other(times)
        # Any state will do in gaps, but internal states go on through them.
        held = np.maximum(np.asarray(last_there(lost[:, 0])), first)
        q, v, a = (
            np.where(np.any(np.isnan(x), axis=1, keepdims=True), still, x)
            for x, still in ((q[held], np.asarray(system.neutral())), (v[held], 0), (a[held], 0))
        )
        off = np.concatenate(
            [
                np.tile(
                    np.where(
                        commands < 0,
                        deviations("unactuated", unactuated, system.nv, r.weight),
                        np.append(deviations("tau", deviation, system.nu, r.weight), 1)[commands],
                    ),
                    (len(r.t), 1),
                )
                for r in recordings
            ]
        )
        there &= np.isfinite(off)
        there &= np.concatenate(
            [np.broadcast_to(r.counted, (len(r.t), system.nv)) for r in recordings]
        )
        off = np.where(np.isfinite(off), off, 1)
        if kernel is not None:
            there &= _inside(recordings, len(kernel) // 2 + 1)[:, None]
            kernel = jnp.asarray(kernel, system.dtype)
        t, q, v, a, tau, off = (jnp.asarray(x, system.dtype) for x in (t, q, v, a, tau, off))
        problem = InverseDynamics(
            *(t, jnp.asarray(first), q, v, a, tau, jnp.asarray(there), off, kernel)
        )
        return problem._eliminated(system, recordings) if contacts else problem

    def _eliminated(self, system: System, recordings: Sequence[Recording]) -> InverseDynamics:
        """The problem without the reactions at closed contacts."""
        q, _ = to_true(system, self.q, self.v)
        pairs, closed = closed_pairs(system, recordings, q)
        there = np.asarray(self.there)
        if self.kernel is not None:
            # Averages reach over rows with other reactions.
            wide, first = len(self.kernel) // 2 * 2 + 1, np.asarray(self.first)
            alike = [_constant(closed[first == k], wide) for k in np.unique(first)]
            there = there & np.concatenate(alike)[:, None]
        kept = dataclasses.replace(self, there=jnp.asarray(there))
        deviation, known = (np.asarray(x) for x in kept._deviations(system))
        left = motions_left(system, pairs, closed, q, known, deviation)
        if not left.any():
            raise DataError(
                f"{system.name}: the closed contacts leave no motion of which all torques are "
                "known; give `unactuated`, the deviation of forces at dofs without an actuator, "
                "or fit motions (Shooting)"
            )
        return dataclasses.replace(kept, left=jnp.asarray(left, system.dtype))

    def torques(self, system: System) -> Float[Array, "n nv"]:
        """The torques (n, nv) in N m or N that the motion needs, averaged where it is smoothed."""
        acting = system if self.left is None else without_contacts(system)
        tree, z = Tree.of(acting), self.states(system)

        def torque(*state: jax.Array) -> jax.Array:
            return jax.vmap(lambda z, *x: needed_torque(tree_with_states(tree, z), *x))(z, *state)

        return self.averaged(torque, *to_true(system, self.q, self.v, self.a))

    def efforts(self, system: System) -> Float[Array, "n nv"]:
        """The efforts (n, nv) delivered for the measured commands, averaged likewise."""
        tree, state = Tree.of(system), to_true(system, self.q, self.v)
        effort = jax.vmap(lambda *row: generalised(tree, *row))
        return self._mean(effort(self._given(system)[0], *state))

    def states(self, system: System) -> Float[Array, "n nz"] | None:
        """The internal states (n, nz) at its rows; None of a system without any.

        From those that the system holds, at the first row of each recording.
        """
        q, v = to_true(system, self.q, self.v)
        return states_at_rows(system, self.first, self.t, q, v, self.tau)

    def commanded(self, system: System, efforts: Float[Array, "n nv"]) -> InverseDynamics:
        """The problem with commands (n, nu) for which the actuators deliver these efforts (n, nv).

        For a machine with one actuator at each joint; by two steps of Newton's method, one more
        than laws that are linear in the command need. Where actuators have memories or internal
        states, the efforts are the commands.
        """
        wanted = efforts[:, np.argsort(_commands(system))]
        commanded = dataclasses.replace(self, tau=wanted)
        later = remember(system) or any(a.states for a in system.actuators)
        for _ in range(0 if later else 2):
            given, gain = (x * joint_gears(system) for x in commanded._given(system))
            step = jnp.where(gain != 0, wanted - given, 0) / jnp.where(gain != 0, gain, 1)
            commanded = dataclasses.replace(commanded, tau=commanded.tau + step)
        return commanded

    def averaged(
        self, of: Callable[..., jax.Array], q: jax.Array, v: jax.Array, a: jax.Array
    ) -> jax.Array:
        """The mean of of(q, v, a) (n, ...) at true accelerations, where `a` has their means.

        of is linear in a, as torques are; all but the term in `a`, which is a mean already, is
        averaged.
        """
        if self.kernel is None:
            return of(q, v, a)
        found = of(q, v, a)
        return self._mean(found) + of(q, v, 2 * a - self._mean(a)) - found

    def in_deviations(self, system: System, torques: Float[Array, "n nv"]) -> Float[Array, "n nv"]:
        """Torques at the joints (n, nv) in standard deviations of the measured commands.

        Zero at gaps. With closed contacts along the motions that these leave, and then zeros.
        """
        deviation, informative = self._deviations(system)
        if self.left is None:
            return jnp.where(informative, torques, 0) / deviation
        factor = self._factor(deviation)
        along = (self.left @ torques[..., None])[..., 0]
        return jax.vmap(lambda f, x: solve_triangular(f, x, lower=True))(factor, along)

    def errors(self, system: System) -> Float[Array, "n nv"]:
        """The errors of torques (n, nv) in N m or N: those of the model less those delivered.

        With closed contacts less the reactions which make them least in standard deviations.
        """
        off = self.torques(system) - self.efforts(system)
        if self.left is None:
            return off
        gain = self._deviations(system)[0] / self.deviation
        return gain * self.of_commands(system, self.in_deviations(system, off))

    def of_commands(self, system: System, r: Float[Array, "n nv"]) -> Float[Array, "n nv"]:
        """The errors of commands (n, nv), in their units, of which these are in deviations.

        With closed contacts the least ones.
        """
        if self.left is None:
            return r * self.deviation
        deviation, _ = self._deviations(system)
        factor = self._factor(deviation)
        back = jax.vmap(lambda f, x: solve_triangular(f, x, lower=True, trans=1))(factor, r)
        return self.deviation * deviation * (back[:, None, :] @ self.left)[:, 0]

    def residual(self, system: System, own: Float[Array, "*m"]) -> Float[Array, " k"]:
        return self.in_deviations(system, self.torques(system) - self.efforts(system)).ravel()

    def _deviations(self, system: System) -> tuple[Float[Array, "n nv"], Bool[Array, "n nv"]]:
        """The deviations (n, nv) of torques at the joints, and whether these depend on commands."""
        gain = self._given(system)[1] * joint_gears(system)
        gain = jnp.column_stack((gain, jnp.ones_like(self.t)))[:, _commands(system)]
        informative = self.there & (gain != 0)
        silent = 1.0 if self.left is None else _SILENT
        return jnp.where(informative, gain, silent) * self.deviation, informative

    def _factor(self, deviation: Float[Array, "n nv"]) -> Float[Array, "n nv nv"]:
        """The triangles L with L L^T the covariances of errors along the motions that are left.

        The identity where the deviations are those with which these were chosen.
        """
        assert self.left is not None
        each = self.left * deviation[:, None]
        zero = ~jnp.any(self.left != 0, axis=-1)
        fill = jnp.where(zero[:, :, None], jnp.eye(zero.shape[1], dtype=each.dtype), 0)
        return jnp.linalg.cholesky(each @ jnp.swapaxes(each, 1, 2) + fill)

    @property
    def measured(self) -> Bool[Array, " k"]:
        return (self.there if self.left is None else jnp.any(self.left != 0, axis=-1)).ravel()

    @property
    def layout(self) -> Layout:
        first, t = np.asarray(self.first), np.asarray(self.t)
        return Layout.of_rows(
            np.unique(first, return_inverse=True)[1], t - t[first], self.there.shape[1]
        )

    def _given(self, system: System) -> tuple[Float[Array, "n nu"], Float[Array, "n nu"]]:
        """The output of each actuator (n, nu), and its derivative by a shift of its commands."""
        tree, state, z = Tree.of(system), to_true(system, self.q, self.v), self.states(system)

        def given(tau: jax.Array, z: jax.Array | None) -> jax.Array:
            if remember(system):
                return self._remembered(tree, tau, z, *state)
            return jax.vmap(lambda z, *x: torques(tree_with_states(tree, z), *x))(z, tau, *state)

        ones = jnp.ones_like(self.tau)
        if z is None:
            return jax.jvp(lambda tau: given(tau, None), (self.tau,), (ones,))
        long = jax.ops.segment_max(self.t, self.first, len(self.t))[self.first]
        dz = jax.vmap(lambda *row: lasting_change(tree, *row))
        change = dz(z, self.tau, *state, long - self.t[self.first])
        return jax.jvp(given, (self.tau, z), (ones, change))

    def _remembered(
        self, tree: Tree, tau: jax.Array, z: jax.Array | None, q: jax.Array, v: jax.Array
    ) -> Float[Array, "n nu"]:
        """The outputs (n, nu) of actuators with a memory, row by row of each recording."""
        row = jnp.arange(len(self.t))
        step = jnp.diff(self.t)
        # The step after the last row of a recording is like that before it.
        last = jnp.append(self.first[1:] != self.first[:-1], True)
        before, after = jnp.append(step[:1], step), jnp.append(step, step[-1:])
        h = jnp.where(last, before, after)

        def turn(memories: Any, row: tuple) -> tuple[Any, jax.Array]:
            begins, h, z, tau, q, v = row
            memories = chosen(begins, first_memories(tree, tau, q, v, h), timed(memories, h))
            given = torques(tree_with_states(tree, z), tau, q, v, memories)
            return next_memories(tree, tau, q, v, memories), given

        start = first_memories(tree, tau[0], q[0], v[0], h[0])
        return jax.lax.scan(turn, start, (self.first == row, h, z, tau, q, v))[1]

    def _mean(self, x: jax.Array) -> jax.Array:
        """The averages over neighbours of x (n, ...)."""
        kernel = self.kernel
        if kernel is None:
            return x
        # XLA's code for convolutions reads beyond arrays that it is to pad, which may end programs.
        wide = jnp.pad(x.reshape(len(x), -1), ((len(kernel) // 2, len(kernel) // 2), (0, 0)))
        means = jax.vmap(lambda column: jnp.convolve(column, kernel, mode="valid"), 1, 1)(wide)
        return means.reshape(x.shape)


def needed_torque(tree: Tree, q: jax.Array, v: jax.Array, a: jax.Array) -> Float[Array, " nv"]:
    """The torque (nv,) in N m or N that a motion needs, but for that of springs and friction."""
    return rnea(tree, q, v, a) - passive(tree, q, v)


def _commands(system: System) -> NDArray:
    """The command (nv,) that acts at each degree of freedom, -1 where there is none."""
    found = dof_commands(system)
    for (name, _), several in zip(system.topology.velocity_labels, found, strict=True):
        if len(several) > 1:
            named = " and ".join(str(system.actuators[i]) for i in several)
            raise DataError(
                f"{system.name}: at {name!r} there are {named}, whose torques cannot be separated; "
                "fit motions (Shooting)"
            )
    return np.array([several[0] if several else -1 for several in found], dtype=int)


def _as_measured(recording: Recording) -> Recording:
    """The recording with the efforts from before smoothing."""
    smoothing = recording.smoothing
    return recording if smoothing is None else dataclasses.replace(recording, tau=smoothing.tau)


def _kernel(recordings: Sequence[Recording]) -> NDArray | None:
    """The kernel (k,) of all recordings, None where none is smoothed."""
    kernels = [np.zeros(0) if r.smoothing is None else r.smoothing.kernel for r in recordings]
    for recording, kernel in zip(recordings, kernels, strict=True):
        if not np.array_equal(kernel, kernels[0]):
            raise DataError(
                f"{recording.name} is not smoothed like {recordings[0].name}; give all one step "
                "(data.resample), and smooth all alike"
            )
    return kernels[0] if kernels[0].size else None


def _inside(recordings: Sequence[Recording], ends: int) -> NDArray:
    """A mask (n,) of the rows that are at least so many from both ends of their recording."""
    inside = []
    for recording in recordings:
        k = np.arange(len(recording.t))
        inside.append((k >= ends) & (k < len(k) - ends))
        if not inside[-1].any():
            raise DataError(
                f"{recording.name}: {len(k)} rows are too few for the torques behind smoothing, "
                f"which leaves {ends} out at both ends; smooth over fewer rows"
            )
    return np.concatenate(inside)


def _constant(masks: NDArray, wide: int) -> NDArray:
    """Whether masks (n, m) are the same in so many rows about each (n,)."""
    from scipy.ndimage import maximum_filter1d, minimum_filter1d

    values = masks.astype(int)
    edges = [f(values, wide, axis=0) for f in (maximum_filter1d, minimum_filter1d)]
    return (edges[0] == edges[1]).all(axis=1)


def _one_after_the_other(times: Sequence[NDArray]) -> tuple[NDArray, NDArray]:
    """All times (n,) in s on one clock, and the first row (n,) of each row's recording."""
    rows = np.cumsum([0, *(len(t) for t in times)])
    ends = np.cumsum([0, *(t[-1] - t[0] + 1 for t in times)])
    clock = [t - t[0] + end for t, end in zip(times, ends[:-1], strict=True)]
    return np.concatenate(clock), np.repeat(rows[:-1], np.diff(rows))

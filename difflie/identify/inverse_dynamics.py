"""The torque error: what a machine would need for the measured motion, less what was measured.

    r = (M(q) a + bias(q, v) - passive(q, v) - effort(tau, v)) / (gain deviation)

The effort is what arrives of a measured torque behind a drive (see `Drive`), or the torque itself,
and the gain its derivative by that: residuals are those of what was measured, as otherwise a small
gain would explain all with small inertias. q, v and a are those behind the encoders. Linear in the
inertial parameters and in friction; needs accelerations, and takes their noise for the torque's.
The place to start from. Atkeson, An, Hollerbach 1986.

Smoothing averages accelerations over its window, and friction does not become what it is at the
average of velocities. So behind smoothing all other torques are averaged like the accelerations,
those of the model as well as the measured ones. Khalil and Dombre 2002, section 12.6, filter both
sides likewise. Neighbours are then alike: of the standard errors believe those by blocks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpy.typing import NDArray

from ..dynamics.rnea import rnea
from ..forces.delays import sampled
from ..forces.drives import driven, gains, late
from ..forces.passive import passive
from ..system.kinematic_tree import Tree
from ..system.system import System
from .problem import Deviation, Problem, deviations, needed
from .recordings import DataError, Recording
from .sensors import meant


class InverseDynamics(Problem):
    """Samples q (n, nq), v, a, tau, deviation (n, nv) of any number of recordings.

    t (n,) in s, increasing, of one recording after the other; first (n,): the first row of its own.
    there (n, nv): whether it was measured; in gaps tau is linear between neighbours, for those rows
    that feel it later. kernel (k,): the weights of the averages that smoothed accelerations are,
    without unit, None for none; tau is what was measured before.
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

    @staticmethod
    def of(
        system: System, recordings: Sequence[Recording], deviation: Deviation = 1.0
    ) -> InverseDynamics:
        """The problem of recordings with q, v, a and tau; deviation of the torques, N m or N.

        Rows in which q, v or a has a gap are gaps, and so are those at the ends of smoothed
        recordings, whose averages would reach beyond them. Raises DataError for what is missing,
        for recordings that are smoothed unlike each other or too short for it, and for systems with
        constraints, whose reactions are not measured.
        """
        if system.constraints:
            raise DataError(
                f"{system.name}: torques alone do not tell the reactions in closed loops; fit "
                "motions (Shooting)"
            )
        widths = {"q": system.nq, "v": system.nv, "a": system.nv, "tau": system.nv}
        kernel = _kernel(recordings)
        parts = [needed(_as_measured(recording), widths) for recording in recordings]
        q, v, a, tau = (np.concatenate([p[k] for p in parts]) for k in widths)
        lost = np.isnan(np.concatenate((q, v, a), axis=1)).any(axis=1, keepdims=True)
        there = ~(lost | np.isnan(tau))
        times = [recording.t for recording in recordings]
        tau = np.concatenate([_filled(t, p["tau"]) for t, p in zip(times, parts, strict=True)])
        t, first = _one_after_the_other(times)
        # Any state will do there.
        q, v, a = (
            np.where(lost, np.asarray(system.neutral()), q),
            *(np.where(lost, 0, x) for x in (v, a)),
        )
        off = np.concatenate(
            [
                np.tile(deviations("tau", deviation, system.nv, r.weight), (len(r.t), 1))
                for r in recordings
            ]
        )
        there &= np.isfinite(off)
        if kernel is not None:
            there &= _inside(recordings, len(kernel) // 2 + 1)[:, None]
            kernel = jnp.asarray(kernel, system.dtype)
        t, q, v, a, tau, off = (jnp.asarray(x, system.dtype) for x in (t, q, v, a, tau, off))
        first, there = jnp.asarray(first), jnp.asarray(there)
        return InverseDynamics(t, first, q, v, a, tau, there, off, kernel)

    def torques(self, system: System) -> Float[Array, "n nv"]:
        """What must act at the joints for the motion (n, nv), averaged where that is smoothed."""
        tree = Tree.of(system)

        def torque(q: jax.Array, v: jax.Array, a: jax.Array) -> jax.Array:
            return rnea(tree, q, v, a) - passive(tree, q, v)

        return self.averaged(jax.vmap(torque), *meant(system, self.q, self.v, self.a))

    def efforts(self, system: System) -> Float[Array, "n nv"]:
        """What arrives there of the measured torques (n, nv), averaged likewise."""
        told, v = self._told(system)
        return self._mean(jax.vmap(lambda tau, v: driven(system, tau, v))(told, v))

    def averaged(
        self, of: Callable[..., jax.Array], q: jax.Array, v: jax.Array, a: jax.Array
    ) -> jax.Array:
        """The mean of of(q, v, a) (n, ...) at true accelerations, where `a` has their means.

        Linear in a, as torques are, it is averaged but for what is in `a` already.
        """
        if self.kernel is None:
            return of(q, v, a)
        found = of(q, v, a)
        return self._mean(found) + of(q, v, 2 * a - self._mean(a)) - found

    def in_deviations(self, system: System, torques: Float[Array, "n nv"]) -> Float[Array, "n nv"]:
        """Torques at the joints (n, nv) in standard deviations of those that were measured.

        Before a drive; zero at gaps.
        """
        gain = jax.vmap(lambda tau, v: gains(system, tau, v))(*self._told(system))
        return jnp.where(self.there, torques, 0) / (gain * self.deviation)

    def residual(self, system: System, own: Float[Array, "*m"]) -> Float[Array, " k"]:
        return self.in_deviations(system, self.torques(system) - self.efforts(system)).ravel()

    @property
    def measured(self) -> Bool[Array, " k"]:
        return self.there.ravel()

    def _told(self, system: System) -> tuple[jax.Array, jax.Array]:
        """The measured torques (n, nv), late where drives have delays, and the velocities."""
        told = late(system, self.tau, lambda u, delay: sampled(self.t, u, delay, self.first))
        return told, meant(system, self.q, self.v)[1]

    def _mean(self, x: jax.Array) -> jax.Array:
        """The averages over neighbours of x (n, ...)."""
        kernel = self.kernel
        if kernel is None:
            return x
        columns = x.reshape(len(x), -1)
        means = jax.vmap(lambda column: jnp.convolve(column, kernel, mode="same"), 1, 1)(columns)
        return means.reshape(x.shape)


def _as_measured(recording: Recording) -> Recording:
    """With the efforts from before the smoothing."""
    smoothing = recording.smoothing
    return recording if smoothing is None else dataclasses.replace(recording, tau=smoothing.tau)


def _kernel(recordings: Sequence[Recording]) -> NDArray | None:
    """The kernel (k,) of all recordings, None where none is smoothed."""
    kernels = [np.zeros(0) if r.smoothing is None else r.smoothing.kernel for r in recordings]
    for recording, kernel in zip(recordings, kernels, strict=True):
        if not np.array_equal(kernel, kernels[0]):
            raise DataError(
                f"{recording.name} is not smoothed like {recordings[0].name}; smooth all with one "
                "window and order"
            )
    return kernels[0] if kernels[0].size else None


def _inside(recordings: Sequence[Recording], ends: int) -> NDArray:
    """Whether rows (n,) are so many from both ends of their recording."""
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


def _filled(t: NDArray, values: NDArray) -> NDArray:
    """Values (n, k) without gaps: linear in between, zero where none was measured."""
    columns = []
    for column in values.T:
        known = ~np.isnan(column)
        columns.append(np.interp(t, t[known], column[known]) if known.any() else np.zeros(len(t)))
    return np.stack(columns, axis=1)


def _one_after_the_other(times: Sequence[NDArray]) -> tuple[NDArray, NDArray]:
    """All times (n,) in s on one clock, and the row (n,) where the recording of each begins."""
    rows = np.cumsum([0, *(len(t) for t in times)])
    ends = np.cumsum([0, *(t[-1] - t[0] + 1 for t in times)])
    clock = [t - t[0] + end for t, end in zip(times, ends[:-1], strict=True)]
    return np.concatenate(clock), np.repeat(rows[:-1], np.diff(rows))

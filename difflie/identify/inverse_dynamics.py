"""The torque error: what a machine would need for the measured motion, less what was measured.

    r = (M(q) a + bias(q, v) - passive(q, v) - effort(tau, v)) / deviation

The effort is what arrives of a measured torque behind a drive (see `Drive`), or the torque itself;
q, v and a are those behind the encoders. Linear in the inertial parameters and in friction; needs
accelerations, and takes their noise for the torque's. The place to start from. Atkeson, An,
Hollerbach 1986.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ..dynamics.rnea import rnea
from ..forces.delays import sampled
from ..forces.drives import driven, late
from ..forces.passive import passive
from ..system.linkage import linkage
from ..system.system import System
from .problem import Problem, deviations, needed
from .recordings import DataError, Recording
from .sensors import meant


class InverseDynamics(Problem):
    """Samples q (n, nq), v, a, tau, deviation (n, nv) of any number of recordings.

    t (n,) in s, increasing, of one recording after the other; first (n,): the first row of its own.
    there (n, nv): whether it was measured; in gaps tau is linear between neighbours, for those rows
    that feel it later.
    """

    t: jax.Array
    first: jax.Array
    q: jax.Array
    v: jax.Array
    a: jax.Array
    tau: jax.Array
    there: jax.Array
    deviation: jax.Array

    @staticmethod
    def of(
        system: System, recordings: Sequence[Recording], deviation: float | Sequence[float] = 1.0
    ) -> InverseDynamics:
        """The problem of recordings with q, v, a and tau; deviation of the torques, N m or N.

        Rows in which q, v or a has a gap are gaps. Raises DataError for what is missing, and for
        systems with constraints, whose reactions are not measured.
        """
        if system.constraints:
            raise DataError(
                f"{system.name}: torques alone do not tell the reactions in closed loops; fit "
                "motions (Shooting)"
            )
        widths = {"q": system.nq, "v": system.nv, "a": system.nv, "tau": system.nv}
        parts = [needed(recording, widths) for recording in recordings]
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
        t, q, v, a, tau, off = (jnp.asarray(x, system.dtype) for x in (t, q, v, a, tau, off))
        return InverseDynamics(t, jnp.asarray(first), q, v, a, tau, jnp.asarray(there), off)

    def torques(self, system: System) -> jax.Array:
        """What must act at the joints for the motion (n, nv)."""
        link = linkage(system)

        def torque(q: jax.Array, v: jax.Array, a: jax.Array) -> jax.Array:
            return rnea(link, q, v, a) - passive(system, link, q, v)

        return jax.vmap(torque)(*meant(system, self.q, self.v, self.a))

    def efforts(self, system: System) -> jax.Array:
        """What arrives there of the measured torques (n, nv)."""
        told = late(system, self.tau, lambda u, delay: sampled(self.t, u, delay, self.first))
        _, v = meant(system, self.q, self.v)
        return jax.vmap(lambda tau, v: driven(system, tau, v))(told, v)

    def residual(self, system: System, own: jax.Array) -> jax.Array:
        missing = self.torques(system) - self.efforts(system)
        return (jnp.where(self.there, missing, 0) / self.deviation).ravel()

    @property
    def measured(self) -> jax.Array:
        return self.there.ravel()


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

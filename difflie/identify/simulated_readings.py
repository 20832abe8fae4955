"""What sensors should read along simulated windows, less what they read."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..forces.actuators.acting import recalled, timed
from ..system.system import System
from .problem import Deviation
from .recordings import Recording
from .sensors.measured import differences, reading_deviations, readings_of


class SimulatedReadings(eqx.Module):
    """The K readings in w windows of s steps: at all s + 1 rows of each.

    names: of the sensors. t (w, s + 1) in s; dt (w, s + 1): the step after each row, that before
    the last one; u (w, s + 1, nu): the command from each row on. given (w, s + 1, K): the readings,
    NaN in gaps; deviation (w, K).
    """

    names: tuple[str, ...] = eqx.field(static=True)
    t: jax.Array
    dt: jax.Array
    u: jax.Array
    given: jax.Array
    deviation: jax.Array

    @staticmethod
    def of(
        system: System,
        windows: Sequence[tuple[Recording, int, int]],
        length: int,
        deviation: Mapping[str, Deviation],
    ) -> SimulatedReadings:
        """Of windows, each a recording with its first and last row, with room for `length` steps.

        Raises DataError as `Readings.of` does.
        """
        names, read = tuple(deviation), {}
        for recording, _, _ in windows:
            if id(recording) not in read:
                read[id(recording)] = readings_of(system, recording, names)
        parts = []
        for recording, first, last in windows:
            rows, missing = slice(first, last + 1), (0, length - (last - first))
            tau = recording.tau
            tau = np.zeros((len(recording.t), system.nu)) if tau is None else tau
            t = recording.t[rows]
            dt = np.append(np.diff(t), t[-1] - t[-2])
            given = read[id(recording)][rows]
            parts.append(
                (
                    np.pad(t, missing, mode="edge"),
                    np.pad(dt, missing, mode="edge"),
                    np.pad(tau[rows], (missing, (0, 0))),
                    np.pad(given, (missing, (0, 0)), constant_values=np.nan),
                    reading_deviations(system, deviation, recording.weight),
                )
            )
        arrays = (jnp.asarray(np.stack(x), system.dtype) for x in zip(*parts, strict=True))
        return SimulatedReadings(names, *arrays)

    def beginnings(self, rows: int) -> SimulatedReadings:
        """Those of so many first rows of the windows."""
        parts = {k: getattr(self, k)[:, :rows] for k in ("t", "dt", "u", "given")}
        return dataclasses.replace(self, **parts)

    def errors(
        self,
        system: System,
        q: Float[Array, "w edges nq"],
        v: Float[Array, "w edges nv"],
        memories: Any,
    ) -> Float[Array, "w edges K"]:
        """Predictions less readings (w, s + 1, K) in the units of the sensors; zero at gaps.

        q, v: of the simulated motion; memories (w, s + 1, ...): of the actuators, None for none.
        """

        def at(given, q, v, u, t, dt, memories):
            known = None if memories is None else timed(memories, dt)
            machine = recalled(system, known)
            return differences(machine, self.names, given, q, v, None, u, t)

        rows = self.given, q, v, self.u, self.t, self.dt, memories
        return jax.vmap(jax.vmap(at))(*rows)

    @property
    def there(self) -> Bool[Array, "w edges K"]:
        """Whether a reading was measured, and counts."""
        return ~jnp.isnan(self.given) & jnp.isfinite(self.deviation[:, None])

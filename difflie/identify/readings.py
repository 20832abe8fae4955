"""The reading error: what sensors should read along the measured motion, less what they read.

    r = (scale h(q, v, a, u) + bias - reading) / deviation

The motion is that of the recordings, corrected by the encoders; its own errors are not counted. So
it suits what is insensitive to them: kinematic calibration from motion capture, the biases of IMUs,
payloads from force-torque sensors. Where the motion itself is to be found from the readings, fit
`Shooting` with readings. Hollerbach, Khalil and Gautier 2016.

`SimulatedReadings` are those along simulated windows; `ReadingErrors` judge both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpy.typing import NDArray

from ..forces.actuators.acting import recalled, timed
from ..io.results import Results
from ..sensors.sensor import to_true
from ..system.arguments import check_system
from ..system.internal_states import owners, with_states
from ..system.system import System
from .internal_states import last_there, states_at_rows
from .problem import Deviation, Layout, Problem, needed
from .recordings import DataError, Recording, as_recordings
from .sensors import differences, named_sensor, reading_deviations, readings_of, widths
from .statistics import rms

_USES = {"v": "v", "a": "a", "u": "tau"}


class Readings(Problem):
    """Samples of n rows of any number of recordings, with K readings each.

    names: of the sensors. t (n,) in s, q (n, nq), v, a (n, nv), u (n, nu): the state and command of
    each row. given (n, K): the readings, NaN in gaps; deviation (n, K). recording (n,): that of
    each row. stateful: whether a sensor depends on internal states, which follow the measured
    motion (`internal_states.py`).
    """

    names: tuple[str, ...] = eqx.field(static=True)
    t: jax.Array
    q: jax.Array
    v: jax.Array
    a: jax.Array
    u: jax.Array
    given: jax.Array
    deviation: jax.Array
    recording: jax.Array
    stateful: bool = eqx.field(static=True, default=False)

    @staticmethod
    def of(
        system: System,
        recordings: Sequence[Recording],
        deviation: Mapping[str, Deviation],
    ) -> Readings:
        """The problem of recordings with q and readings.

        deviation: of the readings of each sensor, by its name, in its unit, one number or one for
        each of them. v, a and tau are needed where a sensor depends on them; a row in which one of
        these has a gap is a gap for this sensor. Where one depends on internal states, v is needed,
        and tau if they are those of actuators; in gaps these stay as in the row before. Raises
        DataError for missing quantities and readings, for readings with a wrong number of columns
        or without a number, and for unknown sensors.
        """
        check_system(system)
        recordings = as_recordings(recordings)
        if not deviation:
            raise DataError(f"{system.name}: there is no sensor to compare; give a deviation")
        names = tuple(deviation)
        used = {name: named_sensor(system, name).needs(system) for name in names}
        rows = [_rows(system, recording, used) for recording in recordings]
        q, v, a, u, measured = (np.concatenate(part) for part in zip(*rows, strict=True))
        off = [
            np.tile(reading_deviations(system, deviation, r.weight), (len(r.t), 1))
            for r in recordings
        ]
        t = np.concatenate([r.t for r in recordings])
        given = t, q, v, a, u, measured, np.concatenate(off)
        each = np.repeat(np.arange(len(recordings)), [len(r.t) for r in recordings])
        t, q, v, a, u, measured, off = (jnp.asarray(x, system.dtype) for x in given)
        stateful = any("z" in uses for uses in used.values())
        return Readings(names, t, q, v, a, u, measured, off, jnp.asarray(each), stateful)

    def errors(self, system: System) -> Float[Array, "n K"]:
        """Predictions less readings (n, K) in the units of the sensors; zero at gaps."""
        q, v, a = to_true(system, self.q, self.v, self.a)
        z = None
        if self.stateful:
            first = jnp.searchsorted(self.recording, self.recording)
            z = states_at_rows(system, first, self.t, q, v, self.u)

        def off(z: jax.Array | None, *row: jax.Array) -> jax.Array:
            at = system if z is None else with_states(system, z)
            return differences(at, self.names, *row)

        return jax.vmap(off)(z, self.given, q, v, a, self.u, self.t)

    def residual(self, system: System, own: Float[Array, "*m"]) -> Float[Array, " k"]:
        return (self.errors(system) / self.deviation).ravel()

    @property
    def measured(self) -> Bool[Array, " k"]:
        return (~jnp.isnan(self.given) & jnp.isfinite(self.deviation)).ravel()

    @property
    def layout(self) -> Layout:
        return Layout.of_rows(np.asarray(self.recording), np.asarray(self.t), self.given.shape[1])


def _rows(
    system: System, recording: Recording, used: Mapping[str, frozenset[str]]
) -> tuple[NDArray, ...]:
    """q, v, a and u of a recording, neutral or zero in gaps, and its readings (n, K)."""
    every = frozenset().union(*used.values())
    sizes = {"q": system.nq, "v": system.nv, "a": system.nv, "tau": system.nu}
    wanted = {"q", *(_USES[name] for name in every - {"z"})}
    if "z" in every:
        of_actuators = any(owner.group == "actuators" for owner in owners(system))
        wanted |= {"v", "tau"} if of_actuators else {"v"}
    given = needed(recording, {k: size for k, size in sizes.items() if k in wanted}, system)
    gaps = {k: np.any(np.isnan(x), axis=1) for k, x in given.items()}
    measured = readings_of(system, recording, used)
    of = widths(system, tuple(used))
    for k, (name, uses) in enumerate(used.items()):
        used_rows = [gaps[_USES[use]] for use in uses - {"z"}]
        lost = gaps["q"] | np.any(used_rows or [gaps["q"]], axis=0)
        measured[np.ix_(lost, of == k)] = np.nan
        if np.isnan(measured[:, of == k]).all():
            said = " or ".join(["q", *sorted(_USES[use] for use in uses - {"z"})])
            raise DataError(
                f"{recording.name}: wherever {name!r} was read, {said} is a gap; leave its "
                "deviation out, or the recording"
            )
    # Any row will do in gaps, but internal states go on through them.
    held = {k: np.asarray(last_there(gap)) for k, gap in gaps.items()}
    q = np.where(gaps["q"][held["q"], None], np.asarray(system.neutral()), given["q"][held["q"]])
    others = (
        np.where(gaps[k][held[k], None], 0, given[k][held[k]])
        if k in given
        else np.zeros((len(recording.t), sizes[k]))
        for k in ("v", "a", "tau")
    )
    return q, *others, measured


@dataclasses.dataclass(frozen=True)
class SensorErrors(Results):
    """The root mean square errors of a sensor in a recording, in the unit given.

    Along the measured and the simulated motion, None where not judged. use: "training" or
    "validation".
    """

    run: str
    sensor: str
    unit: str
    rmse: float | None
    simulated_rmse: float | None
    use: str = ""


@dataclasses.dataclass(frozen=True)
class ReadingErrors:
    """Errors of K readings of a recording of n rows, in the units of their sensors.

    columns (K,): the sensor, the name and the unit of each. measured (n, K): along the measured
    motion; simulated (m, K): along the simulated one. Both NaN in gaps, and without rows where they
    were not judged.
    """

    columns: tuple[tuple[str, str, str], ...]
    measured: NDArray
    simulated: NDArray

    def rows(self, run: str) -> list[SensorErrors]:
        """The errors of each sensor, of each of its units; run: the name of the recording."""
        found = []
        for sensor, unit in dict.fromkeys((sensor, unit) for sensor, _, unit in self.columns):
            own = [(s, u) == (sensor, unit) for s, _, u in self.columns]
            both = (float(rms(x[:, own], axis=None)) for x in (self.measured, self.simulated))
            rmse, simulated = (None if np.isnan(error) else error for error in both)
            found.append(SensorErrors(run, sensor, unit, rmse, simulated))
        return found


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
        names, parts = tuple(deviation), []
        recordings = {id(recording): recording for recording, _, _ in windows}
        read = {key: readings_of(system, each, names) for key, each in recordings.items()}
        for recording, first, last in windows:
            rows, missing = slice(first, last + 1), (0, length - (last - first))
            tau = recording.tau
            tau = np.zeros((len(recording.t), system.nu)) if tau is None else tau
            t = recording.t[rows]
            dt = np.append(np.diff(t), t[-1] - t[-2])
            parts.append(
                (
                    np.pad(t, missing, mode="edge"),
                    np.pad(dt, missing, mode="edge"),
                    np.pad(tau[rows], (missing, (0, 0))),
                    np.pad(read[id(recording)][rows], (missing, (0, 0)), constant_values=np.nan),
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
        z: Float[Array, "w edges nz"] | None,
    ) -> Float[Array, "w edges K"]:
        """Predictions less readings (w, s + 1, K) in the units of the sensors; zero at gaps.

        q, v: of the simulated motion; memories (w, s + 1, ...): of the actuators, and internal
        states z, None for none.
        """

        def at(given, q, v, u, t, dt, memories, z):
            machine = recalled(system, memories and timed(memories, dt))
            machine = machine if z is None else with_states(machine, z)
            return differences(machine, self.names, given, q, v, None, u, t)

        return jax.vmap(jax.vmap(at))(self.given, q, v, self.u, self.t, self.dt, memories, z)

    @property
    def there(self) -> Bool[Array, "w edges K"]:
        """Whether a reading was measured, and counts."""
        return ~jnp.isnan(self.given) & jnp.isfinite(self.deviation[:, None])

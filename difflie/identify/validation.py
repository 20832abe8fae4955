"""Validation: how well a machine predicts the torques and motions of recordings.

Use recordings that were not fitted; Ljung 1999, section 16.5.

`compare` says which of two models predicts rows better that neither was fitted to. Rows are cut
into successive blocks, as neighbouring errors are alike; the logarithm of the ratio of the mean
squares is found block by block, and its mean over blocks has an interval by Student's t: a paired
comparison, in which what is hard to predict for both does not count (Diebold and Mariano 1995, with
blocks for correlated errors).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import equinox as eqx
import jax
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import stdtrit

from ..forces.actuators.acting import dof_commands
from ..forces.actuators.motors import Drive, Motor, PositionServo
from ..io.results import Results
from ..parameters import Parameters
from ..sensors.sensor import to_measured
from ..system.arguments import check_system
from ..system.system import System
from ..system.validation import warn
from ..view.compared import Run, run_figure
from .inverse_dynamics import InverseDynamics
from .problem import Deviation
from .readings import ReadingErrors, Readings, SensorErrors
from .recordings import DataError, Recording, check_recording
from .search import search
from .sensors import columns_of_sensors, reading_deviations, readings_of
from .shooting import Shooting
from .statistics import r_squared, rms, whiteness

_LAGS = 20
_KEYS = "torque_rmse", "torque_r2", "torque_autocorrelation", "position_rmse", "position_r2"
_AT_START = "torque_rmse", "position_rmse"


@dataclasses.dataclass(frozen=True, kw_only=True)
class JointErrors(Results):
    """The errors of a degree of freedom in a recording, as of `Validation`; None where not judged.

    Those of torques in N m or N, of positions in rad or m; start_*: of the system before a fit.
    """

    run: str
    joint: str
    torque_rmse: float | None
    torque_r2: float | None
    torque_autocorrelation: float | None
    position_rmse: float | None
    position_r2: float | None
    start_torque_rmse: float | None = None
    start_position_rmse: float | None = None


@dataclasses.dataclass(frozen=True)
class Validation:
    """The predictions of a machine for a recording of n rows, and their errors.

    joints (nv,): the names of the degrees of freedom. torque (n, nv) in N m or N: what the measured
    motion needs; effort (n, nv): what the measured commands deliver at the joints; NaN in gaps, and
    where torques were not judged. motions (w, s + 1, nq) in rad or m: simulated with the measured
    commands in windows of s steps; departure (w, s + 1, nv): their difference from the measured
    ones, NaN in gaps; no window where the motion was not judged. observed: the first rows of a
    window, which determine its initial state and are not judged. readings: the errors of other
    sensors. units (nv,): "rad" or "m". raw and target (n, nv): commanded torques and positions at
    the joints, NaN where there are none. start: the predictions of the machine before a fit, None
    without one.
    """

    recording: Recording
    joints: tuple[str, ...]
    units: tuple[str, ...]
    window: int
    observed: int
    torque: NDArray
    effort: NDArray
    motions: NDArray
    departure: NDArray
    readings: ReadingErrors
    raw: NDArray
    target: NDArray
    start: Validation | None = None

    @property
    def torque_rmse(self) -> NDArray:
        """The root mean square of the torque error (nv,) in N m or N; NaN without any."""
        return rms(self.torque - self.effort)

    @property
    def torque_r2(self) -> NDArray:
        """1 - the squared torque error over that of the mean effort (nv,); NaN without any."""
        return r_squared(self.effort, self.torque - self.effort)

    @property
    def torque_noise(self) -> NDArray:
        """The part of `torque_rmse` that changes from row to row (nv,), as noise does, in N m or N.

        NaN for smoothed recordings, of which the neighbours share their noise.
        """
        if self.recording.smoothing is not None:
            return np.full(len(self.joints), np.nan)
        return rms(np.diff(self.torque - self.effort, axis=0) / np.sqrt(2))

    @property
    def torque_autocorrelation(self) -> NDArray:
        """The largest autocorrelation of the torque error (nv,), over the bound of white noise.

        Of the first twenty lags; where it is far above 1 errors of white noise are too small.
        NaN for errors of no more than twenty rows.
        """
        columns = (error[~np.isnan(error)] for error in (self.torque - self.effort).T)
        return np.array([_largest_autocorrelation(error) for error in columns])

    @property
    def position_rmse(self) -> NDArray:
        """The root mean square of the motion error (nv,) in rad or m; NaN without any."""
        return rms(self.departure[:, self.observed :].reshape(-1, len(self.joints)))

    @property
    def position_r2(self) -> NDArray:
        """1 - the squared motion error over that of the mean position (nv,); NaN without any.

        Also where coordinates are not one per degree of freedom.
        """
        if self.motions.shape != self.departure.shape:
            return np.full(len(self.joints), np.nan)
        errors, motions = (
            x[:, self.observed :].reshape(-1, len(self.joints))
            for x in (self.departure, self.motions)
        )
        return r_squared(motions - errors, errors)

    @property
    def rows(self) -> list[JointErrors]:
        """The errors of each degree of freedom."""
        columns = {key: getattr(self, key) for key in _KEYS}
        if self.start is not None:
            columns |= {f"start_{key}": getattr(self.start, key) for key in _AT_START}
        return [
            JointErrors(
                run=self.recording.name,
                joint=joint,
                **{key: None if np.isnan(x[k]) else float(x[k]) for key, x in columns.items()},
            )
            for k, joint in enumerate(self.joints)
        ]

    @property
    def sensor_rows(self) -> list[SensorErrors]:
        """The errors of each other sensor, see `ReadingErrors.rows`."""
        return self.readings.rows(self.recording.name)

    @property
    def drawn(self) -> Run:
        """The data of its figures."""
        q = self.recording.q
        # Coordinates that are not one per degree of freedom are shown by their errors.
        plain = q is not None and q.shape[1] == len(self.joints)
        return Run(
            joints=self.joints,
            units=self.units,
            t=self.recording.t,
            torque=self.torque,
            effort=self.effort,
            raw=self.raw,
            q=q if plain else None,
            target=self.target,
            motions=self.motions if plain else self.departure,
            departure=self.departure,
            window=self.window,
        )

    def plot(self) -> Figure:
        """Measured and predicted torques and motions, joint by joint, as a matplotlib figure."""
        return run_figure(self.drawn, f"{self.recording.name}: measured and predicted")


@dataclasses.dataclass(frozen=True)
class Trial:
    """A recording, prepared to judge machines of one structure.

    torques, motion and readings: the errors by which it judges; None if it lacks their quantities.
    sensors: those whose readings are judged. window: of the motions, in steps; observe: how many
    first rows of a window determine its initial state, None for the measured state.
    """

    recording: Recording
    window: int
    observe: int | None
    torques: InverseDynamics | None
    motion: Shooting | None
    readings: Readings | None
    sensors: tuple[str, ...]

    @staticmethod
    def of(
        system: System,
        recording: Recording,
        *,
        window: float = 0.5,
        observe: int | None = None,
        substeps: int = 1,
        position: Deviation = 1.0,
        readings: Mapping[str, Deviation] | None = None,
    ) -> Trial:
        """The trial of a recording: its torques if it has q, v, a and tau, its motions if it has v.

        window: in s, of the motions, which are simulated with the measured commands in `substeps`
        of each step, from the measured state at its first row. observe: instead, that many first
        rows of each window, two or more, determine its initial state; v is then not needed, and
        errors are those of the rows after these. position: the standard deviations in rad or m, as
        in `Shooting.of`. readings: those of other sensors by name, which are judged along the
        measured motion and along the simulated one.

        Warns of what cannot be judged. Raises DataError for a window that is not positive, for an
        `observe` of less than two rows, or of more than a window has, and for readings that are
        missing or do not suit their sensor.
        """
        check_system(system)
        check_recording(recording)
        steps = recording.steps_in(window)
        if observe is not None and observe < 2:
            raise DataError(f"observe is {observe}; give two rows or more")
        if observe is not None and observe > steps:
            raise DataError(
                f"observe is {observe}, but a window of {recording.name} has {steps + 1} rows; "
                "take fewer, or a longer window"
            )
        if readings:
            readings_of(system, recording, readings)
            reading_deviations(system, readings, recording.weight)
        torques = motion = along = None
        if recording.a is not None and recording.tau is not None and not system.constraints:
            with _warned("its torques are not judged"):
                torques = InverseDynamics.of(system, [recording])
        if recording.v is not None or observe is not None:
            with _warned("its motion is not judged"):
                motion = Shooting.of(
                    system,
                    [recording],
                    window=steps,
                    position=position,
                    free=observe is not None,
                    substeps=substeps,
                    readings=readings,
                )
        if readings:
            with _warned("readings are not judged along the measured motion"):
                along = Readings.of(system, [recording], readings)
        return Trial(recording, steps, observe, torques, motion, along, tuple(readings or ()))

    def validation(self, system: System, start: System | None = None) -> Validation:
        """How well a machine predicts the recording.

        start: the machine before a fit, which is judged beside it.
        """
        torque = effort = np.full((len(self.recording.t), system.nv), np.nan)
        motions, departure = (np.zeros((0, self.window + 1, n)) for n in (system.nq, system.nv))
        if self.torques is not None:
            there = np.asarray(self.torques.there)
            effort = np.where(there, self.torques.efforts(system), np.nan)
            torque = effort + self.torques.errors(system)
        columns = tuple(columns_of_sensors(system, self.sensors))
        measured = simulated = np.zeros((0, len(columns)))
        if self.readings is not None:
            gap = np.isnan(self.readings.given)
            measured = np.where(gap, np.nan, _along(self.readings, system))
        if self.motion is not None:
            # With what is kept from before each window, which its rows do not contain.
            memories, z = self.motion.remembered(system), self.motion.first_states(system)
            motion = dataclasses.replace(self.motion, memories=memories, states=z)
            own = motion.own
            if self.observe is not None:
                _, best = search(Parameters(system, []), (motion.beginnings(self.observe),))
                (own,) = best.unknown[1]
            motions, off, errors = (np.asarray(x) for x in _predicted(motion, system, own))
            gap = np.isnan(motion.q).any(axis=-1, keepdims=True)
            departure = np.where(gap, np.nan, off)
            if motion.readings is not None:
                errors = np.where(np.isnan(motion.readings.given), np.nan, errors)
                simulated = errors[:, self.observe or 1 :].reshape(-1, len(columns))
        return Validation(
            recording=self.recording,
            joints=tuple(name for name, _ in system.topology.velocity_labels),
            units=tuple(unit.removesuffix("/s") for _, unit in system.topology.velocity_labels),
            window=self.window,
            observed=self.observe or 1,
            torque=torque,
            effort=effort,
            motions=motions,
            departure=departure,
            readings=ReadingErrors(columns, measured, simulated),
            raw=_commanded(system, self.recording, (Drive, Motor)),
            target=_commanded(system, self.recording, (PositionServo,)),
            start=None if start is None else self.validation(start),
        )


@contextmanager
def _warned(said: str) -> Iterator[None]:
    """Turns a DataError into a warning that says what it means, too."""
    try:
        yield
    except DataError as error:
        warn(f"{error}; {said}")


@eqx.filter_jit
def _predicted(motion: Shooting, system: System, own: jax.Array) -> tuple[jax.Array, ...]:
    """Simulated configurations of windows, and how far they and readings are from measured ones."""
    simulated = motion.simulated(system, own)
    read, _ = to_measured(system, *simulated[:2])
    others = motion.readings
    errors = read[..., :0] if others is None else others.errors(system, *simulated)
    return read, motion.departure(system, read), errors


@eqx.filter_jit
def _along(readings: Readings, system: System) -> jax.Array:
    """The errors of readings along the measured motion."""
    return readings.errors(system)


def _commanded(system: System, recording: Recording, kinds: tuple[type, ...]) -> NDArray:
    """The commands (n, nv) of actuators of these kinds at their joints, NaN elsewhere."""
    found = np.full((len(recording.t), system.nv), np.nan)
    if recording.tau is not None:
        for k, several in enumerate(dof_commands(system)):
            own = [
                i for i in several if system.actuators and isinstance(system.actuators[i], kinds)
            ]
            if len(several) == len(own) == 1:
                found[:, k] = recording.tau[:, own[0]]
    return found


def _largest_autocorrelation(error: NDArray) -> float:
    if len(error) <= _LAGS:
        return np.nan
    correlations, bound = whiteness(error, _LAGS)
    return float(np.abs(correlations).max() / bound)


_LEAST = 3


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The mean square errors of the second model over those of the first, joint by joint.

    Ratios are without unit, below 1 where the second predicts better. joints (n,); ratios (n,):
    geometric means over blocks, NaN without rows; intervals (n, 2): 95 %. ratio and interval (2,):
    the geometric mean over joints.
    """

    joints: tuple[str, ...]
    ratios: NDArray
    intervals: NDArray
    ratio: float
    interval: NDArray

    @property
    def verdict(self) -> str:
        """One sentence: which model predicts better, and where it is otherwise."""
        lower, upper = self.interval
        errors = f"mean squares {self.ratio:.3g} of the first's, 95 % {lower:.3g} to {upper:.3g}"
        if lower <= 1 <= upper:
            said = f"neither model predicts better than by chance ({errors})"
        else:
            said = f"the {'second' if upper < 1 else 'first'} model predicts better ({errors})"
        better = [j for j, ends in zip(self.joints, self.intervals, strict=True) if ends[1] < 1]
        worse = [j for j, ends in zip(self.joints, self.intervals, strict=True) if ends[0] > 1]
        if better:
            said += f"; the second is better at {', '.join(better)}"
        if worse:
            said += f"; the first is better at {', '.join(worse)}"
        return said


def compare(first: NDArray, second: NDArray, joints: Sequence[str], blocks: int = 10) -> Comparison:
    """The comparison of two models by their errors for the same rows, fitted to other ones.

    first and second (r, n): errors such as `residuals` of `Fit.assessment.held_out`, or torque -
    effort of `Fit.validate`, both in one unit, NaN in gaps; joints (n,): the names of their
    columns; blocks: into how many the rows are cut. Raises DataError for errors of unlike shapes,
    and for blocks without rows.
    """
    first, second = np.asarray(first, float), np.asarray(second, float)
    if first.shape != second.shape or first.ndim != 2 or first.shape[1] != len(joints):
        raise DataError(
            f"errors have the shapes {first.shape} and {second.shape} for {len(joints)} joints; "
            "judge both models by the same rows, with a column for each joint"
        )
    if not _LEAST <= blocks <= len(first):
        raise DataError(f"{len(first)} rows have no {blocks} blocks; give {_LEAST} or more, fewer")
    there = ~(np.isnan(first) | np.isnan(second))
    parts = np.array_split(np.arange(len(first)), blocks)
    squares = [
        [np.sum(np.where(there[p], errors[p], 0) ** 2, axis=0) for p in parts]
        for errors in (first, second)
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(squares[1]) - np.log(squares[0])  # (blocks, n)
    logs = np.where(np.isfinite(logs), logs, np.nan)
    judged = ~np.isnan(logs).all(axis=0)
    ratios, intervals = np.full(len(joints), np.nan), np.full((len(joints), 2), np.nan)
    for j in np.flatnonzero(judged):
        ratios[j], intervals[j] = _mean(logs[:, j])
    if not judged.any():
        raise DataError("both models have errors in no row; judge them by measured rows")
    ratio, interval = _mean(np.nanmean(logs[:, judged], axis=1))
    return Comparison(tuple(joints), ratios, intervals, ratio, interval)


def _mean(logs: NDArray) -> tuple[float, NDArray]:
    """The exponential of a mean over blocks, and of its 95 % interval (2,)."""
    logs = logs[~np.isnan(logs)]
    mean, n = logs.mean(), len(logs)
    half = stdtrit(n - 1, 0.975) * logs.std(ddof=1) / np.sqrt(n) if n > 1 else np.inf
    return float(np.exp(mean)), np.exp(np.array((mean - half, mean + half)))

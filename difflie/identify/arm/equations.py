"""The linear equations of an arm: a row of columns and a torque for each kept sample and joint."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..jacobian import triangle
from ..samples import Samples
from ..torque_rows import Friction, TorqueModel, sign

# Load friction beyond this would let gears drive themselves.
_MOST_LOAD = 0.8
# Differences by the logarithm of a velocity.
_BEND = 1e-3


@dataclasses.dataclass(frozen=True)
class Equations:
    """columns (r, nv, p) x = torque (r, nv) where counts (r, nv), of all recordings.

    of (r,): the recording of each row, t (r,) its time in s, and weight (r,): as so many rows it
    counts in a fit. All are averages over the filter of both sides.
    """

    columns: NDArray
    torque: NDArray
    counts: NDArray
    of: NDArray
    t: NDArray
    weight: NDArray

    def where(self, rows: NDArray) -> Equations:
        """Those of some rows, by a mask (r,)."""
        return Equations(*(getattr(self, field.name)[rows] for field in dataclasses.fields(self)))

    def residual(self, x: NDArray) -> NDArray:
        """What x (p,) leaves of the torques (r, nv); NaN where a joint does not count."""
        return np.where(self.counts, self.torque - self.columns @ x, np.nan)

    def scales(self, deviations: NDArray) -> NDArray:
        """The numbers (p,) whose torques are as large as all that is measured at their joints.

        Both are sums of squares in standard deviations (nv,); infinite for columns of zeros.
        """
        columns = np.where(self.counts[:, :, None], self.columns / deviations[:, None], 0)
        torques = np.where(self.counts, self.torque / deviations, 0)
        length = np.einsum("rjp,rjp->jp", columns, columns)
        measured = np.sum(torques**2, axis=0) @ (length > 0)
        total = length.sum(axis=0)
        size = np.where(total > 0, total, 1)
        return np.sqrt(np.where(total > 0, measured / size, np.inf))

    def triangle(self, deviations: NDArray, rows: NDArray | None = None) -> NDArray:
        """The triangle (., p + 1) of the columns beside the torques, in standard deviations (nv,).

        rows (r,): a mask of those that are taken.
        """
        kept = self.counts if rows is None else self.counts & rows[:, None]
        whole = np.concatenate((self.columns, self.torque[:, :, None]), axis=2)
        scale = np.sqrt(self.weight)[:, None] / deviations
        return triangle((whole * scale[:, :, None])[kept])


@dataclasses.dataclass(frozen=True)
class Logs:
    """Samples of all recordings, and for each the bodies' columns and known torques, averaged."""

    samples: tuple[Samples, ...]
    inertial: tuple[NDArray, ...]
    known: tuple[NDArray, ...]

    @staticmethod
    def of(model: TorqueModel, samples: Sequence[Samples]) -> Logs:
        """The columns of a model along samples."""
        return Logs(
            tuple(samples),
            tuple(model.inertial_columns(s) for s in samples),
            tuple(model.known(s) for s in samples),
        )

    @property
    def speeds(self) -> NDArray:
        """The root mean square of each joint's velocity (nv,)."""
        v = np.concatenate([s.v for s in self.samples])
        speed = np.sqrt(np.mean(v**2, axis=0))
        return np.where(speed > 0, speed, speed.max())

    def equations(
        self, model: TorqueModel, friction: Friction, x: NDArray | None = None
    ) -> Equations:
        """The equations of a model with this friction, linearised at x (p,) for load friction.

        A gear that loses the part mu of the torque needs f tau, f = 1 / (1 - mu sign(tau v)), for
        the torque tau that its joint needs; f tau is linearised in tau and mu.
        """
        parts = [self._equations(k, model, friction, x) for k in range(len(self.samples))]
        names = [field.name for field in dataclasses.fields(Equations)]
        return Equations(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))

    def bends(self, model: TorqueModel, friction: Friction, x: NDArray) -> tuple[NDArray, NDArray]:
        """The derivatives (r, nv, k) of torques by the logarithms of the friction's velocities.

        At the numbers x (p,), and which they are (k,): first each joint's rise, then its fading;
        those with columns of zeros are left out. Of a motor that turns with a sum of rates each
        joint has its own.
        """
        found = []
        for name in ("rise", "fading"):
            ends = []
            for way in (1, -1):
                value = getattr(friction, name) * np.exp(way * _BEND)
                near = self.equations(model, dataclasses.replace(friction, **{name: value}), x)
                ends.append(near.columns @ x - near.torque)
            slope = np.where(near.counts, (ends[0] - ends[1]) / (2 * _BEND), 0)
            found.append(slope[:, :, None] * np.eye(slope.shape[1]))
        every = np.concatenate(found, axis=2)
        kept = np.flatnonzero(np.abs(every).max(axis=(0, 1)) > 0)
        return every[:, :, kept], kept

    def _equations(
        self, k: int, model: TorqueModel, friction: Friction, x: NDArray | None
    ) -> Equations:
        samples = self.samples[k]
        own = samples.averaged(model.joint_columns(samples, friction))
        columns = np.concatenate((self.inertial[k], own), axis=2)
        torque = samples.averaged(samples.tau) - self.known[k]
        if model.load:
            slip = samples.averaged(sign(samples.v, friction.rise))
            columns, torque = _with_load(model, slip, columns, torque, x)
        return Equations(
            columns=columns,
            torque=torque,
            counts=samples.counts,
            of=np.full(len(samples.rows), k),
            t=samples.t[samples.rows],
            weight=np.full(len(samples.rows), samples.recording.weight),
        )


def _with_load(
    model: TorqueModel,
    slip: NDArray,
    columns: NDArray,
    torque: NDArray,
    x: NDArray | None,
) -> tuple[NDArray, NDArray]:
    """Columns (r, nv, p) and torques (r, nv) with those of load friction, about x (p,).

    slip (r, nv): the smooth signs of velocities, averaged; the load hardly changes within a window.
    """
    nv, p = torque.shape[1], columns.shape[2]
    behind = np.ones(p)
    if model.offsets:  # an offset of the sensor is no load of the gear
        first = model.inertial + model.leaves.index("offset") * nv
        behind[first : first + nv] = 0
    numbers = np.zeros(p + nv) if x is None else x
    load = columns @ (behind * numbers[:p]) if x is not None else torque
    slip = np.sign(load) * slip
    part = np.clip(numbers[p:], 0, _MOST_LOAD)
    gain = 1 / (1 - part * slip)
    along = load * slip * gain**2
    scaled = columns * np.where(behind > 0, gain[:, :, None], 1)
    return np.concatenate((scaled, along[:, :, None] * np.eye(nv)), axis=2), torque + part * along

"""The linear equations of an arm, their weighted least squares (IDIM-WLS), and what these choose.

There is a row of columns and a torque for each kept sample and joint. Each joint's equations are
weighted by the standard deviation of its own residuals, in some rounds; of the base parameters some
are essential. Gautier 1997; Khalil and Dombre 2002, section 12.4.

Chosen are the shape of each joint's friction, and how near the file's numbers are. Torques do not
depend linearly on the shape of friction. What enters linearly is eliminated: each shape is judged
by the residuals of the best linear numbers (variable projection, Golub and Pereyra 1973). More
numbers are taken where the residuals fall by more than by chance: Schwarz's criterion, with as many
measurements as are independent.

The weight of the distance from the file's numbers is chosen on held-out blocks. Each recording is
cut into successive blocks; each block is predicted by a fit to all others (cross-validation with
blocks, as neighbouring rows are alike; Burman, Chow and Nolan 1994).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..deprecated import renamed
from ..dynamics.identifiable import BaseParameters, independent_columns
from ..io.results import Results
from .consistency import Consistent, Distance, Nominal, consistent
from .elimination import column_sizes, triangle
from .samples import Samples
from .statistics import r_squared
from .torque_rows import Friction, TorqueModel, names_of, sign

# Load friction beyond this would let gears drive themselves.
_MOST_LOAD = 0.8
# Differences by the logarithm of a velocity.
_BEND = 1e-3


class Equations(NamedTuple):
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
        return Equations(*(part[rows] for part in self))

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
        return np.sqrt(np.where(total > 0, measured / np.where(total > 0, total, 1), np.inf))

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
        speed = np.sqrt(np.mean(np.concatenate([s.v for s in self.samples]) ** 2, axis=0))
        return np.where(speed > 0, speed, speed.max())

    def equations(
        self, model: TorqueModel, friction: Friction, x: NDArray | None = None
    ) -> Equations:
        """The equations of a model with this friction, linearised at x (p,) for load friction.

        A gear that loses the part mu of the torque needs f tau, f = 1 / (1 - mu sign(tau v)), for
        the torque tau that its joint needs; f tau is linearised in tau and mu.
        """
        parts = [self._equations(k, model, friction, x) for k in range(len(self.samples))]
        return Equations(*map(np.concatenate, zip(*parts, strict=True)))

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


_ROUNDS = 4
# Directions of numbers that the motion tells worse than the best by this factor are left at zero.
_LEAST_TOLD = 1e-3
# The least part of the torques' root mean square that their noise is.
_LEAST_NOISE = 1e-6
# A base parameter with a larger relative error is a candidate for being left out, as long as the
# mean square of the residuals grows by no more than chance makes it grow.
_CERTAIN = 0.1
_CHANCE = 4.0


@dataclasses.dataclass(frozen=True)
class BaseParameter(Results):
    """A combination of numbers that the motion identifies, as of `Solution`.

    relative_error: its standard error over its value.
    """

    name: str
    value: float
    std_error: float
    relative_error: float
    essential: bool


@dataclasses.dataclass(frozen=True)
class Solution:
    """The base parameters of an arm that explain its torques best, whatever bodies have them.

    x (p,): numbers of the model with these base parameters, zero for columns that stand for none.
    deviations (nv,): of the residuals, in N m or N. base, names (rank,), values and standard_errors
    (rank,), which allow for correlated residuals. essential (rank,): a mask of those without which
    torques are explained worse. condition: of the columns with lengths 1. independent (nv,): how
    many of the equations of each joint count as independent.
    """

    x: NDArray
    deviations: NDArray
    base: BaseParameters
    names: tuple[str, ...]
    values: NDArray
    standard_errors: NDArray
    essential: NDArray
    condition: float
    independent: NDArray

    @property
    def table(self) -> list[BaseParameter]:
        """A row for each."""
        columns = self.values, self.standard_errors, self.relative_errors, self.essential
        each = zip(self.names, *(column.tolist() for column in columns), strict=True)
        return [BaseParameter(*row) for row in each]

    @property
    def relative_errors(self) -> NDArray:
        """Standard errors over values (rank,), without unit."""
        values = np.abs(self.values)
        return self.standard_errors / np.where(values > 0, values, np.finfo(float).tiny)


def weights_and_solution(equations: Equations) -> tuple[NDArray, NDArray]:
    """x (p,) of least norm, and the deviations (nv,) of its residuals, by which it is weighted."""
    counts = equations.counts
    weight = counts * equations.weight[:, None]
    total = np.maximum(weight.sum(axis=0), np.finfo(float).tiny)
    size = np.sqrt(np.sum(weight * equations.torque**2, axis=0) / total)
    size = np.where(size > 0, size, 1)
    deviations, x = size, np.zeros(equations.columns.shape[2])
    for _ in range(_ROUNDS):
        x = least_squares(equations.triangle(deviations))
        off = np.where(counts, equations.residual(x), 0)
        mean = np.sum(weight * off**2, axis=0) / total
        deviations = np.maximum(np.sqrt(mean), _LEAST_NOISE * size)
    return x, deviations


def least_squares(triangle: NDArray) -> NDArray:
    """The solution (p,) of least norm, in columns of length 1, for a triangle (., p + 1)."""
    w, y = triangle[:, :-1], triangle[:, -1]
    sizes = column_sizes(w)
    return np.linalg.lstsq(w / sizes, y, rcond=_LEAST_TOLD)[0] / sizes


def solved(equations: Equations, names: Sequence[str]) -> Solution:
    """The base parameters of equations with numbers of these names (p,)."""
    _, deviations = weights_and_solution(equations)
    triangle = equations.triangle(deviations)
    base = independent_columns(triangle[:, :-1])
    w, y = triangle[:, base.columns], triangle[:, -1]
    size = np.linalg.norm(w, axis=0)
    values = np.linalg.lstsq(w / size, y, rcond=None)[0] / size
    x = np.zeros(len(names))
    x[base.columns] = values
    independent = independent_rows(equations, x)
    part = equations.counts.sum() / max(float(independent.sum()), 1.0)
    singular = np.linalg.svd(w / size, compute_uv=False)
    errors = np.linalg.norm(np.linalg.pinv(w / size), axis=1) / size * np.sqrt(part)
    return Solution(
        x=x,
        deviations=deviations,
        base=base,
        names=names_of(base, tuple(names)),
        values=values,
        standard_errors=errors,
        essential=_essential(w, y, part),
        condition=float(singular[0] / max(singular[-1], np.finfo(float).tiny)),
        independent=independent,
    )


def independent_rows(equations: Equations, x: NDArray) -> NDArray:
    """How many equations of each joint (nv,) are independent, by their autocorrelations.

    n / (1 + 2 sum_k rho_k), the sum up to the first rho_k that is not positive.
    """
    found = []
    for residual, counts in zip(equations.residual(x).T, equations.counts.T, strict=True):
        r = np.where(counts, residual, 0)
        power = np.fft.irfft(np.abs(np.fft.rfft(r, 2 * len(r))) ** 2)[: len(r)]
        rho = power / power[0] if power[0] > 0 else np.eye(1, len(r))[0]
        last = int(np.argmax(rho <= 0)) if (rho <= 0).any() else len(rho)
        found.append(counts.sum() / (1 + 2 * rho[1:last].sum()))
    return np.array(found)


def _essential(w: NDArray, y: NDArray, part: float) -> NDArray:
    """A mask (rank,) of what is left when the least certain are left out one after the other.

    part: equations for each independent one, by which squares count less.
    """
    kept = np.arange(w.shape[1])
    least = None
    while len(kept) > 1:
        q, r = np.linalg.qr(w[:, kept])
        x = np.linalg.solve(r, q.T @ y)
        least = float(y @ y - (q.T @ y) @ (q.T @ y)) if least is None else least
        error = np.linalg.norm(np.linalg.inv(r), axis=1) * np.sqrt(part)
        relative = error / np.maximum(np.abs(x), np.finfo(float).tiny)
        worst = int(np.argmax(relative))
        # Without this one the sum of squares grows by (x / error)^2 parts.
        if relative[worst] < _CERTAIN or relative[worst] ** -2 > _CHANCE:
            break
        kept = np.delete(kept, worst)
    return np.isin(np.arange(w.shape[1]), kept)


# In root mean square velocities of a joint.
_RISES = 0.003, 0.01, 0.03, 0.1, 0.3
# Then nearer ones, by these factors, and the lowest point of parabolas of these.
_REFINED = 1.7, 1.3, 1.15, 1.07
_PARABOLAS = 1.05, 1.01
_FADINGS = 0.1, 0.2, 0.5, 1.0
_LOAD_ROUNDS = 4


def chosen_friction(logs: Logs, model: TorqueModel, stribeck: bool | None = None) -> Friction:
    """The friction of each joint that explains the torques best; stribeck: None where it pays."""
    speeds = logs.speeds
    none = np.full(len(speeds), np.nan)
    best, rise = np.full(len(speeds), np.inf), speeds * _RISES[0]
    tries = [speeds * part for part in _RISES]
    for refined in (None, *_REFINED):
        tries = tries if refined is None else [rise * refined, rise / refined]
        for tried in tries:
            square, _ = _squares(logs.equations(model, Friction(tried, none)))
            rise, best = np.where(square < best, tried, rise), np.minimum(square, best)
    for step in _PARABOLAS:
        before, at, after = (
            _squares(logs.equations(model, Friction(rise * step**k, none)))[0] for k in (-1, 0, 1)
        )
        curve = np.maximum(before - 2 * at + after, np.finfo(float).tiny)
        rise = rise * step ** np.clip((before - after) / (2 * curve), -1, 1)
    friction = Friction(rise, none)
    if stribeck is False:
        return friction
    least, independent = _squares(logs.equations(model, friction))
    most = np.zeros(len(speeds)) if stribeck is None else np.full(len(speeds), -np.inf)
    for part in _FADINGS:
        candidate = Friction(rise, np.maximum(speeds * part, 3 * rise))
        gain = _gains(least, independent, logs.equations(model, candidate), model)
        fading = np.where(gain > most, candidate.fading, friction.fading)
        friction, most = Friction(rise, fading), np.maximum(gain, most)
    return friction


def with_load(
    logs: Logs, model: TorqueModel, friction: Friction
) -> tuple[TorqueModel, NDArray | None]:
    """The model with load friction, and the numbers (p,) about which it is linearised."""
    loaded, x = dataclasses.replace(model, load=True), None
    for _ in range(_LOAD_ROUNDS):
        x, _ = weights_and_solution(logs.equations(loaded, friction, x))
        x[-len(model.joints) :] = np.maximum(x[-len(model.joints) :], 0)
    return loaded, x


def _squares(equations: Equations) -> tuple[NDArray, NDArray]:
    """The mean squares of each joint's residuals (nv,), and the independent equations (nv,)."""
    x, deviations = weights_and_solution(equations)
    return deviations**2, independent_rows(equations, x)


def _gains(
    least: NDArray, independent: NDArray, candidate: Equations, model: TorqueModel
) -> NDArray:
    """By how much Schwarz's criterion falls for each joint (nv,) with two more numbers.

    Minus infinity for friction that would be less at low speed.
    """
    x, deviations = weights_and_solution(candidate)
    n = np.maximum(independent, np.e)
    ratio = least / np.maximum(deviations**2, np.finfo(float).tiny)
    breakaway = model.joint_numbers(x, "breakaway")
    return np.where(breakaway > 0, n * np.log(ratio) - 2 * np.log(n), -np.inf)


WEIGHTS = tuple(10.0 ** np.arange(4, -1.5, -0.5))
# Errors that differ by this part differ by chance.
_ALIKE = 0.05
# A joint whose error is larger with all weights is not predicted: its mean does as well.
_PREDICTED = 0.5


@renamed(floor="baseline")
@dataclasses.dataclass(frozen=True)
class HeldOut:
    """Predictions of blocks by fits to the others.

    weights (n,), and errors (n,): the mean of S / (S + V) over the joints that some weight
    predicts, S the mean square of the residuals and V the variance of the torque. It is about 1 -
    R2 where this is small, and at most 1, so that no joint outweighs all others. best: the largest
    weight that predicts about as well as any. residuals (r, nv) in N m or N: with that weight;
    baseline (r, nv): of least squares without any bounds. NaN where a joint does not count.
    unconverged: the fits that have not converged.
    """

    weights: NDArray
    errors: NDArray
    best: float
    residuals: NDArray
    baseline: NDArray
    unconverged: int


def blocks_of(equations: Equations, count: int) -> NDArray:
    """The block (r,) of each row: every recording has `count` successive ones."""
    found = np.zeros(len(equations.of), int)
    for k in np.unique(equations.of):
        rows = np.flatnonzero(equations.of == k)
        found[rows] = np.arange(len(rows)) * count // len(rows)
    return found


def held_out(
    equations: Equations,
    deviations: NDArray,
    nominal: Nominal,
    nonnegative: NDArray,
    weights: tuple[float, ...] = WEIGHTS,
    distance: Distance = "entropic",
    count: int = 5,
    progress: Callable[[str], None] = lambda stage: None,
) -> HeldOut:
    """Predictions of `count` blocks with each of these weights, from the largest on.

    progress(stage) is called before each block.
    """
    blocks, weights = blocks_of(equations, count), tuple(sorted(weights, reverse=True))
    off = np.full((len(weights), *equations.torque.shape), np.nan)
    baseline = np.full(equations.torque.shape, np.nan)
    unconverged = 0
    for block in range(count):
        progress(f"held-out block {block + 1} of {count}")
        out = blocks == block
        triangle = equations.triangle(deviations, ~out)
        baseline[out] = equations.residual(least_squares(triangle))[out]
        found: Consistent | None = None
        for k, weight in enumerate(weights):
            found = consistent(
                triangle, nominal, nonnegative, weight, distance, None if found is None else found.x
            )
            unconverged += not found.converged
            off[k][out] = equations.residual(found.x)[out]
    errors, at = chosen(np.array([1 - r_squared(equations.torque, each) for each in off]))
    return HeldOut(np.array(weights), errors, float(weights[at]), off[at], baseline, unconverged)


def chosen(unexplained: NDArray) -> tuple[NDArray, int]:
    """The errors (n,) of weights, and the first of those that are about as small as any.

    unexplained (n, nv): S / V of each joint, 1 - R2, which has no upper end; NaN is left out.
    """
    each = unexplained / (1 + unexplained)
    known = ~np.isnan(each).any(axis=0)
    # Of joints that no weight predicts, chance is more than all that others lose.
    told = known & (np.where(known, each, 1).min(axis=0) < _PREDICTED)
    told = told if told.any() else known
    errors = each[:, told].mean(axis=1) if told.any() else np.ones(len(each))
    return errors, int(np.argmax(errors <= (1 + _ALIKE) * errors.min()))

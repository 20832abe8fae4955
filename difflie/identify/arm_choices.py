"""What an arm's log chooses: the shape of each joint's friction, and how near the file numbers are.

Torques do not depend linearly on the shape of friction. What enters linearly is eliminated: each
shape is judged by the residuals of the best linear numbers (variable projection, Golub and Pereyra
1973). More numbers are taken where the residuals fall by more than by chance: Schwarz's criterion,
with as many measurements as are independent.

The weight of the distance from the file's numbers is chosen on held-out blocks. Each recording is
cut into successive blocks; each block is predicted by a fit to all others (cross-validation with
blocks, as neighbouring rows are alike; Burman, Chow and Nolan 1994).
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from ..deprecated import renamed
from .arm_equations import Equations, Logs, independent_rows, least_squares, weights_and_solution
from .consistency import Consistent, Distance, Nominal, consistent
from .statistics import r_squared
from .torque_rows import Friction, TorqueModel

# In root mean square velocities of a joint.
_RISES = 0.003, 0.01, 0.03, 0.1, 0.3
# Then nearer ones, by these factors, and the lowest point of parabolas of these.
_REFINED = 1.7, 1.3, 1.15, 1.07
_PARABOLAS = 1.05, 1.01
_FADINGS = 0.1, 0.2, 0.5, 1.0
_ROUNDS = 4


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
    for _ in range(_ROUNDS):
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
) -> HeldOut:
    """Predictions of `count` blocks with each of these weights, from the largest on."""
    blocks, weights = blocks_of(equations, count), tuple(sorted(weights, reverse=True))
    off = np.full((len(weights), *equations.torque.shape), np.nan)
    baseline = np.full(equations.torque.shape, np.nan)
    unconverged = 0
    for block in range(count):
        out = blocks == block
        triangle = equations.triangle(deviations, ~out)
        baseline[out] = equations.residual(least_squares(triangle))[out]
        found: Consistent | None = None
        for k, weight in enumerate(weights):
            start = None if found is None else found.x
            found = consistent(triangle, nominal, nonnegative, weight, distance, start)
            unconverged += not found.converged
            off[k][out] = equations.residual(found.x)[out]
    errors, at = chosen(np.array([_unexplained(each, equations) for each in off]))
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


def _unexplained(off: NDArray, equations: Equations) -> NDArray:
    """1 - R2 of residuals (r, nv), for each joint (nv,); NaN where the torque does not vary."""
    found = np.full(off.shape[1], np.nan)
    for j, counts in enumerate(equations.counts.T):
        if counts.any():
            found[j] = 1 - r_squared(equations.torque[counts, j], off[counts, j])
    return found

"""The shape of each joint's friction, on which torques do not depend linearly.

What enters linearly is eliminated: each shape is judged by the residuals of the best linear numbers
(variable projection, Golub and Pereyra 1973). More numbers are taken where the residuals fall by
more than by chance: Schwarz's criterion, with as many measurements as are independent.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from ..torque_rows import Friction, TorqueModel
from .equations import Equations, Logs
from .weighted_least_squares import independent_rows, weights_and_solution

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
        better = gain > most
        fading = np.where(better, candidate.fading, friction.fading)
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

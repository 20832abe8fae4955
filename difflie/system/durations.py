"""How many steps a motion has, also from its duration."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax.core import Tracer

from .validation import format_value

DEFAULT_STEPS = 1000


def step_count(where: str, dt: Any, steps: Any, duration: Any) -> Any:
    """The number of steps of dt () in s: steps, or those in a duration () in s, or 1000.

    A duration must be a whole number of steps to rounding: to a millionth of itself, at most a
    thousandth of a step, and to the precision of dt. Raises ValueError for any other, with the
    nearest durations and the dt that fits, for one that is not positive, and for one beside steps;
    TypeError for what is no number, also where it is traced: the number of steps is part of the
    compiled program. where: what messages begin with, such as "simulate: ".
    """
    if duration is None:
        return DEFAULT_STEPS if steps is None else steps
    if steps is not None:
        raise ValueError(
            f"{where}steps is {format_value(steps)} and duration {format_value(duration)}; give "
            "one of them"
        )
    if isinstance(duration, Tracer) or isinstance(dt, Tracer):
        traced = "duration" if isinstance(duration, Tracer) else "dt"
        raise TypeError(
            f"{where}{traced} is traced, and a duration must be a known number of steps; give steps"
        )
    whole, length = _number(f"{where}duration", duration), _number(f"{where}dt", dt)
    if not 0 < whole < np.inf:
        raise ValueError(f"{where}duration is {whole:g} s; it must be positive and finite")
    ratio, rounding = whole / length, _rounding(duration) + _rounding(dt)
    if not ratio < 2**53:
        raise ValueError(f"{where}duration is {whole:g} s, too many steps of dt = {length:g} s")
    steps = round(ratio)
    if steps and abs(ratio - steps) <= min(1e-6 * steps, 1e-3) + rounding * steps:
        return steps
    near = (f"{_short(n * length)} ({n} step{'s' * (n > 1)})" for n in _around(ratio) if n)
    raise ValueError(
        f"{where}duration is {_short(whole)} s, which is {_short(ratio)} steps of dt = "
        f"{_short(length)} s; give {' or '.join(near)}, or dt = {_short(whole / _around(ratio)[1])}"
    )


def _around(ratio: float) -> tuple[int, int]:
    return int(ratio), int(ratio) + 1


def _number(name: str, value: Any) -> float:
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or array.shape != ():
        raise TypeError(f"{name} is {format_value(value)}; give one number, in s")
    return float(array)


def _rounding(value: Any) -> float:
    """The relative rounding error of a number: of an array's precision, else of a double."""
    dtype: Any = getattr(value, "dtype", np.dtype(float))
    return float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0


def _short(value: float) -> str:
    return f"{value:.9g}"

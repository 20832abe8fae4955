"""Operations that only move entries about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..program import Program
from .writing import PLAIN, RULES, Array, constants


def _moved(f: Callable[..., Array]) -> Callable[..., list[Array]]:
    """The rule of a function of parameters and arrays."""
    return lambda program, equation, *xs: [f(equation.params, *xs)]


def _broadcast(params: dict, x: Array, *_: Array) -> Array:
    shape, places = params["shape"], params["broadcast_dimensions"]
    spread = [1] * len(shape)
    for size, place in zip(x.shape, places, strict=True):
        spread[place] = size
    return np.broadcast_to(x.reshape(spread), shape)


def _slice(params: dict, x: Array) -> Array:
    steps = params["strides"] or (1,) * x.ndim
    limits = zip(params["start_indices"], params["limit_indices"], steps, strict=True)
    return x[tuple(slice(*each) for each in limits)]


def _reshape(params: dict, x: Array, *_: Array) -> Array:
    order = params.get("dimensions")
    return (x if order is None else np.transpose(x, order)).reshape(params["new_sizes"])


def _pad(params: dict, x: Array, filler: Array) -> Array:
    config = params["padding_config"]
    # Zeros that stand for places: what is cut off first is cut with them.
    places = [(max(low, 0), max(high, 0), inside) for low, high, inside in config]
    full = [n + max(n - 1, 0) * p[2] for n, p in zip(x.shape, places, strict=True)]
    shape = [low + high + n for n, (low, high, _) in zip(full, places, strict=True)]
    padded = np.full(shape, filler.item(), np.int64)
    at = [slice(low, low + n, inside + 1) for n, (low, _, inside) in zip(full, places, strict=True)]
    padded[tuple(at)] = x
    cut = [
        slice(-min(low, 0), n + min(high, 0))
        for n, (low, high, _) in zip(shape, config, strict=True)
    ]
    return padded[tuple(cut)]


def _iota(program: Program, equation: Any, *_: Array) -> list[Array]:
    params = equation.params
    shape, along = params["shape"], params["dimension"]
    counts = np.arange(shape[along]).astype(params["dtype"])
    spread = counts.reshape([-1 if i == along else 1 for i in range(len(shape))])
    return [constants(program, np.broadcast_to(spread, shape))]


def _empty(program: Program, equation: Any) -> list[Array]:
    """What stands for a result that nobody reads; XLA puts zeros there, too."""
    return [constants(program, np.zeros((), equation.params["dtype"]))]


def _split(program: Program, equation: Any, x: Array) -> list[Array]:
    ends = np.cumsum(equation.params["sizes"])[:-1]
    return np.split(x, ends, equation.params["axis"])


def _unstack(program: Program, equation: Any, x: Array) -> list[Array]:
    return list(np.moveaxis(x, equation.params["axis"], 0))


def _identity(program: Program, equation: Any, *xs: Array) -> list[Array]:
    return list(xs)


_MOVES: dict[str, Callable[..., Array]] = {
    "broadcast_in_dim": _broadcast,
    "concatenate": lambda params, *xs: np.concatenate(xs, params["dimension"]),
    "pad": _pad,
    "reshape": _reshape,
    "rev": lambda params, x: np.flip(x, params["dimensions"]),
    "slice": _slice,
    "squeeze": lambda params, x: np.squeeze(x, tuple(params["dimensions"])),
    "stack": lambda params, *xs: np.stack(xs, params.get("axis", 0)),
    "tile": lambda params, x: np.tile(x, params["reps"]),
    "transpose": lambda params, x: np.transpose(x, params["permutation"]),
}
_SAME = (
    "copy copy_p optimization_barrier pcast pvary reduced_vary_cast reshard stop_gradient".split()
)
RULES |= {
    **{name: _moved(f) for name, f in _MOVES.items()},
    **dict.fromkeys(_SAME, _identity),
    "empty2": _empty,
    "iota": _iota,
    "split": _split,
    "unstack": _unstack,
}
PLAIN |= {*_MOVES, *_SAME, "empty2", "iota", "split", "unstack"} - {"stop_gradient"}

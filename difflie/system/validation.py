"""Errors, warnings, and what is checked of names and numbers before a system is built."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_LONGEST_NAME = 200
# What no quantity of a machine exceeds in SI units, and single precision holds.
LARGEST = 1e30


class InputError(ValueError):
    """What is wrong with a file or a description: one sentence a fault, on a line of its own."""

    def __init__(self, *faults: str):
        super().__init__(*map(shortened, faults))

    def __str__(self) -> str:
        return "\n".join(self.args)


class ModelError(InputError):
    """A description that is no machine; the message names the place, the element and the fix."""


def shortened(message: str) -> str:
    """A message on one line, cut in the middle where it is very long."""
    return _cut("".join(c if c.isprintable() else " " for c in message), 2000)


def shown(value: Any) -> str:
    """A name or value of a file as messages show it, cut in the middle where it is long."""
    return _cut(repr(value), 100)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}...{text[-most // 2 :]}"


def warn(message: str) -> None:
    """Warns of what the line did that called this package; see `shortened`."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "difflie":
        level, frame = level + 1, frame.f_back
    warnings.warn(shortened(message), stacklevel=level)


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the known name that is most like `name`; empty if none is."""
    near = closest(name, known)
    return "" if near is None else f"; did you mean {shown(near)}?"


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like `name`; None if none is."""
    # To compare long names takes long, and nobody types them.
    short = [k for k in known if len(k) < _LONGEST_NAME]
    near = difflib.get_close_matches(name, short, 1) if len(name) < _LONGEST_NAME else []
    return near[0] if near else None


def numbers(value: Any, what: str) -> np.ndarray:
    """The value as an array of any shape. Raises `ModelError` for what is no number."""
    try:
        return np.asarray(value, float)
    except (TypeError, ValueError):
        raise ModelError(f"{what} is {value!r}; numbers are needed") from None


def real_numbers(where: str, name: str, value: Any) -> jax.Array:
    """The value, of any shape, as an array. Raises TypeError for what are no real numbers."""
    try:
        array = jnp.asarray(value)
    except (TypeError, ValueError):
        raise TypeError(f"{where}: {name} is {shown(value)}; give real numbers") from None
    if not any(jnp.issubdtype(array.dtype, kind) for kind in (jnp.floating, jnp.integer)):
        raise TypeError(f"{where}: {name} is {array.dtype}; give real numbers")
    return array


def check_shape(where: str, name: str, actual: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Raises ValueError for another shape than the one that is needed."""
    if actual != shape:
        batch = len(actual) == len(shape) + 1 and actual[1:] == shape
        hint = "; for a batch use jax.vmap" if batch else ""
        raise ValueError(f"{where}: {name} has shape {actual}, needed is {shape}{hint}")

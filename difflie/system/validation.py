"""Errors, warnings, and checks of names and numbers before a system is built."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

_LONGEST_NAME = 200
# Larger than any quantity of a machine in SI units, and within the range of single precision.
LARGEST = 1e30


class InputError(ValueError):
    """The faults of a file or a description, one sentence and one line for each."""

    def __init__(self, *faults: str):
        super().__init__(*map(shortened, faults))

    def __str__(self) -> str:
        return "\n".join(self.args)


class ModelError(InputError):
    """A model that cannot be built; the message names the place, the element and the fix."""


def shortened(message: str) -> str:
    """A message on one line, cut in the middle if it is very long."""
    return _cut("".join(c if c.isprintable() else " " for c in message), 2000)


def format_value(value: Any) -> str:
    """A name or value as messages show it, cut in the middle if it is long."""
    return _cut(repr(value), 100)


def described(value: Any) -> str:
    """What was given in place of a part: a short value as it is, else its class."""
    text = repr(value)
    return text if len(text) <= 40 and "\n" not in text else f"a {type(value).__name__}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}...{text[-most // 2 :]}"


def warn(message: str) -> None:
    """Warns, at the line outside this package that called it; see `shortened`."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "difflie":
        level, frame = level + 1, frame.f_back
    warnings.warn(shortened(message), stacklevel=level)


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the known name most similar to `name`; empty if none is similar."""
    near = closest(name, known)
    return "" if near is None else f"; did you mean {format_value(near)}?"


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name most similar to `name`; None if none is similar."""
    # Comparing long names is slow, and nobody types them.
    short = [k for k in known if len(k) < _LONGEST_NAME]
    near = difflib.get_close_matches(name, short, 1) if len(name) < _LONGEST_NAME else []
    return near[0] if near else None


# What follows the name of a number that is traced where a system is built.
TRACED = (
    "is traced by jax; build the system once, outside of jax.grad, jax.jit and jax.vmap, and set "
    "the number inside, by system.replace(mass=...) or dl.Parameters(system, [PATH]).with_values"
)


def is_traced(value: Any) -> bool:
    """Whether a number, or one in lists, is traced."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(value))


def is_text(value: Any) -> bool:
    """Whether a value, or one in lists, is text, which numpy would read as a number."""
    return any(
        isinstance(leaf, str | bytes) or (isinstance(leaf, np.ndarray) and leaf.dtype.kind in "US")
        for leaf in jax.tree.leaves(value)
    )


def numbers(value: Any, what: str) -> np.ndarray:
    """The value as an array of any shape. Raises `ModelError` if it is not real numbers."""
    if is_traced(value):
        raise ModelError(f"{what} {TRACED}")
    if np.iscomplexobj(value):
        raise ModelError(f"{what} is {value!r}; real numbers are needed")
    try:
        if is_text(value):
            raise TypeError
        return np.asarray(value, float)
    except (TypeError, ValueError):
        raise ModelError(f"{what} is {value!r}; numbers are needed") from None


def as_array(value: Any) -> jax.Array:
    """Numbers of Python and NumPy as an array of jax, in its precision.

    As `jnp.asarray`, which compiles a program for each shape.
    """
    # A copy: on the CPU arrays of jax may share the memory of what they are made from.
    return jax.device_put(value if isinstance(value, _PLAIN) else np.array(value))


_PLAIN = (bool, int, float, complex)


def in_precision(array: jax.Array, dtype: Any) -> jax.Array:
    """The array in a type; as `astype`, which compiles a program for each shape."""
    if isinstance(array, Tracer):
        return array.astype(dtype)
    if array.dtype == dtype and not array.weak_type:
        return array
    return as_array(np.asarray(array).astype(dtype))


def real_numbers(where: str, name: str, value: Any) -> jax.Array:
    """The value as an array of any shape. Raises TypeError if it is not real numbers."""
    if isinstance(value, jax.Array) and value.dtype.kind == "f":
        return value
    plain = isinstance(value, (*_PLAIN, np.ndarray, np.generic, list, tuple))
    try:
        array = as_array(value) if plain and not is_traced(value) else jnp.asarray(value)
    except (TypeError, ValueError):
        raise TypeError(f"{where}: {name} is {format_value(value)}; give real numbers") from None
    if not any(jnp.issubdtype(array.dtype, kind) for kind in (jnp.floating, jnp.integer)):
        raise TypeError(f"{where}: {name} is {array.dtype}; give real numbers")
    return array


def real_values(what: str, value: Any, dtype: Any) -> jax.Array:
    """What a user's function returned, in a floating-point type.

    Whole numbers and truths become reals. Raises TypeError for complex numbers, whose imaginary
    parts would be lost, and for what is no array.
    """
    try:
        array = jnp.asarray(value)
    except (TypeError, ValueError):
        raise TypeError(f"{what} is {format_value(value)}; give real numbers") from None
    if not any(jnp.issubdtype(array.dtype, kind) for kind in (jnp.floating, jnp.integer, bool)):
        raise TypeError(f"{what} is {array.dtype}; give real numbers")
    return array.astype(dtype)


def check_shape(
    where: str, name: str, actual: tuple[int, ...], shape: tuple[int, ...], fix: str = ""
) -> None:
    """Raises ValueError if the actual shape is not the required one; fix: what the message adds."""
    if actual != shape:
        batch = len(actual) == len(shape) + 1 and actual[1:] == shape
        hint = fix or ("; for a batch use jax.vmap" if batch else "")
        raise ValueError(f"{where}: {name} has shape {actual}, needed is {shape}{hint}")

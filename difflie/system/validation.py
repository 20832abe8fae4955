"""What is checked before a system is built, and the states before they are traced."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .topology import Topology

if TYPE_CHECKING:
    from .system import System


# How far a point may be off its manifold; the length of a quaternion from 1.
QUATERNION_TOLERANCE = 1e-3


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


def checked(system: System, **arrays: tuple[Any, tuple[int, ...]]) -> list[jax.Array]:
    """The given arrays (name = (value, shape)) in the precision of the system.

    Raises ValueError for a wrong shape, a NaN or infinity in a concrete array, a quaternion far
    from unit length and a batch of systems, TypeError for another precision than the system's, for
    what are no real numbers and for what is no system; each names the fix.
    """
    _check_system(system)
    return [_checked(system, name, value, shape) for name, (value, shape) in arrays.items()]


def _check_system(system: Any) -> None:
    t = getattr(system, "topology", None)
    if not isinstance(t, Topology):
        raise TypeError(
            f"{shown(system)} is no System; give what difflie.load, difflie.chain or "
            "difflie.tree returns"
        )
    if np.ndim(system.bodies.mass) != 1 or np.ndim(system.gravity) != 1:
        raise ValueError(
            f"{t.name}: this is a batch of systems; call this for each of them, by jax.vmap"
        )


def real_numbers(where: str, name: str, value: Any) -> jax.Array:
    """The value, of any shape, as an array. Raises TypeError for what are no real numbers."""
    try:
        array = jnp.asarray(value)
    except (TypeError, ValueError):
        raise TypeError(f"{where}: {name} is {shown(value)}; give real numbers") from None
    if not any(jnp.issubdtype(array.dtype, kind) for kind in (jnp.floating, jnp.integer)):
        raise TypeError(f"{where}: {name} is {array.dtype}; give real numbers")
    return array


def check_shape(where: str, name: str, given: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Raises ValueError for another shape than the one that is needed."""
    if given != shape:
        batch = len(given) == len(shape) + 1 and given[1:] == shape
        hint = "; for a batch use jax.vmap" if batch else ""
        raise ValueError(f"{where}: {name} has shape {given}, needed is {shape}{hint}")


def _checked(system: System, name: str, value: Any, shape: tuple[int, ...]) -> jax.Array:
    exact = isinstance(value, jax.Array | np.ndarray | np.generic)
    array = real_numbers(system.name, name, value)
    if not exact or not jnp.issubdtype(array.dtype, jnp.floating):
        array = array.astype(system.dtype)
    if array.dtype != system.dtype:
        raise TypeError(
            f"{system.name}: {name} is {array.dtype} and the system is {system.dtype}; "
            f"use {name}.astype({str(system.dtype)!r}) or system.astype({str(array.dtype)!r})"
        )
    check_shape(system.name, name, array.shape, shape)
    if isinstance(array, Tracer):
        return array
    numbers = np.asarray(array)
    if not np.all(np.isfinite(numbers)):
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(numbers))[0])
        raise ValueError(
            f"{system.name}: {name}{list(place)} is {numbers[place]}; it must be finite"
        )
    if name.startswith("q"):
        _check_points(system, name, numbers)
    return array


def _check_points(system: System, name: str, q: np.ndarray) -> None:
    t = system.topology
    for b in t.coordinate_joints:
        space, start, end = t.manifolds[b], *map(int, t.coordinate_start[b : b + 2])
        if space.plain:
            continue
        with jax.ensure_compile_time_eval():  # known numbers, also while something is traced
            defect = float(space.defect(jnp.asarray(q[start:end])))
        if defect > QUATERNION_TOLERANCE:
            noun, count, wrong = space.fault(q[start:end])
            raise ValueError(
                f"{system.name}: the {noun} {name}[{start}:{start + count}] of joint "
                f"{t.joints[b]!r} {wrong}"
            )

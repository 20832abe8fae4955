"""Checks of systems and states before they are traced."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .system import System
from .topology import Topology
from .validation import check_shape, real_numbers, shown

# Tolerated distance of a point from its manifold; of a quaternion | |p| - 1 |.
QUATERNION_TOLERANCE = 1e-3


def check_independent(t: Topology, what: str, fix: str) -> None:
    """Raises ValueError if a joint mimics another; the message names `what` and the fix."""
    mimics = [t.joints[b] for b, source in enumerate(t.mimics) if source is not None]
    if mimics:
        raise ValueError(
            f"{what} needs independent coordinates, but the joint {mimics[0]!r} mimics another; "
            f"{fix}"
        )


def checked(system: System, **arrays: tuple[Any, tuple[int, ...]]) -> list[jax.Array]:
    """The arrays, passed as name = (value, shape), in the precision of the system.

    Configurations may have leading axes. Raises ValueError for a wrong shape, for NaN or infinity
    in a concrete array, for a quaternion far from unit length and for a batch of systems. Raises
    TypeError for another precision than the system's, for values that are not real numbers and for
    an argument that is not a `System`. Every message names the fix.
    """
    _check_system(system)
    return [_checked(system, name, value, shape) for name, (value, shape) in arrays.items()]


def _check_system(system: Any) -> None:
    if not isinstance(system, System):
        raise TypeError(
            f"{shown(system)} is no System; give what difflie.load, difflie.chain or "
            "difflie.tree returns"
        )
    if np.ndim(system.bodies.mass) != 1 or np.ndim(system.gravity) != 1:
        raise ValueError(
            f"{system.name}: this is a batch of systems; call this for each of them, by jax.vmap"
        )


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
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(numbers))[0])
        raise ValueError(
            f"{system.name}: {name}{list(index)} is {numbers[index]}; it must be finite"
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
        points = q[..., start:end].reshape(-1, end - start)
        with jax.ensure_compile_time_eval():  # concrete numbers, even inside a trace
            defects = np.asarray(jax.vmap(space.defect)(jnp.asarray(points)))
        if np.max(defects, initial=0) > QUATERNION_TOLERANCE:
            noun, count, wrong = space.fault(points[defects.argmax()])
            raise ValueError(
                f"{system.name}: the {noun} {name}[{start}:{start + count}] of joint "
                f"{t.joints[b]!r} {wrong}"
            )

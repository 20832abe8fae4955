"""Checks of systems and states before they are traced."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..groups.manifold import FlatManifold
from .protocols import InertiaElement
from .system import System
from .validation import as_array, check_shape, format_value, in_precision, real_numbers, warn

# Distances of a point from its manifold, of a quaternion | |p| - 1 |: what is rounding, of numbers
# with six digits and in single precision; and what is brought back to the manifold with a warning.
QUATERNION_ROUNDING = 2e-6
QUATERNION_TOLERANCE = 1e-3


def check_independent(system: System, what: str, fix: str) -> None:
    """Raises ValueError if a joint mimics another, or an inerter couples branches.

    The message names `what` and the fix.
    """
    t = system.topology
    for part in system.couplings:
        if isinstance(part, InertiaElement):
            raise ValueError(f"{what} needs an inertia in each joint, but there is {part}; {fix}")
    mimics = [t.joints[b] for b, source in enumerate(t.mimics) if source is not None]
    if mimics:
        raise ValueError(
            f"{what} needs independent coordinates, but the joint {mimics[0]!r} mimics another; "
            f"{fix}"
        )


def checked(system: System, **arrays: tuple[Any, tuple[int, ...]]) -> list[jax.Array]:
    """The arrays, passed as name = (value, shape), in the precision of the system.

    Configurations may have leading axes. Concrete quaternions whose length is off 1 by up to 1e-3
    are divided by it, with a warning if that is more than rounding. Raises ValueError for a wrong
    shape, for NaN or infinity in a concrete array, for a quaternion further from unit length and
    for a batch of systems. Raises TypeError for another precision than the system's, for values
    that are not real numbers and for an argument that is not a `System`. Every message names the
    fix.
    """
    check_system(system)
    return checked_arrays(system, **arrays)


def checked_arrays(system: System, **arrays: tuple[Any, tuple[int, ...]]) -> list[jax.Array]:
    """As `checked`, of a system that has been checked."""
    return [_checked(system, name, value, shape) for name, (value, shape) in arrays.items()]


def check_system(system: Any) -> None:
    """Raises TypeError for what is no system, ValueError for a batch of systems."""
    if not isinstance(system, System):
        raise TypeError(
            f"{format_value(system)} is no System; give what difflie.load, difflie.chain or "
            "difflie.tree returns"
        )
    if np.ndim(system.bodies.mass) != 1 or np.ndim(system.gravity) != 1:
        raise ValueError(
            f"{system.name}: this is a batch of systems; call this for each of them, by jax.vmap"
        )


def _checked(system: System, name: str, value: Any, shape: tuple[int, ...]) -> jax.Array:
    refuse_names(system, name, value)
    exact = isinstance(value, jax.Array | np.ndarray | np.generic)
    array = real_numbers(system.name, name, value)
    if not exact or not jnp.issubdtype(array.dtype, jnp.floating):
        array = in_precision(array, system.dtype)
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
        near = on_manifold(system, system.name, name, numbers)
        return array if near is numbers else as_array(near.astype(array.dtype))
    return array


def refuse_names(system: System, name: str, given: Any) -> None:
    """Raises TypeError for a vector given by the names of joints, with the way to write it."""
    if not isinstance(given, Mapping):
        return
    of_q = name.startswith("q")
    labels = system.topology.coordinate_labels if of_q else system.topology.velocity_labels
    known = [label for label, _ in labels]
    k, value = next(((known.index(j), x) for j, x in given.items() if j in known), (0, 0.0))
    start = "system.neutral()" if of_q else f"jnp.zeros({len(labels)})"
    raise TypeError(
        f"{system.name}: {name} is {format_value(given)}; give numbers in the order of the joints, "
        f"such as {start}.at[{k}].set({format_value(value)})"
    )


def on_manifold(
    system: System, where: str, name: str, q: np.ndarray, most: float = QUATERNION_TOLERANCE
) -> np.ndarray:
    """Configurations q (..., nq) whose points are on their manifolds, NaN where they are NaN.

    q itself where all are up to rounding. Points that are off by up to `most` are brought back, as
    quaternions by their length, with a warning that names `where`. Raises ValueError for others.
    """
    t, found = system.topology, q
    for b in t.coordinate_joints:
        space, start, end = t.manifolds[b], *map(int, t.coordinate_start[b : b + 2])
        if space.plain:
            continue
        points = q[..., start:end].reshape(-1, end - start)
        defects = _defects(space, points)
        off = np.max(defects, initial=0)
        if off <= QUATERNION_ROUNDING:
            continue
        noun, count, wrong = space.fault(points[defects.argmax()])
        said = (
            f"{where}: the {noun} {name}[{start}:{start + count}] of joint {t.joints[b]!r} {wrong}"
        )
        # An argument of the program: operations on a constant would be compiled one by one.
        still = np.zeros((len(points), space.tangent_size), points.dtype)
        with jax.ensure_compile_time_eval():
            near = np.asarray(_each_retracted(space, points, still))
        # A step of length zero has ended on the manifold.
        if off > most or np.max(_defects(space, near), initial=0) > QUATERNION_ROUNDING:
            raise ValueError(said)
        warn(f"{said}, as is done here")
        found = found.copy() if found is q else found
        found[..., start:end] = near.reshape(q[..., start:end].shape)
    return found


def _defects(space: FlatManifold, points: np.ndarray) -> np.ndarray:
    """The distances (k,) of points (k, point_size) from a manifold, 0 where they are not finite."""
    with jax.ensure_compile_time_eval():  # concrete numbers, even inside a trace
        defects = np.asarray(_each_defect(space, points))
    return np.where(np.isfinite(defects), defects, 0)


@functools.partial(jax.jit, static_argnums=0)
def _each_defect(space: FlatManifold, points: jax.Array) -> jax.Array:
    return jax.vmap(space.defect)(points)


@functools.partial(jax.jit, static_argnums=0)
def _each_retracted(space: FlatManifold, points: jax.Array, steps: jax.Array) -> jax.Array:
    return jax.vmap(space.retract)(points, steps)

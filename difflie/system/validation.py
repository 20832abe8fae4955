"""What is checked before a system is built, and the states before they are traced."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .joints import ROW_FIELDS, TYPES
from .topology import Topology

if TYPE_CHECKING:
    from .builders import Body
    from .system import System


# How far the length of a quaternion may be from 1.
QUATERNION_TOLERANCE = 1e-3


class ModelError(ValueError):
    """A description that is no machine; the message names the place, the element and the mend."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the known name that is most like `name`; empty if none is."""
    near = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def check_bodies(bodies: list[Body]) -> Iterator[str]:
    """Raises `ModelError` for numbers no body or joint can have; yields what is only doubtful."""
    seen: dict[str, str] = {}
    for b in bodies:
        where = b.source or f"body {b.name!r}"
        for name, shapes in (
            ("position", [(3,)]),
            ("rotation", [(3,), (3, 3)]),
            ("com", [(3,)]),
            ("inertia", [(3, 3)]),
            ("mass", [()]),
        ):
            value = _numbers(getattr(b, name), f"{where}: {name}")
            if value.shape not in shapes:
                raise ModelError(
                    f"{where}: {name} has shape {value.shape}, needed is "
                    f"{' or '.join(map(str, shapes))}"
                )
            _refuse(where, name, value)
        rotation = np.asarray(b.rotation, float)
        if rotation.shape == (3, 3) and not (
            np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-6) and np.linalg.det(rotation) > 0
        ):
            raise ModelError(f"{where}: rotation is no rotation matrix; orthonormalise it")
        _check_joint(b)
        name = b.joint.name or b.name
        if name in seen:
            raise ModelError(f"{where}: there are two joints named {name!r}; rename one")
        seen[name] = where
        yield from _doubts_inertia(b, where)


def _check_joint(body: Body) -> None:
    joint = body.joint
    # What a joint does is looked up by its type; a class of one's own is not known there.
    if type(joint) not in TYPES.values():
        known = ", ".join(cls.__name__ for cls in TYPES.values())
        raise ModelError(
            f"{body.source or f'body {body.name!r}'}: its joint is {reprlib.repr(joint)}; give an "
            f"object such as dl.Revolute(), of one of the types {known}"
        )
    where = joint.source or f"joint {joint.name or body.name!r}"
    for dof in joint.dofs():
        axis = _numbers(dof.axis, f"{where}: axis")
        if axis.shape != (3,) or not np.all(np.isfinite(axis)):
            raise ModelError(f"{where}: the axis must be three finite numbers, got {dof.axis}")
        _refuse(where, "axis", axis)
        _refuse(where, "pitch", np.asarray(dof.pitch))
    count = len(joint.dofs())
    values = {}
    for name in ROW_FIELDS:
        value = _numbers(getattr(joint, name), f"{where}: {name}")
        if value.shape not in [(), (count,)]:
            raise ModelError(
                f"{where}: {name} has shape {value.shape}; give one number, or {count}: "
                "one for each degree of freedom"
            )
        _refuse(where, name, value)
        values[name] = value
    if joint.group is not None and np.any(values["stiffness"]):
        raise ModelError(
            f"{where}: a {type(joint).__name__.lower()} joint has no spring, as its coordinates "
            "are no plain numbers; leave stiffness 0"
        )
    if np.any(values["lower"] > values["upper"]):
        raise ModelError(
            f"{where}: the lower limit {values['lower'].tolist()} lies above the upper limit "
            f"{values['upper'].tolist()}; exchange them"
        )
    if joint.mimic and not np.all(np.isfinite([joint.mimic.multiplier, joint.mimic.offset])):
        raise ModelError(f"{where}: the multiplier and offset of its mimic must be finite")


_LIMITS = "lower", "upper", "max_velocity", "max_effort"
_NOT_NEGATIVE = {"mass", *ROW_FIELDS} - {"rest", "lower", "upper"}
# Longer and shorter ones have no square.
_AXIS = 1e-9, 1e9


def fault_of(name: str, value: np.ndarray) -> str | None:
    """What no machine can have of the values of a leaf, with the mend; None if they are fit.

    name: the field of `Bodies` or `Joints`, or gravity; value of any shape, an axis (..., 3).
    """
    if name in ROW_FIELDS and np.any(np.isnan(value)):
        return f"{name} is not a number"
    if name not in _LIMITS and not np.all(np.isfinite(value)):
        return f"{name} is {value.tolist()}; it must be finite"
    if name in _NOT_NEGATIVE and np.any(value < 0):
        what = (
            f"the mass is {value.tolist()} kg" if name == "mass" else f"{name} is {value.tolist()}"
        )
        return f"{what}; it must not be negative"
    if name == "friction_velocity" and np.any(value == 0):
        return "friction_velocity is zero; it must be positive"
    if name == "axis" and value.size:
        shortest, longest = _AXIS
        with np.errstate(over="ignore"):
            length = np.linalg.norm(value.astype(float), axis=-1)
        if np.any(length < shortest):
            return "the axis is zero; give it a direction"
        if np.any(length > longest):
            return (
                f"the axis has a length of {np.max(length):.3g}; give it one of at most {longest:g}"
            )
    return None


def _refuse(where: str, name: str, value: np.ndarray) -> None:
    fault = fault_of(name, value)
    if fault is not None:
        raise ModelError(f"{where}: {fault}")


def _doubts_inertia(body: Body, where: str) -> Iterator[str]:
    inertia = np.asarray(body.inertia, float)
    if not np.allclose(inertia, inertia.T, atol=1e-12 + 1e-9 * np.abs(inertia).max()):
        yield f"{where}: the inertia is not symmetric; its symmetric part is used"
    a, b, c = np.linalg.eigvalsh((inertia + inertia.T) / 2)
    if a + b < c * (1 - 1e-6) - 1e-12 or a < -1e-12:
        yield (
            f"{where}: no rigid body has the principal moments of inertia {a:.4g}, {b:.4g}, "
            f"{c:.4g} kg m^2: each must be at most the sum of the others (triangle inequality)"
        )


def _numbers(value: Any, what: str) -> np.ndarray:
    try:
        return np.asarray(value, float)
    except (TypeError, ValueError):
        raise ModelError(f"{what} is {value!r}; numbers are needed") from None


def checked(system: System, **arrays: tuple[Any, tuple[int, ...]]) -> list[jax.Array]:
    """The given arrays (name = (value, shape)) in the precision of the system.

    Raises ValueError for a wrong shape, a NaN or infinity in a concrete array, a quaternion far
    from unit length and a batch of systems, TypeError for another precision than the system's, for
    what are no real numbers and for what is no system; each names the mend.
    """
    _check_system(system)
    return [_checked(system, name, value, shape) for name, (value, shape) in arrays.items()]


def _check_system(system: Any) -> None:
    t = getattr(system, "topology", None)
    if not isinstance(t, Topology):
        raise TypeError(
            f"{reprlib.repr(system)} is no System; give what difflie.load, difflie.chain or "
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
        raise TypeError(f"{where}: {name} is {reprlib.repr(value)}; give real numbers") from None
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
        _check_quaternions(system, name, numbers)
    return array


def _check_quaternions(system: System, name: str, q: np.ndarray) -> None:
    t = system.topology
    for b, group in enumerate(t.group):
        if group is not None:
            start = int(t.coordinate_start[b])
            length = float(np.linalg.norm(q[start : start + 4]))
            if abs(length - 1) > QUATERNION_TOLERANCE:
                raise ValueError(
                    f"{system.name}: the quaternion {name}[{start}:{start + 4}] of joint "
                    f"{t.joints[b]!r} has length {length:.6g}; divide it by its length "
                    "(order w, x, y, z)"
                )

"""Checks of bodies and joints before a system is built."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .body import Body
from .joint_checks import check_type
from .joints import ROW_FIELDS, TYPES, Joint
from .system import NUMBERS
from .validation import ModelError, format_value, numbers


def check_bodies(bodies: list[Body]) -> Iterator[str]:
    """Raises `ModelError` for numbers that no body or joint can have.

    Yields a warning for each that is possible but doubtful.
    """
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
            value = numbers(getattr(b, name), f"{where}: {name}")
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
        yield from _inertia_warnings(b, where)


def _check_joint(body: Body) -> None:
    joint = body.joint
    if not isinstance(joint, Joint):
        known = ", ".join(cls.__name__ for cls in TYPES)
        raise ModelError(
            f"{body.source or f'body {body.name!r}'}: its joint is {format_value(joint)}; give an "
            f"object such as dl.Revolute(), of one of the types {known}, or of a subclass of Joint"
        )
    where = joint.source or f"joint {joint.name or body.name!r}"
    if type(joint) not in TYPES:
        check_type(joint, where)
    for dof in joint.dofs():
        axis = numbers(dof.axis, f"{where}: axis")
        if axis.shape != (3,) or not np.all(np.isfinite(axis)):
            raise ModelError(f"{where}: the axis must be three finite numbers, got {dof.axis}")
        _refuse(where, "axis", axis)
        _refuse(where, "pitch", np.asarray(dof.pitch))
    count = len(joint.dofs())
    values = {}
    for name in ROW_FIELDS:
        value = numbers(getattr(joint, name), f"{where}: {name}")
        if value.shape not in [(), (count,)]:
            raise ModelError(
                f"{where}: {name} has shape {value.shape}; give one number, or {count}: "
                "one for each degree of freedom"
            )
        _refuse(where, name, value)
        values[name] = value
    if not joint.manifold.plain and np.any(values["stiffness"]):
        raise ModelError(
            f"{where}: a {joint.type_name()} joint has no spring, as its coordinates "
            "are no plain numbers; leave stiffness 0"
        )
    if np.any(values["lower"] > values["upper"]):
        raise ModelError(
            f"{where}: the lower limit {values['lower'].tolist()} lies above the upper limit "
            f"{values['upper'].tolist()}; exchange them"
        )
    if joint.mimic and not np.all(np.isfinite([joint.mimic.multiplier, joint.mimic.offset])):
        raise ModelError(f"{where}: the multiplier and offset of its mimic must be finite")


def _refuse(where: str, name: str, value: np.ndarray) -> None:
    fault = NUMBERS[name].fault(name, value)
    if fault:
        raise ModelError(f"{where}: {fault}")


def _inertia_warnings(body: Body, where: str) -> Iterator[str]:
    inertia = np.asarray(body.inertia, float)
    if not np.allclose(inertia, inertia.T, atol=1e-12 + 1e-9 * np.abs(inertia).max()):
        yield f"{where}: the inertia is not symmetric; its symmetric part is used"
    a, b, c = np.linalg.eigvalsh((inertia + inertia.T) / 2)
    if a + b < c * (1 - 1e-6) - 1e-12 or a < -1e-12:
        yield (
            f"{where}: no rigid body has the principal moments of inertia {a:.4g}, {b:.4g}, "
            f"{c:.4g} kg m^2: each must be at most the sum of the others (triangle inequality)"
        )

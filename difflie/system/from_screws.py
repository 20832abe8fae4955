"""Systems from the screws of their joints at the zero pose, without link frames.

Every joint is a screw S_i in world coordinates at q = 0. A body moves by the product of
exponentials exp(S_1 q_1) ... exp(S_i q_i) of the joints between it and the world; this times its
pose at zero is its pose (Lynch and Park 2017, section 4.1.1). The link frames are arbitrary (Ploen
and Park 1999, (15)-(17)). Here all are parallel to the world's at q = 0, so that the
M_i of f_{i-1,i} = M_i exp(S_i q_i) are translations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .body import Body
from .builders import STANDARD_GRAVITY, tree
from .fields import numbers
from .joints import Helical, Joint, Prismatic, Revolute
from .system import System
from .tables import inertial_of, listed, names_of, parents_of, pose_of, rows_of, tool_body
from .validation import ModelError, format_value

_ROW = "(axis, point), (direction, None) or (omega, v)"
# Tolerance for unit length and for zero.
_LENGTH, _NOTHING = 1e-3, 1e-9


def from_screws(
    screws: Sequence[Any] | ArrayLike,
    *,
    mass: ArrayLike | None = None,
    com: ArrayLike | None = None,
    inertia: ArrayLike | None = None,
    parents: Sequence[str | None] | None = None,
    tool: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    name: str = "robot",
    gravity: ArrayLike = STANDARD_GRAVITY,
) -> System:
    """A `System` from the screws of its joints, in world coordinates at the zero pose q = 0.

    screws has a row for each of the n joints, which is one of
    - (axis, point): a revolute joint about a unit axis (3,) through a point (3,) in m;
    - (direction, None): a prismatic joint along a unit direction (3,);
    - six numbers (omega, v): the joint's twist at unit speed. With omega a unit axis and
      v = point x omega + pitch omega the joint is revolute, or helical if the pitch (m/rad) is not
      zero; with omega = 0 and v a unit direction it is prismatic. Such a table (n, 6) is the
      transpose of the Slist of Modern Robotics.

    mass (n,) in kg, com (n, 3) in m and inertia (n, 3, 3) in kg m^2, about the centre of mass, are
    those of the bodies that the joints move, in world coordinates at q = 0; zero by default.
    parents: for each body the name of another, or None for the world; by default every body is
    connected to the one before it. tool (4, 4): the pose of a frame at q = 0, added as the body
    "tool" fixed to the body of the last row. names: of the bodies and their joints, by default
    link1, link2, ... gravity (3,) in m/s^2. Other numbers of the joints are set afterwards:
    `system.replace(armature=...)`.

    body_poses(q)[i] = exp(S_1 q_1) ... exp(S_i q_i) body_poses(0)[i], over the joints from the
    world to body i. At q = 0 the frame of a body, which com and inertia of the system refer to, is
    parallel to the world's. Its origin is the given point; for a twist the point of the axis
    nearest to the world's origin; for a prismatic joint the world's origin.

    Raises `ModelError` for a row that is no screw, an axis that is not of unit length up to 1e-3, a
    wrong shape, a mass without com, an unknown parent, and as `tree` does. Ploen and Park 1999;
    Lynch and Park, Modern Robotics, 2017, section 4.1.1.
    """
    rows = rows_of(screws, f"{name}: screws", _ROW)
    labels = names_of(len(rows), names, name)
    links = parents_of(labels, parents, name)
    if mass is not None and com is None:
        raise ModelError(
            f"{name}: mass is given and com is not; give com (n, 3), in world coordinates"
        )
    inertials = inertial_of(len(rows), mass, com, inertia, name)
    read = [
        _joint(row, f"{name}: screws[{i}] of joint {label!r}")
        for i, (row, label) in enumerate(zip(rows, labels, strict=True))
    ]
    origins = {None: np.zeros(3)} | {
        label: origin for label, (_, origin) in zip(labels, read, strict=True)
    }
    bodies = [
        Body(
            name=labels[i],
            joint=joint,
            parent=links[i],
            position=origin - origins[links[i]],
            mass=float(inertials.mass[i]),
            com=inertials.com[i] - origin,
            inertia=inertials.inertia[i],
        )
        for i, (joint, origin) in enumerate(read)
    ]
    if tool is not None:
        from_world = np.eye(4)
        from_world[:3, 3] = -origins[labels[-1]]
        bodies.append(tool_body(from_world @ pose_of(tool, f"{name}: tool"), labels[-1]))
    return tree(bodies, name=name, gravity=gravity)


def _joint(row: Any, where: str) -> tuple[Joint, np.ndarray]:
    """The joint of a row, with its axis in world coordinates, and the origin (3,) of its frame."""
    parts = listed(row)
    if len(parts) == 2 and parts[1] is None:
        return Prismatic(axis=_unit(parts[0], f"{where}: the direction")), np.zeros(3)
    if len(parts) == 2:
        axis = _unit(parts[0], f"{where}: the axis")
        return Revolute(axis=axis), numbers(parts[1], f"{where}: the point", (3,))
    if len(parts) == 6:
        return _of_twist(numbers(parts, where, (6,)), where)
    raise ModelError(f"{where} is {format_value(row)}; give {_ROW}, a twist as six numbers")


def _of_twist(twist: np.ndarray, where: str) -> tuple[Joint, np.ndarray]:
    omega, v = twist[:3], twist[3:]
    if np.linalg.norm(omega) < _NOTHING:
        return Prismatic(axis=_unit(v, f"{where}: v, as omega is zero,")), np.zeros(3)
    axis = _unit(omega, f"{where}: omega")
    v = v / np.linalg.norm(omega)
    pitch = float(axis @ v)
    origin = np.cross(axis, v)
    if abs(pitch) <= _NOTHING * max(1.0, np.linalg.norm(v)):
        return Revolute(axis=axis), origin
    return Helical(axis=axis, pitch=pitch), origin


def _unit(value: Any, what: str) -> np.ndarray:
    axis = numbers(value, what, (3,))
    length = np.linalg.norm(axis)
    if length == 0:
        raise ModelError(f"{what} is zero; give it a direction")
    if abs(length - 1) > _LENGTH:
        raise ModelError(f"{what} has length {length:.6g}; divide it by its length")
    return axis / length

"""Systems from Denavit-Hartenberg tables, standard and modified.

A joint turns about the z axis of a frame, or slides along it; from one frame to the next lead screw
displacements X(a, alpha) along and about x, and Z(d, theta) along and about z. The two conventions
differ in which comes first:

    standard:  T_{i-1,i} = Z(d_i, theta_i) X(a_i, alpha_i), about z_{i-1}
    modified:  T_{p,i} = Z(b_i, gamma_i) X(a_i, alpha_i) Z(d_i, theta_i), about z_i, p the parent

Standard: Denavit and Hartenberg 1955, Corke's toolbox. Modified: Khalil and Kleinfinger 1986, who
write d for a and r for d, with gamma and b where a body has several children; without them it is
Craig's convention (Introduction to Robotics, equation 3.6; his a and alpha have the index i - 1).
T_{p,i} is KK_i exp(S_i q_i) in Reuss 2002, section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .body import Body
from .builders import STANDARD_GRAVITY, tree
from .fields import numbers
from .joints import Prismatic, Revolute
from .system import System
from .tables import inertial_of, listed, names_of, parents_of, pose_of, rows_of, tool_body
from .validation import ModelError, format_value, nearest

_ROW = "(a, alpha, d, theta) or (a, alpha, d, theta, type)"
_COLUMNS = "a", "alpha", "d", "theta"
_TYPES = {"revolute": Revolute, "prismatic": Prismatic}


def from_dh(
    table: Sequence[Any] | ArrayLike,
    *,
    convention: str,
    mass: ArrayLike | None = None,
    com: ArrayLike | None = None,
    inertia: ArrayLike | None = None,
    parents: Sequence[str | None] | None = None,
    gamma: ArrayLike | None = None,
    b: ArrayLike | None = None,
    tool: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    name: str = "robot",
    gravity: ArrayLike = STANDARD_GRAVITY,
) -> System:
    """A `System` from a Denavit-Hartenberg table: at q = 0 the joints are as the table has them.

    table has a row (a, alpha, d, theta) or (a, alpha, d, theta, type) for each of the n joints: a
    and d in m, alpha and theta in rad, type "revolute" (the default) or "prismatic". q is added to
    theta of a revolute and to d of a prismatic joint. With convention "standard", row i leads from
    frame i - 1 to frame i by Rz(theta) Tz(d) Tx(a) Rx(alpha); with "modified" (Craig, Khalil and
    Kleinfinger) by Rx(alpha) Tx(a) Rz(theta) Tz(d). Frame 0 is the world's.

    mass (n,) in kg, com (n, 3) in m and inertia (n, 3, 3) in kg m^2, about the centre of mass, are
    zero by default; com and inertia of body i are in frame i of the table. tool (4, 4): the pose of
    a frame in the last one, added as the body "tool". names: of the bodies and their joints, by
    default link1, link2, ... gravity (3,) in m/s^2. Other numbers of the joints are set afterwards:
    `system.replace(armature=...)`.

    A tree is for the modified convention: parents has for each body a body's name, or None for the
    world, and gamma (n,) in rad and b (n,) in m lead from the parent's frame to one whose x axis is
    normal to both joints' axes, by Rz(gamma) Tz(b) before the row; zero by default.

    The frame of a body of the system lies on its joint's axis, as in `Body`. In the modified
    convention it is frame i of the table. In the standard one it is frame i without its a and
    alpha, so that frame i = body_poses(q)[i - 1] Tx(a_i) Rx(alpha_i), and the system's com and
    inertia are transformed; tool=np.eye(4) gives the last frame.

    Raises `ModelError` for an unknown convention or joint type, rows of another length, other
    shapes, and as `tree` does. Denavit and Hartenberg 1955; Craig, Introduction to Robotics,
    equation 3.6; Khalil and Kleinfinger 1986; Reuss 2002, section 5.
    """
    _check_convention(name, convention, parents, gamma, b)
    rows = rows_of(table, f"{name}: table", _ROW)
    n, labels = len(rows), names_of(len(rows), names, name)
    links = parents_of(labels, parents, name)
    inertials = inertial_of(n, mass, com, inertia, name)
    turned, moved = (
        np.zeros(n) if value is None else numbers(value, f"{name}: {what}", (n,))
        for what, value in (("gamma", gamma), ("b", b))
    )
    ends: dict[str | None, np.ndarray] = {None: np.eye(4)}
    starts, joints = [], []
    for i, row in enumerate(rows):
        (a, alpha, d, theta), kind = _read(row, f"{name}: table[{i}] of joint {labels[i]!r}")
        joints.append(kind)
        across, along = _about(0, a, alpha), _about(2, d, theta)
        if convention == "standard":
            starts.append(along)
            ends[labels[i]] = across
        else:
            starts.append(_about(2, moved[i], turned[i]) @ across @ along)
            ends[labels[i]] = np.eye(4)
    bodies = []
    for i, label in enumerate(labels):
        place, end = ends[links[i]] @ starts[i], ends[label]
        bodies.append(
            Body(
                name=label,
                joint=joints[i](axis=(0.0, 0.0, 1.0)),
                parent=links[i],
                position=place[:3, 3],
                rotation=place[:3, :3],
                mass=float(inertials.mass[i]),
                com=end[:3, :3] @ inertials.com[i] + end[:3, 3],
                inertia=end[:3, :3] @ inertials.inertia[i] @ end[:3, :3].T,
            )
        )
    if tool is not None:
        bodies.append(tool_body(ends[labels[-1]] @ pose_of(tool, f"{name}: tool"), labels[-1]))
    return tree(bodies, name=name, gravity=gravity)


def _check_convention(name: str, convention: str, *of_trees: Any) -> None:
    """Raises `ModelError` for an unknown convention, and in the standard one for a tree."""
    if convention not in ("standard", "modified"):
        raise ModelError(
            f"{name}: the convention is {format_value(convention)}; give 'standard' or 'modified'"
        )
    if convention == "standard" and any(x is not None for x in of_trees):
        raise ModelError(
            f"{name}: a table in the standard convention describes a chain; leave out parents, "
            "gamma and b, or give one in the modified convention"
        )


def _read(row: Any, where: str) -> tuple[list[float], type[Revolute] | type[Prismatic]]:
    parts = listed(row)
    if len(parts) not in (4, 5):
        raise ModelError(f"{where} is {format_value(row)}; give {_ROW}")
    values = [
        float(numbers(value, f"{where}: {column}", ()))
        for column, value in zip(_COLUMNS, parts[:4], strict=True)
    ]
    kind = parts[4] if len(parts) == 5 else "revolute"
    if not isinstance(kind, str) or kind not in _TYPES:
        hint = nearest(kind, _TYPES) if isinstance(kind, str) else ""
        raise ModelError(
            f"{where}: the type is {format_value(kind)}; give 'revolute' or 'prismatic'{hint}"
        )
    return values, _TYPES[kind]


def _about(axis: int, length: float, angle: float) -> np.ndarray:
    """The screw displacement (4, 4) by a length along a coordinate axis and an angle about it."""
    pose = np.eye(4)
    j, k = (axis + 1) % 3, (axis + 2) % 3
    c, s = np.cos(angle), np.sin(angle)
    pose[j, j], pose[j, k], pose[k, j], pose[k, k] = c, -s, s, c
    pose[axis, 3] = length
    return pose

"""Systems from tables with a row for each joint: Denavit-Hartenberg tables, and screws.

Denavit-Hartenberg tables are standard or modified. A joint turns about the z axis of a frame, or
slides along it; from one frame to the next lead screw displacements X(a, alpha) along and about x,
and Z(d, theta) along and about z. The two conventions differ in which comes first:

    standard:  T_{i-1,i} = Z(d_i, theta_i) X(a_i, alpha_i), about z_{i-1}
    modified:  T_{p,i} = Z(b_i, gamma_i) X(a_i, alpha_i) Z(d_i, theta_i), about z_i, p the parent

Standard: Denavit and Hartenberg 1955, Corke's toolbox. Modified: Khalil and Kleinfinger 1986, who
write d for a and r for d, with gamma and b where a body has several children; without them it is
Craig's convention (Introduction to Robotics, equation 3.6; his a and alpha have the index i - 1).
T_{p,i} is KK_i exp(S_i q_i) in Reuss 2002, section 5.

Screws of the joints at the zero pose need no link frames. Every joint is a screw S_i in world
coordinates at q = 0. A body moves by the product of exponentials exp(S_1 q_1) ... exp(S_i q_i) of
the joints between it and the world; this times its pose at zero is its pose (Lynch and Park 2017,
section 4.1.1). The link frames are arbitrary (Ploen and Park 1999, (15)-(17)). Here all are
parallel to the world's at q = 0, so that the M_i of f_{i-1,i} = M_i exp(S_i q_i) are translations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .body import Body
from .builders import STANDARD_GRAVITY, tree
from .fields import numbers
from .joints import Helical, Joint, Prismatic, Revolute
from .system import System
from .validation import TRACED, ModelError, format_value, is_traced, nearest

_DH_ROW = "(a, alpha, d, theta) or (a, alpha, d, theta, type)"
_DH_COLUMNS = "a", "alpha", "d", "theta"
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

    >>> rows = [(1.0, 0, 0, 0), (0.5, 0, 0, np.pi / 2)]
    >>> planar = dl.from_dh(rows, convention="standard", mass=[1.0, 1.0], tool=np.eye(4))
    >>> print(dl.body_poses(planar, [0.0, 0.0])[-1, :2, 3].round(3))  # x and y of the tool, in m
    [1.  0.5]
    """
    _check_convention(name, convention, parents, gamma, b)
    rows = rows_of(table, f"{name}: table", _DH_ROW)
    n, labels = len(rows), names_of(len(rows), names, name)
    links = parents_of(labels, parents, name)
    inertials = inertial_of(n, mass, com, inertia, name)
    turned, moved = (
        np.zeros(n) if value is None else _numbers(value, f"{name}: {what}", (n,))
        for what, value in (("gamma", gamma), ("b", b))
    )
    ends: dict[str | None, np.ndarray] = {None: np.eye(4)}
    starts, joints = [], []
    for i, row in enumerate(rows):
        (a, alpha, d, theta), kind = _read_dh(row, f"{name}: table[{i}] of joint {labels[i]!r}")
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


def _numbers(value: Any, what: str, *shapes: tuple[int, ...], hint: str = "") -> Any:
    """As `numbers`, and traced ones are refused: they become a system's structure."""
    if is_traced(value):
        raise ModelError(f"{what} {TRACED}")
    return numbers(value, what, *shapes, hint=hint)


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


def _read_dh(row: Any, where: str) -> tuple[list[float], type[Revolute] | type[Prismatic]]:
    parts = listed(row)
    if len(parts) not in (4, 5):
        raise ModelError(f"{where} is {format_value(row)}; give {_DH_ROW}")
    values = [
        float(_numbers(value, f"{where}: {column}", ()))
        for column, value in zip(_DH_COLUMNS, parts[:4], strict=True)
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


_SCREW_ROW = "(axis, point), (direction, None) or (omega, v)"
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
    rows = rows_of(screws, f"{name}: screws", _SCREW_ROW)
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
        return Revolute(axis=axis), _numbers(parts[1], f"{where}: the point", (3,))
    if len(parts) == 6:
        return _of_twist(_numbers(parts, where, (6,)), where)
    raise ModelError(f"{where} is {format_value(row)}; give {_SCREW_ROW}, a twist as six numbers")


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
    axis = _numbers(value, what, (3,))
    length = np.linalg.norm(axis)
    if length == 0:
        raise ModelError(f"{what} is zero; give it a direction")
    if abs(length - 1) > _LENGTH:
        raise ModelError(f"{what} has length {length:.6g}; divide it by its length")
    return axis / length


class Inertial(NamedTuple):
    """mass (n,) in kg, com (n, 3) in m and inertia (n, 3, 3) about the centre of mass in kg m^2."""

    mass: np.ndarray
    com: np.ndarray
    inertia: np.ndarray


def listed(value: Any) -> list[Any]:
    """The entries of an iterable that is not a string; empty for anything else."""
    return list(value) if np.iterable(value) and not isinstance(value, str) else []


def rows_of(table: Any, what: str, row: str) -> list[Any]:
    """The rows of a table; `row` is the form of a row, for the message.

    Raises `ModelError` if there is none.
    """
    rows = listed(table)
    if not rows:
        raise ModelError(f"{what} is {format_value(table)}; give a row {row} for each joint")
    return rows


def names_of(count: int, names: Sequence[str] | None, where: str) -> list[str]:
    """The names of the `count` bodies of a table; by default link1, link2, ...

    Raises `ModelError` for another number of names, and for names that are no strings.
    """
    if names is None:
        return [f"link{i + 1}" for i in range(count)]
    entries = listed(names)
    if len(entries) != count or not all(isinstance(n, str) for n in entries):
        raise ModelError(
            f"{where}: names is {format_value(names)}; give {count} names, one for the body of "
            "each row"
        )
    return entries


def parents_of(
    names: Sequence[str], parents: Sequence[str | None] | None, where: str
) -> list[str | None]:
    """The parents of the named bodies; by default each body's predecessor.

    Raises `ModelError` for another number of parents, and for a parent that is no body.
    """
    if parents is None:
        return [None, *names[:-1]]
    entries = listed(parents)
    if len(entries) != len(names):
        raise ModelError(
            f"{where}: parents is {format_value(parents)}; give {len(names)}, one for the body of "
            "each row: a body's name, or None for the world"
        )
    for i, parent in enumerate(entries):
        if parent is not None and parent not in names:
            hint = nearest(parent, names) if isinstance(parent, str) else ""
            raise ModelError(
                f"{where}: parents[{i}], of body {names[i]!r}, is {format_value(parent)}; give the "
                f"name of a body or None for the world{hint}"
            )
    return entries


def inertial_of(count: int, mass: Any, com: Any, inertia: Any, where: str) -> Inertial:
    """The inertial numbers of the n = `count` bodies of a table, shapes as in `Inertial`.

    None stands for zeros. Raises `ModelError` for another shape.
    """
    hint = f": one entry for the body of each of the {count} rows"
    values = {"mass": mass, "com": com, "inertia": inertia}
    shapes = {"mass": (count,), "com": (count, 3), "inertia": (count, 3, 3)}
    return Inertial(
        **{
            name: np.zeros(shapes[name])
            if value is None
            else _numbers(value, f"{where}: {name}", shapes[name], hint=hint)
            for name, value in values.items()
        }
    )


def pose_of(value: Any, what: str) -> np.ndarray:
    """A pose (4, 4); its rotation is checked later, by `tree`.

    Raises `ModelError` for another shape or another last row than (0, 0, 0, 1).
    """
    pose = _numbers(value, what, (4, 4))
    if not np.array_equal(pose[3], (0.0, 0.0, 0.0, 1.0)):
        raise ModelError(f"{what} has the last row {pose[3].tolist()}; a pose has 0, 0, 0, 1 there")
    return pose


def tool_body(pose: np.ndarray, parent: str) -> Body:
    """The body "tool": a massless frame, fixed at a pose (4, 4) in the parent's body frame."""
    return Body(name="tool", parent=parent, position=pose[:3, 3], rotation=pose[:3, :3])

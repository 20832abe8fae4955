"""URDF, the Unified Robot Description Format: files with links and the joints between them.

Every element and attribute of a file is either used or named in a warning. Beyond the
specification a joint may be of the type "spherical" (also "ball"), "translation", "universal" (a
second axis in <axis2 xyz="..."/>, default 0 1 0) or "helical" (its pitch in m/rad in the axis,
pitch="...").

Elements <difflie> hold what URDF cannot express; other readers ignore them:

    <robot name="r">
      <difflie base="free" gravity="0 0 -9.81"/>        what `load` does by default
      <difflie world="w"/>                              the link w is the world and no body
      <joint ...>
        <difflie armature="0.1" friction_velocity="0.01" stiffness="2" spring_reference="0.3"/>

In a joint it may hold every number of `Joint`, one for each degree of freedom, which then
overrides <limit> and <dynamics>.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...collision.pairs import Pair
from ...forces.shapes_in_contact import touching_apart
from ...system import Body, Fixed, Free, ModelError, System, tree
from ...system.builders import STANDARD_GRAVITY
from ...system.topology import NotTouching
from ...system.validation import format_value, nearest, warn
from ..files import existing
from ..robot_elements import Element, root_element, xacro
from ..robot_files import distinct
from ..unread import Notes, find_unused, listed, refused
from .extensions import DRAKE_JOINT, STILL, added_numbers, mujoco_gravity, read_drake_joint
from .joints import mimic_law, read_joint
from .places import matrix_of, missing_meshes, origin_of
from .shapes import read_shapes
from .transmissions import with_drives

_BASES = {"fixed": Fixed, "free": Free}
_VERSIONS = "1", "1.0", "1.1", "1.2"

# Not named among what is not used, though lost where a system is written without its file.
_DRAWN = ("link/visual", "material")
_SHAPES = "link/collision"
# What is no fault where a file is read strictly: shapes, which say nothing on contacts, and what no
# motion depends on.
_STILL = (
    *(*_DRAWN, _SHAPES, "robot/@version", "transmission", "link/@type"),
    *("joint/calibration", "joint/safety_controller", "link/self_collision_checking"),
    *STILL,
)


def read_urdf(
    path: str | os.PathLike[str],
    base: str | None = None,
    gravity: ArrayLike | None = None,
    strict: bool = False,
    actuators: bool = False,
    contacts: bool = False,
    disabled: Sequence[Pair] = (),
) -> System:
    """The `System` in a URDF file; bodies and joints keep the names and order of the file.

    path: of the file. base: "fixed" fixes the root link to the world, "free" puts it on a free
    joint; in both cases the joint is called "root_joint". This holds for any root link, also one
    named "world". gravity (3,) in m/s^2, world coordinates. The default None takes the file's
    <difflie>, else "fixed" and (0, 0, -9.81).

    As specified for URDF, axes default to (1, 0, 0), the axis of a planar joint is the plane's
    normal, and a missing lower or upper limit is 0; continuous joints have no position limits. A
    mimic of a mimic is resolved to the joint that both follow. strict: whether elements and
    attributes that are not used, and may change the motion, are an error; these are all but shapes,
    materials, transmissions, calibrations and limits of controllers.
    actuators: whether each <transmission>, which must be simple, becomes a `Drive`, named like its
    actuator and commanded by the torque of that, with the reduction as its gear; without, the
    control is the generalised force. The limit of effort stays at the joint.
    contacts: whether the shapes of <collision> touch, all pairs that are apart where all
    coordinates are zero, and not of two links that a joint connects. Of meshes it is the convex
    hull, which needs the extra `collision`; without contacts, they are not opened and are no
    shapes. An unnamed one is called "LINK/collisionN". disabled: pairs of links of which no shapes
    touch, such as `read_disabled` reads from an SRDF file.

    What Drake, Gazebo and MuJoCo add to URDF is read where it has a meaning here: <drake:joint>,
    <drake:rotor_inertia> with <drake:gear_ratio>, springStiffness and springReference of a <gazebo>
    that refers to a joint, and gravity of an <option> of MuJoCo. A <difflie> comes before these.

    Warns once of all that is not used and of meshes that are missing, which no motion depends on,
    and as `tree` does of implausible masses and inertias.
    Raises `ModelError`, which names the file, the line, the element and the fix, for an invalid
    file or machine; FileNotFoundError where there is no such file.
    """
    path = Path(path)
    _check_base(str(path), base)
    robot = parsed(path)
    notes: Notes = defaultdict(list)
    bodies, own_gravity = _described(robot, base, notes)
    name = robot.get("name")
    if name is None:
        name = path.stem
        notes[f"robot without a name, called {format_value(name)}"].append(robot.line)
    system = tree(bodies, name=name, gravity=own_gravity if gravity is None else gravity)
    if actuators:
        system = with_drives(system, robot, path)
    shapes, lost_shapes = read_shapes(robot, path.parent, system, meshes=contacts)
    system = system.with_shapes(shapes)
    if contacts:
        for link in robot.all("link"):
            link.all("collision")
        system = touching_apart(system, disabled)
    unused: Notes = defaultdict(list)
    find_unused(robot, unused)
    moving = {what: at for what, at in unused.items() if what not in _STILL}
    if strict and moving:
        raise ModelError(*(refused(path, what, at) for what, at in moving.items()))
    if unused:
        unread = [what for what in unused if what != _SHAPES or lost_shapes]
        missing = [w for w in unused if w in moving or (w == _SHAPES and lost_shapes)]
        idle = None
        if _SHAPES in unused and not lost_shapes:
            idle = NotTouching(_SHAPES, tuple(system.shapes))
        kept = replace(
            system.topology,
            unread=tuple(unread),
            not_modelled=tuple(missing),
            not_touching=idle,
        )
        system = replace(system, topology=kept)
    # How links look is read where they are drawn.
    lost = {what: at for what, at in unused.items() if what not in _DRAWN}
    remarks = [f"not used: {listed(lost)}"] if lost else []
    remarks += [listed(notes)] if notes else []
    if contacts and lost_shapes:
        remarks.append(f"shapes that do not touch: {'; '.join(lost_shapes)}")
    if meshes := missing_meshes(robot, path.parent):
        remarks.append(meshes)
    if remarks:
        warn(f"{path}: {'; '.join(remarks)}")
    return system


def _described(robot: Element, base: str | None, notes: Notes) -> tuple[list[Body], ArrayLike]:
    """The bodies of a robot, and the gravity (3,) in m/s^2 of its file.

    base: as of `read_urdf`; notes: those to add to.
    """
    world = gravity = None
    if robot.attributes.get("version") in _VERSIONS:
        robot.get("version")
    own = robot.child("difflie")
    if own is not None:
        world, own_base = own.get("world"), own.get("base")
        _check_base(own.source, own_base)
        base = own_base if base is None else base
        gravity = None if own.get("gravity") is None else own.numbers("gravity", 3)
    mujoco = mujoco_gravity(robot)
    gravity = mujoco if gravity is None else gravity
    given = STANDARD_GRAVITY if gravity is None else gravity
    return _bodies(robot, base, world, notes), given


def _check_base(source: str, base: str | None) -> None:
    if base is not None and base not in _BASES:
        raise ModelError(
            f"{source}: base is {format_value(base)}; it must be 'fixed' or "
            f"'free'{nearest(str(base), _BASES)}"
        )


def parsed(path: Path) -> Element:
    """The <robot> element of a file."""
    data = existing(path, "URDF").read_bytes()
    if not data.strip():
        raise ModelError(f"{path}:1: the file is empty; a URDF has a <robot> element with links")
    robot = root_element(data, path)
    if robot.tag != "robot":
        raise ModelError(
            f"{robot.source}: the root element is {robot.label}; what is read is URDF, whose root "
            "element is <robot>"
        )
    prefixes = {k[6:] for k, v in robot.attributes.items() if k[:6] == "xmlns:" and "xacro" in v}
    prefixes.add("xacro")
    for element in robot.walk():
        if element.tag.split(":")[0] in prefixes and ":" in element.tag:
            raise xacro(element, f"<{element.tag}>")
    return robot


def _bodies(robot: Element, base: str | None, world: str | None, notes: Notes) -> list[Body]:
    """The bodies: the root link, then the children of the joints in the order of the joints.

    A root link that is the world is no body; base must then be None.
    """
    links = _by_name(robot, "link")
    joints = _by_name(robot, "joint", DRAKE_JOINT)
    if not links:
        raise ModelError(f'{robot.source}: there is no link; add <link name="..."/>')
    joint_of: dict[str, Element] = {}
    parents: dict[str, str] = {}
    for joint in joints.values():
        parent, child = (_end(joint, role, links) for role in ("parent", "child"))
        if child in joint_of:
            raise ModelError(
                f"{joint.source}: the link {format_value(child)} is the child of "
                f"{joint_of[child].label} in line {joint_of[child].line} too; a link has one "
                "parent: remove one of the joints"
            )
        joint_of[child], parents[child] = joint, parent
    roots = [name for name in links if name not in joint_of]
    if len(roots) > 1:
        named = ", ".join(f"{format_value(name)} (line {links[name].line})" for name in roots)
        raise ModelError(
            f"{links[roots[1]].source}: there are {len(roots)} root links, which no joint has as "
            f"its child: {named}; connect all but one of them by a joint{_foreign(robot, roots)}"
        )
    if world is not None:
        _check_world(robot, links, roots, world, base)
    read = {
        name: read_drake_joint(joint) if joint.tag == DRAKE_JOINT else read_joint(joint, notes)
        for name, joint in joints.items()
    }
    added = added_numbers(robot, joints, read)
    laws = {name: mimic_law(name, joints, read) for name in read}
    bodies = []
    for name in roots:
        if name == world:
            continue
        root_joint = distinct("root_joint", joints)
        joint = _BASES[base or "fixed"](name=root_joint, source=links[name].source)
        bodies.append(Body(name=name, joint=joint, **_inertial(links[name], notes)))
    for name, element in joint_of.items():
        position, rotation = origin_of(element, notes)
        kind, own = read[element.needed("name")]
        fields: dict[str, Any] = {**added[element.needed("name")], **own}
        bodies.append(
            Body(
                name=name,
                joint=kind(**fields, mimic=laws[element.needed("name")]),
                parent=None if parents[name] == world else parents[name],
                position=position,
                rotation=rotation,
                **_inertial(links[name], notes),
            )
        )
    return bodies


def _foreign(robot: Element, roots: Sequence[str]) -> str:
    """Names joints in another namespace, which are not read, for the message on root links."""
    named = [
        f"<{e.tag}> in line {e.line}, which has {format_value(c.attributes.get('link', ''))} as "
        "its child,"
        for e in robot.children
        if e.tag.endswith(":joint") and e.tag != DRAKE_JOINT
        for c in e.children
        if c.tag == "child" and c.attributes.get("link") in roots
    ]
    return f"; {' and '.join(named)} is of another namespace and not read" if named else ""


def _check_world(
    robot: Element, links: dict[str, Element], roots: list[str], world: str, base: str | None
) -> None:
    own = robot.needed_child("difflie", "<difflie/>")
    if [world] != roots:
        raise ModelError(
            f"{own.source}: the world is the link {format_value(world)}, which is not the root; "
            f"name the root{nearest(world, roots)}"
        )
    if base is not None:
        raise ModelError(
            f"{own.source}: base is {format_value(base)} and the root link {format_value(world)} "
            "is the world, to which the joints of the file connect; leave out base"
        )
    if links[world].child("inertial") is not None:
        raise ModelError(f"{links[world].source}: it is the world, which has no mass; remove it")


def _by_name(robot: Element, tag: str, *others: str) -> dict[str, Element]:
    """The elements with a tag, or another one, by name, in the order of the file."""
    there = {id(e) for t in (tag, *others) for e in robot.all(t)}
    named: dict[str, Element] = {}
    for element in (e for e in robot.children if id(e) in there):
        name = element.needed("name")
        if not name:
            raise ModelError(f"{element.source}: its name is empty; give it one")
        if name in named:
            raise ModelError(
                f"{element.source}: line {named[name].line} has a {tag} of this name too; "
                "rename one of them"
            )
        named[name] = element
    return named


def _end(joint: Element, role: str, links: dict[str, Element]) -> str:
    element = joint.needed_child(role, f'<{role} link="..."/>')
    name = element.needed("link")
    if name not in links:
        raise ModelError(
            f"{element.source}: the link {format_value(name)} does not exist"
            f"{nearest(name, links) or '; add it or name another'}"
        )
    return name


def _inertial(link: Element, notes: Notes) -> dict[str, Any]:
    """The fields of a `Body` that the link itself gives."""
    inertial = link.child("inertial")
    if inertial is None:
        return {"source": link.source}
    com, turn = origin_of(inertial, notes)
    mass = inertial.needed_child("mass", '<mass value="..."/> in kg').number("value")
    about = inertial.needed_child("inertia", '<inertia ixx="..." .../> in kg m^2')
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    xx, xy, xz, yy, yz, zz = (about.number(name) for name in names)
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if np.any(turn):
        rotation = matrix_of(turn)
        inertia = rotation @ inertia @ rotation.T
    return {"mass": mass, "com": com, "inertia": inertia, "source": link.source}

"""An SDF file as a `System`: its models, with what is nested in them and included files.

Every element of a file is either used or named in a warning. The frames of links are those of the
file; a joint away from the origin of its child has a massless body of its own. Format: SDFormat
1.12, http://sdformat.org/spec.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...forces import PointForce, attach
from ...forces.shapes_in_contact import touching_apart
from ...system import Body, Fixed, Free, ModelError, Prismatic, Spherical, System, tree
from ...system.builders import STANDARD_GRAVITY
from ...system.frame import Frame
from ...system.validation import format_value, nearest, warn
from ..robot_elements import Element
from ..robot_files import distinct
from ..unread import Notes, find_unused, listed, refused
from .frames import WORLD
from .includes import Files
from .joints import mimic_of, read_joint
from .models import Instance, Machine, included, machine
from .poses import matrix
from .shapes import read_shapes

# The gravity of a world without one, as specified.
_GRAVITY = [0.0, 0.0, -9.8]
_BASES = {"fixed": Fixed, "free": Free}
# Further than this from the origin of its child, in m, a joint has a body of its own.
_APART = 1e-12

# What these are where they are left out.
_USUAL = {
    "link": {"kinematic": False, "enable_wind": False, "self_collide": False},
    "model": {"self_collide": False, "enable_wind": False},
}
_STATIC = "static model, but for its shapes"
# What no motion depends on: shapes, which say nothing on contacts, drawings, sensors, settings.
_STILL = (
    *("link/visual", "link/collision", "link/light", "link/sensor", "link/must_be_base_link"),
    *("link/audio_source", "link/audio_sink", "link/battery", "link/particle_emitter"),
    *("link/projector", "joint/sensor", "allow_auto_disable", "light", "scene", "gui", "physics"),
    *("audio", "spherical_coordinates", "magnetic_field", "material", _STATIC),
)


def read_sdf(
    path: str | os.PathLike[str],
    base: str | None = None,
    gravity: ArrayLike | None = None,
    strict: bool = False,
    actuators: bool = False,
    contacts: bool = False,
) -> System:
    """The `System` of the models in an SDF file; names of nested models are "MODEL::NAME".

    path: of the file. base: None is as in the file: a link without a joint to its world moves
    freely, on a free joint "root_joint", whose coordinates are zero at its pose of the file; so
    does "free"; "fixed" fixes it there. gravity (3,) in m/s^2, world coordinates; None takes that
    of the file's world, (0, 0, -9.81) for a model without one. strict: whether what would change
    the motion and is not modelled is an error. actuators must be False: SDF has none. contacts:
    whether the shapes of <collision> touch, as of `read_urdf`, without the numbers of <surface>; of
    meshes it is the convex hull. A shape is called "LINK/COLLISION".

    Of several models that move, names are "MODEL::NAME", too. Of static ones the shapes are read,
    in the world. <include> takes local files only, model://NAME from the folder of the file and
    those above it. <frame> becomes one of `System.frames`. A link without gravity has a
    `PointForce` that holds it. Nothing that a file names is executed.

    Warns once of all that is not used, and as `tree` does of implausible masses and inertias.
    Raises `ModelError`, which names the file, the line, the element and the fix, for an invalid
    file or machine, loops and gearboxes; FileNotFoundError where there is no such file.
    """
    path = Path(path)
    if base is not None and base not in _BASES:
        raise ModelError(
            f"{path}: base is {format_value(base)}; it must be 'fixed' or "
            f"'free'{nearest(str(base), _BASES)}"
        )
    if actuators:
        raise ModelError(
            f"{path}: an SDF has no actuators; leave out actuators=True, and attach them with "
            "dl.attach"
        )
    files, notes = Files(), defaultdict(list)
    root = files.root(path)
    moving_models, still, own_gravity = _models(root, path, files)
    vector = own_gravity if gravity is None else gravity
    found = machine(moving_models, files)
    bodies = _bodies(found, base, notes)
    name = moving_models[0].name if len(moving_models) == 1 else path.stem
    system = tree(bodies, name=name, gravity=vector, frames=_frames(found))
    system = attach(system, *_held(found, bodies, np.asarray(vector, float)))
    system, lost_shapes = _with_shapes(system, found, still, files, contacts)
    for model in still:
        notes[_STATIC].append(model.source.line)
        model.source.waive()
        model.element.waive()
    remarks, unread, moving, faults = [], [], [], []
    for file, element in files.roots.items():
        _settle(element)
        unused: Notes = defaultdict(list)
        find_unused(element, unused)
        if file == path:
            unused.update({what: at for what, at in notes.items() if what in _STILL})
        lost = {what: at for what, at in unused.items() if what not in _STILL}
        unread += [*unused]
        moving += [*lost]
        faults += [refused(file, what, at) for what, at in lost.items()]
        if unused:
            where = "" if file == path else f" of {file.name}"
            remarks.append(f"not used{where}: {listed(unused)}")
    if strict and faults:
        raise ModelError(*faults)
    supplied = {what: at for what, at in notes.items() if what not in _STILL}
    remarks += [listed(supplied)] if supplied else []
    if contacts and lost_shapes:
        remarks.append(f"shapes that do not touch: {'; '.join(lost_shapes)}")
    kept = replace(
        system.topology,
        unread=tuple(dict.fromkeys(unread)),
        not_modelled=tuple(dict.fromkeys(moving)),
    )
    if remarks:
        warn(f"{path}: {'; '.join(remarks)}")
    return replace(system, topology=kept)


def _with_shapes(
    system: System, found: Machine, still: Sequence[Instance], files: Files, contacts: bool
) -> tuple[System, list[str]]:
    """The system with the shapes of its models and those that stand still, and why others are none.

    contacts: whether they touch.
    """
    shapes, faults = read_shapes(found, system, meshes=contacts)
    for model in still:
        around = machine([model], files, still=True)
        own, lost = read_shapes(around, system, meshes=contacts)
        shapes |= {distinct(f"{model.name}::{name}", shapes): own[name] for name in own}
        faults += lost
    system = system.with_shapes(shapes)
    if contacts:
        for link in found.links.values():
            link.all("collision")
        system = touching_apart(system)
    return system, faults


def _models(
    root: Element, path: Path, files: Files
) -> tuple[list[Instance], list[Instance], Sequence[float]]:
    """The models of a file that move, those that stand still, and the gravity (3,) in m/s^2."""
    place = (path.resolve(),)
    worlds = root.all("world")
    holders = [root, *worlds]
    if len(worlds) > 1:
        raise ModelError(f"{worlds[1].source}: the file has {len(worlds)} worlds; leave one")
    models: list[Instance] = []
    own = STANDARD_GRAVITY
    for holder in holders:
        models += [Instance(e, place) for e in holder.all("model")]
        models += [included(e, files, place) for e in holder.all("include")]
    for world in worlds:
        world.get("name")
        for joint in world.children:
            if joint.tag == "joint":
                raise ModelError(
                    f"{joint.source}: a joint of the world is not read; put it into the model, "
                    "with <parent>world</parent>"
                )
        vector = world.leaf("gravity")
        own = _GRAVITY if vector is None else vector.values(3)
    moving = [m for m in models if not m.static]
    if moving:
        return moving, [m for m in models if m.static], own
    if not models:
        raise ModelError(f"{root.source}: there is no <model>; add one")
    raise ModelError(
        f"{models[0].source.source}: the model is static, and nothing of it moves; take "
        '<static> out, or fix its base by base="fixed"'
    )


def _bodies(found: Machine, base: str | None, notes: Notes) -> list[Body]:
    """The bodies in the order of the links, each after the massless body of its joint, if any."""
    frames = found.frames
    joint_of: dict[str, str] = {}
    parents: dict[str, str | None] = {}
    for key, (joint, scope) in found.joints.items():
        ends = [_end(joint, role) for role in ("parent", "child")]
        parent, child = (frames.link(frames.key(name, scope, joint)) for name in ends)
        if child is None or child == parent:
            what = "the world" if child is None else "its parent"
            raise ModelError(f"{joint.source}: its child is {what}; name another link")
        if child in joint_of:
            other, _ = found.joints[joint_of[child]]
            raise ModelError(
                f"{joint.source}: the link {format_value(child)} is the child of {other.label} in "
                f"line {other.line} too; take one of the joints out, and close the loop by a file "
                "of loops: load(..., loops=...)"
            )
        joint_of[child], parents[child] = key, parent
    roots = [key for key in found.links if key not in joint_of]
    if base == "free" and not roots:
        raise ModelError(
            f"{next(iter(found.joints.values()))[0].source}: base is 'free', and each link has a "
            "joint already; take the one to the world out"
        )
    taken = {*found.joints}
    bodies: list[Body] = []
    for key, link in found.links.items():
        inertial = _inertial(link, notes)
        if key in roots:
            name = distinct("root_joint" if len(roots) == 1 else f"{key}::root_joint", taken)
            joint = _BASES[base or "free"](name=name, source=link.source)
            where = _placed(frames.pose(key))
            bodies.append(Body(name=key, joint=joint, **where, **inertial))
            continue
        bodies += _jointed(found, key, joint_of[key], parents[key], inertial, notes)
    return bodies


def _jointed(
    found: Machine,
    key: str,
    at: str,
    parent: str | None,
    inertial: dict[str, Any],
    notes: Notes,
) -> list[Body]:
    """The body of a link, which a joint moves, after a massless one if that is elsewhere."""
    frames, (joint, scope) = found.frames, found.joints[at]
    kind, fields = read_joint(joint, at, scope, frames, notes)
    mimic = mimic_of(joint, scope, frames)
    above = parent or WORLD
    inside = frames.pose(at, key)
    apart = np.abs(inside[:3, 3]).max() > _APART and kind is not Prismatic
    turned = not np.allclose(inside[:3, :3], np.eye(3), rtol=0, atol=_APART)
    if kind is Fixed or not (apart or (kind is Spherical and turned)):
        for axis in ("axis", "second_axis"):
            if axis in fields and turned:
                fields[axis] = (inside[:3, :3] @ np.asarray(fields[axis])).tolist()
        own = kind(**fields, mimic=mimic)
        return [
            Body(name=key, joint=own, parent=parent, **_placed(frames.pose(key, above)), **inertial)
        ]
    helper = distinct(f"{key}/{joint.needed('name')}", found.links)
    own = kind(**fields, mimic=mimic)
    where = _placed(frames.pose(at, above))
    held = Fixed(name=distinct(f"{key}/fixed", found.joints))
    return [
        Body(name=helper, joint=own, parent=parent, source=joint.source, **where),
        Body(name=key, joint=held, parent=helper, **_placed(frames.pose(key, at)), **inertial),
    ]


def _end(joint: Element, role: str) -> str:
    name = joint.words_in(role)
    if not name:
        raise ModelError(f"{joint.source}: the element <{role}> is missing; add <{role}>...")
    return name


def _placed(pose: NDArray) -> dict[str, Any]:
    """The position and rotation of a `Body` or `Frame` at a pose (4, 4)."""
    turn = pose[:3, :3]
    plain = np.array_equal(turn, np.eye(3))
    return {"position": pose[:3, 3], "rotation": np.zeros(3) if plain else turn}


def _inertial(link: Element, notes: Notes) -> dict[str, Any]:
    """The fields of a `Body` that the link itself gives; as specified 1 kg and 1 kg m^2 without."""
    inertial = link.child("inertial")
    if inertial is None:
        notes["link without inertial, 1 kg and 1 kg m^2 as specified"].append(link.line)
        return {"mass": 1.0, "inertia": np.eye(3), "source": link.source}
    if (inertial.get("auto") or "false") not in ("false", "0"):
        raise ModelError(
            f"{inertial.source}: its numbers follow from shapes, which are not read; give mass and "
            'inertia, and leave auto="true" out'
        )
    pose = matrix(inertial.leaf("pose"))
    about, turn = inertial.child("inertia"), pose[:3, :3]
    diagonal, others = ("ixx", "iyy", "izz"), ("ixy", "ixz", "iyz")
    values = dict.fromkeys(diagonal, 1.0) | dict.fromkeys(others, 0.0)
    if about is not None:
        values = {name: about.value_in(name, usual) for name, usual in values.items()}
    else:
        notes["inertial without inertia, 1 kg m^2 as specified"].append(inertial.line)
    if inertial.leaf("mass") is None:
        notes["inertial without mass, 1 kg as specified"].append(inertial.line)
    xx, yy, zz, xy, xz, yz = values.values()
    inertia = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.T
    mass = inertial.value_in("mass", 1.0)
    return {"mass": mass, "com": pose[:3, 3], "inertia": inertia, "source": link.source}


def _frames(found: Machine) -> dict[str, Frame]:
    """The explicit frames of the file, on their bodies."""
    named = {}
    for key in found.explicit:
        link = found.frames.link(key)
        named[key] = Frame(link, **_placed(found.frames.pose(key, link or WORLD)))
    return named


def _held(found: Machine, bodies: Sequence[Body], gravity: NDArray) -> list[PointForce]:
    """The forces that hold links which gravity does not pull."""
    own = {body.name: body for body in bodies}
    return [
        PointForce([(key, own[key].com)], -np.asarray(own[key].mass) * gravity)
        for key, link in found.links.items()
        if not link.flag_in("gravity", True) and math.hypot(*gravity)
    ]


def _settle(root: Element) -> None:
    """Marks as read what is as it would be without the element."""
    for element in root.walk():
        for tag, usual in _USUAL.get(element.tag, {}).items():
            there = [e for e in element.children if e.tag == tag]
            if len(there) == 1 and (there[0].text in ("true", "1")) == usual:
                element.flag_in(tag)

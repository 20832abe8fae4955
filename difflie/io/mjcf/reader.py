"""MJCF, MuJoCo's files, read by MuJoCo itself, by the extra `mjcf`.

MuJoCo resolves defaults, frames, includes, units and the inertia of geoms; this reads the model it
compiles. Everything in that model that affects the motion is either used or named in a warning.
MuJoCo's settings of solver, time step and rendering are no part of a `System`.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...constraints import constrain
from ...forces import attach
from ...forces.shapes_in_contact import with_contacts
from ...system import Body, Fixed, Free, Joint, ModelError, Prismatic, System, tree
from ...system.frame import Frame
from ...system.installation import extra
from ...system.topology import NotTouching
from ...system.validation import format_value, warn
from ..files import existing
from ..robot_files import distinct, of_quaternion
from .actuators import effort_limits, file_actuators, unread_actuators
from .check import CONTACTS, Acting, check_mjcf, unused, without_missing
from .contacts import geom_contacts
from .equalities import equality_constraints
from .flags import disabled_flags, limits_act, switch_off
from .joints import free_resistance, joint_forces, lasting_efforts, read_joint, unused_drives
from .keys import key_states, unread_activations
from .limits import NUMBERS, joint_stops
from .names import Names, body_names, joint_names, listed, site_names
from .passive import passive_couplings
from .sensors import read_sensors
from .shapes import geom_names, geom_shapes
from .strict import Missing, not_modelled, refusals
from .tendons import tendon_couplings
from .yielding import yielding_springs


def read_mjcf(
    path: str | os.PathLike[str],
    base: str | None = None,
    gravity: ArrayLike | None = None,
    strict: bool = False,
    actuators: bool = False,
    contacts: bool = False,
    limits: bool = False,
) -> System:
    """The `System` in an MJCF file, with the names and the order of MuJoCo's bodies.

    path: of the file. base: None is as in the file; "free" puts the one root body, which must have
    no joint, on a free joint "root_joint"; "fixed" fixes bodies on free joints where the file has
    them. gravity (3,) in m/s^2, world coordinates; None takes the file's.

    A body with several joints, or with a joint away from its origin, is attached through massless
    bodies "BODY/JOINT", so that its pose is MuJoCo's. Coordinates of hinges and slides are zero at
    the model's initial pose, where MuJoCo's are `ref`; those of a free joint are its pose in the
    world (`MujocoOrdering` converts states). An unnamed joint is called "BODY/hinge" (slide, ball,
    free), an unnamed body "bodyN". Frictionloss is smooth Coulomb friction; limits and frictionloss
    are no constraints. Of a free joint it acts along the axes of the world, by a `PointFriction`,
    and about those of the body. Force and control ranges, times the gear, become max_effort and
    min_effort of hinges and slides with actuators; the actuators' armature and damping are added to
    those of hinges, slides and balls. Sites become `System.frames`, unnamed ones "siteN", and
    keyframes `System.state`, unnamed ones "keyN". Springs, damping and friction of tendons, springs
    of ball and free joints, gravity compensation and the resistance of the medium become couplings.
    actuators: whether to read the actuators, so that `control` is MuJoCo's `ctrl`, in its order;
    without, it is the generalised force. See `docs/mjcf_actuators.md` for what is read.
    Geoms that may touch others become `System.shapes`, unnamed ones "BODY/geomN". contacts: whether
    they touch, in the pairs of the file, by compliant contacts; see `contacts.py` for their
    numbers. limits: whether those of joints and tendons act, by compliant stops, see `limits.py`;
    without, those of hinges and slides are numbers, and the others are left out.
    Equality constraints between bodies, sites and joints become exact constraints; MuJoCo's are
    soft. What an option flag switches off is not there. strict: whether what would change the
    motion and is not modelled is an error, with the lines of its elements; limits that are numbers
    only are so, too.

    Warns once of all that is not used and of meshes that are missing, which no motion depends on,
    and as `tree` does of implausible masses and inertias.
    Raises ImportError without MuJoCo, `ModelError` with the file and MuJoCo's message for an
    invalid file, and for a body whose inertia comes from a mesh that is missing, FileNotFoundError
    where there is no such file.
    """
    path = Path(path)
    mujoco, model, missing = compiled(path)
    acting = Acting(contacts, limits)
    file = _File(path, mujoco, model, disabled_flags(mujoco, model), actuators, acting)
    switch_off(model, file.disabled)
    if base not in (None, "fixed", "free"):
        raise ModelError(f"{path}: base is {format_value(base)}; it must be 'fixed' or 'free'")
    system = _with_shapes(file, _machine(file, base, gravity))
    drives = list(unused_drives(model))
    if actuators:
        drives = list(unread_actuators(model, file.names, system, file.disabled))
    moving = not_modelled(model, file.disabled, acting, drives)
    if strict and moving:
        raise ModelError(*refusals(model, moving, path))
    system = system.with_frames(site_frames(model, file.names.bodies))
    for state in key_states(model, system):
        system = system.with_state(*state)
    sensors, lost, renamed = read_sensors(mujoco, model, system)
    kept = dataclasses.replace(system.topology, **_kept(file, moving))
    system = dataclasses.replace(system, sensors=sensors, topology=kept)
    left = list(unused(model, file.disabled, acting, drives))
    left += [f"sensors ({listed(model, 'sensor', lost)})"] if lost else []
    remarks = [*_remarks(file, system, left), *filter(None, [missing]), *renamed]
    if remarks:
        warn(f"{path}: {'; '.join(remarks)}")
    return system


def _kept(file: _File, moving: list[Missing]) -> dict[str, Any]:
    """What of the file would change the motion and is not there.

    Its contacts are by themselves, as they may come later; limits are there as numbers.
    """
    idle = [feature for feature in moving if feature.what == CONTACTS]
    names = geom_names(file.model, file.names.bodies)
    not_touching = None
    for feature in idle:
        called = [listed(file.model, feature.kind, [g]) for g in feature.at]
        not_touching = NotTouching(CONTACTS, tuple(names[g] for g in feature.at), tuple(called))
    others = tuple(str(each) for each in moving if each.what not in (CONTACTS, NUMBERS))
    return {"not_modelled": others, "not_touching": not_touching}


class _File(NamedTuple):
    """An MJCF file as MuJoCo compiles it, the flags that are off, and what of it is read."""

    path: Path
    mujoco: Any
    model: Any
    disabled: set[str]
    actuators: bool
    acting: Acting

    @property
    def names(self) -> Names:
        return Names(body_names(self.model), joint_names(self.model))


def _machine(file: _File, base: str | None, gravity: ArrayLike | None) -> System:
    """The bodies of a file with its passive forces, constraints and actuators."""
    path, model, names = file.path, file.model, file.names
    bodies = read_bodies(model, path, fixed=base == "fixed")
    if base == "free":
        bodies = freed(bodies, path)
    own_gravity = np.zeros(3) if "gravity" in file.disabled else model.opt.gravity
    vector = own_gravity.tolist() if gravity is None else gravity
    name = model.names.split(b"\0", 1)[0].decode() or path.stem
    try:
        system = tree(bodies, name=name, gravity=vector)
        rubbing = () if base == "fixed" else free_resistance(model, names.bodies)
        moved = {body.joint.name for body in bodies}
        higher = [f for f in joint_forces(model, names.joints) if f.joint in moved]
        passive = passive_couplings(model, names.bodies, bodies, names.joints, vector)
        stops = file.acting.limits and limits_act(file.disabled)
        along = tendon_couplings(model, *names, stops)
        yielding = yielding_springs(model, bodies)
        system = attach(system, *passive, *along, *rubbing, *higher, *yielding)
        if stops:
            system = attach(system, *joint_stops(model, names.joints, bodies, system))
        system = constrain(system, *equality_constraints(model, *names, file.disabled))
        if file.actuators:
            system = attach(system, *file_actuators(model, names, system, file.disabled))
            system = attach(system, *effort_limits(model, names, system))
    except ModelError as error:
        message = str(error).removeprefix(f"{path}: ")
        raise ModelError(f"{path}: {message}") from None
    return system


def _with_shapes(file: _File, system: System) -> System:
    """The system with the shapes of the file, and their contacts where these are read."""
    names = file.names.bodies
    system = system.with_shapes(geom_shapes(file.model, names, file.disabled))
    if not file.acting.contacts:
        return system
    added = int(file.mujoco.__version__.split(".")[0]) >= 4
    touch = geom_contacts(file.model, names, system.shapes, file.disabled, added)
    return with_contacts(system, *touch) if touch.pairs else system


def _remarks(file: _File, system: System, left: list[str]) -> Iterator[str]:
    """What the reader of a file should know; left: the features that are not used."""
    keys = unread_activations(file.model, system)
    if keys:
        left = [*left, f"activations of keyframes ({listed(file.model, 'key', keys)})"]
    if left:
        yield f"not used: {', '.join(left)}"
    if len(file.model.actuator_trntype) and not file.actuators:
        yield "load(..., actuators=True) reads its actuators"
    if system.idle_shapes and not file.acting.contacts:
        yield "load(..., contacts=True) lets its shapes touch"
    if not file.actuators:
        # Actuators that are read keep the ranges of their commands.
        yield from lasting_efforts(file.model, file.names.joints)


def site_frames(model: Any, bodies: Sequence[str]) -> dict[str, Frame]:
    """The frames of the sites of a MuJoCo model, by name; bodies: its bodies but the world."""
    frames = {}
    for s, name in enumerate(site_names(model)):
        body = int(model.site_bodyid[s])
        turn = of_quaternion(model.site_quat[s])
        frames[name] = Frame(bodies[body - 1] if body else None, model.site_pos[s], turn)
    return frames


def compiled(path: Path) -> tuple[Any, Any, str]:
    """MuJoCo, its model of a file, and a remark on missing files; raises as `read_mjcf` does."""
    path = existing(path, "MJCF")
    mujoco = mujoco_for(path, "read")
    check_mjcf(path)
    return mujoco, *_compiled(mujoco, path)


def mujoco_for(path: Path, done: str) -> Any:
    """MuJoCo, by which a file is "read" or "written"; raises ImportError where it is missing."""
    try:
        return importlib.import_module("mujoco")
    except ImportError:
        raise ImportError(
            f"{path}: MJCF is {done} by MuJoCo, which is not installed; {extra('mjcf')}"
        ) from None


def _compiled(mujoco: Any, path: Path) -> tuple[Any, str]:
    """MuJoCo's model of a file, and a remark on files that it names and that are not there.

    In a thread of its own: MuJoCo keeps its warning handler per thread, and some broken files leave
    one that calls itself without end.
    """
    try:
        with ThreadPoolExecutor(1) as reader:
            try:
                return reader.submit(mujoco.MjModel.from_xml_path, str(path)).result(), ""
            except ValueError as error:
                if "opening file" not in str(error):
                    raise
                return reader.submit(without_missing, mujoco, path).result()
    except ModelError:
        raise
    except ValueError as error:
        message = " ".join(str(error).split())
        raise ModelError(f"{path}: MuJoCo does not read it: {message}") from None
    except RuntimeError:
        raise ModelError(
            f"{path}: MuJoCo fails to read it and does not say where; look for an "
            "attribute without a value"
        ) from None


def read_bodies(model: Any, path: Path, fixed: bool = False) -> list[Body]:
    """The bodies of a MuJoCo model, in order, with massless bodies where one has several joints.

    fixed: whether bodies on free joints are fixed where they are.
    """
    names, joints = body_names(model), joint_names(model)
    if not names:
        raise ModelError(f"{path}: there is no body in <worldbody>; add one")
    helpers, fixtures = set(names), set(joints)
    bodies = []
    for b, name in enumerate(names, start=1):
        above = model.body_parentid[b]
        parent = names[above - 1] if above else None
        stages = list(_stages(model, b, joints, fixed))
        if isinstance(stages[-1][0], Fixed):
            fixture = distinct(f"{name}/fixed", fixtures)
            fixtures.add(fixture)
            stages[-1] = (Fixed(name=fixture), *stages[-1][1:])
        for joint, position, rotation in stages[:-1]:
            helper = distinct(f"{name}/{joint.name}", helpers)
            helpers.add(helper)
            bodies.append(
                Body(name=helper, joint=joint, parent=parent, position=position, rotation=rotation)
            )
            parent = helper
        joint, position, rotation = stages[-1]
        principal = of_quaternion(model.body_iquat[b])
        bodies.append(
            Body(
                name=name,
                joint=joint,
                parent=parent,
                position=position,
                rotation=rotation,
                mass=float(model.body_mass[b]),
                com=model.body_ipos[b].copy(),
                inertia=(principal * model.body_inertia[b]) @ principal.T,
                source=f"{path}: body {format_value(name)}",
            )
        )
    return bodies


def _stages(
    model: Any, b: int, names: list[str], fixed: bool
) -> Iterator[tuple[Joint, np.ndarray, np.ndarray]]:
    """The joints from a body's parent to the body itself, each with its frame in the one before.

    The joints of a MuJoCo body act one after the other, each at its own anchor. The last stage is a
    fixed offset from the last anchor to the body's origin, if these differ.
    """
    position, rotation = model.body_pos[b].copy(), of_quaternion(model.body_quat[b])
    anchor = np.zeros(3)
    joints = range(model.body_jntadr[b], model.body_jntadr[b] + model.body_jntnum[b])
    for j in joints:
        joint = read_joint(model, j, names[j])
        if isinstance(joint, Free):
            still = Fixed(), position, rotation
            yield still if fixed else (joint, np.zeros(3), np.eye(3))
            return
        # A slide has no anchor.
        at = anchor if isinstance(joint, Prismatic) else model.jnt_pos[j].copy()
        yield joint, position + rotation @ (at - anchor), rotation
        anchor, position, rotation = at, np.zeros(3), np.eye(3)
    if not joints or np.any(anchor):
        yield Fixed(), position - rotation @ anchor, rotation


def freed(bodies: list[Body], path: Path) -> list[Body]:
    """The bodies with their root on a free joint."""
    roots = [b for b in bodies if b.parent is None]
    if len(roots) > 1:
        named = ", ".join(repr(b.name) for b in roots)
        raise ModelError(
            f"{path}: base is 'free' and there are {len(roots)} root bodies: {named}; "
            "say in the file which of them have a <freejoint/>"
        )
    (root,) = roots
    if not isinstance(root.joint, Fixed):
        raise ModelError(
            f"{path}: base is 'free' and the root moves on the joint "
            f"{format_value(root.joint.name)} of the file already; leave out base"
        )
    taken = [b.joint.name or b.name for b in bodies]
    name = distinct("root_joint", taken)
    moved = {"joint": Free(name=name), "position": np.zeros(3), "rotation": np.zeros(3)}
    return [dataclasses.replace(b, **moved) if b is root else b for b in bodies]

"""Systems as MuJoCo files, which MuJoCo and `read_mjcf` read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from ....forces import ShapeContact
from ....system import Body, Fixed, ModelError, System
from ....system.builders import bodies_of
from ....system.shown import some
from ....system.validation import warn
from ...files import write_whole
from ..reader import mujoco_for
from .actuators import joint_references, write_actuators, write_efforts
from .bodies import JointElement, write_bodies
from .constraints import write_equalities
from .draft import Draft
from .keys import write_keys
from .limits import write_limit_softness, write_limits
from .original import with_numbers
from .passive import write_couplings
from .sensors import write_sensors
from .shapes import write_shapes, write_softness

_MOST = 4
_FRICTION_VELOCITY = 1e-2


def write_mjcf(
    system: System,
    path: str | os.PathLike[str],
    original: str | os.PathLike[str] | None = None,
) -> None:
    """Writes a system as a MuJoCo file, completely or not at all.

    path: of the file. Bodies, joints, actuators, passive forces, constraints, frames, sensors and
    named states are written at full precision, lengths in m, angles in rad. Massless bodies that
    `read_mjcf` makes for a body with several joints become joints of this body again. Joints of
    several axes are written as several joints, "JOINT[0]" and so on. Frames become sites, and so do
    points of actuators, tendons and constraints where there is no frame.

    original: the MuJoCo file that the system was read from. Then this file is written again, with
    the numbers of bodies, joints and actuators of the same names that differ: shapes, contacts and
    all else stay. Meshes are found where they are. See `with_numbers`.

    In MuJoCo constraints and mimic joints are soft, limits of coordinates stop the joints, limits
    of efforts those of actuators, and friction is that of dry surfaces, which is smoothed here.
    Stops at limits are as stiff there at rest. What no system has, such as the time step and other
    options of the solver, is MuJoCo's default without an original.
    Warns once of these where there are any, and of what has no place in the file: velocity limits,
    names of fixed joints, and parts of the file the system was read from that no system has.
    Raises `ModelError` for other parts that the file cannot hold, such as helical joints or a
    `PlaneContact`, for what MuJoCo refuses, for invalid numbers, and a batch of systems;
    ImportError without MuJoCo, which checks the file.
    """
    path = Path(path)
    mujoco = mujoco_for(path, "written")
    bodies = bodies_of(system)
    if original is not None:
        text, remarks = with_numbers(system, bodies, Path(original), path)
    else:
        draft, remarks = _described(system, bodies)
        text = text_of(draft.root)
        try:
            model = mujoco.MjModel.from_xml_string(text)
            if draft.pairs or draft.soft_limits:
                for what, write in (("contacts", write_softness), ("limits", write_limit_softness)):
                    if over := write(draft, model):
                        remarks.append(
                            f"{what} are critically damped at most: {some(over, _MOST)} had more"
                        )
                text = text_of(draft.root)
                mujoco.MjModel.from_xml_string(text)
        except ValueError as error:
            message = " ".join(str(error).split())
            fix = ""
            if "inertia" in message:
                fix = "; give this body the mass and inertia of a rigid body, by system.replace"
            raise ModelError(f"{path}: not written, as MuJoCo refuses it: {message}{fix}") from None
    if remarks:
        warn(f"{path}: {'; '.join(remarks)}")
    write_whole(path, text)


def _described(system: System, bodies: list[Body]) -> tuple[Draft, list[str]]:
    """A file with all parts of a system, and what it does not say."""
    draft = Draft(system, joint_references(system))
    joints = write_bodies(draft, bodies)
    for name, frame in system.frames.items():
        draft.named_site(name, frame)
    write_shapes(draft)
    write_couplings(draft, bodies)
    write_actuators(draft)
    unlimited = write_efforts(draft, bodies, joints)
    write_equalities(draft, bodies)
    write_sensors(draft, joints)
    write_keys(draft, joints)
    if draft.faults:
        raise ModelError(
            f"{system.name}: MJCF has no words for {'; '.join(draft.faults)}; take these out, or "
            "save the system as a pickle of Python"
        )
    stops = write_limits(draft, joints)
    return draft, [*_remarks(system, bodies, joints, unlimited), *stops]


def text_of(root: Element) -> str:
    """The text of a file."""
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _remarks(
    system: System, bodies: list[Body], joints: list[JointElement], unlimited: list[str]
) -> Iterator[str]:
    """What other programs read otherwise, and what is not written."""
    if system.topology.unread:
        yield f"not written, as no part of a system: {some(list(system.topology.unread), _MOST)}"
    elif system.not_modelled:
        yield (
            f"not written, as not modelled: {', '.join(system.not_modelled)}; give the MJCF file "
            "it was read from as `original` to keep these, and its shapes"
        )
    contacts = [part for part in system.couplings if isinstance(part, ShapeContact)]
    if contacts:
        yield "contacts are MuJoCo's soft ones in other programs, as stiff as these at rest"
    if any(float(part.exponent) != 1 for part in contacts):
        yield "contacts with an exponent have MuJoCo's own stiffness"
    fixed = [
        body.joint.name
        for body in bodies
        if isinstance(body.joint, Fixed) and body.joint.name not in (None, f"{body.name}/fixed")
    ]
    if fixed:
        yield f"MJCF has no words for the names of fixed joints ({some(fixed, _MOST)})"
    left: dict[str, list[str]] = {"max_velocity": [], "friction_velocity": [], "limits": []}
    rubbing = []
    scalars = {joint.body for joint in joints if joint.dof is not None}
    for b, body in enumerate(bodies):
        joint, name = body.joint, body.joint.name or body.name
        if not joint.dofs():
            continue
        rubs = np.any(joint.friction)
        rubbing += [name] if rubs else []
        if np.any(np.isfinite(joint.max_velocity)):
            left["max_velocity"].append(name)
        if rubs and np.any(np.asarray(joint.friction_velocity) != _FRICTION_VELOCITY):
            left["friction_velocity"].append(name)
        bounds = joint.lower, joint.upper, joint.max_effort, joint.min_effort
        if b not in scalars and any(np.any(np.isfinite(bound)) for bound in bounds):
            left["limits"].append(name)
    left["limits of effort"] = unlimited
    for what, names in left.items():
        if names:
            yield f"MJCF has no place for {what} of {some(names, _MOST)}"
    if rubbing:
        yield (
            f"friction of {some(rubbing, _MOST)} is dry in MuJoCo (frictionloss), and smoothed here"
        )
    if any(body.joint.mimic is not None for body in bodies) or system.constraints:
        yield "constraints and mimic joints are soft in MuJoCo, and exact here"
    if any(body.name == "world" for body in bodies):
        yield "the body 'world' is called 'world_', as MuJoCo has one of this name"

"""What other programs write into URDF files beside URDF: Drake's joints, and Gazebo's and MuJoCo's
elements. What has an exact meaning here is read; all else stays unread and is named."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...system import Helical, Joint, ModelError, Planar, Spherical, Universal
from ...system.validation import format_value, nearest
from ..robot_elements import Element
from .transmissions import rotors

DRAKE_JOINT = "drake:joint"
_DRAKE: dict[str, type[Joint]] = {
    "ball": Spherical,
    "planar": Planar,
    "screw": Helical,
    "universal": Universal,
}

# What these are where they are left out.
_USUAL = {"gravity": "true", "turnGravityOff": "false", "kinematic": "false"}
# No motion depends on these: solvers, drawings, controllers, and what programs make of a file.
STILL = (
    *(f"mujoco/compiler/@{name}" for name in ("meshdir", "texturedir", "assetdir", "strippath")),
    *(f"mujoco/compiler/@{name}" for name in ("discardvisual", "fusestatic", "usethread")),
    *("mujoco/size", "mujoco/option/@timestep", "mujoco/option/@integrator"),
    *("mujoco/option/@solver", "mujoco/option/@iterations", "mujoco/option/@tolerance"),
    *("gazebo/material", "gazebo/visual", "gazebo/sensor", "gazebo/provideFeedback"),
    *("gazebo/implicitSpringDamper", "gazebo/preserveFixedJoint"),
    *("gazebo/disableFixedJointLumping", "gazebo/maxContacts"),
    *("joint/limit/@drake:acceleration", "drake:collision_filter_group"),
)


def read_drake_joint(joint: Element) -> tuple[type[Joint], dict[str, Any]]:
    """The class of a <drake:joint> and its fields; Drake's reference of its parsers."""
    kind = joint.needed("type")
    if kind not in _DRAKE:
        raise ModelError(
            f"{joint.source}: a {DRAKE_JOINT} of type {format_value(kind)} is not read"
            f"{nearest(kind, _DRAKE)}; known are {', '.join(_DRAKE)}, and <joint> has the others"
        )
    fields: dict[str, Any] = {"name": joint.needed("name"), "source": joint.source}
    if kind in ("screw", "planar"):
        axis = joint.child("axis")
        along = [1.0, 0.0, 0.0] if axis is None else axis.numbers("xyz", 3)
        fields["normal" if kind == "planar" else "axis"] = along
    if kind == "screw":
        tag = "drake:screw_thread_pitch"
        pitch = joint.needed_child(tag, f'<{tag} value="..."/> in m for one turn')
        # Drake gives the advance for a turn, a Helical for a radian.
        fields["pitch"] = pitch.number("value") / (2 * math.pi)
    dynamics = joint.child("dynamics")
    if dynamics is not None and kind == "planar":
        fields["damping"] = dynamics.numbers("damping", 3, [0.0, 0.0, 0.0])
    elif dynamics is not None:
        fields["damping"] = dynamics.number("damping", 0.0)
    return _DRAKE[kind], fields


def added_numbers(
    robot: Element, joints: Mapping[str, Element], read: Mapping[str, tuple[type[Joint], Any]]
) -> dict[str, dict[str, float]]:
    """The numbers of joints that stand outside them: springs of Gazebo and rotors of Drake.

    joints: the elements by name; read: their classes. Springs of other joints than those with one
    degree of freedom stay unread.
    """
    single = {name for name, (kind, _) in read.items() if len(kind().dofs()) == 1}
    found: dict[str, dict[str, float]] = {name: {} for name in read}
    for transmission, joint, armature in rotors(robot, joints):
        if joint not in single:
            raise ModelError(
                f"{transmission.source}: the joint {format_value(joint)} has not one degree of "
                "freedom, at which a rotor turns; take <drake:rotor_inertia> out"
            )
        found[joint]["armature"] = found[joint].get("armature", 0.0) + armature
    for block in robot.children:
        if block.tag != "gazebo" or not block.children:
            continue
        robot.asked.add("gazebo")
        reference = block.get("reference")
        # What is as without the element needs no name.
        for tag, usual in (
            ("gravity", "true"),
            ("turnGravityOff", "false"),
            ("kinematic", "false"),
        ):
            if all(e.text.lower() == usual for e in block.children if e.tag == tag):
                for element in block.leaves(tag):
                    element.words()
        if reference in single:
            for tag, name in (
                ("springStiffness", "stiffness"),
                ("springReference", "spring_reference"),
            ):
                if block.leaf(tag) is not None:
                    found[reference][name] = block.value_in(tag, 0.0)
    return found


def mujoco_gravity(robot: Element) -> list[float] | None:
    """The gravity (3,) in m/s^2 of the <option> that MuJoCo reads; None where there is none."""
    own = robot.child("mujoco")
    if own is None:
        return None
    own.child("compiler")
    option = own.child("option")
    if option is None or option.get("gravity") is None:
        return None
    return option.numbers("gravity", 3)

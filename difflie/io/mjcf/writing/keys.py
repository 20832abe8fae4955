"""The named states of a system as keyframes of a MuJoCo file."""

from __future__ import annotations

from xml.etree.ElementTree import SubElement

import numpy as np
from numpy.typing import NDArray

from ....system import System
from ....system.internal_states import owners
from ....system.named_states import KeptState
from ...robot_files import of_quaternion
from .bodies import JointElement
from .draft import Draft, numbers


def write_keys(draft: Draft, joints: list[JointElement]) -> None:
    """Writes the named states of the system; joints: those of the file, in MuJoCo's order."""
    system = draft.system
    for name, state in system.states.items():
        parts = [_joint_state(draft, state, joint) for joint in joints]
        key = SubElement(draft.section("keyframe"), "key", name=draft.unique("key", name))
        if parts:
            key.set("qpos", numbers(np.concatenate([q for q, _ in parts])))
            key.set("qvel", numbers(np.concatenate([v for _, v in parts])))
        labels = [a.label for a in system.actuators if getattr(a, "takes", None) != "none"]
        commands = [float(state.commands.get(label, 0.0)) for label in labels]
        if any(label in state.commands for label in labels):
            key.set("ctrl", numbers(commands))
        if system.nz and any(label in state.internal for label, _ in system.state_labels):
            z = np.asarray(system.internal_state(name), float)
            owned = {id(owner.element): z[owner.place] for owner in owners(system)}
            act = [owned[id(a)] for a in system.actuators if id(a) in owned]
            springs = draft.yielding_joints
            plastic = [
                owned[id(springs[joint.name])] + draft.references.get(joint.name, 0.0)
                for joint in joints
                if joint.name in springs
            ]
            plastic += [owned[id(part)] - offset for part, offset in draft.yielding_tendons]
            for attribute, values in (("act", act), ("plastic", plastic)):
                if values:
                    key.set(attribute, numbers(np.concatenate(values)))


def _joint_state(draft: Draft, state: KeptState, joint: JointElement) -> tuple[NDArray, NDArray]:
    """The part of qpos and of qvel of a joint in a state."""
    t = draft.system.topology
    q, v = np.asarray(state.q, float), np.asarray(state.v, float)
    if joint.dof is not None:
        at, rate = _scalar(draft.system, q, v, joint.body, joint.dof)
        return np.array([at + draft.references.get(joint.name, 0.0)]), np.array([rate])
    q = q[slice(*t.coordinate_start[joint.body : joint.body + 2])]
    v = v[slice(*t.velocity_start[joint.body : joint.body + 2])]
    if joint.kind == "ball":
        return q, v
    return np.append(q[4:], q[:4]), np.append(of_quaternion(q[:4]) @ v[3:], v[:3])


def _scalar(system: System, q: NDArray, v: NDArray, b: int, i: int) -> tuple[float, float]:
    """The coordinate and velocity of degree of freedom i of the joint of body b."""
    t, source = system.topology, system.topology.mimics[b]
    if source is None:
        return float(q[t.coordinate_start[b] + i]), float(v[t.velocity_start[b] + i])
    at, rate = _scalar(system, q, v, source, 0)
    law = int(np.searchsorted(t.mimic_dofs, t.dof_start[b]))
    ratio = float(system.joints.multiplier[law])
    return ratio * at + float(system.joints.offset[law]), ratio * rate

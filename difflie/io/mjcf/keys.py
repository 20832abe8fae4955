"""MuJoCo's keyframes, as named states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...system import Free, Spherical, System
from ..robot_files import of_quaternion
from .joints import TYPES
from .names import actuator_names, control_names, joint_names, key_names
from .yielding import rests

KeyState = tuple[str, NDArray, NDArray, dict[str, float], dict[str, float]]


def key_states(model: Any, system: System) -> Iterator[KeyState]:
    """The keyframes of a MuJoCo model: name, q (nq,), v (nv,), the commands, and the activations.

    Commands are by actuator, activations, and rests of springs that yield, by the label of the
    internal state. system: that of the
    model. Joints that one of the two lacks, because of another base, are where
    they are at zero, and at rest.
    """
    t, joints, controls = system.topology, joint_names(model), control_names(model)
    neutral = np.asarray(system.neutral(), float)
    for k, name in enumerate(key_names(model)):
        q, v = neutral.copy(), np.zeros(system.nv)
        for j, joint in enumerate(joints):
            if joint in t.joints:
                b = t.joints.index(joint)
                points = slice(*t.coordinate_start[b : b + 2])
                rates = slice(*t.velocity_start[b : b + 2])
                q[points], v[rates] = _state(model, k, j)
        commands = dict(zip(controls, map(float, model.key_ctrl[k]), strict=True))
        yield name, q, v, commands, dict(_activations(model, k, system))


def unread_activations(model: Any, system: System) -> list[int]:
    """The keyframes with activations that are not zero, of actuators that the system has not."""
    read = [n for n, name in enumerate(actuator_names(model)) if name in system.actuator_names]
    left = np.ones(model.na, bool)
    for a in read:
        first = int(model.actuator_actadr[a])
        left[first : first + max(int(model.actuator_actnum[a]), 0)] = first < 0
    return np.flatnonzero(np.any(model.key_act[:, left], axis=1)).tolist()


def _activations(model: Any, k: int, system: System) -> Iterator[tuple[str, float]]:
    """The activations and the rests of springs that yield of keyframe k, by their labels."""
    names = actuator_names(model)
    for actuator in system.actuators:
        if not actuator.states:
            continue
        first = int(model.actuator_actadr[names.index(actuator.label)])
        for i, (state, _) in enumerate(actuator.states):
            yield f"{actuator.label}/{state}", float(model.key_act[k, first + i])
    labels = [label for label, _ in system.state_labels]
    for rest in rests(model, system):
        own = (label for label in labels if label.rpartition("/")[0] == rest.label)
        values = model.key_plastic[k, rest.place] - rest.zero
        yield from zip(own, map(float, values), strict=True)


def _state(model: Any, k: int, j: int) -> tuple[NDArray, NDArray]:
    """The coordinates and velocities of joint j in keyframe k, as difflie writes them."""
    kind, start, rates = TYPES[model.jnt_type[j]], model.jnt_qposadr[j], model.jnt_dofadr[j]
    q, v = model.key_qpos[k, start:], model.key_qvel[k, rates:]
    if kind is Spherical:
        return q[:4] / np.linalg.norm(q[:4]), v[:3]
    if kind is Free:
        turned = of_quaternion(q[3:7]).T @ v[:3]
        return np.append(q[3:7] / np.linalg.norm(q[3:7]), q[:3]), np.append(v[3:6], turned)
    return q[:1] - model.qpos0[start], v[:1]

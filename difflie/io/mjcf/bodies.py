"""The bodies of a MuJoCo model, each with one joint."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...system import Body, Fixed, Free, Joint, ModelError, Prismatic
from ...system.validation import format_value
from ..names import distinct
from ..rotations import of_quaternion
from .joints import read_joint
from .names import body_names, joint_names


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

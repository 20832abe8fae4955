"""The springs of a MuJoCo model that yield, at joints and along tendons, and their rests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...forces import (
    FixedTendon,
    YieldingJointTendon,
    YieldingRotation,
    YieldingSpring,
    YieldingTendon,
)
from ...groups import so3
from ...system import Body, Prismatic, Revolute, Spherical, System
from ..robot_files import distinct
from .joints import TYPES, higher_terms, yields
from .names import SIGNS, body_names, command_names, element_name, joint_names
from .tendons import lost, stop_names, tendon_transmission, tendon_yields

Yielding = YieldingSpring | YieldingRotation | YieldingTendon | YieldingJointTendon


class Rest(NamedTuple):
    """Where the rest of a spring is among MuJoCo's plastic states, and what those are at z = 0."""

    label: str
    place: slice
    zero: float


def yielding_springs(model: Any, tree: Sequence[Body]) -> Iterator[Yielding]:
    """The springs that yield, in the order of MuJoCo's plastic states; tree: the bodies."""
    bodies, joints = body_names(model), joint_names(model)
    moved = {body.joint.name: body for body in tree}
    labels = _labels(model)
    terms = np.column_stack((model.jnt_stiffness, higher_terms(model, "jnt_stiffness")))
    for j in np.flatnonzero(yields(model)).tolist():
        kind, name, at = TYPES[model.jnt_type[j]], joints[j], int(model.jnt_qposadr[j])
        if name not in moved:
            continue
        if kind in (Prismatic, Revolute):
            rest = model.qpos_spring[at : at + 1] - model.qpos0[at]
            yield YieldingSpring(name, terms[j], yields(model)[j], z0=rest)
        elif kind is Spherical:
            body = moved[name]
            yield YieldingRotation(
                [(body.parent, np.array(body.position)), (body.name, np.zeros(3))],
                terms[j],
                yields(model)[j],
                first_rotation=so3.log(np.asarray(body.rotation)),
                z0=model.qpos_spring[at : at + 4].copy(),
                name=labels["jnt", j],
            )
    terms = np.column_stack((model.tendon_stiffness, higher_terms(model, "tendon_stiffness")))
    for tendon in np.flatnonzero(tendon_yields(model)).tolist():
        if lost(model, tendon):
            continue
        along = tendon_transmission(model, tendon, bodies, joints)
        numbers = {
            "stiffness": terms[tendon],
            "elastic_stretch": tendon_yields(model)[tendon],
            "z0": model.tendon_lengthspring[tendon].copy(),
            "name": labels["tendon", tendon],
        }
        if isinstance(along, FixedTendon):
            yield YieldingJointTendon(along, **numbers)
        else:
            # Type checkers do not see that its path is a property, and no argument.
            yield YieldingTendon(transmission=along, **numbers)  # pyright: ignore


def rests(model: Any, system: System) -> Iterator[Rest]:
    """The rest of each spring of the system that yields, in the order of the plastic states."""
    springs = {part.name for part in system.couplings if isinstance(part, Yielding)}
    at_joints = {part.joint for part in system.couplings if isinstance(part, YieldingSpring)}
    labels, joints = _labels(model), joint_names(model)
    for j in np.flatnonzero(yields(model)).tolist():
        first, name = int(model.jnt_plasticadr[j]), joints[j]
        if name in at_joints:
            zero = float(model.qpos0[model.jnt_qposadr[j]])
            yield Rest(name, slice(first, first + 1), zero)
        elif labels.get(("jnt", j)) in springs:
            yield Rest(labels["jnt", j], slice(first, first + 4), 0.0)
    for tendon in np.flatnonzero(tendon_yields(model)).tolist():
        first = int(model.tendon_plasticadr[tendon])
        if labels["tendon", tendon] in springs:
            yield Rest(labels["tendon", tendon], slice(first, first + 2), 0.0)


def _labels(model: Any) -> dict[tuple[str, int], str]:
    """The names of the springs that yield of ball joints and tendons, by kind and number."""
    taken = {*body_names(model), *joint_names(model), *stop_names(model).values()}
    taken |= {name for own in command_names(model) for name in own}
    found = {}
    balls = np.asarray(model.jnt_type) == TYPES.index(Spherical)
    there = np.flatnonzero(balls & (yields(model) > 0)).tolist()
    joints = [("jnt", j, joint_names(model)[j]) for j in there]
    tendons = [
        ("tendon", t, element_name(model, "tendon", t) or f"tendon{t}")
        for t in np.flatnonzero(tendon_yields(model)).tolist()
    ]
    for kind, number, name in (*joints, *tendons):
        label = distinct(f"{name.translate(SIGNS)}_spring", taken)
        taken.add(label)
        found[kind, number] = label
    return found

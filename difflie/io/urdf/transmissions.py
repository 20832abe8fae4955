"""Transmissions of a URDF file: the drives of simple ones, and the rotors that Drake adds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ...forces import Drive, JointTransmission, attach
from ...system import ModelError, System
from ...system.validation import format_value, nearest
from ..robot_elements import Element

_SIMPLE = "SimpleTransmission"


def with_drives(system: System, robot: Element, path: Path) -> System:
    """The system with a `Drive` for each <transmission>, in the order of the file.

    A reduction n is a gear: the torque at the joint is n times that of the actuator, which is the
    command, and the actuator turns n (x - offset). Raises `ModelError` where there is no
    transmission, for one that is not simple, and for a joint that does not move by itself.
    """
    transmissions = robot.all("transmission")
    if not transmissions:
        raise ModelError(
            f"{path}: there is no <transmission>, and a URDF has no other actuators; leave out "
            "actuators=True, and attach them with dl.attach"
        )
    for transmission in transmissions:
        drive = _drive(transmission)
        try:
            system = attach(system, drive)
        except ModelError as error:
            raise ModelError(f"{transmission.source}: {error}") from None
    return system


def _drive(transmission: Element) -> Drive:
    joint, actuator = _ends(transmission)
    # Which command a controller sends is its own affair: here it is the torque.
    for end in (joint, actuator):
        for interface in end.leaves("hardwareInterface"):
            interface.words()
    name, label = joint.needed("name"), actuator.needed("name")
    inner = actuator if actuator.leaf("mechanicalReduction") else transmission
    gear, offset = inner.value_in("mechanicalReduction", 1.0), joint.value_in("offset", 0.0)
    if gear == 0:
        raise ModelError(
            f"{transmission.source}: mechanicalReduction is 0; give the turns of the actuator for "
            "one of the joint"
        )
    if gear == 1 and offset == 0:
        return Drive(joint=name, name=label)
    return Drive(transmission=JointTransmission(name, gear, reference=-offset), name=label)


def _ends(transmission: Element) -> tuple[Element, Element]:
    """The joint and the actuator of a simple transmission."""
    transmission.get("name")
    kind = transmission.words_in("type") or transmission.get("type")
    if kind is None:
        raise ModelError(
            f"{transmission.source}: the element <type> is missing; add "
            f"<type>transmission_interface/{_SIMPLE}</type>"
        )
    if kind.split("/")[-1] != _SIMPLE:
        raise ModelError(
            f"{transmission.source}: a {format_value(kind)[1:-1]} is not read, only a {_SIMPLE} "
            "of one joint and one actuator; take it out, and attach actuators with dl.attach"
        )
    ends = []
    for role in ("joint", "actuator"):
        found = transmission.leaves(role)
        if len(found) != 1:
            raise ModelError(
                f"{transmission.source}: it has {len(found)} elements <{role}>, and a {_SIMPLE} "
                "one; correct it there"
            )
        ends.append(found[0])
    return ends[0], ends[1]


def rotors(robot: Element, joints: Mapping[str, Element]) -> Iterator[tuple[Element, str, float]]:
    """The transmissions with a <drake:rotor_inertia>, their joints and armatures in kg m^2 or kg.

    The armature is the square of <drake:gear_ratio>, 1 by default, times the rotor's inertia.
    Drake's reference of its parsers, "drake:rotor_inertia". joints: by name.
    """
    for transmission in (e for e in robot.children if e.tag == "transmission"):
        for actuator in (e for e in transmission.children if e.tag == "actuator"):
            rotor = actuator.child("drake:rotor_inertia")
            if rotor is None:
                continue
            gear = actuator.child("drake:gear_ratio")
            joint = _ends(transmission)[0].needed("name")
            if joint not in joints:
                raise ModelError(
                    f"{transmission.source}: the joint {format_value(joint)} does not exist"
                    f"{nearest(joint, joints)}"
                )
            ratio = 1.0 if gear is None else gear.number("value")
            yield transmission, joint, ratio * ratio * rotor.number("value")

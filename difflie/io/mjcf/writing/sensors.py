"""The sensors of a system as those of a MuJoCo file."""

from __future__ import annotations

from typing import Any, NamedTuple
from xml.etree.ElementTree import SubElement

import equinox as eqx
import numpy as np

from .... import quantities as dq
from ....collision import Shape
from ....forces import FixedTendon, SpatialTendon
from ....quantities.stops import rotation_stops
from ....sensors import Encoder, Sensor
from ....system.frame import Frame, FrameLike, as_frame, composed
from .bodies import JointElement
from .draft import Draft, numbers, put
from .shapes import KINDS, size_of
from .tendons import excess, write_fixed, write_spatial

_SAME = 1e-12
_IN_REFERENCE = {
    dq.Origin: "framepos",
    dq.Attitude: "framequat",
    dq.LinearVelocity: "framelinvel",
    dq.AngularVelocity: "frameangvel",
}
_AT_SITES = {
    dq.Gyroscope: "gyro",
    dq.Accelerometer: "accelerometer",
    dq.Velocimeter: "velocimeter",
    dq.Magnetometer: "magnetometer",
}
_AT_FRAMES = {dq.ProperAcceleration: "framelinacc", dq.AngularAcceleration: "frameangacc"}
_SUBTREES = {
    dq.SubtreeCenter: "subtreecom",
    dq.SubtreeVelocity: "subtreelinvel",
    dq.SubtreeAngularMomentum: "subtreeangmom",
}
_OF_ACTUATORS = {
    dq.ActuatorEffort: "actuatorfrc",
    dq.ActuatorLength: "actuatorpos",
    dq.ActuatorVelocity: "actuatorvel",
}
_OF_TENDONS = {dq.TransmissionLength: "tendonpos", dq.TransmissionVelocity: "tendonvel"}
_ENERGIES = {(0,): "e_kinetic", (1,): "e_potential"}
_ENTRIES = {(0, 1, 2): "torque", (3, 4, 5): "force"}


class _Row(NamedTuple):
    """The tag and the attributes of a sensor, and the reading of it: scale * quantity + bias."""

    tag: str
    attributes: dict[str, str]
    scale: float = 1.0
    bias: float = 0.0


def write_sensors(draft: Draft, joints: list[JointElement]) -> None:
    """Writes the sensors of the system; adds to the faults of the draft."""
    for sensor in draft.system.sensors:
        row = _found(draft, sensor, joints)
        if row is None:
            draft.faults.append(f"the sensor {getattr(sensor, 'name', sensor)}")
            continue
        name = draft.unique("sensor", getattr(sensor, "name", None) or f"{sensor}")
        element = SubElement(draft.section("sensor"), row.tag, row.attributes, name=name)
        for own in ("noise", "cutoff"):
            if value := getattr(sensor, own, 0.0):
                element.set(own, numbers(value))


def _found(draft: Draft, sensor: Any, joints: list[JointElement]) -> _Row | None:
    """How a sensor is written; None where MuJoCo has none that reads the same."""
    if isinstance(sensor, Encoder):
        scale, bias = float(sensor.position_scale), float(sensor.position_bias)
        rows = [_Row("jointpos", {"joint": sensor.joint}, 1.0, _reference(draft, sensor.joint))]
    elif not isinstance(sensor, Sensor) or np.size(sensor.scale) != 1 or np.ptp(sensor.bias):
        return None
    else:
        scale, bias = float(np.ravel(sensor.scale)[0]), float(np.ravel(sensor.bias)[0])
        rows = list(_rows(draft, sensor.quantity, joints))
    alike = (r for r in rows if np.allclose([r.scale, r.bias], [scale, bias], atol=_SAME))
    return next(alike, None)


def _rows(draft: Draft, quantity: Any, joints: list[JointElement]) -> list[_Row]:
    """The sensors of MuJoCo that read a quantity, each with its own scale and bias."""
    kind, kinds = type(quantity), {joint.name: joint.kind for joint in joints}
    if kind in _IN_REFERENCE or kind is dq.FrameAxis:
        tag = f"frame{quantity.axis}axis" if kind is dq.FrameAxis else _IN_REFERENCE[kind]
        on = _object(draft, quantity.frame)
        place = {"objtype": on[0], "objname": on[1]}
        by = _object(draft, quantity.reference)
        if by != ("xbody", "world"):
            place |= {"reftype": by[0], "refname": by[1]}
        return [_Row(tag, place)]
    if kind in _AT_FRAMES:
        on = _object(draft, quantity.frame)
        return [_Row(_AT_FRAMES[kind], {"objtype": on[0], "objname": on[1]})]
    if kind in _AT_SITES:
        if kind is dq.Magnetometer:
            field = numbers(quantity.field)
            if draft.option.get("magnetic", field) != field:
                return []
            draft.option.set("magnetic", field)
        return [_Row(_AT_SITES[kind], {"site": _site(draft, quantity.frame)})]
    if kind in _SUBTREES:
        body = quantity.body
        element = draft.bodies.get(body)
        return (
            []
            if element is None
            else [_Row(_SUBTREES[kind], {"body": element.get("name", "world")})]
        )
    if kind is dq.Time:
        return [_Row("clock", {})]
    if kind is dq.Overrun and kinds.get(quantity.joint) in ("hinge", "slide"):
        tag = "jointlimitvel" if quantity.rate else "jointlimitpos"
        return [_Row(tag, {"joint": quantity.joint})]
    if kind is dq.RotationOverrun and kinds.get(quantity.joint) == "ball":
        tag = "jointlimitvel" if quantity.rate else "jointlimitpos"
        ends = (stop.angle for stop in rotation_stops(draft.system, quantity.joint))
        limited = any(_same(end, quantity.angle) for end in ends)
        return [_Row(tag, {"joint": quantity.joint})] if limited else []
    if kind is dq.Touch:
        return [_Row("touch", {"site": _zone(draft, quantity.zone)})]
    if kind is dq.ShapeGap:
        return _gap(draft, quantity)
    if kind in _OF_ACTUATORS:
        return [_Row(_OF_ACTUATORS[kind], {"actuator": quantity.actuator})]
    if kind is dq.LengthOverrun:
        # On a tendon of its own the limit would act twice.
        tag = "tendonlimitvel" if quantity.rate else "tendonlimitpos"
        along = (
            name for own, name in draft.stopped if _same(own.transmission, quantity.transmission)
        )
        return [_Row(tag, {"tendon": name}) for name in along]
    if kind is dq.StopForce and kinds.get(quantity.of) in ("hinge", "slide", "ball"):
        return [_Row("jointlimitfrc", {"joint": quantity.of})]
    if kind is dq.StopForce:
        along = (name for own, name in draft.stopped if own.name == quantity.of)
        return [_Row("tendonlimitfrc", {"tendon": name}) for name in along]
    if kind is dq.Sum and all(type(part) is dq.ActuatorEffort for part in quantity.of):
        return _of_drives(draft, {part.actuator for part in quantity.of})
    if kind is dq.Joined and all(type(part) in _OF_ACTUATORS for part in quantity.of):
        return _of_orientation(draft, quantity.of)
    if kind in _OF_TENDONS:
        return _of_tendon(draft, quantity.transmission, _OF_TENDONS[kind])
    if kind is dq.Entries and type(quantity.of) is dq.Energy:
        tag = _ENERGIES.get(tuple(quantity.entries))
        return [] if tag is None else [_Row(tag, {})]
    if kind is dq.Entries and type(quantity.of) is dq.Effort:
        t, at = draft.system.topology, tuple(quantity.entries)
        own = [j for j in joints if j.dof is not None and t.mimics[j.body] is None]
        own = [j for j in own if (int(t.velocity_start[j.body]) + int(j.dof or 0),) == at]
        return [_Row("jointactuatorfrc", {"joint": joint.name}) for joint in own]
    if kind is dq.Entries and type(quantity.of) is dq.JointWrench:
        tag, joint = _ENTRIES.get(tuple(quantity.entries)), quantity.of.joint
        body = draft.system.body_names[draft.system.topology.joints.index(joint)]
        if tag is None or body not in draft.bodies:
            return []
        site = draft.site(Frame(body, quantity.of.position, quantity.of.rotation))
        return [_Row(tag, {"site": site})]
    if kind in (dq.JointPosition, dq.JointVelocity) and quantity.joint in kinds:
        return _of_joint(draft, quantity, kinds[quantity.joint])
    return []


def _same(a: Any, b: Any) -> bool:
    return bool(eqx.tree_equal(a, b))


def _zone(draft: Draft, zone: Shape) -> str:
    """The name of a site with the shape of a zone."""
    shape = {"type": KINDS[type(zone)], "size": numbers(size_of(zone))}
    name = _site(draft, zone.frame)
    (site,) = (e for e in draft.bodies[None].iter("site") if e.get("name") == name)
    if "type" in site.attrib and not shape.items() <= site.attrib.items():
        name = draft.unique("site", name)
        site = SubElement(draft.bodies[zone.body], "site", name=name)
        put(site, zone.frame.position, zone.frame.rotation)
    site.attrib |= shape
    return name


def _gap(draft: Draft, gap: dq.ShapeGap) -> list[_Row]:
    """Sensors of the distance of single geoms, or of all of two bodies."""
    shapes, row = draft.system.shapes, {"cutoff": numbers(gap.most)}
    for k, names in ((1, gap.first), (2, gap.second)):
        if any(name not in shapes for name in names):
            return []
        body = shapes[names[0]].frame.body
        if len(names) == 1:
            row[f"geom{k}"] = names[0]
        elif {name for name, shape in shapes.items() if shape.frame.body == body} == set(names):
            row[f"body{k}"] = draft.bodies[body].get("name", "world")
        else:
            return []
    return [_Row({"points": "fromto"}.get(gap.reading, gap.reading), row)]


def _of_tendon(draft: Draft, along: Any, tag: str) -> list[_Row]:
    """Sensors of a tendon, which is written for them."""
    if not isinstance(along, FixedTendon | SpatialTendon) or along.gear == 0:
        return []
    if isinstance(along, FixedTendon):
        element, off = write_fixed(draft, along, "measured"), excess(draft, along)
    else:
        element, off = write_spatial(draft, along, "measured"), 0.0
    bias = -off if tag == "tendonpos" else 0.0
    return [_Row(tag, {"tendon": element.attrib["name"]}, 1 / float(along.gear), bias)]


def _of_drives(draft: Draft, names: set[str]) -> list[_Row]:
    """The sensor of the sum of actuators, where these are all that act along a tendon."""
    along: dict[str, set[str]] = {}
    for drive in draft.root.findall("actuator/general[@tendon]"):
        along.setdefault(drive.attrib["tendon"], set()).add(drive.attrib["name"])
    found = (tendon for tendon, own in along.items() if own == names)
    return [_Row("tendonactuatorfrc", {"tendon": tendon}) for tendon in found]


def _of_orientation(draft: Draft, parts: tuple[Any, ...]) -> list[_Row]:
    """The sensor of an orientation, of the quantities of its three actuators."""
    names, kinds = [part.actuator for part in parts], {type(part) for part in parts}
    for drive in draft.root.findall("actuator/general[@gaintype='so3']"):
        name = drive.attrib["name"]
        if names == [f"{name}/{axis}" for axis in "xyz"] and len(kinds) == 1:
            return [_Row(_OF_ACTUATORS[kinds.pop()], {"actuator": name})]
    return []


def _of_joint(draft: Draft, quantity: Any, kind: str) -> list[_Row]:
    """Sensors of a joint, and of the actuators at it."""
    position, joint = type(quantity) is dq.JointPosition, quantity.joint
    if kind == "ball":
        return [_Row("ballquat" if position else "ballangvel", {"joint": joint})]
    if kind == "free":
        return []
    ref = _reference(draft, joint) if position else 0.0
    rows = [_Row("jointpos" if position else "jointvel", {"joint": joint}, 1.0, ref)]
    for drive in draft.root.findall("actuator/general"):
        if drive.get("joint") == joint:
            gear, name = float(drive.attrib["gear"].split()[0]), drive.attrib["name"]
            tag = "actuatorpos" if position else "actuatorvel"
            rows.append(_Row(tag, {"actuator": name}, gear, gear * ref))
    return rows


def _reference(draft: Draft, joint: str) -> float:
    return draft.references.get(joint, 0.0)


def _object(draft: Draft, frame: FrameLike) -> tuple[str, str]:
    """The type and the name of the element whose frame this is: a body, or a site."""
    given = as_frame(frame)
    still = not (np.any(given.position) or np.any(given.rotation))
    if still and (given.body is None or given.body in draft.system.body_names):
        element = draft.bodies[given.body]
        return "xbody", element.get("name", "world")
    return "site", _site(draft, given)


def _site(draft: Draft, frame: FrameLike) -> str:
    given = as_frame(frame)
    still = not (np.any(given.position) or np.any(given.rotation))
    if given.body is None or given.body in draft.system.body_names:
        return draft.site(given)
    name = given.body.removeprefix("site:")
    if still and name in draft.system.frames:
        return name
    return draft.site(composed(draft.system.frame(given.body), given))

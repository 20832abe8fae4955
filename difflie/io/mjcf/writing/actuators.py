"""The actuators of a system as those of a MuJoCo file, and the limits of efforts of joints."""

from __future__ import annotations

import math
from typing import Any
from xml.etree.ElementTree import SubElement

import numpy as np
from numpy.typing import NDArray

from ....forces import (
    ActivatedActuator,
    CurrentMotor,
    Drive,
    EffortLimit,
    FixedTendon,
    GeneralActuator,
    JointTendon,
    JointTransmission,
    Motor,
    Muscle,
    PositionServo,
    SharedLimit,
    SiteTransmission,
    SliderCrank,
    SpatialTendon,
    Stateful,
    Thruster,
    VelocityServo,
    VoltageMotor,
)
from ....forces.actuators.delayed import Delayed
from ....quantities import JointPosition
from ....sensors import Sensor
from ....system import Body, Free, System
from ....system.frame import Frame
from .bodies import JointElement
from .draft import Draft, numbers
from .tendons import excess, weights, write_fixed, write_spatial

_MUSCLE_SCALE = 200.0  # MuJoCo's default; it is not used where the force is given
_SAME = 1e-12
_TIMESTEP = 2e-3  # of MuJoCo by default, in s


def joint_references(system: System) -> dict[str, float]:
    """The `ref` of hinges and slides, by name, from what actuators, tendons and sensors say of it.

    Where they contradict each other, the first holds; laws of actuators are shifted for the others.
    """
    known: dict[str, float] = {}
    for sensor in system.sensors:
        if not (isinstance(sensor, Sensor) and isinstance(sensor.quantity, JointPosition)):
            continue
        if np.size(sensor.bias) == 1 and np.size(sensor.scale) == 1 and np.any(sensor.scale):
            known.setdefault(sensor.quantity.joint, float(sensor.bias) / float(sensor.scale))
    along = [actuator.transmission for actuator in system.actuators]
    for actuator, held in zip(system.actuators, along, strict=True):
        if isinstance(held, JointTransmission) and np.size(held.gear) == 1:
            known.setdefault(held.joint, float(held.reference))
        elif actuator.joint is not None:
            known.setdefault(actuator.joint, 0.0)
    along += [part.transmission for part in system.couplings if isinstance(part, JointTendon)]
    for held in along:
        if isinstance(held, FixedTendon):
            pairs = list(zip(held.joints, weights(held), strict=True))
            rest = float(held.offset) - sum(c * known.get(joint, 0.0) for joint, c in pairs)
            free = [(joint, c) for joint, c in pairs if c and joint not in known]
            if free and rest:
                known[free[0][0]] = rest / free[0][1]
    return {joint: value for joint, value in known.items() if value}


def write_actuators(draft: Draft) -> None:
    """Writes the actuators of the system, in its order; adds to the faults of the draft."""
    for actuator in draft.system.actuators:
        law = _law(actuator)
        place = None if law is None else _place(draft, actuator)
        if law is None or place is None:
            draft.faults.append(f"the actuator {actuator}")
            continue
        where, offset = place
        name = draft.unique("actuator", actuator.label)
        attributes = {**where, **_shifted(law, offset)}
        SubElement(draft.section("actuator"), "general", attributes, name=name)
        lead = getattr(actuator, "lead", None)
        if lead is not None and draft.option.get("timestep", numbers(lead)) != numbers(lead):
            draft.faults.append(f"the lead of {actuator}, which is not that of other actuators")
        elif lead is not None:
            draft.option.set("timestep", numbers(lead))
    timestep = float(draft.option.get("timestep", _TIMESTEP))
    for row in draft.root.findall("actuator/general[@delay]"):
        steps = math.ceil(float(row.attrib["delay"]) / timestep)
        row.set("nsample", str(max(int(row.attrib["nsample"]), steps)))
    for part in draft.system.couplings:
        if isinstance(part, SharedLimit) and not _write_shared(draft, part):
            draft.faults.append(f"the coupling {part}")


def _write_shared(draft: Draft, part: SharedLimit) -> bool:
    """Writes the limit of the sum of actuators along one tendon; whether they are so."""
    rows = {row.attrib["name"]: row for row in draft.section("actuator")}
    drives = [rows[name] for name in part.actuators if name in rows]
    there = {tendon.attrib["name"]: tendon for tendon in draft.section("tendon")}
    along = [there[row.attrib["tendon"]] for row in drives if "tendon" in row.attrib]
    if len(along) < len(part.actuators) or any("forcerange" in row.attrib for row in drives):
        return False
    first, *others = along
    parts = [[(each.tag, each.attrib) for each in tendon] for tendon in along]
    if any(own != parts[0] for own in parts):
        return False
    each = len(drives) * [None] if part.each is None else np.asarray(part.each, float)
    for row, own in zip(drives, each, strict=True):
        row.set("tendon", first.attrib["name"])
        if own is not None and np.any(np.isfinite(own)):
            row.set("forcerange", numbers(own))
    for other in others:
        draft.section("tendon").remove(other)
    first.set("actuatorfrcrange", numbers(part.force_range))
    return True


def write_efforts(draft: Draft, bodies: list[Body], joints: list[JointElement]) -> list[str]:
    """Writes the limits of efforts of joints; the names of those that cannot be written.

    Limits that follow from those of the actuators at a joint are not written again. In MuJoCo they
    limit what all actuators do at a joint, so that those of actuators elsewhere would change.
    """
    drives = draft.root.findall("actuator/general")
    at_joints = all("joint" in drive.attrib for drive in drives)
    summed = {c.joint for c in draft.system.couplings if isinstance(c, EffortLimit)}
    elements = {e.attrib["name"]: e for e in draft.bodies[None].iter("joint")}
    left = []
    for name, _, b, i in joints:
        if i is None:
            continue
        joint = bodies[b].joint
        most, least = (
            float(np.broadcast_to(np.asarray(getattr(joint, leaf), float), len(joint.dofs()))[i])
            for leaf in ("max_effort", "min_effort")
        )
        limits = np.array([-most if np.isinf(least) else least, most])
        own = [drive.attrib for drive in drives if drive.get("joint") == name]
        implied = np.sum([_forces(drive) for drive in own], axis=0) if own else None
        if not np.any(np.isfinite(limits)):
            continue
        same = implied is not None and np.allclose(limits, implied, rtol=_SAME, atol=0)
        if same and name not in summed:
            continue
        if not (at_joints or name in summed) or limits[0] == limits[1]:
            left.append(name)
        else:
            elements[name].set("actuatorfrcrange", numbers(limits))
    return left


def _forces(drive: dict[str, str]) -> NDArray:
    """The least and the greatest effort (2,) of an actuator at its joint, as `read_mjcf` has it."""
    ends = np.array([-np.inf, np.inf])
    if "forcerange" in drive:
        ends = np.array(drive["forcerange"].split(), float)
    plain = "biastype" not in drive and "dyntype" not in drive and drive["gaintype"] == "fixed"
    if plain and "ctrlrange" in drive:
        gain = float(drive["gainprm"].split()[0])
        ends = np.clip(np.sort(gain * np.array(drive["ctrlrange"].split(), float)), *ends)
    return np.sort(float(drive["gear"].split()[0]) * ends)


def _place(draft: Draft, actuator: Any) -> tuple[dict[str, str], float] | None:
    """Where an actuator acts, as attributes, and how much longer it is here than in the file."""
    held, label = actuator.transmission, actuator.label
    if actuator.axis is not None:
        axis = actuator.axis
        site = draft.site(Frame(axis.body, axis.position), turned=False)
        push = draft.axes(site).T @ np.asarray(axis.unit)
        return {"site": site, "gear": numbers([*push, 0, 0, 0])}, 0.0
    if actuator.joint is not None:
        joint = str(actuator.joint)
        if joint not in {e.get("name") for e in draft.bodies[None].iter("joint")}:
            return None  # one of the axes of a ball or free joint
        return {"joint": joint, "gear": "1"}, -draft.references.get(joint, 0.0)
    if isinstance(held, JointTransmission):
        gear = np.reshape(np.asarray(held.gear, float), -1)
        kind = "jointinparent" if held.in_parent else "joint"
        if len(gear) == 1:
            off = float(held.reference) - draft.references.get(held.joint, 0.0)
            return {kind: held.joint, "gear": numbers(gear)}, float(gear[0]) * off
        b = draft.system.topology.joints.index(held.joint)
        # MuJoCo has the force of a free joint first.
        free = isinstance(draft.system.topology.types[b], Free)
        gear = np.concatenate((gear[3:], gear[:3])) if free else gear
        return {kind: held.joint, "gear": numbers(gear)}, 0.0
    if isinstance(held, FixedTendon):
        name = write_fixed(draft, held, label).attrib["name"]
        off = float(held.gear) * excess(draft, held)
        return {"tendon": name, "gear": numbers(held.gear)}, off
    if isinstance(held, SpatialTendon):
        name = write_spatial(draft, held, label).attrib["name"]
        return {"tendon": name, "gear": numbers(held.gear)}, 0.0
    if isinstance(held, SliderCrank):
        pin = draft.points(held.pin)[0]
        where = {"cranksite": pin, "slidersite": draft.site(held.slider)}
        where |= {"cranklength": numbers(held.rod), "gear": numbers(held.gear)}
        return where, 0.0
    if isinstance(held, SiteTransmission):
        where = {"site": draft.site(held.site)}
        if held.reference is not None:
            where["refsite"] = draft.site(held.reference)
        gear = np.asarray(held.gear, float)
        return where | {"gear": numbers([*gear[3:], *gear[:3]])}, 0.0
    return None


def law_attributes(actuator: Any) -> dict[str, str] | None:
    """The attributes of a <general> for the law of an actuator; None where they cannot say it."""
    law = _law(actuator)
    return None if law is None else _shifted(law, 0.0)


def _law(actuator: Any) -> dict[str, Any] | None:
    """The numbers of an actuator as those of a <general>; None where they do not say all of it."""
    # MuJoCo starts activations at 0.
    if isinstance(actuator, Stateful) and actuator.z0 is not None and np.any(actuator.z0):
        return None
    law = _prompt_law(actuator)
    return law if law is None else law | _delay(actuator)


def _delay(actuator: Any) -> dict[str, Any]:
    """The attributes of a delay; none without one."""
    if not isinstance(actuator, Delayed) or actuator.delay is None or not float(actuator.delay):
        return {}
    steps = max(actuator.most_steps, math.ceil(float(actuator.delay) / _TIMESTEP))
    return {"delay": np.asarray(actuator.delay), "nsample": str(steps)}


def _prompt_law(actuator: Any) -> dict[str, Any] | None:
    """The numbers of a law but for its delay; None where those of a <general> do not say it."""
    kind = type(actuator)
    if isinstance(actuator, Drive) and kind is Drive:
        bias = (actuator.torque_bias, 0.0, 0.0)
        return None if np.any(actuator.load_friction) else _affine(actuator.torque_scale, bias)
    if isinstance(actuator, Motor) and kind is Motor and actuator.stall_torque is None:
        return _affine(1.0) | _symmetric("ctrlrange", actuator.max_torque)
    if isinstance(actuator, CurrentMotor) and kind is CurrentMotor:
        gain = actuator.gear_ratio * actuator.torque_constant
        return _affine(gain) | _symmetric("ctrlrange", actuator.max_current)
    if isinstance(actuator, VoltageMotor) and kind is VoltageMotor:
        constant = float(actuator.gear_ratio) * float(actuator.torque_constant)
        slope, current = constant / float(actuator.resistance), actuator.max_current
        most = None if current is None else abs(constant) * float(current)
        law = _affine(slope, (0.0, 0.0, -constant * slope))
        return law | _symmetric("ctrlrange", actuator.max_voltage) | _symmetric("forcerange", most)
    if isinstance(actuator, PositionServo) and kind is PositionServo:
        law = _affine(actuator.kp, (0.0, -actuator.kp, -actuator.kd))
        return law | _symmetric("forcerange", actuator.max_torque)
    if isinstance(actuator, VelocityServo) and kind is VelocityServo:
        law = _affine(actuator.kd, (0.0, 0.0, -actuator.kd))
        return law | _symmetric("forcerange", actuator.max_torque)
    if isinstance(actuator, Thruster) and kind is Thruster and actuator.lag is None:
        most = np.inf if actuator.max_thrust is None else float(actuator.max_thrust)
        return _affine(1.0) | {"ctrlrange": np.array([0.0, most])}
    if isinstance(actuator, GeneralActuator) and kind in (GeneralActuator, ActivatedActuator):
        law = _affine(actuator.gain, actuator.bias) | _ranges(actuator)
        if not isinstance(actuator, ActivatedActuator):
            return law
        if actuator.time_constant is None:
            law["dyntype"] = "integrator"
        else:
            exact = "filterexact" if actuator.lead is None else "filter"
            law |= {"dyntype": exact, "dynprm": actuator.time_constant}
        return law | _range("actrange", actuator.activation_range) | _early(actuator)
    if isinstance(actuator, Muscle) and kind is Muscle:
        return _muscle(actuator)
    return None


def _muscle(muscle: Muscle) -> dict[str, Any]:
    # MuJoCo refuses a passive force of 0, so that such a muscle has no bias.
    bears, passive = float(muscle.passive) > 0, float(muscle.passive) or 1.0
    shape = (muscle.shortest, muscle.longest, muscle.fastest, passive, muscle.eccentric)
    force = (*muscle.operating_range, muscle.peak_force, _MUSCLE_SCALE, *shape)
    smoothing = 0.0 if muscle.smoothing is None else muscle.smoothing
    return {
        **{key: "muscle" for key in ("gaintype", "dyntype")},
        "gainprm": np.array(force, float),
        **({"biastype": "muscle", "biasprm": np.array(force, float)} if bears else {}),
        "dynprm": np.array([*muscle.time_constants, smoothing], float),
        "lengthrange": np.asarray(muscle.length_range, float),
        **_ranges(muscle),
        **_range("actrange", muscle.activation_range),
        **_early(muscle),
    }


def _early(actuator: ActivatedActuator | Muscle) -> dict[str, str]:
    return {} if actuator.lead is None else {"actearly": "true"}


def _affine(gain: Any, bias: Any = (0.0, 0.0, 0.0)) -> dict[str, Any]:
    """A law of a gain () or (3,) and a bias (3,)."""
    g = np.zeros(3)
    g[: np.size(gain)] = np.asarray(gain, float)
    return {"gain": g, "bias": np.array([float(b) for b in bias])}


def _symmetric(name: str, most: Any) -> dict[str, Any]:
    return {} if most is None else {name: np.array([-float(most), float(most)])}


def _range(name: str, limits: Any) -> dict[str, Any]:
    return {} if limits is None else {name: np.asarray(limits, float)}


def _ranges(actuator: GeneralActuator | Muscle) -> dict[str, Any]:
    ranges = _range("ctrlrange", actuator.command_range)
    return ranges | _range("forcerange", actuator.force_range)


def _shifted(law: dict[str, Any], offset: float) -> dict[str, str]:
    """The attributes of a law whose length here is larger by an offset than in the file."""
    law = dict(law)
    if "gain" in law:
        gain, bias = law.pop("gain"), law.pop("bias")
        gain[0] += gain[1] * offset
        bias[0] += bias[1] * offset
        law |= {"gaintype": "affine" if np.any(gain[1:]) else "fixed", "gainprm": gain}
        law |= {"biastype": "affine", "biasprm": bias} if np.any(bias) else {}
    else:
        law["lengthrange"] = law["lengthrange"] - offset
    return {key: value if isinstance(value, str) else numbers(value) for key, value in law.items()}

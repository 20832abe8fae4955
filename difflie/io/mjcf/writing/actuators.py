"""The actuators of a system as those of a MuJoCo file, and the limits of efforts of joints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree.ElementTree import SubElement

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ....forces import (
    ActivatedActuator,
    Adhesion,
    CurrentMotor,
    DCMotor,
    Drive,
    EffortLimit,
    ExtraCommand,
    FixedTendon,
    GeneralActuator,
    JointTendon,
    JointTransmission,
    Motor,
    Muscle,
    MuscleCurves,
    OrientationServo,
    PIDServo,
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
from ....forces.actuators.controlled import Controlled
from ....forces.actuators.delayed import Delayed
from ....quantities import JointPosition
from ....sensors import Sensor
from ....system import Body, Free, System
from ....system.frame import Frame
from .bodies import JointElement
from .draft import Draft, numbers
from .tendons import excess, weights, write_fixed, write_spatial

_MUSCLE_SCALE = 200.0  # MuJoCo's default; it is not used where the force is given
# What the commands of a controller are in a file, in its order, and where it has their ranges.
_WORDS = {
    **{"position": "pos", "velocity": "vel", "effort": "ff"},
    **{"voltage": "voltage", "none": "none"},
}
_RANGES = {"position": "ctrlrange", "velocity": "velrange", "effort": "ffrange"}
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
    for group in _groups(draft.system.actuators):
        actuator = next((a for a in group if not isinstance(a, ExtraCommand)), group[0])
        law = _law_of(group)
        place = None if law is None else _place(draft, actuator)
        # A position that a controller wants is from where its length begins.
        shifted = place is not None and place[1] and isinstance(actuator, Controlled)
        if law is None or place is None or shifted:
            draft.faults += [f"the actuator {each}" for each in group]
            continue
        where, offset = place
        label = actuator.label
        if isinstance(actuator, OrientationServo):
            label = label.rsplit("/", 1)[0]
            where.pop("gear")
        attributes = {**where, **_shifted(law, offset)}
        SubElement(
            draft.section("actuator"), "general", attributes, name=draft.unique("actuator", label)
        )
        step = _timestep(actuator)
        if step is not None and not _has_timestep(draft, step):
            draft.faults.append(f"the lead of {actuator}, which is not that of other actuators")
    timestep = float(draft.option.get("timestep", _TIMESTEP))
    for row in draft.root.findall("actuator/general[@delay]"):
        steps = float(row.attrib["delay"]) / timestep
        row.set("nsample", str(max(int(row.attrib["nsample"]), math.ceil(steps))))
        if not math.isclose(steps, round(steps), rel_tol=1e-9):
            row.set("interp", "linear")
    for part in draft.system.couplings:
        if isinstance(part, SharedLimit) and not _write_shared(draft, part):
            draft.faults.append(f"the coupling {part}")


def _groups(actuators: Sequence[Any]) -> Iterator[list[Any]]:
    """The actuators that are one in a file, in order: those with their partners after them."""
    left = list(actuators)
    while left:
        first, size = left[0], 1
        if isinstance(first, Controlled):
            size += len(first.further)
        elif isinstance(first, OrientationServo):
            size = 3
        elif len(left) > 1 and isinstance(left[1], OrientationServo):
            size = 4 if isinstance(first, ExtraCommand) else 1
        yield left[:size]
        left = left[size:]


def _timestep(actuator: Any) -> float | None:
    """The time step of a file by which it says the numbers of an actuator; None for any."""
    if isinstance(actuator, DCMotor) and actuator.current_lead is not None:
        lag = float(actuator.electric_lag or 0.0)
        return float(-lag * np.log1p(-float(actuator.current_lead) / lag)) if lag else None
    if isinstance(actuator, Controlled):
        slews = actuator.slew_rate is not None
        lead = actuator.slew_lag if slews else actuator.integral_lead
        return None if lead is None else float(lead)
    lead = getattr(actuator, "lead", None)
    return None if lead is None else float(lead)


def _has_timestep(draft: Draft, step: float) -> bool:
    """Whether a file has this time step, which is set where there is none."""
    if "timestep" not in draft.option.attrib:
        draft.option.set("timestep", numbers(step))
    return bool(np.isclose(float(draft.option.attrib["timestep"]), step, rtol=1e-9))


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
        if other is not first:
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
    if isinstance(held, FixedTendon | SpatialTendon):
        where = {"tendon": _tendon(draft, held, label), "gear": numbers(held.gear)}
        fixed = isinstance(held, FixedTendon)
        return where, float(held.gear) * excess(draft, held) if fixed else 0.0
    if isinstance(held, Adhesion):
        return {"body": held.body}, 0.0
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


def _tendon(draft: Draft, held: FixedTendon | SpatialTendon, label: str) -> str:
    """The name of the tendon in the file, which is written for the first actuator along it."""
    plain = eqx.tree_at(lambda t: t.gear, held, jnp.ones_like(held.gear))
    for other, name in draft.pulled:
        if eqx.tree_equal(plain, other):
            return name
    write = write_fixed if isinstance(held, FixedTendon) else write_spatial
    name = write(draft, held, label).attrib["name"]  # pyright: ignore[reportArgumentType]
    draft.pulled.append((plain, name))
    return name


def law_attributes(actuator: Any) -> dict[str, str] | None:
    """The attributes of a <general> for the law of an actuator; None where they cannot say it."""
    law = _law(actuator)
    return None if law is None else _shifted(law, 0.0)


def _law_of(group: list[Any]) -> dict[str, Any] | None:
    """The numbers of actuators that are one in a file; None where that cannot say them."""
    first, *others = group
    delays = [_delay(each) for each in group]
    if any(str(delay) != str(delays[0]) for delay in delays):
        return None
    if isinstance(first, Controlled):
        names = tuple(other.label for other in others)
        fits = names == first.partners and all(isinstance(other, ExtraCommand) for other in others)
        law = _law(first) if fits else None
        return None if law is None else _with_ranges(law, first, others)
    servos = [each for each in group if isinstance(each, OrientationServo)]
    return _orientation(group, servos) if servos else _law(first)


def _with_ranges(
    law: dict[str, Any], servo: Controlled, inputs: list[Any]
) -> dict[str, Any] | None:
    """The law of a controller with the ranges of all its commands."""
    ranges = [each.command_range for each in (servo, *inputs)]
    if isinstance(servo, DCMotor):
        return law if all(_same_range(own, ranges[0]) for own in ranges) else None
    law = {name: value for name, value in law.items() if name != "ctrlrange"}
    kinds = [servo.takes, *(kind for kind, _ in servo.further)]
    for kind, own in zip(kinds, ranges, strict=True):
        law |= _range(_RANGES[kind], own)
    return law


def _same_range(a: Any, b: Any) -> bool:
    return a is b or (a is not None and b is not None and bool(np.all(a == b)))


def _controlled(servo: Controlled) -> dict[str, Any] | None:
    """The law of a PID controller, or of a motor with one."""
    kinds = [servo.takes, *(kind for kind, _ in servo.further)]
    words = [word for kind, word in _WORDS.items() if kind in kinds]
    if [_WORDS[kind] for kind in kinds] != words or (servo.ki is not None and servo.ki <= 0):
        return None
    lead, lag = servo.integral_lead, servo.slew_lag
    if lead is not None and servo.slew_rate is not None and not np.isclose(lead, lag, rtol=1e-9):
        return None  # both are the time step of the file
    ki, slew, most = (
        0.0 if number is None else float(number)
        for number in (servo.ki, servo.slew_rate, servo.integral_limit)
    )
    law: dict[str, Any] = {"input": " ".join(words)}
    law |= _range("ctrlrange", servo.command_range) | _range("forcerange", servo.force_range)
    if not isinstance(servo, DCMotor):
        law |= {"gaintype": "pid", "gainprm": np.array([ki]), "biastype": "affine"}
        law |= {"biasprm": np.array([0.0, -float(servo.kp), -float(servo.kd)])}
        law |= _range("actrange", servo.activation_range)
        law |= {} if servo.integral_lead is None else {"actearly": "true"}
        return law | ({"dyntype": "pid", "dynprm": np.array([most, slew])} if servo.states else {})
    thermal = np.zeros(4) if servo.thermal is None else np.asarray(servo.thermal, float)
    bristle = np.zeros(5) if servo.bristle is None else np.asarray(servo.bristle, float)
    cogging = np.zeros(3) if servo.cogging is None else np.asarray(servo.cogging, float)
    if servo.integral_lead is not None or servo.activation_range is not None:
        return None
    if (servo.electric_lag is None) != (servo.current_lead is None):
        return None  # MuJoCo has the current of the end of a step
    lag, pace, volts = (
        0.0 if number is None else float(number)
        for number in (servo.electric_lag, servo.current_rate, servo.max_voltage)
    )
    coefficients = servo.resistance, servo.torque_constant, thermal[2], 0.0, servo.kp, ki, servo.kd
    law |= {key: "dcmotor" for key in ("gaintype", "biastype", "dyntype")}
    return law | {
        "gainprm": np.array([*map(float, coefficients), volts]),
        "dynprm": np.array([lag, pace, *thermal[:2], thermal[3], *bristle[:2], slew, most]),
        "biasprm": np.array([*cogging, *bristle[2:]]),
        "actearly": "true",
    }


def _orientation(group: list[Any], servos: list[OrientationServo]) -> dict[str, Any] | None:
    """The law of the servo of an orientation, of the actuators along its three axes."""
    names = [each.label for each in group]
    size = 4 if servos[0].by_quaternion else 3
    alike = len(group) == size and [servo.index for servo in servos] == [0, 1, 2]
    for servo in servos:
        alike = alike and servo.others == tuple(name for name in names if name != servo.label)
        for number in ("kp", "kd", "max_torque"):
            alike = alike and _same_range(getattr(servo, number), getattr(servos[0], number))
    alike = alike and all(_same_range(e.command_range, servos[0].command_range) for e in group)
    if not alike or not _along_axes(servos):
        return None
    kp, kd, most = float(servos[0].kp), float(servos[0].kd), servos[0].max_torque
    law: dict[str, Any] = {
        "input": "quat" if size == 4 else "expmap",
        "gaintype": "so3",
        "biastype": "so3",
        "gainprm": np.array([kp]),
        "biasprm": np.array([0.0, -kp, -kd]),
    }
    law |= _range("ctrlrange", servos[0].command_range) | _delay(servos[0])
    return law if most is None else law | {"forcerange": np.array([0.0, float(most)])}


def _orientation_numbers(servo: OrientationServo) -> dict[str, Any]:
    """The numbers of one axis of the servo of an orientation."""
    law = {"gaintype": "so3", "gainprm": np.array([servo.kp, servo.kd], float)}
    law |= _range("ctrlrange", servo.command_range)
    return law | _symmetric("forcerange", servo.max_torque)


def _along_axes(servos: list[OrientationServo]) -> bool:
    """Whether the moments of three servos are those along the axes of one joint or site."""
    for servo, axis in zip(servos, np.eye(3), strict=True):
        held, first = servo.transmission, servos[0].transmission
        if type(held) is not type(first):
            return False
        gear = np.asarray(getattr(held, "gear", ()), float)
        if isinstance(held, JointTransmission) and isinstance(first, JointTransmission):
            if held.joint != first.joint or held.in_parent or not np.array_equal(gear, axis):
                return False
        elif isinstance(held, SiteTransmission) and isinstance(first, SiteTransmission):
            same = eqx.tree_equal(held, eqx.tree_at(lambda t: t.gear, first, held.gear))
            if not (same and np.array_equal(gear, [*axis, 0, 0, 0])):
                return False
        else:
            return False
    return True


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
        if not _add_curves(law, actuator):
            return None
        if actuator.period is not None and not _turns(actuator):
            return None
        if not isinstance(actuator, ActivatedActuator):
            return law
        if actuator.excitation_times is not None:
            law |= _excitation(actuator.excitation_times, actuator.smoothing)
        elif actuator.time_constant is None:
            law["dyntype"] = "integrator"
        else:
            exact = "filterexact" if actuator.lead is None else "filter"
            law |= {"dyntype": exact, "dynprm": actuator.time_constant}
        return law | _range("actrange", actuator.activation_range) | _early(actuator)
    if isinstance(actuator, Muscle) and kind is Muscle:
        return _muscle(actuator)
    if isinstance(actuator, Controlled) and kind in (PIDServo, DCMotor):
        return _controlled(actuator)
    if isinstance(actuator, ExtraCommand) and kind is ExtraCommand:
        return _range("ctrlrange", actuator.command_range)
    if isinstance(actuator, OrientationServo) and kind is OrientationServo:
        return _orientation_numbers(actuator)
    return None


def _turns(servo: GeneralActuator) -> bool:
    """Whether MuJoCo takes the period of a servo for its own: it is that of a rotation."""
    held, gain, bias = servo.transmission, np.asarray(servo.gain), np.asarray(servo.bias)
    gear = np.ravel(np.asarray(getattr(held, "gear", ()), float))
    turning = isinstance(held, JointTransmission) and len(gear) == 3
    if isinstance(held, SiteTransmission) and held.reference is not None:
        turning, gear = not np.any(gear[3:]), gear[:3]
    alike = np.isclose(float(servo.period or 0.0), 2 * np.pi * np.linalg.norm(gear), rtol=_SAME)
    plain = getattr(servo, "time_constant", None) is None
    return bool(turning and alike and plain and gain[0] == -bias[1] and not np.any(gain[1:]))


def _add_curves(law: dict[str, Any], actuator: GeneralActuator) -> bool:
    """Adds those of a muscle to an affine law; whether MuJoCo has both."""
    contracts, resists = actuator.contracts, actuator.resists
    ranges = [np.asarray(c.length_range, float) for c in (contracts, resists) if c is not None]
    if not ranges:
        return True
    mixed = contracts is not None and np.any(law["gain"])
    mixed |= resists is not None and (np.any(law["bias"]) or not float(resists.passive))
    if mixed or not np.allclose(ranges[0], ranges[-1], rtol=_SAME, atol=0):
        return False
    law["lengthrange"] = ranges[0]
    for name, curves in (("gain", contracts), ("bias", resists)):
        if curves is not None:
            law |= {f"{name}type": "muscle", f"{name}prm": _force_curves(curves)}
    return True


def _force_curves(curves: MuscleCurves) -> NDArray:
    # MuJoCo refuses a passive force of 0.
    passive = float(curves.passive) or 1.0
    shape = (curves.shortest, curves.longest, curves.fastest, passive, curves.eccentric)
    return np.array((*curves.operating_range, curves.peak_force, _MUSCLE_SCALE, *shape), float)


def _muscle(muscle: Muscle) -> dict[str, Any]:
    # Without a passive force it has no bias.
    bears, force = float(muscle.passive) > 0, _force_curves(muscle)
    times = muscle.time_constants
    return {
        "gaintype": "muscle",
        **({} if times is None else _excitation(times, muscle.smoothing)),
        "gainprm": force,
        **({"biastype": "muscle", "biasprm": force} if bears else {}),
        "lengthrange": np.asarray(muscle.length_range, float),
        **_ranges(muscle),
        **_range("actrange", muscle.activation_range),
        **_early(muscle),
    }


def _excitation(times: Any, smoothing: Any) -> dict[str, Any]:
    """The activation of a muscle."""
    width = 0.0 if smoothing is None else float(smoothing)
    return {"dyntype": "muscle", "dynprm": np.array([*np.asarray(times, float), width])}


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
        own = {"gaintype": "affine" if np.any(gain[1:]) else "fixed", "gainprm": gain}
        own |= {"biastype": "affine", "biasprm": bias} if np.any(bias) else {}
        law = own | law
    if "lengthrange" in law:
        law["lengthrange"] = law["lengthrange"] - offset
    return {key: value if isinstance(value, str) else numbers(value) for key, value in law.items()}

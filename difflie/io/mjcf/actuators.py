"""The actuators of a MuJoCo model: their laws, what they act through, and what is left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...forces import (
    ActivatedActuator,
    Actuator,
    DCMotor,
    Drive,
    EffortLimit,
    ExtraCommand,
    GeneralActuator,
    JointTransmission,
    Motor,
    Muscle,
    MuscleCurves,
    OrientationServo,
    PIDServo,
    PositionServo,
    SharedLimit,
    SiteTransmission,
    Transmission,
    VelocityServo,
)
from ...forces.transmissions.site import branching
from ...system import Spherical, System
from .joints import ON_JOINTS, TYPES, gears, moved_joints, outputs
from .names import Names, actuator_names, command_names, input_words
from .tendons import lost
from .transmissions import IN_PARENT, JOINT, SITE, TENDON, place_of, site_of

# MuJoCo's mjtGain, mjtBias and mjtDyn.
_FIXED, _AFFINE, _MUSCLE = range(3)
_NO_BIAS = 0
_DC_MOTOR, _ORIENTATION, _PID = 3, 4, 5  # of mjtGain, in MuJoCo 4
_POSITION, _VELOCITY, _FEEDFORWARD, _VOLTAGE = 1, 2, 4, 8  # MuJoCo's mjtCtrlInput
_QUATERNION = 2  # MuJoCo's mjCHART_QUAT
_LINEAR = 1  # how a delay interpolates: MuJoCo has 0, "zoh", 1, "linear", and 2, "cubic"
_NO_DYNAMICS, _INTEGRATOR, _FILTER, _EXACT_FILTER, _MUSCLE_DYNAMICS = range(5)


def file_actuators(
    model: Any, names: Names, system: System, disabled: set[str]
) -> Iterator[Actuator]:
    """The actuators of a MuJoCo model but those that `unread_actuators` names, in its order.

    system: the bodies and joints of the model. disabled: the option flags that are off. A hinge or
    slide without gear and `ref` is the joint of its actuator; all else are transmissions. An
    actuator without a name is called "actuatorN". One of several controls is several, each with
    one of them: see `command_names`.
    """
    left = {a for _, which in _left_out(model, names, system, disabled) for a in which}
    for a, labels in enumerate(command_names(model)):
        if a in left:
            continue
        if model.actuator_gaintype[a] == _ORIENTATION:
            yield from _orientation(model, a, names, system, labels)
            continue
        place = place_of(model, a, names, system)
        if _is_controlled(model, a):
            yield _controlled(model, a, place, labels)
            yield from _inputs(model, a, place, labels)
        else:
            yield _law(model, a, place | {"name": labels[0]})


def unread_actuators(
    model: Any, names: Names, system: System, disabled: set[str]
) -> Iterator[tuple[str, str, list[int]]]:
    """What of the actuators is left out, "actuator", and which have it."""
    read = set(range(_count(model)))
    for what, which in _left_out(model, names, system, disabled):
        yield what, "actuator", which
        read -= set(which)
    several = [a for a in read if _total_limit(model, a) is None and not _is_summed(model, a)]
    what = "limits of the sum of actuators with gravity compensation, or that exclude 0"
    yield what, "actuator", several


def _count(model: Any) -> int:
    return len(model.actuator_trntype)


def _left_out(
    model: Any, names: Names, system: System, disabled: set[str]
) -> list[tuple[str, list[int]]]:
    """Why actuators are left out, and which are, each once."""
    found: dict[str, list[int]] = {}
    for a in range(_count(model)):
        why = _why_left_out(model, a, disabled)
        on_joint = model.actuator_trntype[a] in (JOINT, IN_PARENT)
        joint = names.joints[model.actuator_trnid[a, 0]] if on_joint else None
        if not why and on_joint and joint not in system.joint_names:
            why = "actuators of joints that are fixed"
        if why:
            found.setdefault(why, []).append(a)
    return list(found.items())


def _why_left_out(model: Any, a: int, disabled: set[str]) -> str:
    gain, bias = model.actuator_gaintype[a], model.actuator_biastype[a]
    dynamics, group = model.actuator_dyntype[a], int(model.actuator_group[a])
    off = 0 <= group < 31 and bool(int(model.opt.disableactuator) & (1 << group))
    if "actuation" in disabled or off:
        return "actuators that are switched off"
    if getattr(model, "actuator_plugin", np.full(_count(model), -1))[a] >= 0:
        return "actuators of plugins"
    if model.actuator_trntype[a] == TENDON and lost(model, int(model.actuator_trnid[a, 0])):
        return "actuators of tendons around shapes that are missing"
    if _delay(model, a) and model.actuator_history[a, 1] > _LINEAR:
        return "actuators with delays that interpolate by cubic polynomials"
    if gain == _ORIENTATION:
        held = dynamics or model.actuator_biasprm[a, 0]
        return "orientations with activations or a constant" if held else ""
    if _is_controlled(model, a):
        return ""
    known = max(gain, bias) <= _MUSCLE and dynamics <= _MUSCLE_DYNAMICS
    if not known and _affine(model, a) is None:
        return "actuators with gains, biases or dynamics but those of affine laws and muscles"
    return ""


def _delay(model: Any, a: int) -> float:
    """The delay of an actuator in s; 0 before MuJoCo 4.

    MuJoCo keeps as many steps of the file as it has samples. Without interpolation it rounds the
    delay up to whole steps; linear interpolation is what `Delayed` does.
    """
    delay = float(getattr(model, "actuator_delay", np.zeros(_count(model)))[a])
    if not delay:
        return 0.0
    h = float(model.opt.timestep)
    steps = delay / h
    if model.actuator_history[a, 1] < _LINEAR:
        steps = np.ceil(steps * (1 - 1e-9))
    return float(min(steps, model.actuator_history[a, 0]) * h)


def _late(model: Any, a: int) -> dict[str, Any]:
    """The delay of an actuator, as fields; none without one."""
    delay = _delay(model, a)
    if not delay:
        return {}
    return {"delay": delay, "most_steps": max(int(model.actuator_history[a, 0]), _STEPS)}


def _is_muscle(model: Any, a: int) -> bool:
    """Whether an actuator is a `Muscle`, whose passive force belongs to its active one."""
    gain, bias = model.actuator_gaintype[a], model.actuator_biastype[a]
    known = model.actuator_dyntype[a] in (_NO_DYNAMICS, _MUSCLE_DYNAMICS)
    same = np.all(model.actuator_gainprm[a, :9] == model.actuator_biasprm[a, :9])
    passive = bias == _NO_BIAS or (bias == _MUSCLE and same)
    return bool(gain == _MUSCLE and known and passive)


def _is_controlled(model: Any, a: int) -> bool:
    """Whether an actuator has a controller, or states, that no affine law expresses."""
    controlled = model.actuator_gaintype[a] in (_DC_MOTOR, _PID)
    known = hasattr(model, "actuator_ctrlspec") and controlled
    return bool(known and _affine(model, a) is None)


def _controls(model: Any, a: int) -> slice:
    """The controls of an actuator; only in MuJoCo 4 it may have several, or none."""
    first = model.actuator_ctrladr[a] if hasattr(model, "actuator_ctrladr") else a
    count = model.actuator_ctrlnum[a] if hasattr(model, "actuator_ctrlnum") else 1
    return slice(int(first), int(first) + int(count))


def _law(model: Any, a: int, place: dict[str, Any]) -> Actuator:
    """The actuator: of the class that says the same with the fewest numbers."""
    commands = _command_range(model, a)
    forces = _force_range(model, a)
    ranges: dict[str, Any] = {"command_range": commands, "force_range": forces}
    dynamics, parameters = model.actuator_dyntype[a], model.actuator_dynprm[a]
    acts = model.actuator_actrange[a].copy() if model.actuator_actlimited[a] else None
    own = {"activation_range": acts, "lead": _lead(model, a)}
    delay = _late(model, a)
    place = place | delay
    if _is_muscle(model, a):
        return _muscle(model, a, place | ranges | own)
    gain, bias, curves = _gain_and_bias(model, a)
    ranges |= curves
    if period := _period(model, a, gain, bias):
        ranges["period"] = period
    if model.actuator_actadr[a] >= 0:
        if dynamics == _MUSCLE_DYNAMICS:
            own |= _excitation(model, a)
        elif dynamics != _INTEGRATOR:
            own["time_constant"] = max(float(parameters[0]), _LEAST)
        return ActivatedActuator(gain=gain, bias=bias, **own, **ranges, **place)
    simple = not (curves or np.any(gain[1:])) and gain[0] >= 0 and bias[0] == 0
    if simple and gain[0] == 1 and not np.any(bias):
        found = [r for r in (commands, forces) if r is not None]
        limits = np.clip(found[0], *found[-1]) if found else None
        if limits is None:
            return Drive(**place)
        if limits[1] == -limits[0] > 0 and not delay:
            return Motor(max_torque=limits[1], **place)
    symmetric = not period and (forces is None or forces[0] == -forces[1] < 0)
    if simple and commands is None and symmetric:
        most = {"max_torque": None if forces is None else forces[1]}
        if bias[1] == -gain[0] and bias[2] <= 0:
            return PositionServo(kp=gain[0], kd=-bias[2], **most, **place)
        if bias[1] == 0 and bias[2] == -gain[0]:
            return VelocityServo(kd=gain[0], **most, **place)
    return GeneralActuator(gain=gain, bias=bias, **ranges, **place)


def _gain_and_bias(model: Any, a: int) -> tuple[NDArray, NDArray, dict[str, MuscleCurves]]:
    """The affine gain and bias (3,) of an actuator that is read, and what is a muscle's of them."""
    if (law := _affine(model, a)) is not None:
        return *law, {}
    gain, bias, curves = np.zeros(3), np.zeros(3), {}
    own, passive = model.actuator_gainprm[a], model.actuator_biasprm[a]
    if model.actuator_gaintype[a] == _MUSCLE:
        curves["contracts"] = MuscleCurves(**_curves(model, a, own))
    else:
        terms = 3 if model.actuator_gaintype[a] == _AFFINE else 1
        gain[:terms] = own[:terms]
    if model.actuator_biastype[a] == _MUSCLE:
        curves["resists"] = MuscleCurves(**_curves(model, a, passive))
    elif model.actuator_biastype[a] == _AFFINE:
        bias = passive[:3].copy()
    return gain, bias, curves


def _affine(model: Any, a: int) -> tuple[NDArray, NDArray] | None:
    """The gain (3,) and the bias (3,) of an actuator whose law is affine; None of others."""
    kind, dynamics = int(model.actuator_gaintype[a]), int(model.actuator_dyntype[a])
    own, bias = model.actuator_gainprm[a], np.zeros(3)
    if model.actuator_biastype[a] == _AFFINE:
        bias = model.actuator_biasprm[a, :3].copy()
    # Only MuJoCo 4 has these kinds, and the input that they take; before, 3 is a user's law.
    spec = getattr(model, "actuator_ctrlspec", None)
    if spec is not None and kind in (_DC_MOTOR, _PID):
        if model.actuator_actadr[a] >= 0 or model.actuator_ctrlnum[a] != 1:
            return None
        if kind == _DC_MOTOR:
            resistance, constant, kp, kd = own[[0, 1, 4, 6]]
            cogging, most = model.actuator_biasprm[a, 0], own[7]
            if cogging:
                return None
            if spec[a] == _VOLTAGE:
                slope = constant / resistance
                return np.array([slope, 0, 0]), np.array([0, 0, -constant * slope])
            # Its controller compensates the back-EMF, up to a voltage.
            if most:
                return None
            bias = np.array([0.0, -kp, -kd])
        gains = {_POSITION: -bias[1], _VELOCITY: -bias[2], _FEEDFORWARD: 1.0}
        gain = gains.get(int(spec[a]))
        return None if gain is None else (np.array([gain, 0, 0]), bias)
    known = dynamics <= _EXACT_FILTER or dynamics == _MUSCLE_DYNAMICS
    if kind > _AFFINE or model.actuator_biastype[a] > _AFFINE or not known:
        return None
    return own[:3] * (1.0 if kind == _AFFINE else np.array([1.0, 0.0, 0.0])), bias


_LEAST = 1e-15  # MuJoCo's mjMINVAL, the least time constant
_STEPS = 32  # how many steps a delay may have at least, as by default


def _lead(model: Any, a: int) -> float | None:
    """How far an activation is ahead where the force is that of its next value, in s."""
    if not model.actuator_actearly[a]:
        return None
    h, dynamics = float(model.opt.timestep), model.actuator_dyntype[a]
    if dynamics != _EXACT_FILTER:
        return h
    lag = max(float(model.actuator_dynprm[a, 0]), _LEAST)
    return lag * -np.expm1(-h / lag)


def _muscle(model: Any, a: int, fields: dict[str, Any]) -> Muscle:
    curves = _curves(model, a, model.actuator_gainprm[a])
    if model.actuator_biastype[a] == _NO_BIAS:
        curves["passive"] = 0.0
    if model.actuator_dyntype[a] == _MUSCLE_DYNAMICS:
        times = _excitation(model, a)
        fields["time_constants"] = times["excitation_times"]
        fields["smoothing"] = times["smoothing"]
    else:
        fields |= {"time_constants": None, "activation_range": None, "lead": None}
    return Muscle(**curves, **fields)


def _curves(model: Any, a: int, parameters: NDArray) -> dict[str, Any]:
    """The numbers of `MuscleCurves`, of the parameters of a gain or a bias."""
    low, high, force, scale, *shape = map(float, parameters[:9])
    if force < 0:
        force = scale / max(float(model.actuator_acc0[outputs(model)[a]]), _LEAST)
    names = "shortest", "longest", "fastest", "passive", "eccentric"
    return {
        "peak_force": force,
        "length_range": model.actuator_lengthrange[outputs(model)[a]].copy(),
        "operating_range": (low, high),
        **dict(zip(names, shape, strict=True)),
    }


def _excitation(model: Any, a: int) -> dict[str, Any]:
    """The numbers of the activation of a muscle, as of an `ActivatedActuator`."""
    rising, falling, smoothing = map(float, model.actuator_dynprm[a, :3])
    return {
        "excitation_times": (rising, falling),
        "smoothing": smoothing if smoothing >= _LEAST else None,
    }


def _period(model: Any, a: int, gain: NDArray, bias: NDArray) -> float:
    """After which angle a servo of a rotation is the same again; 0 for others.

    MuJoCo 4 takes the nearest of such angles.
    """
    servo = model.actuator_gaintype[a] == _FIXED and model.actuator_biastype[a] == _AFFINE
    plain = model.actuator_dyntype[a] in (_NO_DYNAMICS, _INTEGRATOR)
    if not (servo and plain and gain[0] == -bias[1] and hasattr(model, "actuator_ctrlspec")):
        return 0.0
    kind, (first, second) = model.actuator_trntype[a], map(int, model.actuator_trnid[a])
    gear = gears(model)[a]
    turns = kind == SITE and second >= 0 and not np.any(gear[:3])
    if turns:
        gear = gear[3:]
    elif kind in (JOINT, IN_PARENT) and TYPES[model.jnt_type[first]] is Spherical:
        gear = gear[:3]
    else:
        return 0.0
    return float(2 * np.pi * np.linalg.norm(gear))


def _controlled(model: Any, a: int, place: dict[str, Any], labels: list[str]) -> Actuator:
    """A PID controller or a motor with brushes; labels: the names of its commands."""
    words, motor = input_words(model, a), model.actuator_gaintype[a] == _DC_MOTOR
    gains, dynamics = model.actuator_gainprm[a], model.actuator_dynprm[a]
    bias, step = model.actuator_biasprm[a], float(model.opt.timestep)
    kp, ki, kd = gains[4:7] if motor else (-bias[1], gains[0], -bias[2])
    slew, most = (dynamics[7], dynamics[8]) if motor else (dynamics[1], dynamics[0])
    stateful = motor or model.actuator_actadr[a] >= 0
    fields: dict[str, Any] = {
        "name": labels[0],
        "takes": words[0],
        "further": tuple(zip(words[1:], labels[1:], strict=True)),
        "kp": kp,
        "kd": kd,
        "ki": ki if stateful and ki > 0 else None,
        "integral_limit": _some(most) if stateful and ki > 0 else None,
        "slew_rate": _some(slew) if stateful else None,
        "slew_lag": step,
        "command_range": _command_range(model, a),
        "force_range": _force_range(model, a),
        **_late(model, a),
    }
    if not motor:
        if model.actuator_actlimited[a] and stateful:
            fields["activation_range"] = model.actuator_actrange[a].copy()
        fields["integral_lead"] = step if model.actuator_actearly[a] and fields["ki"] else None
        return PIDServo(**fields, **place)
    lag = float(dynamics[0])
    thermal = (*dynamics[2:4], gains[2], dynamics[4] - gains[3]) if dynamics[2] > 0 else None
    bristle = (*dynamics[5:7], *bias[3:6]) if dynamics[5] > 0 else None
    early = model.actuator_actearly[a] and lag > 0
    return DCMotor(
        resistance=gains[0],
        torque_constant=gains[1],
        max_voltage=_some(gains[7]),
        electric_lag=_some(lag),
        current_rate=_some(dynamics[1]) if lag > 0 else None,
        current_lead=-lag * np.expm1(-step / lag) if early else None,
        thermal=thermal,
        bristle=bristle,
        cogging=bias[:3].copy() if bias[0] else None,
        **fields,
        **place,
    )


def _some(value: float) -> float | None:
    """A number, or None for one that is 0, by which MuJoCo switches off what it belongs to."""
    return float(value) if value > 0 else None


def _inputs(model: Any, a: int, place: dict[str, Any], labels: list[str]) -> Iterator[ExtraCommand]:
    """The further commands of an actuator with a controller."""
    first = _controls(model, a).start
    for i, label in enumerate(labels[1:], start=1):
        limits = _control_range(model, first + i)
        yield ExtraCommand(name=label, command_range=limits, **_late(model, a), **place)


def _orientation(
    model: Any, a: int, names: Names, system: System, labels: list[str]
) -> Iterator[Actuator]:
    """A servo of an orientation, as three actuators with one command each; labels: their names.

    With a command by a quaternion an `ExtraCommand` for its first part comes first.
    """
    quaternion = int(model.actuator_ctrlspec[a]) == _QUATERNION
    first, (on, reference) = _controls(model, a).start, map(int, model.actuator_trnid[a])

    def along(gear: NDArray) -> Transmission:
        if reference < 0:
            return JointTransmission(names.joints[on], gear)
        sites = [site_of(model, site, names) for site in (on, reference)]
        common = branching(system, sites[0].body, sites[1].body)
        moment = np.append(gear, np.zeros(3))
        return SiteTransmission(sites[0], moment, reference=sites[1], common=common)

    axes = labels[-3:]
    most = float(model.actuator_forcerange[a, 1]) if model.actuator_forcelimited[a] else None
    if quaternion:
        limits = _control_range(model, first)
        along_x = along(np.eye(3)[0])
        limits = {"command_range": limits, **_late(model, a)}
        yield ExtraCommand(name=labels[0], transmission=along_x, **limits)
    for i, label in enumerate(axes):
        others = [*(labels[:1] if quaternion else ()), *(n for n in axes if n != label)]
        yield OrientationServo(
            transmission=along(np.eye(3)[i]),
            name=label,
            index=i,
            others=others,
            by_quaternion=quaternion,
            in_reference=reference >= 0,
            kp=model.actuator_gainprm[a, 0],
            kd=-model.actuator_biasprm[a, 2],
            max_torque=most,
            command_range=_control_range(model, first + len(labels) - 3 + i),
            **_late(model, a),
        )


def _command_range(model: Any, a: int) -> NDArray | None:
    own = _controls(model, a)
    return _control_range(model, own.start) if own.stop > own.start else None


def _control_range(model: Any, control: int) -> NDArray | None:
    limited = model.actuator_ctrllimited[control]
    return model.actuator_ctrlrange[control].copy() if limited else None


def _force_range(model: Any, a: int) -> NDArray | None:
    """The limits (2,) of the force, with those of its joint or tendon; None without any.

    Those of actuators that share a limit come after it, and are with it.
    """
    on = int(model.actuator_trnid[a, 0])
    shares = model.actuator_trntype[a] == TENDON and _tendon_limited(model, on)
    if shares and len(_along(model, on)) > 1:
        return None
    own = model.actuator_forcerange[a].copy() if model.actuator_forcelimited[a] else None
    total = _total_limit(model, a)
    if total is None or not np.all(np.isfinite(total)):
        return own
    return total if own is None else np.clip(own, *total)


def _total_limit(model: Any, a: int) -> NDArray | None:
    """The limits (2,) that its joint or tendon sets to its force; None where they set others.

    Infinite where there are none.
    """
    kind, on = model.actuator_trntype[a], int(model.actuator_trnid[a, 0])
    free = np.array([-np.inf, np.inf])
    if kind == TENDON and _tendon_limited(model, on):
        return model.tendon_actfrcrange[on].copy() if len(_along(model, on)) == 1 else None
    reached = _limited_joints(model, a)
    if not reached:
        return free
    gear = float(gears(model)[a, 0])
    alone = kind in (JOINT, IN_PARENT) and len(_acting(model, on)) == 1
    if not alone or gear == 0 or _compensated(model, on):
        # It pushes on other joints, others push on its joint, or its force is not all.
        return None
    return np.sort(model.jnt_actfrcrange[on] / gear)


def _is_summed(model: Any, a: int) -> bool:
    """Whether `effort_limits` has the limits of joints and the tendon that it acts on."""
    on = int(model.actuator_trnid[a, 0])
    summed = True
    if model.actuator_trntype[a] == TENDON and _tendon_limited(model, on):
        summed = len(_along(model, on)) > 1
    return summed and all(_has_limit(model, j) for j in _limited_joints(model, a))


def effort_limits(model: Any, names: Names, system: System) -> Iterator[EffortLimit | SharedLimit]:
    """The limits of joints and tendons to what several actuators do there.

    system: with the actuators of the model.
    """
    for j in np.flatnonzero(model.jnt_actfrclimited).tolist():
        alone = [a for a in _acting(model, j) if model.actuator_trntype[a] in ON_JOINTS]
        several = len(_acting(model, j)) > 1 or not alone
        there = names.joints[j] in system.joint_names and _acting(model, j)
        if there and several and _has_limit(model, j):
            yield EffortLimit(names.joints[j])
    for t in range(model.ntendon):
        named = {actuator_names(model)[a]: a for a in _along(model, t)}
        there = {name: a for name, a in named.items() if name in system.actuator_names}
        if not (_tendon_limited(model, t) and len(named) > 1 and there):
            continue
        numbers = list(there.values())
        own = model.actuator_forcerange[numbers].copy()
        own[model.actuator_forcelimited[numbers] == 0] = (-np.inf, np.inf)
        each = own if np.any(np.isfinite(own)) else None
        yield SharedLimit(tuple(there), model.tendon_actfrcrange[t].copy(), each)


def _has_limit(model: Any, j: int) -> bool:
    """Whether a system has the limit of a joint: without what counts as an actuator's there."""
    low, high = model.jnt_actfrcrange[j]
    return low <= 0 <= high and not _compensated(model, j)


def _compensated(model: Any, j: int) -> bool:
    # MuJoCo limits the sum with gravity compensation.
    return bool(model.jnt_actgravcomp[j] and np.any(model.body_gravcomp))


def _tendon_limited(model: Any, tendon: int) -> bool:
    return bool(getattr(model, "tendon_actfrclimited", np.zeros(model.ntendon))[tendon])


def _along(model: Any, tendon: int) -> list[int]:
    """The actuators along a tendon."""
    on = (model.actuator_trntype == TENDON) & (model.actuator_trnid[:, 0] == tendon)
    return np.flatnonzero(on).tolist()


def _acting(model: Any, j: int) -> list[int]:
    """The actuators that may act on a joint."""
    return [a for a in range(_count(model)) if j in moved_joints(model, a)]


def _limited_joints(model: Any, a: int) -> list[int]:
    """The joints with limits of the effort of actuators that an actuator may act on."""
    return [j for j in moved_joints(model, a) if model.jnt_actfrclimited[j]]

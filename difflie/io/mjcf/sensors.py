"""MuJoCo's sensors, as sensors of a system that read the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ... import quantities as dq
from ...forces import JointStop, ShapeContact, TendonLaw
from ...quantities import Quantity
from ...quantities.stops import rotation_stops
from ...sensors import Sensor
from ...system import System
from ...system.frame import Frame, FrameLike
from ...system.validation import format_value
from ..robot_files import distinct, of_quaternion
from .flags import disabled_flags, limits_act
from .joints import ON_JOINTS, TENDON, gears
from .names import (
    SIGNS,
    actuator_names,
    body_names,
    command_names,
    element_name,
    joint_names,
    site_names,
)
from .shapes import geom_names, simple_shape
from .tendons import lost, stop_names, tendon_transmission

_AXES = {"FRAMEXAXIS": "x", "FRAMEYAXIS": "y", "FRAMEZAXIS": "z"}
_IN_REFERENCE: dict[str, Callable[[FrameLike, FrameLike], Quantity]] = {
    "FRAMEPOS": dq.Origin,
    "FRAMEQUAT": dq.Attitude,
    "FRAMELINVEL": dq.LinearVelocity,
    "FRAMEANGVEL": dq.AngularVelocity,
    **{kind: lambda f, r, a=axis: dq.FrameAxis(f, a, r) for kind, axis in _AXES.items()},
}
_AT_FRAMES: dict[str, Callable[[FrameLike], Quantity]] = {
    "GYRO": dq.Gyroscope,
    "ACCELEROMETER": dq.Accelerometer,
    "VELOCIMETER": dq.Velocimeter,
    "FRAMELINACC": dq.ProperAcceleration,
    "FRAMEANGACC": dq.AngularAcceleration,
}
_SUBTREES: dict[str, Callable[[str | None], Quantity]] = {
    "SUBTREECOM": dq.SubtreeCenter,
    "SUBTREELINVEL": dq.SubtreeVelocity,
    "SUBTREEANGMOM": dq.SubtreeAngularMomentum,
}
_AT_JOINTS: dict[str, Callable[[str], Quantity]] = {
    "JOINTPOS": dq.JointPosition,
    "JOINTVEL": dq.JointVelocity,
    "BALLQUAT": dq.JointPosition,
    "BALLANGVEL": dq.JointVelocity,
}
_LIMITS = "JOINTLIMITPOS", "JOINTLIMITVEL"
_GAPS = {"GEOMDIST": "distance", "GEOMNORMAL": "normal", "GEOMFROMTO": "points"}
_SCALARS = 2, 3  # slides and hinges: MuJoCo's mjJNT_SLIDE and mjJNT_HINGE


class _Read(NamedTuple):
    """What a sensor reads: scale * quantity + bias."""

    quantity: Quantity
    scale: float = 1.0
    bias: float = 0.0


def read_sensors(
    mujoco: Any, model: Any, system: System
) -> tuple[tuple[Sensor, ...], list[int], list[str]]:
    """The sensors of a MuJoCo model on its system, the numbers of those left out, and remarks.

    A name that a part of the system has already, or that paths cannot have, is changed, which a
    remark says. Unnamed sensors are called by what they measure, and where, "gyro_imu".
    """
    reader = _Reader(mujoco, model, system)
    taken: set[str] = {*system.body_names, *system.topology.joints, *system.actuator_names}
    taken |= {c.name for c in system.couplings if c.name is not None}
    taken |= {"q", "v", "a", "tau", "t", "time", "gravity", "couplings", "constraints", "sensors"}
    found, left, renamed = [], [], []
    for k in range(model.nsensor):
        read = reader.read(k)
        if read is None:
            left.append(k)
            continue
        given = model.sensor(k).name or reader.title(k)
        plain = given.translate(SIGNS)
        name = distinct(f"{plain}_sensor" if plain in taken else plain, taken)
        taken.add(name)
        if name != given and model.sensor(k).name:
            renamed.append(f"{format_value(given)} as {format_value(name)}")
        size = int(model.sensor_dim[k])
        sensor = Sensor(
            name,
            read.quantity,
            read.scale,
            np.full(size, read.bias) if size > 1 else read.bias,
            noise=float(model.sensor_noise[k]),
            cutoff=_cutoff(mujoco, model, k),
            from_file=True,
        )
        found.append(jax.tree.map(lambda a: jnp.asarray(a, system.dtype), sensor))
    remarks = [f"sensors that are called otherwise: {', '.join(renamed)}"] if renamed else []
    return tuple(found), left, remarks


def _cutoff(mujoco: Any, model: Any, k: int) -> float:
    """The size at which MuJoCo clips the readings; 0 for directions and quaternions, as it does."""
    real = int(mujoco.mjtDataType.mjDATATYPE_REAL), int(mujoco.mjtDataType.mjDATATYPE_POSITIVE)
    # Those of distances say how far they see.
    own = model.sensor_datatype[k] in real and int(model.sensor_type[k]) not in _seeing(mujoco)
    return float(model.sensor_cutoff[k]) if own else 0.0


def _seeing(mujoco: Any) -> list[int]:
    return [k for k, kind in _by_number(mujoco.mjtSensor, "mjSENS_").items() if kind in _GAPS]


class _Reader:
    """What the sensors of a model measure of a system."""

    def __init__(self, mujoco: Any, model: Any, system: System) -> None:
        self.model, self.system = model, system
        self.kinds = _by_number(mujoco.mjtSensor, "mjSENS_")
        self.objects = _by_number(mujoco.mjtObj, "mjOBJ_")
        self.bodies, self.joints = body_names(model), joint_names(model)
        self.sites, self.actuators = site_names(model), actuator_names(model)
        self.commands = command_names(model)
        self.off = disabled_flags(mujoco, model)

    def title(self, k: int) -> str:
        """What sensor k measures and where, as a name."""
        on, what = int(self.model.sensor_objid[k]), self.objects.get(self.model.sensor_objtype[k])
        names: dict[str | None, Sequence[str]] = {
            "SITE": self.sites,
            "JOINT": self.joints,
            "ACTUATOR": self.actuators,
            "TENDON": [
                element_name(self.model, "tendon", n) or str(n) for n in range(self.model.ntendon)
            ],
            "BODY": ["world", *self.bodies],
            "XBODY": ["world", *self.bodies],
        }
        kind = self.kinds[self.model.sensor_type[k]].lower()
        return f"{kind}_{names[what][on]}" if what in names else f"{kind}_{k}"

    def read(self, k: int) -> _Read | None:
        """What sensor k reads; None where the system has no quantity for it."""
        model = self.model
        kind, on = self.kinds[model.sensor_type[k]], int(model.sensor_objid[k])
        if kind in _IN_REFERENCE or kind in _AT_FRAMES or kind == "MAGNETOMETER":
            return self._at_frame(kind, k)
        if kind in _SUBTREES:
            return _Read(_SUBTREES[kind](self.bodies[on - 1] if on else None))
        if kind in _AT_JOINTS:
            joint = self.joints[on]
            if joint not in self.system.joint_names:
                return None
            bias = model.qpos0[model.jnt_qposadr[on]] if kind == "JOINTPOS" else 0.0
            return _Read(_AT_JOINTS[kind](joint), bias=float(bias))
        if kind in ("FORCE", "TORQUE"):
            return self._wrench(kind, on)
        if kind in ("ACTUATORPOS", "ACTUATORVEL", "ACTUATORFRC"):
            return self._of_actuator(kind, on)
        if kind in ("TENDONPOS", "TENDONVEL"):
            return self._of_tendon(kind, on)
        if kind in ("JOINTACTFRC", "TENDONACTFRC"):
            return self._force(kind, on)
        if kind in _LIMITS:
            return self._overrun(kind, on)
        if kind in ("TENDONLIMITPOS", "TENDONLIMITVEL"):
            return self._overrun_of_tendon(kind, on)
        if kind in ("JOINTLIMITFRC", "TENDONLIMITFRC"):
            return self._stop(kind, on)
        if kind == "TOUCH":
            return self._touch(on)
        if kind in _GAPS:
            return self._gap(kind, k)
        if kind in ("E_POTENTIAL", "E_KINETIC"):
            return self._energy(kind)
        return _Read(dq.Time()) if kind == "CLOCK" else None

    def _at_frame(self, kind: str, k: int) -> _Read | None:
        model = self.model
        frame = self._frame(model.sensor_objtype[k], int(model.sensor_objid[k]))
        if frame is None:
            return None
        if kind == "MAGNETOMETER":
            return _Read(dq.Magnetometer(frame.value, model.opt.magnetic.copy()))
        if kind in _AT_FRAMES:
            return _Read(_AT_FRAMES[kind](frame.value))
        reference, number = _Frame(None), int(model.sensor_refid[k])
        if number >= 0:
            reference = self._frame(model.sensor_reftype[k], number)
        return (
            None if reference is None else _Read(_IN_REFERENCE[kind](frame.value, reference.value))
        )

    def _frame(self, kind: int, number: int) -> _Frame | None:
        """The frame of an element; None for cameras that follow others."""
        model, what = self.model, self.objects.get(kind)
        if what == "XBODY":
            return _Frame(self.bodies[number - 1] if number else None)
        if what == "SITE":
            name = self.sites[number]
            return _Frame(f"site:{name}" if name in self.system.body_names else name)
        if what == "BODY":
            at, body = (model.body_ipos, model.body_iquat), number
        elif what == "GEOM":
            at, body = (model.geom_pos, model.geom_quat), int(model.geom_bodyid[number])
        elif what == "CAMERA" and model.cam_mode[number] == 0:
            at, body = (model.cam_pos, model.cam_quat), int(model.cam_bodyid[number])
        else:
            return None
        on = self.bodies[body - 1] if body else None
        return _Frame(Frame(on, at[0][number].copy(), of_quaternion(at[1][number])))

    def _wrench(self, kind: str, site: int) -> _Read | None:
        """The moment or the force between the body of a site and its parent.

        None in closed loops, where it does not follow from the motion, and on the world.
        """
        body = int(self.model.site_bodyid[site])
        if not body or self.system.constraints:
            return None
        b = self.system.body_names.index(self.bodies[body - 1])
        frame = self.system.frames[self.sites[site]]
        joint = self.system.topology.joints[b]
        wrench = dq.JointWrench(joint, frame.position, frame.rotation)
        return _Read(dq.Entries(wrench, (0, 1, 2) if kind == "TORQUE" else (3, 4, 5)))

    def _of_tendon(self, kind: str, tendon: int) -> _Read | None:
        """The length or the rate of a tendon; None for one around a shape that is missing."""
        if lost(self.model, tendon):
            return None
        along = tendon_transmission(self.model, tendon, self.bodies, self.joints)
        if along.incompatibilities(self.system):
            return None
        position = kind == "TENDONPOS"
        return _Read((dq.TransmissionLength if position else dq.TransmissionVelocity)(along))

    def _force(self, kind: str, on: int) -> _Read | None:
        """The force of all actuators at a joint, or along a tendon.

        None where some of the actuators were not read, or the sum is not that of MuJoCo.
        """
        model, read = self.model, self.system.actuator_names
        if not read or any(name not in read for names in self.commands for name in names):
            return None
        if kind == "TENDONACTFRC":
            on_tendon = (model.actuator_trntype == TENDON) & (model.actuator_trnid[:, 0] == on)
            acting = [dq.ActuatorEffort(self.actuators[a]) for a in np.flatnonzero(on_tendon)]
            if not acting:
                return None
            return _Read(acting[0] if len(acting) == 1 else dq.Sum(tuple(acting)))
        joint, t = self.joints[on], self.system.topology
        if model.jnt_actgravcomp[on] or joint not in self.system.joint_names:
            return None
        place = int(t.velocity_start[t.joints.index(joint)])
        return _Read(dq.Entries(dq.Effort(), (place,)))

    def _overrun(self, kind: str, joint: int) -> _Read | None:
        """How far a joint is beyond its limits; None where MuJoCo has none there."""
        model, name = self.model, self.joints[joint]
        on = limits_act(self.off) and model.jnt_limited[joint] and not model.jnt_margin[joint]
        if not on or name not in self.system.joint_names:
            return None
        rate = kind == "JOINTLIMITVEL"
        if model.jnt_type[joint] in _SCALARS:
            return _Read(dq.Overrun(name, rate))
        # Of a ball joint the larger end is the limit.
        return _Read(dq.RotationOverrun(name, max(model.jnt_range[joint]), rate))

    def _overrun_of_tendon(self, kind: str, tendon: int) -> _Read | None:
        """How far a tendon is beyond its limits; None where MuJoCo has none there."""
        model, read = self.model, self._of_tendon("TENDONPOS", tendon)
        limited = limits_act(self.off) and model.tendon_limited[tendon]
        if read is None or not limited or model.tendon_margin[tendon]:
            return None
        assert isinstance(read.quantity, dq.TransmissionLength)
        ends = model.tendon_range[tendon].copy()
        along = read.quantity.transmission
        return _Read(dq.LengthOverrun(along, ends, kind == "TENDONLIMITVEL"))

    def _stop(self, kind: str, on: int) -> _Read | None:
        """The force of a limit; None where it is no stop of the system."""
        stops = [part for part in self.system.couplings if isinstance(part, JointStop)]
        if kind == "JOINTLIMITFRC":
            name = self.joints[on]
            there = any(name in (stop.joints or ()) for stop in stops)
            if self.model.jnt_type[on] not in _SCALARS:
                there = name in self.system.joint_names and bool(rotation_stops(self.system, name))
            return _Read(dq.StopForce(name)) if there else None
        name = stop_names(self.model).get(on)
        names = [part.name for part in self.system.couplings if isinstance(part, TendonLaw)]
        return _Read(dq.StopForce(name)) if name in names and name is not None else None

    def _touch(self, site: int) -> _Read | None:
        """The forces of contacts in the zone of a site; None without contacts."""
        model = self.model
        if not any(isinstance(part, ShapeContact) for part in self.system.couplings):
            return None
        body = int(model.site_bodyid[site])
        turn = of_quaternion(model.site_quat[site])
        frame = Frame(self.bodies[body - 1] if body else None, model.site_pos[site].copy(), turn)
        zone = simple_shape(frame, int(model.site_type[site]), model.site_size[site])
        return None if zone is None else _Read(dq.Touch(zone))

    def _gap(self, kind: str, k: int) -> _Read | None:
        """The distance of geoms; None where some of them are no shapes of the system."""
        model, names = self.model, geom_names(self.model, self.bodies)
        groups = []
        for of, on in (
            (model.sensor_objtype[k], model.sensor_objid[k]),
            (model.sensor_reftype[k], model.sensor_refid[k]),
        ):
            own = np.array([on])
            if self.objects.get(int(of)) != "GEOM":
                own = np.flatnonzero(model.geom_bodyid == on)
            groups.append(tuple(names[g] for g in own))
        (first, second), shapes = groups, self.system.shapes
        if not (first and second) or any(name not in shapes for name in (*first, *second)):
            return None
        return _Read(dq.ShapeGap(first, second, float(model.sensor_cutoff[k]), _GAPS[kind]))

    def _energy(self, kind: str) -> _Read | None:
        """The kinetic or the potential energy; None for what MuJoCo does not count as such."""
        if kind == "E_KINETIC":
            return _Read(dq.Entries(dq.Energy(), (0,)))
        return None if np.any(self.model.body_gravcomp) else _Read(dq.Entries(dq.Energy(), (1,)))

    def _of_actuator(self, kind: str, a: int) -> _Read | None:
        """The force, length or velocity of an actuator that was read.

        The last two also of others at a slide or hinge.
        """
        model, name = self.model, self.actuators[a]
        forces = self.commands[a][-3:]
        if len(forces) == 3 and model.actuator_outnum[a] == 3:  # an orientation
            return self._of_orientation(kind, a, forces)
        there = name in self.system.actuator_names
        if kind not in ("ACTUATORPOS", "ACTUATORVEL"):
            return _Read(dq.ActuatorEffort(name)) if there else None
        j, gear = int(model.actuator_trnid[a, 0]), float(gears(model)[a, 0])
        at_joint = model.actuator_trntype[a] in ON_JOINTS and model.jnt_type[j] in _SCALARS
        if not at_joint or self.joints[j] not in self.system.joint_names:
            own = dq.ActuatorLength if kind == "ACTUATORPOS" else dq.ActuatorVelocity
            return _Read(own(name)) if there else None
        if kind == "ACTUATORVEL":
            return _Read(dq.JointVelocity(self.joints[j]), gear) if gear else None
        ref = float(model.qpos0[model.jnt_qposadr[j]])
        return _Read(dq.JointPosition(self.joints[j]), gear, gear * ref) if gear else None

    def _of_orientation(self, kind: str, a: int, forces: list[str]) -> _Read | None:
        """The three forces, lengths or velocities of an orientation.

        Between sites forces and velocities here are in the axes of the other site.
        """
        between = int(self.model.actuator_trnid[a, 1]) >= 0 and kind != "ACTUATORPOS"
        if between or any(name not in self.system.actuator_names for name in forces):
            return None
        kinds: dict[str, Callable[[str], Quantity]] = {
            "ACTUATORPOS": dq.ActuatorLength,
            "ACTUATORVEL": dq.ActuatorVelocity,
            "ACTUATORFRC": dq.ActuatorEffort,
        }
        return _Read(dq.Joined(tuple(kinds[kind](name) for name in forces)))


class _Frame(NamedTuple):
    """A frame, which may be the world's: None."""

    value: FrameLike


def _by_number(enum: Any, prefix: str) -> dict[int, str]:
    """The names of an enumeration without their prefix, by number."""
    return {int(value): name.removeprefix(prefix) for name, value in enum.__members__.items()}

"""The sensors of an identification file: on the machine, and in its recordings."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ..identify import Encoder, Recording, Sensor, pose_readings, with_sensors
from ..identify.sensors.poses import unwrapped
from ..io.loading import located
from ..io.modules import function
from ..io.study import SensorTable, Study
from ..io.tables import ConfigError, instance
from ..quantities import Accelerometer, Gyroscope, JointWrench, Origin, Pose
from ..system import System
from ..system.frame import Frame
from ..system.validation import format_value

_ON_BODIES: dict[str, Callable[[Frame], Any]] = {
    "accelerometer": Accelerometer,
    "gyroscope": Gyroscope,
    "point": Origin,
    "pose": Pose,
}


def system_with_sensors(config: Study, system: System) -> System:
    """The system with the encoders and other sensors of the file.

    Raises `ConfigError` for those that do not suit the machine.
    """
    for where, table in config.encoder.items():
        encoder = instance(Encoder, table, config.path, where)
        with located(f"{config.path}: {where}: "):
            system = with_sensors(system, encoder)
    for k, table in enumerate(config.sensor):
        with located(f"{config.path}: sensor[{k}]: "):
            sensor = Sensor(table.name, _quantity(config, k, table), table.scale, table.bias)
            system = with_sensors(system, sensor)
    return system


def columns_of_sensors(config: Study) -> dict[str, list[str]]:
    """The columns of the sensors' readings, by name."""
    return {table.name: table.columns for table in config.sensor}


def deviations_of_sensors(config: Study) -> dict[str, float | list[float]]:
    """The standard deviations of the sensors' readings, by name."""
    return {table.name: table.deviation for table in config.sensor}


def with_poses(config: Study, recording: Recording) -> Recording:
    """The recording with poses of which successive ones are near; quaternions are read as such."""
    readings = dict(recording.readings)
    for table in (table for table in config.sensor if table.kind == "pose"):
        read = np.asarray(readings[table.name])
        if len(table.columns) == 7:
            with located(f"{config.path}: {recording.name}: {table.name}: "):
                readings[table.name] = pose_readings(read[:, :4], read[:, 4:])
        elif len(table.columns) == 6:
            readings[table.name] = unwrapped(read)
    return dataclasses.replace(recording, readings=readings)


def _quantity(config: Study, k: int, table: SensorTable) -> Any:
    if table.kind in _ON_BODIES:
        return _ON_BODIES[table.kind](Frame(table.body, table.position, table.rotation))
    if table.kind == "wrench":
        return JointWrench(str(table.joint), table.position, table.rotation)
    found = function(table.kind, config.path, f"sensor[{k}].kind", config.allow_code)
    if inspect.isclass(found):
        name = found.__name__
        raise ConfigError(
            f"{format_value(table.kind)} is a class; name an object, such as {name.lower()} = "
            f"{name}(...) in that module"
        )
    return found

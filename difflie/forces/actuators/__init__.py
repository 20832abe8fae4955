"""Actuators: one protocol from a command and a motion to a torque, and a file for each kind."""

from .actuator import Actuator as Actuator
from .actuator import Memory as Memory
from .axis import Axis as Axis
from .current_motor import CurrentMotor as CurrentMotor
from .drive import Drive as Drive
from .motor import Motor as Motor
from .servos import PositionServo as PositionServo
from .servos import VelocityServo as VelocityServo
from .thruster import Thruster as Thruster
from .voltage_motor import VoltageMotor as VoltageMotor

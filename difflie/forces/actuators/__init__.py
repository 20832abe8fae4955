"""Actuators: one protocol from a command and a motion to a torque, and the kinds of them."""

from .actuator import Actuator as Actuator
from .actuator import Axis as Axis
from .actuator import Memory as Memory
from .controlled import DCMotor as DCMotor
from .controlled import ExtraCommand as ExtraCommand
from .controlled import PIDServo as PIDServo
from .general import ActivatedActuator as ActivatedActuator
from .general import GeneralActuator as GeneralActuator
from .motors import CurrentMotor as CurrentMotor
from .motors import Drive as Drive
from .motors import Motor as Motor
from .motors import PositionServo as PositionServo
from .motors import Thruster as Thruster
from .motors import VelocityServo as VelocityServo
from .motors import VoltageMotor as VoltageMotor
from .muscle import Muscle as Muscle
from .muscle_curves import MuscleCurves as MuscleCurves
from .orientation import OrientationServo as OrientationServo

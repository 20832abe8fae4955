"""Quantities to measure of a motion: functions f(system, q, v, u, t) with names and units.

q (nq,), v (nv,) and t () in s; u (nu,) is the command, None without control. The cost of a control,
the residual of a sensor, the reduction of a sweep and the curve of a plot all use them. All are
differentiable in forward and reverse mode, in the precision of q.
"""

from ..deprecated import names_of
from .along import Curve as Curve
from .along import along as along
from .along import curve as curve
from .bounded import Bounded as Bounded
from .clearance import Clearance as Clearance
from .clearance import ContactForce as ContactForce
from .deviation import ConfigurationDeviation as ConfigurationDeviation
from .deviation import Deviation as Deviation
from .deviation import PoseDeviation as PoseDeviation
from .deviation import StateDeviation as StateDeviation
from .effort import ActuatorEffort as ActuatorEffort
from .effort import Dissipation as Dissipation
from .effort import Effort as Effort
from .effort import Passive as Passive
from .effort import Power as Power
from .frame_motion import AngularAcceleration as AngularAcceleration
from .frame_motion import AngularVelocity as AngularVelocity
from .frame_motion import LinearVelocity as LinearVelocity
from .frame_motion import Magnetometer as Magnetometer
from .frame_motion import ProperAcceleration as ProperAcceleration
from .frame_motion import Velocimeter as Velocimeter
from .frames import Attitude as Attitude
from .frames import Distance as Distance
from .frames import FrameAxis as FrameAxis
from .frames import Origin as Origin
from .frames import Point as Point
from .frames import Pose as Pose
from .lengths import ActuatorLength as ActuatorLength
from .lengths import ActuatorVelocity as ActuatorVelocity
from .lengths import LengthOverrun as LengthOverrun
from .lengths import TransmissionLength as TransmissionLength
from .lengths import TransmissionVelocity as TransmissionVelocity
from .momentum import CenterOfMass as CenterOfMass
from .momentum import CentroidalMomentum as CentroidalMomentum
from .momentum import Energy as Energy
from .momentum import Momentum as Momentum
from .proximity import ShapeGap as ShapeGap
from .proximity import Touch as Touch
from .quantity import Entries as Entries
from .quantity import Function as Function
from .quantity import Joined as Joined
from .quantity import Labels as Labels
from .quantity import Quantity as Quantity
from .quantity import Sum as Sum
from .quantity import quantity as quantity
from .reductions import Drift as Drift
from .reductions import Final as Final
from .reductions import Greatest as Greatest
from .reductions import Least as Least
from .reductions import Mean as Mean
from .reductions import Peak as Peak
from .reductions import Reduction as Reduction
from .reductions import RootMeanSquare as RootMeanSquare
from .reductions import TimeTo as TimeTo
from .sensors import AccelerationQuantity as AccelerationQuantity
from .sensors import Accelerometer as Accelerometer
from .sensors import Gyroscope as Gyroscope
from .sensors import JointWrench as JointWrench
from .state import Command as Command
from .state import Coordinates as Coordinates
from .state import JointPosition as JointPosition
from .state import JointVelocity as JointVelocity
from .state import LimitMargin as LimitMargin
from .state import Overrun as Overrun
from .state import RotationOverrun as RotationOverrun
from .state import Time as Time
from .state import Velocities as Velocities
from .stops import StopForce as StopForce
from .subtree import SubtreeAngularMomentum as SubtreeAngularMomentum
from .subtree import SubtreeCenter as SubtreeCenter
from .subtree import SubtreeVelocity as SubtreeVelocity

__getattr__ = names_of(__name__)

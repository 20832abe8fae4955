"""Sensors: how measurements depend on the motion.

They exert no force and so are no couplings: simulations ignore them, and only comparisons of a
motion with measurements use them.
"""

from .measured import pose_readings as pose_readings
from .measured import with_sensors as with_sensors
from .sensor import Encoder as Encoder
from .sensor import Sensor as Sensor
from .sensor import to_measured as to_measured
from .sensor import to_true as to_true

"""Sensors: how measurements depend on the motion.

They exert no force and so are no couplings: simulations ignore them, and only comparisons of a
motion with measurements use them.
"""

from .attach import with_sensors as with_sensors
from .encoder import Encoder as Encoder
from .encoder import meant as meant
from .encoder import seen as seen
from .poses import pose_readings as pose_readings
from .sensor import Sensor as Sensor

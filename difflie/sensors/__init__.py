"""Sensors on a system: what they read in a state, and along a motion.

`sensor.py` has the sensors, `readings.py` their readings along a motion.
"""

from .readings import readings as readings
from .sensor import Encoder as Encoder
from .sensor import Sensor as Sensor
from .sensor import with_sensors as with_sensors

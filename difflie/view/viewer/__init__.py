"""Machines and their motions in a browser, live or as a recording in one file.

It needs the packages of the extra `viewer`, and knows no simulation: what steps a
machine live is handed in as a `Simulator`.
"""

from .drawn import LAYERS as LAYERS
from .machine import Machine as Machine
from .machine import Pull as Pull
from .machine import Settings as Settings
from .machine import Simulator as Simulator
from .recording import record as record
from .server import opened as opened
from .stage import PLACES as PLACES
from .viewer import Viewer as Viewer
from .viewer import show as show

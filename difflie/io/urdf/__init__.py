"""URDF, the Unified Robot Description Format: read and written."""

from .reader import read_urdf as read_urdf
from .writer import write_urdf as write_urdf

"""MJCF, MuJoCo's files, read by MuJoCo itself."""

from .names import body_names as body_names
from .names import joint_names as joint_names
from .reader import read_mjcf as read_mjcf
from .writing import write_mjcf as write_mjcf

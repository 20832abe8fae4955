"""SDF, the Simulation Description Format of Gazebo: models are read."""

from .reader import read_sdf as read_sdf

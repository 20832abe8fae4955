"""Systems written as MuJoCo files: one file for each part of a system, and one for an original."""

from .writer import write_mjcf as write_mjcf

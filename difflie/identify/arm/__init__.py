"""Arms: from a robot's file and its log to physically consistent numbers and a verdict."""

from .identification import ArmSettings as ArmSettings
from .identification import identify_arm as identify_arm

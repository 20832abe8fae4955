"""The machine that a configuration of any command describes."""

from __future__ import annotations

from ..io import load
from ..io.config import Config
from ..io.couplings import coupled
from ..io.study import Study
from ..system import System


def load_system(config: Config | Study) -> System:
    """The robot of [system], with the forces and actuators of the file.

    Raises as `load` does, and `ConfigError` for forces that do not suit the robot.
    """
    table, folder = config.system, config.path.parent
    loops = table.loops_file(folder)
    system = load(table.robot(folder), base=table.base, gravity=table.gravity, loops=loops)
    return coupled(system, config.couplings, config.path)

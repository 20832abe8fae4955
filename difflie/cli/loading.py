"""Shared by all commands: the machine of a configuration, and errors with their place in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..io import load
from ..io.config import Config, ConfigError
from ..io.couplings import coupled
from ..io.study import Study
from ..system import System


@contextmanager
def located(where: str) -> Iterator[None]:
    """Turns a ValueError into a `ConfigError` whose message starts with the place in a file."""
    try:
        yield
    except ValueError as error:
        raise ConfigError(f"{where}{error}") from None


def load_system(config: Config | Study) -> System:
    """The robot of [system], with the forces and actuators of the file.

    Raises as `load` does, and `ConfigError` for forces that do not suit the robot.
    """
    table, folder = config.system, config.path.parent
    loops = table.loops_file(folder)
    system = load(table.robot(folder), base=table.base, gravity=table.gravity, loops=loops)
    return coupled(system, config.couplings, config.path)

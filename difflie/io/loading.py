"""The machine and the state of a configuration, and errors with their place in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..constraints import lock
from ..system import System
from ..system.arguments import checked, on_manifold
from ..system.validation import format_value, nearest
from . import load
from .config import InitialTable, SystemTable
from .couplings import Force, coupled
from .toml import ConfigError


class Described(Protocol):
    """A configuration with a machine."""

    @property
    def path(self) -> Path: ...
    @property
    def system(self) -> SystemTable: ...
    @property
    def couplings(self) -> dict[str, Force]: ...


@contextmanager
def located(where: str) -> Iterator[None]:
    """Turns a ValueError into a `ConfigError` whose message starts with the place in a file."""
    try:
        yield
    except ValueError as error:
        raise ConfigError(f"{where}{error}") from None


def load_system(config: Described, *folders: Path) -> System:
    """The robot of [system], with its locked joints and the forces and actuators of the file.

    folders: where its file may be, if not beside the configuration. Raises as `load` does, and
    `ConfigError` for joints and forces that do not suit the robot.
    """
    table, folder = config.system, config.path.parent
    robot, loops = table.robot((folder, *folders)), table.loops_file(folder)
    system = load(robot, base=table.base, gravity=table.gravity, loops=loops)
    if table.locked:
        with located(f"{config.path}: system.locked: "):
            system = lock(system, table.locked)
    return coupled(system, config.couplings, config.path)


def state_of(system: System, table: InitialTable, where: str) -> tuple[Any, Any]:
    """The state (q (nq,), v (nv,)) that a table gives as a whole, or for single joints by name.

    All other joints are at zero and at rest. Raises `ConfigError`, which begins with the place
    `where`, for a wrong size, an unknown joint (with the nearest one), and values not finite.
    """
    t = system.topology
    q = numbers_of(f"{where}.q", table.q, system.nq, np.asarray(system.neutral()))
    v = numbers_of(f"{where}.v", table.v, system.nv)
    for key, values, vector, starts in (
        ("joints", table.joints, q, t.coordinate_start),
        ("rates", table.rates, v, t.velocity_start),
    ):
        scalar = {
            t.joints[b]: int(starts[b])
            for b in t.coordinate_joints
            if t.manifolds[b].plain and len(t.kinds[b]) == 1
        }
        for name, value in values.items():
            if name not in scalar:
                raise ConfigError(
                    f"{where}.{key}: {system.name} has no joint {format_value(name)} with "
                    f"one degree of freedom{nearest(name, scalar)}"
                )
            if not np.isfinite(value):
                raise ConfigError(f"{where}.{key}.{name} is {value}; it must be finite")
            vector[scalar[name]] = value
    try:
        q = on_manifold(system, f"{where}.q: {system.name}", "q", q)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    with located(f"{where}.q: "):
        q, v = checked(system, q=(q.tolist(), q.shape), v=(v.tolist(), v.shape))
    return q, v


def numbers_of(where: str, given: Sequence[float] | None, size: int, default: Any = 0.0) -> NDArray:
    """The numbers (size,) that are given, or the default.

    Raises `ConfigError`, which begins with the place `where`, for another size, and values that are
    not finite.
    """
    if given is None:
        return np.array(np.broadcast_to(default, size), float)
    if len(given) != size:
        raise ConfigError(f"{where} has {len(given)} numbers; {size} are needed")
    if not np.all(np.isfinite(given)):
        raise ConfigError(f"{where} is {given}; all must be finite")
    return np.array(given, float)

"""Simulations described in TOML files.

    [system]                          [simulation]
    file = "robot.urdf"               dt = 1e-3                # s
    base = "fixed"                    steps = 2000
    gravity = [0.0, 0.0, -9.81]       method = "RKMK4"
                                      save_every = 10
    [initial]
    q = [0.0, ...]                    [control]
    v = [0.0, ...]                    effort = [0.0, ...]      # N m or N, held
                                      stiffness = [...]        # towards the target
    [initial.joints]                  damping = [...]
    elbow = 0.3                       target = [...]

    [[position_servo]]                # one such table for each actuator: [[drive]], [[motor]] ...
    joint = "elbow"                   # their control is
    kp = 300.0                        # [control]
    max_torque = 40.0                 # command = [0.5]        # one number each, held

    [[spring]]                        # one such table for each force, named after its class;
    path = [                          # difflie/io/couplings.py says how, also for one's own
      {body = "upper arm", point = [0.1, 0.0, 0.0]},
      {point = [0.0, 0.0, 1.0]},      # of the world
    ]
    stiffness = 200.0                 # N/m
    rest_length = 0.3                 # m

    [[contact]]                       # of the points behind the first with a plane through it
    path = [{point = [0.0, 0.0, 0.0]}, {body = "hand", point = [0.0, 0.0, 0.1]}]
    normal = [0.0, 0.0, 1.0]          # or of two spheres: radii = [0.1, 0.2]
    stiffness = 1e5                   # N/m^exponent; also exponent, dissipation (s/m), smoothing
    friction = 0.6                    # (m), slip_velocity (m/s), radius (m) of points at a plane

    [[joint_stop]]                    # at the limits of all joints, or of those named
    joints = ["elbow"]
    stiffness = 500.0                 # also exponent, dissipation, smoothing

    [[constraint]]                    # closes a loop; difflie/io/loops.py has the types and keys
    type = "SphericalConstraint"
    first = {body = "rod", position = [0.3, 0.0, 0.0]}
    second = {position = [1.0, 0.0, 0.2]}

Constraints may also stand in a file of their own, system.loops. Where there are some the initial
state is a guess, which is assembled.

Every table but `system` may be left out, and every key but `system.file` and those of forces that
have no default in their class. A key that is unknown, of a wrong type or out of range is one
`ConfigError` that names the file, the key and the fix.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..constraints import Constraint
from ..system import ModelError
from ..system.validation import shown
from .couplings import OWN, TABLES, Force, couplings_of
from .files import absence, present
from .loops import constraints_of
from .tables import ConfigError, instances, read_tables

PACKAGE_DATA = Path(__file__).resolve().parent.parent / "data"
_PACKAGE = "package:"
_MOST_ROWS = 10_000_000  # of a few hundred numbers some memories can hold


@dataclass(frozen=True)
class SystemTable:
    """[system]: a robot file, relative to the configuration; "package:NAME" is a shipped one.

    base, gravity and loops, a file that is relative too, as in `difflie.load`.
    """

    file: str
    base: str | None = None
    gravity: list[float] | None = None
    loops: str | None = None

    def robot(self, folder: Path) -> Path:
        """The robot file, with a relative path taken from the configuration's folder."""
        if self.file.startswith(_PACKAGE):
            return PACKAGE_DATA / f"{self.file.removeprefix(_PACKAGE)}.urdf"
        return folder / self.file

    def loops_file(self, folder: Path) -> Path | None:
        """The file of loops, likewise."""
        return None if self.loops is None else folder / self.loops

    def check(self, path: Path) -> None:
        """Raises `ConfigError`, in the name of the configuration at the path, for what is unfit."""
        for key, value, good, needed in (
            ("base", self.base, self.base in (None, "fixed", "free"), '"fixed" or "free"'),
            (
                "gravity",
                self.gravity,
                self.gravity is None or len(self.gravity) == 3,
                "three numbers (m/s^2)",
            ),
        ):
            if not good:
                raise ConfigError(f"{path}: system.{key} is {shown(value)}; it must be {needed}")
        robot = self.robot(path.parent)
        if not present(robot) or robot.is_dir():
            shipped = sorted(p.stem for p in PACKAGE_DATA.glob("*.urdf"))
            raise ConfigError(
                f"{path}: system.file: there is no file {robot}{absence(robot)}; give a path "
                "from the "
                "configuration's folder, or one of the shipped "
                f"{', '.join(repr(_PACKAGE + name) for name in shipped)}"
            )


@dataclass(frozen=True)
class InitialTable:
    """[initial]: the whole q and v, or single joints by name (rad or m; rad/s or m/s)."""

    q: list[float] | None = None
    v: list[float] | None = None
    joints: dict[str, float] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class SimulationTable:
    """[simulation]: dt in s."""

    dt: float = 1e-3
    steps: int = 1000
    method: str = "RKMK4"
    save_every: int = 1


@dataclass(frozen=True)
class ControlTable:
    """[control]: tau = effort + stiffness (target - q) - damping v, one entry for each velocity.

    The spring towards the target acts on joints whose coordinates are plain numbers. command: what
    a system with actuators has in place of these, one entry for each, in their units.
    """

    command: list[float] | None = None
    effort: list[float] | None = None
    stiffness: list[float] | None = None
    damping: list[float] | None = None
    target: list[float] | None = None


@dataclass(frozen=True)
class Config:
    """A whole configuration file; path is where it was read.

    couplings: its forces, by the names of their tables, "spring[0]".
    """

    path: Path
    system: SystemTable
    initial: InitialTable
    simulation: SimulationTable
    control: ControlTable
    constraint: list[Constraint]
    couplings: dict[str, Force]


def read_config(path: str | os.PathLike[str]) -> Config:
    """The configuration in a TOML file.

    Raises `ConfigError` for a missing or broken file, an unknown or missing key (with the nearest
    known one) and a value of a wrong type or out of range.
    """
    path = Path(path)
    tables = read_tables(path)
    known: dict[str, type] = {
        "system": SystemTable,
        "initial": InitialTable,
        "simulation": SimulationTable,
        "control": ControlTable,
    }
    try:
        loops = constraints_of(tables.pop("constraint", []), path)
    except ModelError as error:
        raise ConfigError(str(error)) from None
    couplings = couplings_of(tables, path)
    parts = instances(path, tables, known, {}, others=("constraint", *OWN, *TABLES))
    config = Config(path=path, constraint=loops, couplings=couplings, **parts)
    _check(config)
    return config


def _check(config: Config) -> None:
    def refuse(key: str, value: Any, needed: str) -> None:
        raise ConfigError(f"{config.path}: {key} is {shown(value)}; it must be {needed}")

    s = config.simulation
    if not 1e-12 <= s.dt <= 1e12:
        refuse("simulation.dt", s.dt, "positive, from 1e-12 to 1e12 (s)")
    for key, value in (("steps", s.steps), ("save_every", s.save_every)):
        if not 1 <= value < 2**31 - 1:
            refuse(f"simulation.{key}", value, "a whole number from 1 to 2147483646")
    if s.save_every > s.steps:
        refuse("simulation.save_every", s.save_every, f"at most simulation.steps, {s.steps}")
    if s.steps // s.save_every > _MOST_ROWS:
        needed = f"{-(-s.steps // _MOST_ROWS)} or more: of {s.steps} steps too many are kept"
        refuse("simulation.save_every", s.save_every, needed)
    config.system.check(config.path)
    c = config.control
    if (c.stiffness is None) != (c.target is None):
        refuse("control.stiffness", c.stiffness, "given together with control.target")

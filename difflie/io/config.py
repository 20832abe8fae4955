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

    [[spring]]                        # one such table for each; also [[tension_spring]], with or
    path = [                          # without smoothing (m), [[damper]] and [[tension_damper]]
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

Every table but `system` may be left out, and every key but `system.file`, those of springs and
dampers, and of contacts and stops the path, the normal or radii, and the stiffness. A key that is
unknown, of a wrong type or out of range is one `ConfigError` that names the file, the key and the
mend.
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..system.validation import nearest

PACKAGE_DATA = Path(__file__).resolve().parent.parent / "data"
_PACKAGE = "package:"


class ConfigError(ValueError):
    """A configuration that cannot be run; the message names the file, the key and the mend."""


@dataclass(frozen=True)
class SystemTable:
    """[system]: a robot file, relative to the configuration; "package:NAME" is a shipped one.

    base and gravity as in `difflie.load`.
    """

    file: str
    base: str | None = None
    gravity: list[float] | None = None


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

    The spring towards the target acts on joints whose coordinates are plain numbers.
    """

    effort: list[float] | None = None
    stiffness: list[float] | None = None
    damping: list[float] | None = None
    target: list[float] | None = None


@dataclass(frozen=True)
class SpringTable:
    """[[spring]]: stiffness in N/m and rest_length in m along a path of two points or more."""

    path: list[dict[str, Any]]
    stiffness: float
    rest_length: float


@dataclass(frozen=True)
class TensionSpringTable(SpringTable):
    """[[tension_spring]]: a rope, exact or with a smoothing length in m."""

    smoothing: float | None = None


@dataclass(frozen=True)
class DamperTable:
    """[[damper]]: damping in N s/m along a path of two points or more."""

    path: list[dict[str, Any]]
    damping: float


@dataclass(frozen=True, kw_only=True)
class ContactTable:
    """[[contact]]: with a plane, which has a normal, or of two spheres, which have radii.

    Numbers as of `difflie.PlaneContact` and `difflie.SphereContact`.
    """

    path: list[dict[str, Any]]
    stiffness: float
    normal: list[float] | None = None
    radius: float | None = None
    radii: list[float] | None = None
    exponent: float | None = None
    dissipation: float | None = None
    friction: float | None = None
    slip_velocity: float | None = None
    smoothing: float | None = None


@dataclass(frozen=True, kw_only=True)
class JointStopTable:
    """[[joint_stop]]: numbers as of `difflie.JointStop`; without joints, at all limits."""

    stiffness: float
    joints: list[str] | None = None
    exponent: float | None = None
    dissipation: float | None = None
    smoothing: float | None = None


@dataclass(frozen=True)
class TensionDamperTable(DamperTable):
    """[[tension_damper]]: a rope's, taut from rest_length in m on; exact, or with both smoothings.

    smoothing in m, rate_smoothing in m/s.
    """

    rest_length: float = 0.0
    smoothing: float | None = None
    rate_smoothing: float | None = None


@dataclass(frozen=True)
class Config:
    """A whole configuration file; path is where it was read."""

    path: Path
    system: SystemTable
    initial: InitialTable
    simulation: SimulationTable
    control: ControlTable
    spring: list[SpringTable]
    tension_spring: list[TensionSpringTable]
    damper: list[DamperTable]
    contact: list[ContactTable]
    joint_stop: list[JointStopTable]
    tension_damper: list[TensionDamperTable]

    @property
    def system_file(self) -> Path:
        """The robot file, with a relative path taken from the configuration's folder."""
        name = self.system.file
        if name.startswith(_PACKAGE):
            return PACKAGE_DATA / f"{name.removeprefix(_PACKAGE)}.urdf"
        return self.path.parent / name


def read_config(path: str | os.PathLike[str]) -> Config:
    """The configuration in a TOML file.

    Raises `ConfigError` for a missing or broken file, an unknown or missing key (with the nearest
    known one) and a value of a wrong type or out of range.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            tables = tomllib.load(file)
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: this is a directory; name a .toml file in it") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: this is not TOML: {error}") from None
    known = {
        "system": SystemTable,
        "initial": InitialTable,
        "simulation": SimulationTable,
        "control": ControlTable,
    }
    repeated = {
        "spring": SpringTable,
        "tension_spring": TensionSpringTable,
        "damper": DamperTable,
        "contact": ContactTable,
        "joint_stop": JointStopTable,
        "tension_damper": TensionDamperTable,
    }
    for name, table in tables.items():
        if name not in known and name not in repeated:
            near = nearest(name, [*known, *repeated])
            raise ConfigError(f"{path}: there is no table [{name}]{near}")
        if name in known and not isinstance(table, dict):
            raise ConfigError(f"{path}: {name} must be a table: write [{name}]")
        if name in repeated and not _is_list_of_tables(table):
            raise ConfigError(f"{path}: {name} must be a list of tables: write [[{name}]]")
    parts: dict[str, Any] = {
        name: _table(cls, tables.get(name, {}), path, name) for name, cls in known.items()
    }
    for name, cls in repeated.items():
        each = enumerate(tables.get(name, []))
        parts[name] = [_table(cls, table, path, f"{name}[{i}]") for i, table in each]
    config = Config(path=path, **parts)
    _check(config)
    return config


def _table(cls: type, given: dict[str, Any], path: Path, name: str) -> Any:
    fields = {f.name: f for f in dataclasses.fields(cls)}
    for key in given:
        if key not in fields:
            raise ConfigError(f"{path}: [{name}] has no key {key!r}{nearest(key, fields)}")
    for f in fields.values():
        required = f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        if required and f.name not in given:
            raise ConfigError(f"{path}: [{name}] lacks the key {f.name!r}")
    values = {}
    for key, value in given.items():
        kind, check = _KINDS[str(fields[key].type)]
        if not check(value):
            raise ConfigError(f"{path}: {name}.{key} is {value!r}; it must be {kind}")
        values[key] = value
    return cls(**values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and all(_is_number(x) for x in value)


def _is_list_of_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(x, dict) for x in value)


def _is_path(value: Any) -> bool:
    return _is_list_of_tables(value) and all(
        set(x) in ({"point"}, {"point", "body"})
        and isinstance(x.get("body", ""), str)
        and _is_list(x["point"])
        and len(x["point"]) == 3
        for x in value
    )


_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "str": ("a text", lambda v: isinstance(v, str)),
    "str | None": ("a text", lambda v: isinstance(v, str)),
    "int": ("a whole number", lambda v: isinstance(v, int) and not isinstance(v, bool)),
    "float": ("a number", _is_number),
    "float | None": ("a number", _is_number),
    "list[dict[str, Any]]": (
        'a list of points {body = "NAME", point = [x, y, z]}, those of the world without a body',
        _is_path,
    ),
    "list[str] | None": (
        "a list of texts",
        lambda v: isinstance(v, list) and all(isinstance(x, str) for x in v),
    ),
    "list[float]": ("a list of numbers", _is_list),
    "list[float] | None": ("a list of numbers", _is_list),
    "dict[str, float]": (
        "a table of numbers",
        lambda v: isinstance(v, dict) and all(_is_number(x) for x in v.values()),
    ),
}


def _check(config: Config) -> None:
    def refuse(key: str, value: Any, needed: str) -> None:
        raise ConfigError(f"{config.path}: {key} is {value!r}; it must be {needed}")

    s = config.simulation
    if not 0 < s.dt < float("inf"):
        refuse("simulation.dt", s.dt, "positive and finite (s)")
    for key, value in (("steps", s.steps), ("save_every", s.save_every)):
        if value < 1:
            refuse(f"simulation.{key}", value, "1 or more")
    if config.system.base not in (None, "fixed", "free"):
        refuse("system.base", config.system.base, '"fixed" or "free"')
    if config.system.gravity is not None and len(config.system.gravity) != 3:
        refuse("system.gravity", config.system.gravity, "three numbers (m/s^2)")
    if not config.system_file.is_file():
        shipped = sorted(p.stem for p in PACKAGE_DATA.glob("*.urdf"))
        raise ConfigError(
            f"{config.path}: system.file: there is no file {config.system_file}; give a path from "
            f"the configuration's folder, or one of the shipped "
            f"{', '.join(repr(_PACKAGE + name) for name in shipped)}"
        )
    for i, contact in enumerate(config.contact):
        if (contact.normal is None) == (contact.radii is None):
            raise ConfigError(
                f"{config.path}: [contact[{i}]] needs either the key 'normal' of a plane or the "
                "key 'radii' of two spheres"
            )
        if contact.radii is not None and contact.radius is not None:
            refuse(f"contact[{i}].radius", contact.radius, "left out where there are radii")
    c = config.control
    if (c.stiffness is None) != (c.target is None):
        refuse("control.stiffness", c.stiffness, "given together with control.target")
    for i, d in enumerate(config.tension_damper):
        if (d.smoothing is None) != (d.rate_smoothing is None):
            key = f"tension_damper[{i}].smoothing"
            refuse(key, d.smoothing, "given together with rate_smoothing")

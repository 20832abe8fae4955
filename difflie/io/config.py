"""Simulations described in TOML files.

    [system]                          [simulation]
    file = "robot.urdf"               dt = 1e-3                # s
    base = "fixed"                    steps = 2000             # or duration = 2.0, in s
    gravity = [0.0, 0.0, -9.81]       method = "RKMK4"
    locked = {finger = 0.02}          save_every = 10
    strict = true                     # an error for what is not modelled
    frames.tcp = {body = "hand", position = [0.0, 0.0, 0.1]}   # m; axis or rotation (rad)
    [initial]
    state = "home"                    # a keyframe of the file, with its command; or
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

    [shapes.floor]                    # shapes and which of them touch: io/contact_tables.py; those
    type = "Plane"                    # of the file touch with contacts = true in [system]
    [[touching]]
    first = "floor"
    second = "*foot*"

    [[joint_stop]]                    # at the limits of all joints, or of those named
    joints = ["elbow"]
    stiffness = 500.0                 # also exponent, dissipation, smoothing

    [[constraint]]                    # closes a loop; its types and keys: difflie/io/couplings.py
    type = "SphericalConstraint"
    first = {body = "rod", position = [0.3, 0.0, 0.0]}
    second = {position = [1.0, 0.0, 0.2]}

Constraints may also be in a file of their own, system.loops. With constraints the initial state is
a guess, from which one is assembled.

All tables but `system` are optional, and all keys but `system.file` and those of forces that have
no default in their class. Keys that are unknown, of a wrong type or out of range are reported all
at once, in a `ConfigError` with a line for each, which names the file, the key and the fix.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from ..collision import Shape
from ..constraints import Constraint
from ..system.durations import step_count
from ..system.fields import number
from ..system.frame import Frame
from ..system.validation import format_value
from . import examples
from .contact_tables import TouchingTable, shapes_of, touching_of
from .couplings import OWN, TABLES, Force, constraints_of, couplings_of
from .files import absence, present
from .modules import check_code
from .tables import read_file
from .toml import ConfigError as ConfigError
from .toml import Faults, read_toml

_PACKAGE = "package:"
# The tables by which a file is known to be for a command; a sweep has [simulation] besides.
_MARKS = {"sweep": "sweep", "horizon": "control", "run": "identify", "simulation": "run"}
_MOST_ROWS = 10_000_000  # of a few hundred numbers some memories can hold


def _is_there(file: str, folders: Sequence[Path]) -> Iterator[str]:
    if file.startswith(_PACKAGE):
        try:
            examples.path(file.removeprefix(_PACKAGE))
        except ValueError as error:
            yield f"file: {error}"
        return
    places = SystemTable(file).places(folders)
    if not any(map(_is_file, places)):
        near = next(filter(None, map(absence, places)), "")
        yield (
            f"file: there is no file {' or '.join(map(str, places))}{near}; give a path from the "
            "configuration's folder (or, of `difflie identify`, from that of --data), or a shipped "
            f"machine such as '{_PACKAGE}arm7', which `difflie examples` lists"
        )


def _is_file(path: Path) -> bool:
    return present(path) and not path.is_dir()


@dataclass(frozen=True)
class SystemTable:
    """[system]: a robot file, relative to the configuration; "package:NAME" is a shipped one.

    base, gravity (3,) in m/s^2 and loops, also a relative path, as in `difflie.load`. locked:
    joints that are held at coordinates in rad or m, as by `difflie.lock`. frames: named frames on
    bodies, as of `System.with_frames`, in tables [system.frames.NAME]. strict: whether the robot
    file may have nothing that changes the motion and is not modelled. actuators: whether those of
    an MJCF file are read, and control.command is MuJoCo's `ctrl`. contacts: whether the shapes of
    the file touch; disabled: an SRDF file, also a relative path, of links of a URDF file that do
    not. limits: whether the limits of joints and tendons of an MJCF file are stops.
    """

    file: str
    base: Literal["fixed", "free"] | None = None
    gravity: Annotated[list[float], number(unit="m/s^2", shape=(3,))] | None = None
    loops: str | None = None
    locked: dict[str, Annotated[float, number(unit="rad or m")]] = field(default_factory=dict)
    frames: dict[str, Frame] = field(default_factory=dict)
    strict: bool = False
    actuators: bool = False
    contacts: bool = False
    disabled: str | None = None
    limits: bool = False
    conditions = (_is_there,)

    def places(self, folders: Sequence[Path]) -> list[Path]:
        """Where the robot file may be: a relative path is taken from each of the folders."""
        if self.file.startswith(_PACKAGE):
            return [examples.path(self.file.removeprefix(_PACKAGE))]
        return list(dict.fromkeys(folder / self.file for folder in folders))

    def robot(self, folders: Sequence[Path]) -> Path:
        """The robot file: the first of its `places` where there is one."""
        places = self.places(folders)
        return next(filter(_is_file, places), places[0])

    def disabled_file(self, folder: Path) -> Path | None:
        """The SRDF file, with a relative path taken from the configuration's folder."""
        return None if self.disabled is None else folder / self.disabled

    def loops_file(self, folder: Path) -> Path | None:
        """The file of loops, with a relative path taken from the configuration's folder."""
        return None if self.loops is None else folder / self.loops


@dataclass(frozen=True)
class InitialTable:
    """[initial]: q (nq,) and v (nv,) as a whole, or single joints by name.

    state: a named state of the system, such as a keyframe of its file, in which what follows is
    changed. joints: coordinates in rad or m, rates in rad/s or m/s; all others are zero, or as in
    the state.
    """

    q: list[float] | None = None
    v: list[float] | None = None
    joints: dict[str, Annotated[float, number(unit="rad or m")]] = field(default_factory=dict)
    rates: dict[str, Annotated[float, number(unit="rad/s or m/s")]] = field(default_factory=dict)
    state: str | None = None


def _keeps_rows(given_steps: int | None, save_every: int) -> Iterator[str]:
    if given_steps is None:
        return
    if save_every > given_steps:
        yield f"save_every is {save_every}; it must be at most simulation.steps, {given_steps}"
    elif given_steps // save_every > _MOST_ROWS:
        least = -(-given_steps // _MOST_ROWS)
        yield (
            f"save_every is {save_every}; it must be {least} or more: of {given_steps} steps too "
            "many are kept"
        )


def _lasts(
    dt: float, given_steps: int | None, duration: float | None, save_every: int
) -> Iterator[str]:
    try:
        steps = step_count("", dt, given_steps, duration)
    except ValueError as error:
        yield str(error)
    else:
        yield from _keeps_rows(steps, save_every) if given_steps is None else ()


@dataclass(frozen=True)
class SimulationTable:
    """[simulation]: the time step dt in s, the number of steps, and the method by its name.

    duration: in s, in place of steps; a whole number of dt. save_every: save every k-th state. The
    run ends with the last that is saved.
    """

    dt: Annotated[float, number(unit="s", positive=True, least=1e-12, most=1e12)] = 1e-3
    given_steps: Annotated[int, number(least=1)] | None = field(
        default=None, metadata={"key": "steps"}
    )
    duration: Annotated[float, number(unit="s", positive=True)] | None = None
    method: str = "RKMK4"
    save_every: Annotated[int, number(least=1)] = 1
    conditions = _keeps_rows, _lasts

    @property
    def steps(self) -> int:
        """The number of steps, by default 1000."""
        return step_count("simulation.", self.dt, self.given_steps, self.duration)

    @property
    def saved(self) -> int:
        """How many steps there are to the last state that is saved, with which a run ends."""
        return self.steps - self.steps % self.save_every

    @property
    def left_out(self) -> str:
        """Which steps are not made, in a sentence; "" for none."""
        if self.saved == self.steps:
            return ""
        many = f"simulation.steps is {self.steps}"
        if self.duration is not None:
            many = f"simulation.duration is {self.duration:g} s, {self.steps} steps,"
        return (
            f"{many} and save_every {self.save_every}: the run ends with step {self.saved}, the "
            "last that is saved"
        )


def _has_both(stiffness: Any, target: Any) -> Iterator[str]:
    if (stiffness is None) != (target is None):
        said = format_value(stiffness)
        yield f"stiffness is {said}; it must be given together with control.target"


@dataclass(frozen=True)
class ControlTable:
    """[control]: tau = effort + stiffness (target - q) - damping v, one entry for each velocity.

    effort in N m or N, stiffness in N m/rad or N/m, damping in N m s/rad or N s/m, target in rad or
    m. The spring towards the target acts on joints with plain coordinates. command: for a system
    with actuators instead of these, one entry for each, in their units.
    """

    command: list[float] | None = None
    effort: Annotated[list[float], number(unit="N m or N", shape=None)] | None = None
    stiffness: Annotated[list[float], number(unit="N m/rad or N/m", shape=None)] | None = None
    damping: Annotated[list[float], number(unit="N m s/rad or N s/m", shape=None)] | None = None
    target: Annotated[list[float], number(unit="rad or m", shape=None)] | None = None
    conditions = (_has_both,)


@dataclass(frozen=True, kw_only=True)
class MachineFile:
    """What all files on a machine have; path is where one was read.

    command: that of `difflie` which takes such files. folder: that of other files which it names,
    if they are not beside it. allow_code: whether modules that it names may be imported. text: its
    tables as they are. couplings: its actuators and other forces, by the names of their tables,
    "spring[0]". shapes: those of [shapes.NAME]; touching: which touch.
    """

    command: ClassVar[str]
    path: Path
    folder: Path
    allow_code: bool
    text: dict[str, Any]
    system: SystemTable | None
    couplings: dict[str, Force]
    shapes: dict[str, Shape]
    touching: list[TouchingTable]

    @property
    def robot(self) -> Path:
        """The robot file of [system]."""
        assert self.system is not None
        return self.system.robot((self.path.parent, self.folder))


@dataclass(frozen=True, kw_only=True)
class MotionFile(MachineFile):
    """What all files on motions from a start have besides."""

    initial: InitialTable
    constraint: list[Constraint]


@dataclass(frozen=True, kw_only=True)
class Config(MotionFile):
    """A whole configuration file."""

    command = "run"
    simulation: SimulationTable
    control: ControlTable


File = TypeVar("File", bound=MachineFile)


def read_machine_file(
    cls: type[File],
    path: str | os.PathLike[str],
    allow_code: bool,
    own: Callable[[dict[str, Any], Faults], dict[str, Any]] = lambda tables, faults: {},
    folder: Path | None = None,
) -> File:
    """A TOML file on a machine as an instance of a class, see `read_file`.

    own: reads the tables of the file that are no field of the class by itself, by their names.
    Raises as `read_config`.
    """
    path = Path(path)
    folder = path.parent if folder is None else folder
    tables, faults = read_toml(path), Faults(path, ConfigError, folder)
    _check_command(cls, tables, path)
    check_code(tables, path, allow_code)
    parts = own(tables, faults)
    if issubclass(cls, MotionFile):
        parts["constraint"] = constraints_of(tables, faults)
    return read_file(
        cls,
        tables,
        faults,
        (*parts, *OWN, *TABLES, "shapes", "touching"),
        path=path,
        folder=folder,
        allow_code=allow_code,
        text=tables,
        couplings=couplings_of(tables, faults, allow_code),
        shapes=shapes_of(tables, faults),
        touching=touching_of(tables, faults),
        **parts,
    )


def _check_command(cls: type[MachineFile], tables: dict[str, Any], path: Path) -> None:
    """Raises `ConfigError` for a file that is for another command."""
    mark = next((name for name in _MARKS if name in tables), None)
    if mark is not None and _MARKS[mark] != cls.command:
        table = f"[[{mark}]]" if isinstance(tables[mark], list) else f"[{mark}]"
        raise ConfigError(f"{path}: this file is for `difflie {_MARKS[mark]}`, as its {table} says")


def read_config(path: str | os.PathLike[str], *, allow_code: bool = False) -> Config:
    """The configuration in a TOML file.

    allow_code: whether Python modules that the file names may be imported, which runs them.
    Raises `ConfigError` for a missing or broken file, one that names modules if that is not
    allowed, and otherwise with all faults at once:
    unknown or missing keys (with the nearest known one) and values of a wrong type or out of range.
    """
    return read_machine_file(Config, path, allow_code)

"""The tables of an identification file: a class for each, whose fields are its keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from ..quantities import Accelerometer, Gyroscope, Origin, Pose
from ..system.fields import number
from ..system.frame import Frame
from ..system.validation import format_value, nearest
from .consistency import Distance
from .recordings import Quantity


@dataclass(frozen=True)
class ArmTable:
    """[arm]: as of `difflie.identify.ArmSettings`.

    Without [[parameter]] all bodies and joints of an arm are found, from measured torques, near the
    numbers of its file, as `difflie.identify.identify_arm` does; all of these may be left out:

        [arm]                                 [nearness]               # to the file's numbers
        offsets = true                        weight = 100.0           # else chosen on blocks of
        stribeck = false                      blocks = 5               # rows that are held out
        load_friction = true                  distance = "geometric"   # or "entropic"
        commands = true                       # tau are those of actuators, not torques
        bandwidth = 2.0                       # Hz, of the motion
                                              [[rate_coupling]]        # a motor that turns with
                                              joints = ["j5", "j6"]    # a sum of joint rates
                                              ratios = [1.0, 1.0]
    """

    offsets: bool = True
    stribeck: bool | None = None
    load_friction: bool = False
    commands: bool = False
    bandwidth: Annotated[float, number(unit="Hz", positive=True)] | None = None


@dataclass(frozen=True)
class NearnessTable:
    """[nearness]: as of `difflie.identify.ArmSettings`; the weight as of `NominalPrior`, too."""

    weight: Annotated[float, number(positive=True)] | None = None
    distance: Distance = "entropic"
    blocks: Annotated[int, number(least=2, most=100)] = 5


@dataclass(frozen=True)
class RateCouplingTable:
    """[[rate_coupling]]: as of `difflie.identify.RateCoupling`."""

    joints: list[str]
    ratios: list[float] = field(default_factory=list)


Seconds = Annotated[float, number(unit="s", positive=True)]
Substeps = Annotated[int, number(least=1, most=1000)]
Torques = Annotated[float | list[float], number(unit="N m or N", shape=None, positive=True)]
Positions = Annotated[float | list[float], number(unit="rad or m", shape=None, positive=True)]
Velocities = Annotated[float | list[float], number(unit="rad/s or m/s", shape=None, positive=True)]


@dataclass(frozen=True)
class FitTable:
    """[fit]: the error, its standard deviations, and when to stop.

    torque (N m or N), position (rad or m) and velocity (rad/s or m/s): one deviation for all, or
    one for each velocity. positions: whether q counts in motions; false where readings of other
    sensors are to find the motion, and q gives its starts alone. unactuated: that of the torques at
    dofs without an actuator; without it these are left out. window: of motions, in s; states:
    whether the initial states of windows are estimated; substeps: of each row. loss, with its limit
    in deviations. leave_out: whether to cross-validate: each run in turn is judged by a fit to the
    others.
    """

    error: Literal["torque", "motion", "both"] = "torque"
    torque: Torques = 1.0
    unactuated: Torques | None = None
    position: Positions = 1.0
    positions: bool = True
    velocity: Velocities | None = None
    window: Seconds | None = None
    states: bool = False
    substeps: Substeps = 1
    loss: Literal["squares", "huber", "cauchy"] = "squares"
    limit: Annotated[float, number(positive=True)] = 2.0
    steps: Annotated[int, number(positive=True)] = 100
    tolerance: Annotated[float, number(positive=True, least=0, most=1e-2)] = 1e-8
    leave_out: bool = False


@dataclass(frozen=True)
class ValidationTable:
    """[validation]: windows (s) of the motions that are simulated with measured torques.

    observe: the rows of a window, two or more, that determine its initial state and are not judged;
    without it the motion starts at the first row. substeps: of each row.
    """

    window: Seconds = 0.5
    observe: Annotated[int, number(least=2)] | None = None
    substeps: Substeps = 1


ON_BODIES: dict[str, Callable[[Frame], Any]] = {
    "accelerometer": Accelerometer,
    "gyroscope": Gyroscope,
    "point": Origin,
    "pose": Pose,
}
# What each kind stands on.
_STANDS_ON = {**dict.fromkeys(ON_BODIES, "body"), "wrench": "joint"}

_Three = Annotated[list[float], number(shape=(3,))]


def _zero() -> list[float]:
    return [0.0, 0.0, 0.0]


def _has_kind(kind: str) -> Iterator[str]:
    if kind not in _STANDS_ON and ":" not in kind:
        others = f"; write one of {', '.join(_STANDS_ON)}, or module:function"
        hint = nearest(kind, _STANDS_ON) or others
        yield f"kind is {format_value(kind)}, which is not known{hint}"


def _has_place(
    kind: str,
    body: str | None,
    joint: str | None,
    position: list[float],
    rotation: list[float],
) -> Iterator[str]:
    given = {"body": body, "joint": joint}
    for key, value in given.items():
        if _STANDS_ON.get(kind) == key and value is None:
            yield f"{key} is missing; a sensor of kind {format_value(kind)} needs it"
        if value is not None and _STANDS_ON.get(kind) != key:
            said = format_value(value)
            yield f"{key} is {said}; it must be left out of kind {format_value(kind)}"
    if kind not in _STANDS_ON and (any(position) or any(rotation)):
        yield f"position and rotation must be left out of kind {format_value(kind)}"
    if kind == "point" and any(rotation):
        yield f"rotation is {rotation}; it must be left out of a point"


def _has_column(columns: list[str]) -> Iterator[str]:
    if not columns:
        yield "columns is []; it must be the names of one column or more"


@dataclass(frozen=True)
class SensorTable:
    """[[sensor]]: as of `difflie.identify.Sensor`, with its columns and standard deviations.

        [[sensor]]                            [[sensor]]
        name = "imu"                          name = "hand"
        kind = "accelerometer"                kind = "pose"                # motion capture
        body = "fore arm"                     body = "hand"
        position = [0.1, 0.0, 0.02]           columns = ["qw", "qx", "qy", "qz", "x", "y", "z"]
        rotation = [0.0, 0.0, 1.5708]         deviation = [0.01, 0.01, 0.01, 0.002, 0.002, 0.002]
        columns = ["ax", "ay", "az"]
        deviation = 0.05                      # in the sensor's unit, one or one for each column

    Kinds with a `body`, and position (m) and rotation (a rotation vector in rad) of the sensor on
    it: "accelerometer" (m/s^2) and "gyroscope" (rad/s), both in the sensor's axes; "point" (m), in
    the world, without a rotation; "pose", with six columns, a rotation vector (rad) and a position
    (m), or seven, a quaternion (w, x, y, z) and a position. With a `joint`, which may be fixed:
    "wrench", three moments (N m) and three forces (N) in the sensor's axes. Of one's own: kind =
    "module:function", a function of (system, q, v, u, t) in module.py beside the file, or a
    quantity; to import it must be allowed, by --allow-code.

    scale and bias: reading = scale * quantity + bias, one number or one for each column. A sensor's
    numbers are parameters with the paths "imu/bias", "imu/scale", "imu/frame/position",
    "hand/reference/position" (of the frame in which poses and points are measured) and
    "wrist/position" of a wrench.

    With fit.error = "torque" readings are compared along the measured motion; with "motion", and
    with "both", in which each counts once, along the simulated one. fit.positions = false leaves
    the angles out of the comparison. Readings are cut and resampled like all columns, and not
    smoothed.
    """

    name: str
    kind: str
    columns: list[str]
    deviation: Annotated[float | list[float], number(shape=None, positive=True)]
    body: str | None = None
    joint: str | None = None
    position: _Three = field(default_factory=_zero)
    rotation: _Three = field(default_factory=_zero)
    scale: Annotated[float | list[float], number(shape=None)] = 1.0
    bias: Annotated[float | list[float], number(shape=None)] = 0.0
    conditions = _has_kind, _has_place, _has_column


def _has_columns(columns: dict[str, list[str]]) -> Iterator[str]:
    if columns and "q" not in columns:
        yield f"columns is {format_value(columns)}; it must have the columns of q, or be left out"
    for quantity in (name for name, names in columns.items() if not names):
        yield f"columns.{quantity} is []; it must be the names of one column or more"


def _has_scales(scale: dict[str, float]) -> list[str]:
    zero = {quantity: factor for quantity, factor in scale.items() if factor == 0}
    return [f"scale.{name} is {zero[name]}; it must be finite and not zero" for name in zero]


def _has_one_clock(time: str | None, rate: float | None) -> Iterator[str]:
    if time is not None and rate is not None:
        yield f"rate is {rate}; it must be left out where data.time names a column"


def _has_middle(smooth: int | None) -> Iterator[str]:
    if smooth is not None and smooth % 2 == 0:
        yield f"smooth is {smooth}; it must be an odd number of rows"


def _has_one_filter(smooth: int | None, lowpass: float | None, order: int | None) -> Iterator[str]:
    if smooth is not None and lowpass is not None:
        yield f"lowpass is {lowpass} Hz; it must be left out beside smooth"
    if order is not None and smooth is None and lowpass is None:
        yield f"order is {order}; it must be left out without smooth or lowpass"


def _closes_once(closed: dict[str, str], closed_below: float | None) -> Iterator[str]:
    if closed and closed_below is not None:
        yield f"closed_below is {closed_below} m; it must be left out beside closed"


def in_order(first: float | None, last: float | None) -> Iterator[str]:
    """A fault if a part of a run, in s, ends before it begins."""
    if first is not None and last is not None and first >= last:
        yield f"to is {last}; it must be a time after {first} s"


@dataclass(frozen=True)
class DataTable:
    """[data]: the columns of all files, by quantity, and what is done to them.

    columns, time, names, rate, scale, topic: as of `difflie.identify.read_recording`. from, to
    (s): for runs that give none themselves. resample: the step in s. smooth (rows) or lowpass (Hz),
    with their order: as `Recording.smoothed` (2) and `Recording.lowpassed` (4). every (rows) and
    slow (rad/s or m/s), one for all joints or one for each velocity: of the torques, as
    `Recording.thinned` and `Recording.without_slow`. closed: by the names of shapes, such as feet,
    the columns that are not zero where their contacts are closed; or closed_below, the gap in m, as
    of `difflie.identify.with_closed_contacts`.
    """

    columns: dict[Quantity, list[str]] = field(default_factory=dict)
    time: str | None = None
    names: list[str] | None = None
    rate: Annotated[float, number(unit="1/s", positive=True)] | None = None
    topic: str | None = None
    first: Annotated[float, number(unit="s")] | None = field(default=None, metadata={"key": "from"})
    last: Annotated[float, number(unit="s")] | None = field(default=None, metadata={"key": "to"})
    scale: dict[Quantity, float] = field(default_factory=dict)
    resample: Seconds | None = None
    smooth: Annotated[int, number(positive=True)] | None = None
    lowpass: Annotated[float, number(unit="Hz", positive=True)] | None = None
    order: Annotated[int, number(least=1, most=10)] | None = None
    every: Annotated[int, number(least=1)] = 1
    slow: Annotated[float | list[float], number(unit="rad/s or m/s", shape=None, least=0)] = 0.0
    closed: dict[str, str] = field(default_factory=dict)
    closed_below: Annotated[float | None, number(unit="m")] = None
    conditions = (
        *(_has_columns, _has_scales, _has_one_clock, _has_middle, _has_one_filter, _closes_once),
        in_order,
    )


@dataclass(frozen=True)
class RunTable:
    """[[run]]: a file, the part of it from one time to another (s), and what it is used for.

    weight: it counts in a fit like so many equal recordings.
    """

    file: str
    first: Annotated[float, number(unit="s")] | None = field(default=None, metadata={"key": "from"})
    last: Annotated[float, number(unit="s")] | None = field(default=None, metadata={"key": "to"})
    use: Literal["fit", "validate"] = "fit"
    weight: Annotated[float, number(positive=True)] = 1.0


def _is_prior(prior: list[float] | None) -> Iterator[str]:
    if prior is not None and len(prior) != 2:
        yield f"prior is {format_value(prior)}; it must be a mean and a standard deviation"


def _has_one_transform(ratios: bool, scaled: bool) -> Iterator[str]:
    if ratios and scaled:
        yield "ratios is True; it must be left out of what is scaled"


@dataclass(frozen=True)
class ParameterTable:
    """[[parameter]]: see `difflie.parameters.Parameter`, in whose units its numbers are.

    prior: a mean and a standard deviation. scaled: one free factor of the value, see
    `difflie.parameters.Scaled`. ratios: of an inertia of unknown scale, see
    `difflie.parameters.InertiaRatios`. of: "module:function" that writes the number into the
    system, in a module beside the file; path is then its name, and unit its unit.
    """

    path: str | list[str]
    start: float | list[float] | None = None
    lower: float | None = None
    upper: float | None = None
    prior: list[float] | None = None
    tied: bool = False
    fixed: bool = False
    scaled: bool = False
    ratios: bool = False
    of: str | None = None
    unit: str = ""
    conditions = _is_prior, _has_one_transform

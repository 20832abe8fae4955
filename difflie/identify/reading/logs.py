"""Logs as recordings, and which of their columns hold time, q, v, a and tau, by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...system.validation import format_value, nearest, warn
from ..recordings import QUANTITIES, Quantity, Recording
from .columns import Columns, DataError, name_and_unit
from .files import Table, read_columns

# Rows are missing where a step is this much longer than the median, and than others vary.
_LONGER = 0.75
_VARIED = 6.0


def read_recording(
    log: str | Path | Table,
    *,
    time: str | None = None,
    names: Sequence[str] | None = None,
    rate: float | None = None,
    scale: Mapping[Quantity, float] | None = None,
    topic: str | None = None,
    joints: Sequence[str] | None = None,
    readings: Mapping[str, Sequence[str]] | None = None,
    closed: Mapping[str, str] | None = None,
    **columns: Sequence[str],
) -> Recording:
    """A `Recording` from a log: a CSV or npz file, a bag of ROS or MCAP, or a data frame.

    columns: for q, v, a, tau the names of their columns, or expressions of columns such as
    "th2 - th1" or "-9.13 * cur3", in the order of the system, so that q is (n, nq) for n rows.
    Without any they are found by the names of the joints, or by numbers, see `columns_of`.
    readings: the columns of other sensors, by their names, {"imu": ["ax", "ay", "az"]}. closed: the
    columns that are not zero where the contact of a shape is closed, by its name, {"left_foot":
    "switch1"}, see `Recording.closed`. time:
    the column of times (s), or an expression; None for the one that is called time, t, timestamp
    or the like. names: the columns of a CSV file without a header. rate: rows per second, for a
    file without times, which then start at zero. scale: factors by quantity that convert the
    file's units to SI, such as {"q": pi / 180}, or by sensor. topic: of a bag with several of joint
    states.

    Units in a header, `q1 [deg]` or `tau (N m)`, are converted to SI, which `Recording.notes` says.
    Empty cells and NaN are gaps. Cells may be quoted, separated by semicolons or tabs, and lines
    that begin with # are comments.

    Warns of missing rows. Raises DataError for a missing file, an unknown column (with the nearest
    one), an unknown unit or that of another quantity, cells that are not numbers, with line and
    column, and for faults that `Recording` reports.
    """
    log = Path(log) if isinstance(log, str) else log
    place = log if isinstance(log, Path) else "data frame"
    readings = dict(readings or {})
    known, scale = _by_quantity(columns), _by_quantity(scale or {}, readings)
    for quantity, given in {**known, **readings}.items():
        if isinstance(given, str) or not given:
            raise DataError(
                f"{place}: the columns of {quantity} are {given!r}; give a list of names"
            )
    for quantity, factor in scale.items():
        if not np.isfinite(factor) or factor == 0:
            raise DataError(
                f"{place}: the scale of {quantity} is {factor}; it must be finite and not zero"
            )
    if rate is not None and not 0 < rate < np.inf:
        raise DataError(f"{place}: the rate is {rate}; it must be positive and finite")
    found = read_columns(log, names, topic)
    notes = []
    if not known:
        known = _guessed(found, joints)
        listed = "; ".join(f"{q}: {', '.join(given)}" for q, given in known.items())
        notes.append(f"columns by their names: {listed}")
    known |= readings
    closed = dict(closed or {})
    used = [*(text for given in known.values() for text in given), *closed.values()]
    rows = len(next(iter(found.values.values()), ()))
    found = found.rows_with(used)
    if (others := rows - len(next(iter(found.values.values()), ()))) > 0:
        notes.append(f"{others} messages of other joints are left out")
    values = {k: found.quantity(k, given, scale.get(k, 1.0)) for k, given in known.items()}
    rows = len(next(iter(values.values())))
    if rate is None:
        time = time or time_of(found.names) or "time"
        t = found.times(time)
        used.append(time)
        clock = {"time": (time,)}
        _warn_of_missing_rows(found, t)
    else:
        t, clock = np.arange(rows) / rate, {}
    for header in found.unknown_units(used):
        warn(
            f"{place}: column {format_value(header)}: its unit is not known, and taken as that of "
            "SI"
        )
    name = place.name if isinstance(place, Path) else place
    notes = [f"{name}: {note}" for note in (*notes, *found.conversions(used))]
    parts = {quantity: values.get(quantity) for quantity in QUANTITIES}
    others = {sensor: values[sensor] for sensor in readings}
    masks = {name: found.evaluated(text) for name, text in closed.items()}
    more = {
        "readings": others,
        "closed": masks,
        "columns": {**known, **clock},
        "notes": tuple(notes),
    }
    return Recording(name, t, **parts, **more)


def _guessed(found: Columns, joints: Sequence[str] | None) -> dict[str, list[str]]:
    try:
        return columns_of(found.names, joints)
    except DataError as error:
        raise DataError(f"{found.log}: {error}") from None


def _warn_of_missing_rows(found: Columns, t: NDArray) -> None:
    """Warns of steps that are much longer than others, with their places."""
    steps = np.diff(t)
    if len(steps) < 3:
        return
    low, step, high = np.quantile(steps, (0.25, 0.5, 0.75))
    long = np.flatnonzero(steps > step + max(_LONGER * step, _VARIED * (high - low)))
    if not len(long):
        return
    with np.errstate(over="ignore"):
        missing = np.maximum(np.round(steps[long] / step) - 1, 1)
        total = missing.sum()
    order = np.sort(np.argsort(-missing, kind="stable")[:3])
    places = [
        f"{missing[i]:.15g} after {found.place(int(long[i]))} ({t[long[i]]:.6g} s)"
        for i in order.tolist()
    ]
    if len(long) > len(order):
        places.append(f"and others ({len(long) - len(order)} times)")
    warn(
        f"{found.log}: {total:.15g} rows are missing, by the times: {', '.join(places)}; cut "
        "the run there (from, to), or resample it, which draws straight lines"
    )


def _by_quantity(given: Mapping[str, Any], sensors: Iterable[str] = ()) -> dict[str, Any]:
    """Options by quantity or sensor; raises DataError for an unknown one."""
    known = *QUANTITIES, *sensors
    for quantity in given:
        if quantity not in known:
            raise DataError(
                f"columns or scales of {format_value(quantity)} are not known"
                f"{nearest(quantity, known)}; quantities are {', '.join(known)}, and columns of "
                "other sensors are given as readings"
            )
    return dict(given)


_TIMES = "time", "t", "timestamp", "stamp", "seconds", "secs", "sec"
# What quantities are called; `th` and `theta` are left out, which are often absolute angles.
_WORDS = {
    "q": ("q", "pos", "position", "angle"),
    "v": ("v", "dq", "qd", "qdot", "vel", "velocity", "rate"),
    "a": ("a", "ddq", "qdd", "qddot", "acc", "acceleration"),
    "tau": ("tau", "torque", "eff", "effort"),
}
# What is added to say that it was measured.
_MEASURED = "meas", "measured", "actual", "act", "sensor"
_BREAK = re.compile(r"[\s_./:\-\[\]]+")


def time_of(names: Sequence[str]) -> str | None:
    """The column of times among names, None without one: time, t, timestamp, and the like."""
    known = {_plain(name): name for name in reversed(names)}
    return next((known[time] for time in _TIMES if time in known), None)


def columns_of(names: Sequence[str], joints: Sequence[str] | None = None) -> dict[str, list[str]]:
    """The columns by quantity: q, and of v, a and tau those that are there, in the joints' order.

    names: of all columns, in any order, perhaps with units. joints: the names of the joints, which
    columns contain (`q_FL_hip`, `pos_shoulder`, `elbow/effort`), or whose numbers they have, from 0
    or from 1 (`q1`, `dq_2`, `tau_meas3`); a single joint needs no number (`position`). None:
    numbers alone, as many as there are of q. Columns with other words, such as of set points, are
    left aside.

    Raises DataError, which lists what was found, where two columns suit one joint, some joints have
    a quantity that others lack, or there are no columns of q.
    """
    found = {quantity: _found(quantity, names, joints) for quantity in _WORDS}
    known = list(found["q"]) if joints is None else list(joints)
    listed = f"the columns are {format_value(', '.join(names))}; name those of q, v, a and tau"
    if not found["q"]:
        told = "" if joints is not None else ", or give the names of the joints, joints=[...]"
        raise DataError(f"no columns of q were found by their names; {listed}{told}")
    for quantity, by_joint in found.items():
        for joint, columns in by_joint.items():
            if len(columns) > 1:
                raise DataError(
                    f"columns {' and '.join(map(repr, columns))} are both {quantity} of {joint}; "
                    f"{listed}"
                )
        missing = [joint for joint in known if not by_joint.get(joint)]
        there = ", ".join(column for columns in by_joint.values() for column in columns)
        if by_joint and missing:
            lock = ", or lock a joint that the log lacks" if joints and quantity == "q" else ""
            raise DataError(
                f"the columns of {quantity} are {there}, and none is that of "
                f"{', '.join(missing)}; {listed}{lock}"
            )
        if len(by_joint) > len(known):
            raise DataError(
                f"the columns of {quantity} are {there}, more than the {len(known)} of q; {listed}"
            )
    return {
        quantity: [by_joint[joint][0] for joint in known]
        for quantity, by_joint in found.items()
        if by_joint
    }


def _found(
    quantity: str, names: Sequence[str], joints: Sequence[str] | None
) -> dict[str, list[str]]:
    """The columns of a quantity by joint, in order; without names of joints by number."""
    rests: dict[str, list[str]] = {}
    for name in names:
        for rest in _rests(quantity, _plain(name)):
            rests.setdefault(rest, []).append(name)
    if joints is None:
        numbers = sorted(int(rest) for rest in rests if rest.isdigit())
        every = range(numbers[0], numbers[-1] + 1) if numbers else ()
        found = {f"joint {k}": rests.get(str(k), []) for k in every}
        return found or {"the joint": rests[""]} if "" in rests or found else {}
    found = {}
    first = 0 if "0" in rests else 1
    for k, joint in enumerate(joints):
        name = _plain(joint)
        bare = name.removesuffix("joint").removesuffix("_").removeprefix("joint_")
        own = [name, *([] if bare.isdigit() else [bare]), str(first + k)]
        own += [""] if len(joints) == 1 else []
        columns = [column for key in dict.fromkeys(own) for column in rests.get(key, [])]
        if columns:
            found[joint] = columns
    more = first + len(joints)
    if str(more) in rests and str(first) in rests:
        found[f"a joint {more}, which the machine lacks"] = rests[str(more)]
    return found


def _rests(quantity: str, name: str) -> list[str]:
    """What is left of a plain name without the words for a quantity, before or after; if any."""
    marks = "|".join(_MEASURED)
    words = "|".join(sorted(_WORDS[quantity], key=len, reverse=True))
    before = re.fullmatch(rf"(?:{words})(?:_?(?:{marks})(?![a-z]))?_?(\d+|(?<=_).+|)", name)
    after = re.fullmatch(rf"(.+)_(?:{words})(?:_(?:{marks}))?", name)
    return list(dict.fromkeys(match[1] for match in (before, after) if match))


def _plain(name: str) -> str:
    """A name in lower case without unit, its words joined by single underscores."""
    return _BREAK.sub("_", name_and_unit(name)[0].strip().casefold()).strip("_")

"""Logs as recordings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...system.validation import format_value, nearest, warn
from ..recordings import QUANTITIES, Quantity, Recording
from .columns import Columns, DataError
from .files import Table, read_columns
from .guesses import columns_of, time_of

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
    **columns: Sequence[str],
) -> Recording:
    """A `Recording` from a log: a CSV or npz file, a bag of ROS or MCAP, or a data frame.

    columns: for q, v, a, tau the names of their columns, or expressions of columns such as
    "th2 - th1" or "-9.13 * cur3", in the order of the system, so that q is (n, nq) for n rows.
    Without any they are found by the names of the joints, or by numbers, see `columns_of`.
    readings: the columns of other sensors, by their names, {"imu": ["ax", "ay", "az"]}. time:
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
    used = [text for given in known.values() for text in given]
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
    q, v, a, tau = (values.get(quantity) for quantity in QUANTITIES)
    name = place.name if isinstance(place, Path) else place
    notes = [f"{name}: {note}" for note in (*notes, *found.conversions(used))]
    others = {sensor: values[sensor] for sensor in readings}
    columns = {**known, **clock}
    return Recording(name, t, q, v, a, tau, others, columns=columns, notes=tuple(notes))


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

"""Which columns of a log hold time, q, v, a and tau, by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...system.validation import format_value
from .columns import DataError, name_and_unit

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
        raise DataError(f"no columns of q were found by their names; {listed}")
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
            raise DataError(
                f"the columns of {quantity} are {there}, and none is that of "
                f"{', '.join(missing)}; {listed}"
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

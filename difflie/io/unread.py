"""What of a robot file's elements was not read: collected, listed, and refused where strict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from .robot_elements import Element

# What a file leaves open, repeats or has beyond what is read, with the line numbers.
Notes = defaultdict[str, list[int]]

# Elements that hold links and joints; the names of what is in them begin there.
_OUTER = "robot", "sdf", "world", "model"

# Used by some joint types only: if not used, the warning names the type too.
_BY_TYPE = {"axis", "axis2", "limit", "dynamics", "mimic", "difflie", "@lower", "@upper", "@pitch"}


def find_unused(element: Element, unused: Notes, path: str = "", joint_type: str = "") -> None:
    """Collects elements and attributes that were not read; of an unread element only itself.

    path: of the element, such as "link/inertial"; joint_type: of the joint that it is in.
    """
    path = path or element.tag
    for name in element.attributes:
        if f"@{name}" not in element.asked and name != "xmlns" and name[:6] != "xmlns:":
            unused[_typed(f"{path}/@{name}", f"@{name}", joint_type)].append(element.line)
    if element.text and "#" not in element.asked:
        unused[f"text in {path}"].append(element.line)
    for child in element.children:
        below = child.tag if element.tag in _OUTER else f"{path}/{child.tag}"
        if child.tag not in element.asked:
            unused[_typed(below, child.tag, joint_type)].append(child.line)
        else:
            joint = child.tag.split(":")[-1] == "joint" and element.tag in _OUTER
            kind = child.attributes.get("type", "") if joint else joint_type
            find_unused(child, unused, below, kind)


def _typed(path: str, name: str, joint_type: str) -> str:
    return f"{joint_type} {path}" if joint_type and name in _BY_TYPE else path


_FIRST = 5


def refused(path: Path, what: str, at: list[int]) -> str:
    """The fault of an element or attribute that may change the motion, read strictly."""
    more = f" and {len(at) - _FIRST} more" if len(at) > _FIRST else ""
    lines = ", ".join(map(str, at[:_FIRST]))
    return (
        f"{path}:{at[0]}: {what} may change the motion and is not modelled (lines {lines}{more}); "
        "take it out, or read the file with strict = False"
    )


def listed(notes: Mapping[str, list[int]]) -> str:
    """What was noted, with how often and the first line."""
    return ", ".join(f"{what} ({len(at)}, first line {at[0]})" for what, at in notes.items())

"""URDF, the Unified Robot Description Format: files with links and the joints between them.

Every element and attribute of a file is either used or named in a warning. Beyond the
specification a joint may be of the type "spherical" (also "ball"), "translation", "universal" (a
second axis in <axis2 xyz="..."/>, default 0 1 0) or "helical" (its pitch in m/rad in the axis,
pitch="...").

What URDF has no words for stands in elements <difflie>, which other readers pass over:

    <robot name="r">
      <difflie base="free" gravity="0 0 -9.81"/>        what `load` does if it is not told
      <difflie world="w"/>                              the link w is the world and no body
      <joint ...>
        <difflie armature="0.1" friction_velocity="0.01" stiffness="2" spring_reference="0.3"/>

In a joint it may hold every number of `Joint`, one for each degree of freedom, which then counts
instead of what <limit> and <dynamics> say.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
from numpy.typing import ArrayLike

from ..system import (
    Body,
    Continuous,
    Fixed,
    Free,
    Helical,
    Joint,
    Mimic,
    ModelError,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    System,
    Translation,
    Universal,
    tree,
)
from ..system.builders import STANDARD_GRAVITY
from ..system.joints import ROW_FIELDS
from ..system.validation import LARGEST, nearest, shown, warn
from .files import existing
from .xml import refuse_other_files

_TYPES: dict[str, type[Joint]] = {
    "fixed": Fixed,
    "revolute": Revolute,
    "continuous": Continuous,
    "prismatic": Prismatic,
    "planar": Planar,
    "translation": Translation,
    "floating": Free,
    "spherical": Spherical,
    "ball": Spherical,
    "universal": Universal,
    "helical": Helical,
}
_SCREWS = ("revolute", "continuous", "prismatic", "helical")
_BASES = {"fixed": Fixed, "free": Free}
_COUNTS = {1: "one number", 2: "two numbers", 3: "three numbers", 6: "six numbers"}

# What expat says of an element that is never closed.
_UNCLOSED = (expat.errors.XML_ERROR_TAG_MISMATCH, expat.errors.XML_ERROR_NO_ELEMENTS)

# What is nested deeper is no robot, and walking it would end in a RecursionError.
_DEEPEST = 100

# What only some joint types use: where it is not used, the warning names the type too.
_BY_TYPE = {"axis", "axis2", "limit", "dynamics", "mimic", "difflie", "@lower", "@upper", "@pitch"}

Notes = defaultdict[str, list[int]]


def read_urdf(
    path: str | os.PathLike[str],
    base: str | None = None,
    gravity: ArrayLike | None = None,
) -> System:
    """The `System` a URDF file describes; bodies and joints keep the names and order of the file.

    base: "fixed" fastens the root link to the world, "free" lets it move on a free joint; either
    joint is called "root_joint". This holds for any root link, also one that is named "world".
    gravity (3,) in m/s^2, world coordinates. What is None is as the file's <difflie> says, else
    "fixed" and (0, 0, -9.81).

    As the specification has it, axes default to (1, 0, 0), the axis of a planar joint is the
    plane's normal and a missing lower or upper limit is 0; continuous joints have no position
    limits. A mimic of a mimic is resolved to the joint that both follow.

    Warns once of all that is not used, and as `tree` does of doubtful masses and inertias. Raises
    `ModelError`, which names the file, the line, the element and the fix, for what is no URDF or
    no machine; FileNotFoundError where there is no such file.
    """
    path = Path(path)
    _check_base(str(path), base)
    robot = parsed(path)
    notes: Notes = defaultdict(list)
    world = None
    own = robot.child("difflie")
    if own is not None:
        world, own_base = own.get("world"), own.get("base")
        _check_base(own.source, own_base)
        base = own_base if base is None else base
        own_gravity = own.numbers("gravity", 3, STANDARD_GRAVITY)
        gravity = own_gravity if gravity is None else gravity
    bodies = _bodies(robot, base, world, notes)
    name = robot.get("name")
    if name is None:
        name = path.stem
        notes[f"robot without a name, called {shown(name)}"].append(robot.line)
    system = tree(bodies, name=name, gravity=STANDARD_GRAVITY if gravity is None else gravity)
    unused: Notes = defaultdict(list)
    _find_unused(robot, "robot", "", unused)
    remarks = [_listed(notes)] if notes else []
    if unused:
        remarks.insert(0, f"not used: {_listed(unused)}")
        system = replace(system, topology=replace(system.topology, unread=tuple(unused)))
    if remarks:
        warn(f"{path}: {'; '.join(remarks)}")
    return system


def _check_base(source: str, base: str | None) -> None:
    if base is not None and base not in _BASES:
        raise ModelError(
            f"{source}: base is {shown(base)}; it must be 'fixed' or "
            f"'free'{nearest(str(base), _BASES)}"
        )


@dataclass
class Element:
    """An XML element. It remembers what it was asked for, so that the rest can be reported.

    path: of the file; above: the element it is in, None for the root. asked: the tags and, with an
    @ in front, the attributes the reader looked for.
    """

    path: Path
    tag: str
    attributes: dict[str, str]
    line: int
    above: Element | None
    children: list[Element] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)

    @property
    def label(self) -> str:
        """How messages call it: with what it is in, up to three levels and without the root."""
        labels: list[str] = []
        element = self
        while element is not None and (element is self or element.above) and len(labels) < 4:
            name = element.attributes.get("name")
            named = "" if name is None else f" name={shown(name)}"
            labels.append(f"<{shown(element.tag)[1:-1]}{named}>")
            element = element.above
        return " of ".join(labels)

    @property
    def source(self) -> str:
        """Its label, with the file and the line in front."""
        return f"{self.path}:{self.line}: {self.label}"

    def get(self, name: str) -> str | None:
        """The text of an attribute, None if it is not there."""
        self.asked.add(f"@{name}")
        text = self.attributes.get(name)
        if text is not None and ("${" in text or "$(" in text):
            raise _xacro(self, f"{name}={shown(text)}")
        return text

    def needed(self, name: str) -> str:
        """The text of an attribute that must be there."""
        text = self.get(name)
        if text is None:
            raise ModelError(f'{self.source}: the attribute {name} is missing; add {name}="..."')
        return text

    def numbers(
        self, name: str, count: int, default: Any = None, *, finite: bool = True
    ) -> list[float]:
        """The numbers in an attribute; it must be there if there is no default."""
        text = self.get(name) if default is not None else self.needed(name)
        if text is None:
            return list(default or ())
        try:
            values = [_number(word) for word in text.split()]
        except ValueError:
            values = []
        if len(values) != count:
            raise ModelError(f"{self.source}: {name} needs {_COUNTS[count]}, got {shown(text)}")
        if any(math.isnan(v) or (finite and math.isinf(v)) for v in values):
            raise ModelError(f"{self.source}: {name} must be finite, got {shown(text)}")
        if finite and any(abs(v) > LARGEST for v in values):
            raise ModelError(
                f"{self.source}: {name} must be at most {LARGEST:g}, got {shown(text)}"
            )
        return values

    def number(self, name: str, default: float | None = None, *, finite: bool = True) -> float:
        """The one number in an attribute."""
        return self.numbers(name, 1, None if default is None else [default], finite=finite)[0]

    def all(self, tag: str) -> list[Element]:
        """The children with a tag."""
        self.asked.add(tag)
        return [c for c in self.children if c.tag == tag]

    def child(self, tag: str) -> Element | None:
        """The child with a tag, None if there is none."""
        found = self.all(tag)
        if len(found) > 1:
            raise ModelError(
                f"{found[1].source}: it has another <{tag}> in line {found[0].line}; remove one"
            )
        return found[0] if found else None

    def needed_child(self, tag: str, example: str) -> Element:
        """The child with a tag that must be there."""
        found = self.child(tag)
        if found is None:
            raise ModelError(f"{self.source}: the element <{tag}> is missing; add {example}")
        return found

    def walk(self) -> Iterator[Element]:
        """This element and all below it, in the order of the file."""
        yield self
        for c in self.children:
            yield from c.walk()


def _number(word: str) -> float:
    if "_" in word:  # float() would take it for a separator of digits
        raise ValueError(word)
    return float(word)


def parsed(path: Path) -> Element:
    """The <robot> element of a file."""
    data = existing(path, "URDF").read_bytes()
    if not data.strip():
        raise ModelError(f"{path}:1: the file is empty; a URDF has a <robot> element with links")
    robot = _root(data, path)
    if robot.tag != "robot":
        raise ModelError(
            f"{robot.source}: the root element is {robot.label}; what is read is URDF, whose root "
            "element is <robot>"
        )
    prefixes = {k[6:] for k, v in robot.attributes.items() if k[:6] == "xmlns:" and "xacro" in v}
    prefixes.add("xacro")
    for element in robot.walk():
        if element.tag.split(":")[0] in prefixes and ":" in element.tag:
            raise _xacro(element, f"<{element.tag}>")
    return robot


def _root(data: bytes, path: Path) -> Element:
    """The root element of what a file has in it."""
    parser = expat.ParserCreate()
    roots: list[Element] = []
    above: list[Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(
            path, tag, attributes, parser.CurrentLineNumber, above[-1] if above else None
        )
        if len(above) == _DEEPEST:
            raise ModelError(
                f"{element.source}: elements are nested more than {_DEEPEST} deep, and those of a "
                "URDF no more than six; close what is open above"
            )
        (above[-1].children if above else roots).append(element)
        above.append(element)

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: above.pop()
    refuse_other_files(parser, path)
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        what = expat.errors.messages[error.code]
        unclosed = error.code in map(expat.errors.codes.get, _UNCLOSED) and above
        fix = f"close the element {above[-1].label}" if unclosed else "correct it there"
        raise ModelError(
            f"{path}:{error.lineno}: not XML: {what} at column {error.offset + 1}; {fix}"
        ) from None
    except ModelError:
        raise
    except (LookupError, ValueError) as error:
        raise ModelError(f"{path}:1: not readable as XML: {error}; save it as UTF-8") from None
    return roots[0]


def _xacro(element: Element, what: str) -> ModelError:
    return ModelError(
        f"{element.source}: {what} is a xacro macro; expand the file first: xacro FILE > robot.urdf"
    )


def _bodies(robot: Element, base: str | None, world: str | None, notes: Notes) -> list[Body]:
    """The root link, then the children of the joints in the order of the joints.

    A root link that is the world is no body; base must then be None.
    """
    links = _by_name(robot, "link")
    joints = _by_name(robot, "joint")
    if not links:
        raise ModelError(f'{robot.source}: there is no link; add <link name="..."/>')
    carrier: dict[str, Element] = {}
    parents: dict[str, str] = {}
    for joint in joints.values():
        parent, child = (_end(joint, role, links) for role in ("parent", "child"))
        if child in carrier:
            raise ModelError(
                f"{joint.source}: the link {shown(child)} is the child of "
                f"{carrier[child].label} in "
                f"line {carrier[child].line} too; a link has one parent: remove one of the joints"
            )
        carrier[child], parents[child] = joint, parent
    roots = [name for name in links if name not in carrier]
    if len(roots) > 1:
        named = ", ".join(f"{shown(name)} (line {links[name].line})" for name in roots)
        raise ModelError(
            f"{links[roots[1]].source}: there are {len(roots)} root links, which no joint has as "
            f"its child: {named}; connect all but one of them by a joint"
        )
    if world is not None:
        _check_world(robot, links, roots, world, base)
    read = {joint.needed("name"): _joint(joint, notes) for joint in joints.values()}
    laws = {name: _mimic(name, joints, read) for name in read}
    bodies = []
    for name in roots:
        if name == world:
            continue
        root_joint = "root_joint"
        while root_joint in joints:
            root_joint += "_"
        joint = _BASES[base or "fixed"](name=root_joint, source=links[name].source)
        bodies.append(Body(name=name, joint=joint, **_inertial(links[name])))
    for name, element in carrier.items():
        position, rpy = _origin(element)
        kind, fields = read[element.needed("name")]
        bodies.append(
            Body(
                name=name,
                joint=kind(**fields, mimic=laws[element.needed("name")]),
                parent=None if parents[name] == world else parents[name],
                position=position,
                # A rotation about one axis is exact as a rotation vector.
                rotation=rpy if np.count_nonzero(rpy) < 2 else _rotation(rpy),
                **_inertial(links[name]),
            )
        )
    return bodies


def _check_world(
    robot: Element, links: dict[str, Element], roots: list[str], world: str, base: str | None
) -> None:
    own = robot.needed_child("difflie", "<difflie/>")
    if [world] != roots:
        raise ModelError(
            f"{own.source}: the world is the link {shown(world)}, which is not the root; "
            f"name the root{nearest(world, roots)}"
        )
    if base is not None:
        raise ModelError(
            f"{own.source}: base is {shown(base)} and the root link {shown(world)} is the "
            "world, to which "
            "the joints of the file connect; leave out base"
        )
    if links[world].child("inertial") is not None:
        raise ModelError(f"{links[world].source}: it is the world, which has no mass; remove it")


def _by_name(robot: Element, tag: str) -> dict[str, Element]:
    named: dict[str, Element] = {}
    for element in robot.all(tag):
        name = element.needed("name")
        if not name:
            raise ModelError(f"{element.source}: its name is empty; give it one")
        if name in named:
            raise ModelError(
                f"{element.source}: line {named[name].line} has a {tag} of this name too; "
                "rename one of them"
            )
        named[name] = element
    return named


def _end(joint: Element, role: str, links: dict[str, Element]) -> str:
    element = joint.needed_child(role, f'<{role} link="..."/>')
    name = element.needed("link")
    if name not in links:
        raise ModelError(
            f"{element.source}: the link {shown(name)} does not exist"
            f"{nearest(name, links) or '; add it or name another'}"
        )
    return name


def _inertial(link: Element) -> dict[str, Any]:
    """The fields of a `Body` that the link itself gives."""
    inertial = link.child("inertial")
    if inertial is None:
        return {"source": link.source}
    com, rpy = _origin(inertial)
    mass = inertial.needed_child("mass", '<mass value="..."/> in kg').number("value")
    about = inertial.needed_child("inertia", '<inertia ixx="..." .../> in kg m^2')
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    xx, xy, xz, yy, yz, zz = (about.number(name) for name in names)
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if any(rpy):
        rotation = _rotation(rpy)
        inertia = rotation @ inertia @ rotation.T
    return {"mass": mass, "com": com, "inertia": inertia, "source": link.source}


def _origin(element: Element) -> tuple[list[float], list[float]]:
    """xyz in m and rpy in rad."""
    zero = [0.0, 0.0, 0.0]
    origin = element.child("origin")
    if origin is None:
        return zero, zero
    return origin.numbers("xyz", 3, zero), origin.numbers("rpy", 3, zero)


def _rotation(rpy: Sequence[float]) -> np.ndarray:
    """(3, 3): turned about the fixed x by roll, then the fixed y by pitch, the fixed z by yaw."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def _joint(joint: Element, notes: Notes) -> tuple[type[Joint], dict[str, Any]]:
    """The class of a joint and its fields, all but the mimic."""
    kind = joint.needed("type")
    if kind not in _TYPES:
        raise ModelError(
            f"{joint.source}: there is no joint type {shown(kind)}"
            f"{nearest(kind, _TYPES)}; known are {', '.join(_TYPES)}"
        )
    fields: dict[str, Any] = {"name": joint.needed("name"), "source": joint.source}
    if kind in _SCREWS:
        fields["axis"] = _axis(joint, "axis", (1.0, 0.0, 0.0), notes)
        fields |= _limits(joint, kind, notes)
    if kind == "helical":
        axis = joint.needed_child("axis", '<axis xyz="..." pitch="..."/> with the pitch in m/rad')
        fields["pitch"] = axis.number("pitch")
    if kind == "planar":
        fields["normal"] = _axis(joint, "axis", (1.0, 0.0, 0.0), notes)
    if kind == "universal":
        fields["axis"] = _axis(joint, "axis", (1.0, 0.0, 0.0), notes)
        fields["second_axis"] = _axis(joint, "axis2", (0.0, 1.0, 0.0), notes)
    # Planar and floating joints would need one value for angles and another for lengths.
    if kind in _SCREWS or _TYPES[kind] in (Spherical, Translation, Universal):
        dynamics = joint.child("dynamics")
        if dynamics is not None:
            fields["damping"] = dynamics.number("damping", 0.0)
            fields["friction"] = dynamics.number("friction", 0.0)
    return _TYPES[kind], fields | _own(joint, len(_TYPES[kind]().dofs()))


def _own(joint: Element, count: int) -> dict[str, list[float]]:
    """The numbers in the <difflie> of a joint with `count` degrees of freedom."""
    own = joint.child("difflie") if count else None
    if own is None:
        return {}
    given = [name for name in ROW_FIELDS if name in own.attributes]
    return {name: own.numbers(name, count, finite=False) for name in given}


def _axis(joint: Element, tag: str, default: tuple[float, ...], notes: Notes) -> Sequence[float]:
    element = joint.child(tag)
    if element is None:
        return default
    axis = element.numbers("xyz", 3)
    length = math.hypot(*axis)
    if length == 0:
        raise ModelError(f"{element.source}: the axis is zero; give it a direction")
    if abs(length - 1) > 1e-3:  # less is rounding
        notes["axis not of unit length, normalised"].append(element.line)
    return [a / length for a in axis]


def _limits(joint: Element, kind: str, notes: Notes) -> dict[str, float]:
    limit = joint.child("limit")
    if limit is None:
        if kind != "continuous":
            notes[f"{kind} joint without a limit, unlimited"].append(joint.line)
        return {}
    fields = {}
    if kind != "continuous":
        fields["lower"] = limit.number("lower", 0.0, finite=False)
        fields["upper"] = limit.number("upper", 0.0, finite=False)
        if not {"lower", "upper"} & limit.attributes.keys():
            notes["limit without lower and upper, both 0 as specified"].append(limit.line)
    for name in ("velocity", "effort"):
        fields[f"max_{name}"] = limit.number(name, math.inf, finite=False)
        if name not in limit.attributes:
            notes[f"limit without {name}, unlimited"].append(limit.line)
    return fields


def _mimic(
    name: str, joints: dict[str, Element], read: dict[str, tuple[type[Joint], dict[str, Any]]]
) -> Mimic | None:
    """The law of a joint that follows another, which may follow another, and so on."""
    passed = [name]
    law: Mimic | None = None
    while passed[-1] in read and read[passed[-1]][0] is not Fixed:
        element = joints[passed[-1]].child("mimic")
        if element is None:
            break
        followed = element.needed("joint")
        multiplier, offset = element.number("multiplier", 1.0), element.number("offset", 0.0)
        if law is not None:
            multiplier, offset = law.multiplier * multiplier, law.multiplier * offset + law.offset
        if followed in passed:
            what = "itself" if len(passed) == 1 else "itself by way of " + ", ".join(passed[1:])
            raise ModelError(
                f"{element.source}: the joint {shown(name)} mimics {what}; "
                "let it follow a joint that moves on its own"
            )
        law = Mimic(followed, multiplier, offset)
        passed.append(followed)
    return law


def _find_unused(element: Element, path: str, joint_type: str, unused: Notes) -> None:
    """Collects what nobody asked for; of an element that is not used only itself."""
    for name in element.attributes:
        if f"@{name}" not in element.asked and name != "xmlns" and name[:6] != "xmlns:":
            unused[_typed(f"{path}/@{name}", f"@{name}", joint_type)].append(element.line)
    for child in element.children:
        below = child.tag if path == "robot" else f"{path}/{child.tag}"
        if child.tag not in element.asked:
            unused[_typed(below, child.tag, joint_type)].append(child.line)
        else:
            kind = child.attributes["type"] if below == "joint" else joint_type
            _find_unused(child, below, kind, unused)


def _typed(path: str, name: str, joint_type: str) -> str:
    return f"{joint_type} {path}" if joint_type and name in _BY_TYPE else path


def _listed(notes: Notes) -> str:
    return ", ".join(f"{what} ({len(at)}, first line {at[0]})" for what, at in notes.items())

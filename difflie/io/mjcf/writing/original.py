"""An MJCF file with other numbers: those of a system that was read from it."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import jax
import numpy as np

from ....forces import ShapeContact
from ....system import Body, Free, ModelError, Prismatic, Revolute, System
from ....system.builders import bodies_of
from ....system.joints import ROW_FIELDS
from ....system.shown import some
from ....system.validation import format_value
from ..reader import read_mjcf
from .actuators import law_attributes
from .bodies import inertial
from .draft import matrix, numbers, put
from .passive import has_stops

_MOST = 4
# The attributes of a joint for its numbers without unit of angle.
_NUMBERS = {
    "armature": "armature",
    "damping": "damping",
    "friction": "frictionloss",
    "stiffness": "stiffness",
}
# What of an <actuator> says where it acts and what it is, and not its law.
_PLACES = (
    *("name", "class", "group", "user", "nsample", "interp", "delay", "actearly"),
    *("velrange", "ffrange"),
    *("joint", "jointinparent", "tendon", "site", "refsite", "cranksite", "slidersite"),
    *("cranklength", "gear", "armature", "damping"),
)
# The attributes of a <body> for its rotation.
_ROTATIONS = "quat", "axisangle", "xyaxes", "zaxis", "euler"
_FOLDERS = "meshdir", "texturedir", "assetdir"
# By which <compiler> changes inertias.
_CHANGING = "boundmass", "boundinertia", "balanceinertia", "settotalmass"
_SECTIONS = "couplings", "constraints", "sensors", "frames", "states"


class _Close(NamedTuple):
    """How close numbers are that count as the same."""

    relative: float
    absolute: float

    def same(self, a: Any, b: Any) -> bool:
        a, b = np.asarray(a, float), np.asarray(b, float)
        return a.shape == b.shape and np.allclose(a, b, self.relative, self.absolute)


def with_numbers(
    system: System, bodies: list[Body], original: Path, path: Path
) -> tuple[str, list[str]]:
    """The text of an MJCF file with the numbers of a system, and remarks on what it does not say.

    bodies: those of the system. original: the file; path: of the new one, from which its meshes are
    found. Masses, centres of mass, inertias, positions and rotations of bodies whose joint is at
    their origin, axes, armature, damping, friction, springs and limits
    of joints, laws and gears of actuators, and gravity are written where they differ from those of
    the file. Raises `ModelError` where bodies, joints or actuators are others than those of the
    file, and where their numbers cannot be written, such as positions of bodies whose joint is
    elsewhere; it names these.
    """
    old = _read(original, original, system, bodies)
    before = {body.name: body for body in bodies_of(old)}
    if other := [body.name for body in bodies if body.name not in before]:
        raise ModelError(
            f"{original}: there is no body {format_value(other[0])}, which the system has; give "
            "the file it was read from"
        )
    tree = _Tree(original)
    exact = system.dtype == np.float64
    close = _Close(1e-12, 1e-13) if exact else _Close(2e-6, 1e-7)
    heavy = [body for body in bodies if not _same_mass(body, before[body.name], close)]
    if heavy and tree.take_inertias():
        heavy = [body for body in bodies if body.mass]
    for body in heavy:
        tree.set_inertia(body)
    for body in bodies:
        known = before[body.name]
        if not (close.same(body.position, known.position) and _turned_alike(body, known, close)):
            tree.set_place(body)
        if type(body.joint) is type(known.joint):
            _change_joint(tree, body, known, close)
    _change_actuators(tree, system, old, close)
    if not close.same(system.gravity, old.gravity):
        tree.option().set("gravity", numbers(system.gravity))
    apart = path.absolute().parent != original.absolute().parent
    text = tree.text()
    tree.set_folders(original.absolute().parent)
    absolute = tree.text()
    with tempfile.TemporaryDirectory() as folder:
        trial = Path(folder) / "trial.xml"
        trial.write_text(absolute, encoding="utf-8")
        new = _read(trial, original, system, bodies)
    return absolute if apart else text, list(_remarks(new, system, original, close))


def _read(path: Path, original: Path, system: System, bodies: list[Body]) -> System:
    """The system in a file, on the base of another one and with its actuators, if it has some."""
    free = [isinstance(body.joint, Free) for body in bodies if body.parent is None]
    base = "free" if any(free) else "fixed"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # reading the original file has said all this
        actuators = bool(system.actuators)
        contacts = any(isinstance(part, ShapeContact) for part in system.couplings)
        given: dict[str, Any] = {
            "actuators": actuators,
            "contacts": contacts,
            "limits": has_stops(system),
        }
        try:
            found = read_mjcf(path, **given)
            if found.joint_names != system.joint_names:
                found = read_mjcf(path, base=base, **given)
        except ModelError as error:
            raise ModelError(f"{original}: {str(error).removeprefix(f'{path}: ')}") from None
    return found.astype(system.dtype)


class _Tree:
    """The elements of an MJCF file, with those of the files that it includes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root = _parsed(path)
        self._include(self.root, path.absolute().parent)
        units = [c.get("angle") for c in self.root.iter("compiler") if c.get("angle")]
        self.radians = bool(units) and units[-1] == "radian"
        self._found: dict[tuple[str, str], Element] = {}
        bodies = (b for top in self.root.iter("worldbody") for b in top.iter("body"))
        for n, body in enumerate(bodies, start=1):
            owner = body.get("name", f"body{n}")
            self._found["body", owner] = body
            for joint in _joints(body):
                self._found.setdefault(("joint", joint.get("name") or _title(owner, joint)), joint)
        drives = (drive for top in self.root.iter("actuator") for drive in top)
        for n, drive in enumerate(d for d in drives if isinstance(d.tag, str)):
            self._found["actuator", drive.get("name", f"actuator{n}")] = drive

    def element(self, kind: str, name: str) -> Element:
        """The element of a body, joint or actuator; raises `ModelError` where it is not found."""
        found = self._found.get((kind, name))
        if found is None:
            raise ModelError(
                f"{self.path}: the {kind} {format_value(name)} has other numbers, and there is no "
                f"<{kind}> of this name; give it one in the file, outside of <replicate> and "
                "<attach>"
            )
        if found.tag == "freejoint":  # which has no numbers
            found.tag = "joint"
            found.set("type", "free")
        return found

    def option(self) -> Element:
        """The last <option>, which is made if there is none."""
        found = self.root.findall("option")
        return found[-1] if found else ElementTree.SubElement(self.root, "option")

    def set_inertia(self, body: Body) -> None:
        """Writes the mass, centre of mass and inertia of a body."""
        element = self.element("body", body.name)
        for known in element.findall("inertial"):
            element.remove(known)
        element.insert(0, Element("inertial", inertial(body)))

    def set_place(self, body: Body) -> None:
        """Writes the position and the rotation of a body in its parent.

        Those of others than a body of the file with its joint at its origin stay.
        """
        element = self._found.get(("body", body.name))
        if element is not None:
            for name in _ROTATIONS:
                element.attrib.pop(name, None)
            put(element, np.zeros(3), body.rotation)
            element.set("pos", numbers(body.position))

    def take_inertias(self) -> bool:
        """Lets MuJoCo take given inertias as they are; whether it did not, for all bodies."""
        changed = False
        for compiler in self.root.findall("compiler"):
            if compiler.get("inertiafromgeom") == "true":
                compiler.set("inertiafromgeom", "auto")
                changed = True
            for name in _CHANGING:
                changed |= compiler.attrib.pop(name, None) is not None
        return changed

    def set_folders(self, folder: Path) -> None:
        """Makes the paths of meshes, textures and models absolute; folder: of the file."""
        compilers = self.root.findall("compiler")
        given: dict[str, str] = {}
        for compiler in compilers:
            given |= {k: compiler.attrib.pop(k) for k in _FOLDERS if k in compiler.attrib}
        last = compilers[-1] if compilers else Element("compiler")
        if not compilers:
            self.root.insert(0, last)
        for own in ("meshdir", "texturedir"):
            last.set(own, str(folder / given.get(own, given.get("assetdir", ""))))
        for model in self.root.iter("model"):
            if file := model.get("file"):
                model.set("file", str(folder / file))

    def text(self) -> str:
        return ElementTree.tostring(self.root, encoding="unicode") + "\n"

    def _include(self, element: Element, folder: Path) -> None:
        """Puts the elements of included files in place of <include>."""
        for child in list(element):
            if child.tag != "include":
                self._include(child, folder)
                continue
            file = folder / child.get("file", "")
            inside = _parsed(file)
            self._include(inside, folder)
            at = list(element).index(child)
            element.remove(child)
            for k, part in enumerate(inside):
                element.insert(at + k, part)


def _joints(body: Element) -> Iterator[Element]:
    """The joints of a body, also those in frames."""
    for child in body:
        if child.tag in ("joint", "freejoint"):
            yield child
        elif child.tag == "frame":
            yield from _joints(child)


def _title(owner: str, joint: Element) -> str:
    """The name that `read_mjcf` gives to a joint without one."""
    kind = "free" if joint.tag == "freejoint" else joint.get("type", "hinge")
    return f"{owner}/{kind}"


def _parsed(path: Path) -> Element:
    builder = ElementTree.TreeBuilder(insert_comments=True)
    try:
        return ElementTree.parse(path, ElementTree.XMLParser(target=builder)).getroot()
    except (ElementTree.ParseError, OSError) as error:
        raise ModelError(
            f"{path}: its numbers cannot be changed, as it is no XML: {error}; save without "
            "`original`"
        ) from None


def _same_mass(body: Body, old: Body, close: _Close) -> bool:
    parts = "mass", "com", "inertia"
    return all(close.same(getattr(body, p), getattr(old, p)) for p in parts)


def _turned_alike(body: Body, old: Body, close: _Close) -> bool:
    return close.same(matrix(body.rotation), matrix(old.rotation))


def _change_joint(tree: _Tree, body: Body, old: Body, close: _Close) -> None:
    joint, before, name = body.joint, old.joint, body.joint.name or body.name
    scalar = isinstance(joint, Prismatic | Revolute)
    turn = 1.0 if tree.radians or isinstance(joint, Prismatic) else 180 / np.pi

    def changed(field: str) -> bool:
        return not close.same(getattr(joint, field), getattr(before, field))

    def number(each: Any, field: str) -> float:
        values = np.ravel(np.asarray(getattr(each, field), float))
        if np.ptp(values) > 0:
            raise ModelError(
                f"{tree.path}: {field} of the joint {format_value(name)} is not the same along all "
                "axes, for which MJCF has one number; make it so"
            )
        return float(values[0])

    for field, attribute in _NUMBERS.items():
        if changed(field) and joint.dofs():
            element = tree.element("joint", name)
            higher = element.get(attribute, "").split()[1:]  # of springs and dampers; they stay
            element.set(attribute, " ".join([numbers(number(joint, field)), *higher]))
    if not scalar:
        return
    if changed("axis"):
        tree.element("joint", name).set("axis", numbers(joint.dofs()[0].axis))
    limits = {("lower", "upper"): "range", ("spring_reference",): "springref"}
    for fields, attribute in limits.items():
        if any(changed(field) for field in fields):
            element = tree.element("joint", name)
            ref = float(element.get("ref", "0")) / turn
            values = np.array([number(joint, field) for field in fields]) + ref
            element.set(attribute, numbers(turn * values))
    if changed("max_effort") or changed("min_effort"):
        most, least = number(joint, "max_effort"), number(joint, "min_effort")
        limits_of_effort = [-most if np.isinf(least) else least, most]
        tree.element("joint", name).set("actuatorfrcrange", numbers(limits_of_effort))


def _change_actuators(tree: _Tree, system: System, old: System, close: _Close) -> None:
    """Writes the laws and gears of actuators that differ."""
    before: dict[str, Any] = {actuator.label: actuator for actuator in old.actuators}
    actuator: Any
    for actuator in system.actuators:
        known = before.get(actuator.label)
        if known is None:
            raise ModelError(
                f"{tree.path}: there is no actuator {format_value(actuator.label)}, which the "
                "system has; give the file it was read from, or save without `original`"
            )
        if _alike(actuator, known, close):
            continue
        law = law_attributes(actuator)
        if law is None:
            raise ModelError(f"{tree.path}: MJCF has no words for the actuator {actuator}")
        element = tree.element("actuator", actuator.label)
        element.tag = "general"
        for name in [name for name in element.attrib if name not in _PLACES]:
            del element.attrib[name]
        bare = {"gaintype": "fixed", "biastype": "none", "biasprm": "0", "dyntype": "none"}
        ranges = {
            "ctrlrange": "ctrllimited",
            "forcerange": "forcelimited",
            "actrange": "actlimited",
        }
        bare |= {limited: "true" if own in law else "false" for own, limited in ranges.items()}
        element.attrib |= bare | law
        gear = getattr(actuator.transmission, "gear", None)
        if gear is not None and np.size(gear) == 1:
            element.set("gear", numbers(gear))


def _alike(a: Any, b: Any, close: _Close) -> bool:
    """Whether two parts of systems have the same structure, and close numbers."""
    if jax.tree.structure(a) != jax.tree.structure(b):
        return False
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(close.same(x, y) for x, y in pairs)


def _remarks(new: System, system: System, original: Path, close: _Close) -> Iterator[str]:
    """What differs and stays; raises `ModelError` for numbers of bodies, joints and actuators.

    new: what is read from the file that is written.
    """
    wide = _Close(100 * close.relative, 100 * close.absolute)
    wrong = [n for n in ("mass", "com", "inertia") if _differ(new.bodies, system.bodies, n, wide)]
    fields = ("position", "rotation", "axis", *ROW_FIELDS)
    wrong += [n for n in fields if _differ(new.joints, system.joints, n, wide)]
    # Limits of efforts follow from those of actuators, which may be set by themselves.
    soft = {"max_velocity", "friction_velocity", "max_effort", "min_effort"}
    if held := [name for name in wrong if name not in soft]:
        of = _elsewhere(new, system, wide)
        raise ModelError(
            f"{original}: its {', '.join(held)} cannot be changed to those of the system"
            f"{f' (of {some(of, _MOST)})' if of else ''}; save without `original`"
        )
    drives = {drive.label: drive for drive in new.actuators}
    mine: dict[str, Any] = {drive.label: drive for drive in system.actuators}
    if other := [n for n, drive in mine.items() if not _acts_alike(drive, drives[n], wide)]:
        raise ModelError(
            f"{original}: the actuators {some(other, _MOST)} cannot be changed to those of the "
            "system; save without `original`"
        )
    left = [name for name in wrong if name in soft]
    left += [n for n in _SECTIONS if not _alike(getattr(new, n), getattr(system, n), wide)]
    if left:
        yield f"{', '.join(left)} of the system are not those of {original}, which are kept"
    if more := [name for name in drives if name not in mine and mine]:
        yield f"actuators that the system does not have are kept ({some(more, _MOST)})"


def _elsewhere(new: System, old: System, close: _Close) -> list[str]:
    """The names of the bodies that are elsewhere in their parents."""
    return [
        name
        for b, name in enumerate(old.body_names)
        if not close.same(new.joints.position[b], old.joints.position[b])
        or not close.same(new.joints.rotation[b], old.joints.rotation[b])
    ]


def _differ(new: Any, old: Any, name: str, close: _Close) -> bool:
    return not close.same(getattr(new, name), getattr(old, name))


def _acts_alike(a: Any, b: Any, close: _Close) -> bool:
    """Whether two actuators have the same law, whatever their classes."""
    first, second = law_attributes(a), law_attributes(b)
    if first is None or second is None or not _alike(a.transmission, b.transmission, close):
        return False
    return first.keys() == second.keys() and all(
        close.same(*(_values(law[key]) for law in (first, second))) for key in first
    )


def _values(text: str) -> Any:
    """The numbers of an attribute; of words their letters."""
    try:
        return [float(x) for x in text.split()]
    except ValueError:
        return [ord(c) for c in text]

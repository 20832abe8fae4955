"""A MuJoCo file that is being written: its elements, their names, and the points on its bodies."""

from __future__ import annotations

from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement

import jax
import numpy as np

from ....forces import Path, ShapeContact
from ....system import System
from ....system.frame import Frame
from ...robot_files import distinct, of_quaternion, of_rotation_vector

_SAME = 1e-13  # of positions in m and of rotations in rad


class WrittenPair(NamedTuple):
    """The element of a pair of geoms, its contact, and its number in this."""

    element: Element
    contact: ShapeContact
    number: int


class Draft:
    """The elements of a MuJoCo file, and what the parts of a system are called in it.

    system: what is written. bodies: the element of each body of the system that has one, and of the
    world, None. references: `ref` of the hinges and slides, by name, where not 0. faults: what MJCF
    has no words for. pairs: those of contacts. pulled: the tendons that actuators act along, and
    their names in the file. stopped: the tendons with stops, and their names in the file;
    stopped_balls: the names of ball joints with stops, and these. soft_limits: of stops whose
    stiffness is written, "joint" or "tendon", its name, stiffness and dissipation.
    yielding_joints: the springs that yield of joints, by name; yielding_tendons: those of tendons,
    in the order of the file, and by how much their lengths are longer here, in m.
    """

    def __init__(self, system: System, references: dict[str, float]) -> None:
        self.system, self.references = system, references
        self.root = Element("mujoco", model=system.name)
        SubElement(self.root, "compiler", angle="radian", autolimits="true")
        self.option = SubElement(self.root, "option", gravity=numbers(system.gravity))
        self.bodies: dict[str | None, Element] = {None: SubElement(self.root, "worldbody")}
        self.faults: list[str] = []
        self.pairs: list[WrittenPair] = []
        self.pulled: list[tuple[Any, str]] = []
        self.stopped: list[tuple[Any, str]] = []
        self.stopped_balls: list[tuple[str, Any]] = []
        self.soft_limits: list[tuple[str, str, float, float]] = []
        self.yielding_joints: dict[str, Any] = {}
        self.yielding_tendons: list[tuple[Any, float]] = []
        self._sites: dict[str, Frame] = {}
        self._taken: set[tuple[str, str]] = {("body", "world")}
        self._sections: dict[str, Element] = {}

    def section(self, tag: str) -> Element:
        """The element of a section, such as <tendon>, which is made if need be."""
        if tag not in self._sections:
            self._sections[tag] = SubElement(self.root, tag)
        return self._sections[tag]

    def unique(self, kind: str, name: str) -> str:
        """A name for an element of a kind, with underscores where another has it."""
        while (kind, name) in self._taken:
            name += "_"
        self._taken.add((kind, name))
        return name

    def named_site(self, name: str, frame: Frame) -> None:
        """Writes a named frame of the system as a site."""
        self._add_site(self.unique("site", name), frame)

    def site(self, frame: Frame, turned: bool = True) -> str:
        """The name of a site at a frame; one of the system's frames, or a new one.

        turned: whether its axes matter.
        """
        for name, other in self._sites.items():
            same = other.body == frame.body and _close(other.position, frame.position)
            if same and (not turned or _close(matrix(other.rotation), matrix(frame.rotation))):
                return name
        name = self.unique("site", distinct(f"{frame.body or 'world'}/site", self._sites))
        self._add_site(name, frame)
        return name

    def axes(self, site: str) -> np.ndarray:
        """The axes (3, 3) of a site in its body."""
        return matrix(self._sites[site].rotation)

    def points(self, path: Path) -> list[str]:
        """The names of sites at the points of a path."""
        ends = zip(path.bodies, path.points, strict=True)
        return [self.site(Frame(body, point), turned=False) for body, point in ends]

    def soften(self, kind: str, name: str, solref: Any, solimp: Any) -> None:
        """Gives the limit of a "joint" or "tendon" its softness."""
        for element in (self.bodies[None] if kind == "joint" else self.section("tendon")).iter():
            if element.get("name") == name and element.tag in ("joint", "fixed", "spatial"):
                element.set("solreflimit", numbers(solref))
                element.set("solimplimit", numbers(solimp))

    def _add_site(self, name: str, frame: Frame) -> None:
        self._sites[name] = frame
        site = SubElement(self.bodies[frame.body], "site", name=name)
        put(site, frame.position, frame.rotation)


def put(element: Element, position: Any, rotation: Any) -> None:
    """Gives an element the position (3,) in m and the rotation vector (3,) in rad, if not zero."""
    if np.any(position):
        element.set("pos", numbers(position))
    if np.any(rotation):
        element.set("quat", numbers(of_rotation_vector(rotation)))


def matrix(rotation: Any) -> np.ndarray:
    """The rotation matrix (3, 3) of a rotation vector (3,) in rad."""
    return of_quaternion(of_rotation_vector(rotation))


def numbers(values: Any) -> str:
    """All digits of a number or an array."""
    return " ".join(repr(float(x)) for x in np.ravel(jax.device_get(values)))


def _close(a: Any, b: Any) -> bool:
    return bool(np.allclose(a, b, rtol=0, atol=_SAME))

"""Transmissions along tendons as those of a MuJoCo file."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement

import numpy as np

from ....forces import FixedTendon, Path, SpatialTendon, Wrap
from ....system.frame import Frame
from .draft import Draft, numbers, put

_HALF_LENGTH = 0.1  # of the cylinders, in m, which are infinite for a tendon


def write_fixed(draft: Draft, tendon: FixedTendon, name: str, gear: float = 1.0) -> Element:
    """Writes a fixed tendon, without its own gear, its coefficients times another one."""
    element = SubElement(draft.section("tendon"), "fixed", name=draft.unique("tendon", name))
    for joint, coefficient in zip(tendon.joints, gear * weights(tendon), strict=True):
        SubElement(element, "joint", joint=joint, coef=numbers(coefficient))
    return element


def weights(tendon: FixedTendon) -> np.ndarray:
    """The coefficients (n,) of a fixed tendon."""
    return np.reshape(np.asarray(tendon.coefficients, float), -1)


def excess(draft: Draft, tendon: FixedTendon) -> float:
    """By how much the length of a fixed tendon here is larger than in the file, without gear."""
    zero = [draft.references.get(joint, 0.0) for joint in tendon.joints]
    return float(tendon.offset) - float(weights(tendon) @ zero)


def write_spatial(draft: Draft, tendon: SpatialTendon, name: str) -> Element:
    """Writes a spatial tendon, without its gear."""
    element = SubElement(draft.section("tendon"), "spatial", name=draft.unique("tendon", name))
    divisors = np.reshape(np.asarray(tendon.divisors, float), -1)
    if divisors[0] != 1:
        SubElement(element, "pulley", divisor=numbers(divisors[0]))
    wraps = {wrap.after: wrap for wrap in tendon.wraps}
    for i, site in enumerate(draft.points(tendon.points)):
        if i in tendon.branches:
            divisor = divisors[1 + tendon.branches.index(i)]
            SubElement(element, "pulley", divisor=numbers(divisor))
        SubElement(element, "site", site=site)
        if i in wraps:
            _write_wrap(draft, element, wraps[i], f"{name}/{i}")
    return element


def write_path(draft: Draft, path: Path, name: str) -> Element:
    """Writes a path of straight segments as a spatial tendon."""
    element = SubElement(draft.section("tendon"), "spatial", name=draft.unique("tendon", name))
    for site in draft.points(path):
        SubElement(element, "site", site=site)
    return element


def _write_wrap(draft: Draft, element: Element, wrap: Wrap, name: str) -> None:
    shape = {"type": "sphere", "size": numbers(wrap.radius)}
    if wrap.cylinder:
        shape = {"type": "cylinder", "size": numbers([wrap.radius, _HALF_LENGTH])}
    shape |= {"mass": "0", "contype": "0", "conaffinity": "0"}
    geom = SubElement(draft.bodies[wrap.frame.body], "geom", shape, name=draft.unique("geom", name))
    put(geom, wrap.frame.position, wrap.frame.rotation)
    on = SubElement(element, "geom", geom=geom.attrib["name"])
    if wrap.side is not None:
        side = Frame(wrap.side.bodies[0], wrap.side.points[0])
        on.set("sidesite", draft.site(side, turned=False))

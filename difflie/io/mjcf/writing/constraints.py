"""The constraints and mimic joints of a system as equalities of a MuJoCo file."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import SubElement

import jax.numpy as jnp
import numpy as np
from numpy.polynomial import Polynomial as Series

from ....constraints import (
    FixedConstraint,
    LengthConstraint,
    Polynomial,
    PolynomialOfSums,
    Proportional,
    SphericalConstraint,
)
from ....forces import FixedTendon, SpatialTendon
from ....forces.transmissions import transmitted
from ....system import Body, System
from ....system.kinematic_tree import Tree
from .draft import Draft, numbers
from .tendons import write_fixed, write_spatial

_COEFFICIENTS = 5  # of a joint equality


def write_equalities(draft: Draft, bodies: list[Body]) -> None:
    """Writes constraints and mimic joints; adds to the faults of the draft."""
    for body in bodies:
        mimic = body.joint.mimic
        if mimic is not None:
            name = body.joint.name or body.name
            _write_joint(draft, name, [mimic.offset, mimic.multiplier], mimic.joint)
    for constraint in draft.system.constraints:
        if not _write(draft, constraint):
            draft.faults.append(f"the constraint {constraint}")


def _write(draft: Draft, constraint: Any) -> bool:
    """Writes a constraint; whether it could be."""
    kind = type(constraint)
    if kind in (SphericalConstraint, FixedConstraint):
        welded = kind is FixedConstraint
        first, second = (draft.site(frame, turned=welded) for frame in constraint.frames)
        equality = draft.section("equality")
        SubElement(equality, "weld" if welded else "connect", site1=first, site2=second)
        return True
    if isinstance(constraint, Polynomial):
        coefficients = np.asarray(constraint.coefficients, float)
        if len(coefficients) > _COEFFICIENTS:
            return False
        _write_joint(draft, constraint.driven, coefficients, constraint.driver)
        return True
    if isinstance(constraint, Proportional):
        ratios, names = np.asarray(constraint.ratios, float), list(constraint.names)
        if len(names) > 2:
            _write_tendon(draft, constraint)
            return True
        if not ratios[0]:
            return False
        law = [float(constraint.offset) / ratios[0], *(-ratios[1:] / ratios[0])]
        _write_joint(draft, names[0], law, *names[1:])
        return True
    if isinstance(constraint, PolynomialOfSums):
        sums = (
            FixedTendon(constraint.driven, constraint.driven_ratios),
            FixedTendon(constraint.drivers, constraint.driver_ratios),
        )
        names = [write_fixed(draft, tendon, "coupling").attrib["name"] for tendon in sums]
        return _write_tendons(draft, names, np.asarray(constraint.coefficients, float))
    return isinstance(constraint, LengthConstraint) and _write_length(draft, constraint)


def _write_length(draft: Draft, constraint: LengthConstraint) -> bool:
    """Writes the equality of tendons, relative to their lengths at zero coordinates."""
    tendons = constraint.tendons
    if any(isinstance(t, SpatialTendon) and float(t.gear) != 1 for t in tendons):
        return False
    starts = np.array([_start(draft.system, tendon) for tendon in tendons])
    own, *others = starts - np.asarray(constraint.origins, float)[: len(tendons)]
    law = Series(np.asarray(constraint.coefficients, float))
    for apart in others:
        law = law(Series([apart, 1.0]))
    written = (
        write_spatial(draft, tendon, "coupling")
        if isinstance(tendon, SpatialTendon)
        else write_fixed(draft, tendon, "coupling", float(tendon.gear))
        for tendon in tendons
    )
    names = [element.attrib["name"] for element in written]
    return _write_tendons(draft, names, (law - own).coef)


def _start(system: System, tendon: FixedTendon | SpatialTendon) -> float:
    """The length in m of a tendon at zero coordinates."""
    if isinstance(tendon, FixedTendon):
        return float(tendon.gear) * float(tendon.offset)
    still = jnp.zeros(system.nv, system.dtype)
    ((length, _),) = transmitted(Tree.of(system), [tendon], system.neutral(), still)
    return float(length)


def _write_tendons(draft: Draft, names: list[str], law: np.ndarray) -> bool:
    """Writes the equality of one or two tendons; whether it is of an order that MJCF has."""
    if len(law) > _COEFFICIENTS:
        return False
    law = np.append(law, np.zeros(_COEFFICIENTS - len(law)))
    named = {f"tendon{k}": name for k, name in enumerate(names, start=1)}
    SubElement(draft.section("equality"), "tendon", named, polycoef=numbers(law))
    return True


def _write_tendon(draft: Draft, constraint: Proportional) -> None:
    """Writes a sum of coordinates as the equality of a fixed tendon."""
    tendon = write_fixed(draft, FixedTendon(constraint.names, constraint.ratios), "coupling")
    _write_tendons(draft, [tendon.attrib["name"]], np.array([float(constraint.offset)]))


def _write_joint(draft: Draft, driven: str, coefficients: Any, driver: str | None = None) -> None:
    law = np.zeros(_COEFFICIENTS)
    law[: len(coefficients)] = coefficients
    joints = {"joint1": driven} | ({} if driver is None else {"joint2": driver})
    SubElement(draft.section("equality"), "joint", joints, polycoef=numbers(law))

"""The constraints and mimic joints of a system as equalities of a MuJoCo file."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import SubElement

import numpy as np

from ....constraints import FixedConstraint, Polynomial, Proportional, SphericalConstraint
from ....forces import FixedTendon
from ....system import Body
from .draft import Draft, numbers
from .tendons import write_fixed

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
    return False


def _write_tendon(draft: Draft, constraint: Proportional) -> None:
    """Writes a sum of coordinates as the equality of a fixed tendon."""
    tendon = write_fixed(draft, FixedTendon(constraint.names, constraint.ratios), "coupling")
    law = np.append(float(constraint.offset), np.zeros(_COEFFICIENTS - 1))
    equality = draft.section("equality")
    SubElement(equality, "tendon", tendon1=tendon.attrib["name"], polycoef=numbers(law))


def _write_joint(draft: Draft, driven: str, coefficients: Any, driver: str | None = None) -> None:
    law = np.zeros(_COEFFICIENTS)
    law[: len(coefficients)] = coefficients
    joints = {"joint1": driven} | ({} if driver is None else {"joint2": driver})
    SubElement(draft.section("equality"), "joint", joints, polycoef=numbers(law))

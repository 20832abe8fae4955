"""The names of couplings, by which their numbers have paths: "balancer/stiffness"."""

from __future__ import annotations

from typing import Any

import equinox as eqx

from ..system.protocols import ShapeElement
from ..system.system import System
from ..system.validation import format_value

# What the first parts of paths and of the numbers of a sweep mean already.
_TAKEN = (
    *("gravity", "couplings", "constraints", "sensors", "actuators", "shapes"),
    *("q0", "v0", "dt", "control"),
)
_SIGNS = "/*?[]"


class Named(eqx.Module):
    """A part of a system with a name of its own, or none.

    name: that of the part in `System.coupling`, tables and paths of numbers, "name/stiffness".
    """

    name: str | None = eqx.field(static=True, default=None, kw_only=True)

    @property
    def states(self) -> tuple[tuple[str, str], ...]:
        """The name and the unit of each internal state; none, unless it is a `Stateful` as well."""
        return ()

    @property
    def shapes(self) -> dict[str, ShapeElement]:
        """The shapes between which it acts, by name; none, unless it is a `ShapeContact`."""
        return {}


def title(part: Any) -> str:
    """The class of a part, and its name if it has one."""
    name = getattr(part, "name", None)
    return type(part).__name__ if name is None else f"{type(part).__name__} {format_value(name)}"


def name_faults(system: System, name: Any) -> list[str]:
    """Why a coupling with this name cannot be attached to a system; empty if it can."""
    if name is None:
        return []
    if not isinstance(name, str) or not name or any(sign in name for sign in _SIGNS):
        return [f"its name is {format_value(name)}; give it one without {' '.join(_SIGNS)}"]
    for of, names in (
        ("a joint", system.topology.joints),
        ("a body", system.body_names),
        ("an actuator", system.actuator_names),
        ("a coupling", coupling_names(system)),
        ("a sensor", [_given_name(s) for s in system.sensors]),
        ("something else", _TAKEN),
    ):
        if name in names:
            return [f"its name is that of {of} already; give it another"]
    return []


def _given_name(sensor: Any) -> str | None:
    """The name of a sensor, by which its numbers have paths; None for one of a robot file."""
    return None if getattr(sensor, "from_file", False) else getattr(sensor, "label", None)


def coupling_names(system: System) -> list[str]:
    """The names of the couplings that have one."""
    return [c.name for c in system.couplings if c.name is not None]

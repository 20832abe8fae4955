"""Couplings and actuators attached to a system, after their checks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from ..system.system import System
from ..system.validation import ModelError, described, format_value, nearest
from .actuators import Actuator, Axis
from .at_joint import JointCoupling
from .coupling import Coupling
from .names_of_couplings import coupling_names, name_faults
from .path import Path, on_bodies
from .stateful import filled, state_faults


def attach(system: System, *couplings: Coupling | JointCoupling | Actuator) -> System:
    """The system with couplings and actuators appended to those it has.

    They are springs, dampers, forces, bushings, contacts, stops, friction, drives and motors, or of
    your own class: a `Coupling` acts at points of bodies, a `JointForce` at a joint, a
    `JointCoupling` in the coordinates of all joints, an `Actuator` as it is commanded.

    Their numbers take on the system's precision and are leaves like all others:
    `system.couplings[0].stiffness` is a scalar in N/m, `system.couplings[0].path.points` (n, 3) in
    m, `system.actuators[0].kp` a scalar. A coupling with a name, such as `Spring(...,
    name="balancer")`, is `system.coupling("balancer")`, and its numbers have the paths
    "balancer/stiffness" beside "couplings/0/stiffness". With one actuator or more the control has
    one entry for each, in the order of `system.actuator_names`, and no others. To remove them:
    `dataclasses.replace(system, couplings=(), actuators=())`.

    Where a path or an axis names one of `System.frames`, its points and directions are in that
    frame. They are put on the frame's body, as numbers: a frame that changes later does not move
    them.

    Raises `ModelError` for faults of numbers, path and law (the method `problems` of a class), and
    for a part that does not fit the system (`incompatibilities`): an unknown body or joint (with
    the nearest known one), a stop at a joint without limits, a second force of one class at a
    joint, a name that is taken.

    >>> cart = dl.chain([dl.Body(name="cart", joint=dl.Prismatic(axis=(1, 0, 0)), mass=1.0)])
    >>> path = [(None, (-1, 0, 0)), ("cart", (0, 0, 0))]
    >>> buffer, motor = dl.Spring(path, 100.0, 1.0, name="buffer"), dl.Motor("cart", max_torque=5.0)
    >>> system = dl.attach(cart, buffer, motor)
    >>> float(system.coupling("buffer").stiffness), system.actuator_names
    (100.0, ('cart',))
    """
    if not isinstance(system, System):
        raise TypeError(
            f"attach: the first argument is a {type(system).__name__}; give the system first, "
            "dl.attach(system, spring, motor)"
        )
    for coupling in couplings:
        if isinstance(coupling, list | tuple):
            raise ModelError(
                f"{system.name}: a {type(coupling).__name__} cannot be attached; give its parts, "
                "dl.attach(system, *parts)"
            )
        if not isinstance(coupling, Coupling | JointCoupling | Actuator):
            raise ModelError(
                f"{system.name}: {described(coupling)} cannot be attached; give springs, "
                "dampers, forces, contacts, stops, actuators or friction, or derive the class from "
                "dl.Coupling, dl.JointForce or dl.Actuator"
            )
        system = _attached(system, coupling)
    for actuator in system.actuators:
        for name in actuator.partners:
            if name not in system.actuator_names:
                near = nearest(name, system.actuator_names)
                raise ModelError(
                    f"{system.name}: {actuator}: no actuator is named {format_value(name)}{near}; "
                    "attach both in one call"
                )
    return system


def _attached(system: System, coupling: Coupling | JointCoupling | Actuator) -> System:
    group = "actuators" if isinstance(coupling, Actuator) else "couplings"
    there = getattr(system, group)
    faults = coupling.incompatibilities(system, there) or _name_faults(system, coupling)
    for fault in faults or state_faults(coupling) or coupling.problems():
        raise ModelError(f"{system.name}: {group[:-1]} {len(there)}, {coupling}: {fault}")
    placed = _on_bodies(system, filled(coupling))
    added = jax.tree.map(lambda a: jnp.asarray(a, system.dtype), placed)
    return replace(system, **{group: (*there, added)})


def _on_bodies(system: System, part: Any) -> Any:
    """The same coupling or actuator, with what was given in named frames on their bodies."""
    axis = part.axis if isinstance(part, Actuator) else None
    if isinstance(part, Coupling):
        if _is_placed(system, part.path):
            return part
        return part.on_bodies(*on_bodies(system, _in_precision(system, part.path)))
    if axis is None or _is_placed(system, axis.path):
        return part
    moved, (rotation,) = on_bodies(system, _in_precision(system, axis.path))
    turned = Axis(moved.bodies[0], moved.points[0], rotation @ axis.direction)
    return replace(part, axis=turned, name=part.label)


def _is_placed(system: System, path: Path) -> bool:
    """Whether a path names bodies and the world only."""
    return all(name in (None, *system.body_names) for name in path.bodies)


def _in_precision(system: System, path: Path) -> Path:
    return replace(path, points=jnp.asarray(path.points, system.dtype))


def _name_faults(system: System, part: Coupling | JointCoupling | Actuator) -> list[str]:
    if not isinstance(part, Actuator):
        return name_faults(system, part.name)
    taken = part.label in coupling_names(system)
    return ["its name is that of a coupling already; give it another"] if taken else []

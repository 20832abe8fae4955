"""The same machine with some joints held still, such as the fingers of a gripper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..groups import so3
from ..solvers.linear import product
from ..system.fields import numbers
from ..system.joints import ROW_FIELDS, UNITS, Fixed
from ..system.named_states import KeptState
from ..system.shown import some
from ..system.system import Joints, System
from ..system.validation import ModelError, format_value, nearest, warn
from .constraint import CoordinateConstraint, MixedConstraint
from .unilateral import Unilateral

# The largest violation, in the unit of a constraint's equation, that counts as rounding.
_KEPT = 1e-6


def lock(system: System, coordinates: Mapping[str, Any]) -> System:
    """The same machine with joints held at these coordinates, () in rad or m, by name.

    These joints become fixed, each at its pose T(x), and have no entries in q and v any more; those
    that follow them are held as well. Inverse dynamics and mass matrix are those of the given
    system at these coordinates, at rest, without the rows and columns of the held joints. All
    bodies, names, forces, actuators, sensors and constraints are kept, except for constraints
    between held joints alone, and for sensors of coordinates of held joints, which a warning names.
    The result is differentiable with respect to the leaves of the system and the coordinates.

    Raises TypeError for names without coordinates, and `ModelError` for a joint that is unknown
    (with the nearest known one), fixed, follows another, or has no single coordinate; a coordinate
    that is not finite; a force, actuator or sensor at a held joint; and a constraint between held
    joints that they violate, or between held and other joints. Warns of
    a coordinate outside the limits of its joint.
    """
    t = system.topology
    held = _held(system, coordinates)
    left = _constraints(system, held)
    position, rotation = system.joints.position, system.joints.rotation
    for b, x in held.items():
        travel, turn = _pose(system, b, x)
        frame = so3.exp(rotation[b])
        position = position.at[b].add(product(frame, travel))
        rotation = rotation.at[b].set(so3.log(product(frame, turn)))
    stays = Fixed().without_numbers()
    made = replace(
        system,
        joints=replace(_without(system, list(held)), position=position, rotation=rotation),
        topology=replace(
            t,
            types=tuple(stays if b in held else joint for b, joint in enumerate(t.types)),
            kinds=tuple(() if b in held else kinds for b, kinds in enumerate(t.kinds)),
            mimics=tuple(None if b in held else source for b, source in enumerate(t.mimics)),
        ),
        constraints=tuple(left),
        states={name: _moving(system, held, state) for name, state in system.states.items()},
    )
    return measurable(made)


def measurable(system: System) -> System:
    """The system without sensors of joints that it has not, of which it warns."""
    kept, lost = [], []
    for sensor in system.sensors:
        try:
            labels = getattr(getattr(sensor, "quantity", None), "labels", None)
            if labels is not None:
                labels(system)
            kept.append(sensor)
        except ModelError:
            lost.append(format_value(getattr(sensor, "name", None)))
    if lost:
        warn(f"{system.name}: sensors of joints that are gone are taken off: {some(lost, 4)}")
    return replace(system, sensors=tuple(kept))


def _moving(system: System, held: Mapping[int, Any], state: KeptState) -> KeptState:
    """A named state without the entries of the held joints."""
    t = system.topology
    q, v = (
        np.concatenate([np.arange(*start[b : b + 2]) for b in t.coordinate_joints if b not in held])
        for start in (t.coordinate_start, t.velocity_start)
    )
    return replace(state, q=state.q[q], v=state.v[v])


def _held(system: System, coordinates: Mapping[str, Any]) -> dict[int, jax.Array]:
    """The coordinates () of the joints to hold and of those that follow them, by their bodies."""
    t = system.topology
    if not isinstance(coordinates, Mapping):
        raise TypeError(
            f"{system.name}: lock needs a coordinate for each joint, in rad or m, such as "
            '{"finger": 0.02}'
        )
    held: dict[int, jax.Array] = {}
    for name, given in coordinates.items():
        b = _joint(system, name)
        x = jnp.asarray(numbers(given, f"{system.name}: the coordinate of {name!r}", ()))
        held[b] = x.astype(system.dtype)
        _warn_of_limits(system, b, held[b])
    laws = system.joints.multiplier, system.joints.offset
    for dof, multiplier, offset in zip(t.mimic_dofs, *laws, strict=True):
        b = int(t.dof_body[dof])
        source = t.mimics[b]
        if source is not None and source in held:
            held[b] = multiplier * held[source] + offset
    return held


def _joint(system: System, name: str) -> int:
    """The body of a joint that can be held."""
    t = system.topology
    if name not in t.joints:
        near = nearest(str(name), system.joint_names)
        if name in system.body_names:
            near = f"; the body of that name is on {t.joints[system.body_names.index(name)]!r}"
        raise ModelError(f"{system.name}: no joint is named {format_value(name)}{near}")
    b = t.joints.index(name)
    source, fault = t.mimics[b], ""
    if source is not None:
        fault = f"follows {t.joints[source]!r}; lock that one"
    elif not t.kinds[b]:
        fault = "is fixed; leave it out"
    elif len(t.kinds[b]) > 1 or not t.manifolds[b].plain:
        fault = "has no single coordinate; lock joints with one degree of freedom"
    if fault:
        raise ModelError(f"{system.name}: the joint {name!r} {fault}")
    return b


def _warn_of_limits(system: System, b: int, x: jax.Array) -> None:
    t, dof = system.topology, system.topology.dof_start[b]
    lower, upper = system.joints.lower[dof], system.joints.upper[dof]
    if not any(isinstance(a, Tracer) for a in (x, lower, upper)) and not lower <= x <= upper:
        unit = UNITS[t.kinds[b][0]]
        warn(
            f"{system.name}: the joint {t.joints[b]!r} is locked at {x:g} {unit}, outside its "
            f"limits {lower:g} and {upper:g} {unit}"
        )


def _pose(system: System, b: int, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The translation (3,) and rotation (3, 3) of T(x) of a joint with one coordinate."""
    t, joints = system.topology, system.joints
    joint = t.types[b]
    if not joint.in_series:
        own = joints.numbers.get(joint.type_name(), {})
        T = joint.with_numbers({n: a[t.place_in_type[b]] for n, a in own.items()}).transform(
            x[None]
        )
        return T[:3, 3], T[:3, :3]
    dof, (kind,) = t.dof_start[b], t.kinds[b]
    axis = jnp.asarray(joints.axis[dof])
    along = x * axis / jnp.sqrt(jnp.sum(axis * axis))
    if kind == "prismatic":
        return along, jnp.eye(3, dtype=along.dtype)
    return (joints.pitch[dof] if kind == "helical" else 0.0) * along, so3.exp(along)


def _without(system: System, held: list[int]) -> Joints:
    """The numbers of the joints, without those of the degrees of freedom of the held ones."""
    t, joints = system.topology, system.joints
    dofs = np.flatnonzero(~np.isin(t.dof_body, held))
    laws = np.flatnonzero(~np.isin(t.dof_body[t.mimic_dofs], held))
    own = {}
    for kind, of_type in joints.numbers.items():
        bodies = [b for b, joint in enumerate(t.types) if joint.type_name() == kind]
        rows = np.flatnonzero(~np.isin(bodies, held))
        own |= {kind: {name: a[rows] for name, a in of_type.items()}} if rows.size else {}
    by_dof = {name: getattr(joints, name)[dofs] for name in ("axis", "pitch", *ROW_FIELDS)}
    by_law = {name: getattr(joints, name)[laws] for name in ("multiplier", "offset")}
    return replace(joints, numbers=own, **by_dof, **by_law)


def _constraints(system: System, held: dict[int, jax.Array]) -> Iterator[Any]:
    """The constraints that remain, after a check of all parts that name a held joint."""
    at = {system.topology.joints[b]: x for b, x in held.items()}
    for part in (*system.couplings, *system.actuators, *system.sensors):
        for name in {getattr(part, "joint", None), *(getattr(part, "joints", None) or ())}:
            if name in at:
                raise ModelError(
                    f"{system.name}: {part} stands at the joint {name!r}, which is locked; take it "
                    "off"
                )
    for c in system.constraints:
        by_joints = isinstance(c, CoordinateConstraint | MixedConstraint)
        if not by_joints or at.keys().isdisjoint(c.joints):
            yield c
            continue
        for moving in (name for name in c.joints if name not in at):
            raise ModelError(
                f"{system.name}: {c} ties {moving!r} to a locked joint; lock {moving!r} too, where "
                "the constraint puts it, or take the constraint off"
            )
        if isinstance(c, MixedConstraint):
            raise ModelError(
                f"{system.name}: {c} stands at locked joints ({', '.join(c.joints)}); take it off"
            )
        _check_kept(system, c, [at[name] for name in c.joints])


def _check_kept(system: System, c: CoordinateConstraint, x: list[jax.Array]) -> None:
    """Raises `ModelError` if a constraint does not hold at the coordinates of its joints."""
    gaps = c.residual(*x)
    if any(isinstance(gap, Tracer) for gap in gaps):
        return
    off = max((float(-g if isinstance(c, Unilateral) else abs(g)) for g in gaps), default=0.0)
    if off > _KEPT:
        raise ModelError(
            f"{system.name}: {c} is violated by {off:.3g} at the locked coordinates; lock its "
            "joints where it holds"
        )

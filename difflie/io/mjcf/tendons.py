"""MuJoCo's tendons: their springs, dampers and friction, and their lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ...forces import (
    Coupling,
    Damper,
    FixedTendon,
    Inerter,
    JointCoupling,
    JointTendon,
    Path,
    Rope,
    SpatialTendon,
    Spring,
    Tendon,
    Wrap,
)
from ...system.frame import Frame
from ..robot_files import distinct, of_quaternion
from .joints import TENDON, gears, higher_terms, rotors
from .names import SIGNS, body_names, command_names, element_name, joint_names, site_names
from .softness import soft_numbers
from .stand_ins import stands_in

_STOP_FORCE = 25  # MuJoCo's mjSENS_TENDONLIMITFRC

# What a tendon is led through: MuJoCo's mjtWrap.
_JOINT, _PULLEY, _SITE, _, _CYLINDER = range(1, 6)


def tendon_couplings(
    model: Any, bodies: Sequence[str], joints: Sequence[str], stops: bool
) -> Iterator[Coupling | JointCoupling]:
    """The springs, dampers, friction and inertia of a MuJoCo model's tendons, and their stops.

    bodies, joints: the names of its bodies but the world, and of its joints. stops: whether limits
    are read; those whose force a sensor reads have a name. Through sites only, a single
    springlength is a `Spring`; a range from 0 to a length, in which the tendon is slack, is a
    `Rope`. All else is a `Tendon` or a `JointTendon`.
    """
    named, heavy = stop_names(model) if stops else {}, inertances(model)
    for tendon in range(model.ntendon):
        if lost(model, tendon):
            continue
        if heavy[tendon]:
            held = tendon_transmission(model, tendon, bodies, joints)
            yield Inerter(transmission=held, inertance=heavy[tendon])
        sites, spring = _sites(model, tendon), _spring(model, tendon)
        numbers = _law(model, tendon) | (_stop(model, tendon) if stops else {})
        stiffness, damping = (numbers[name] for name in ("stiffness", "damping"))
        plain = not any(np.any(value) for name, value in numbers.items() if name not in _PLAIN)
        rest = model.tendon_lengthspring[tendon].copy()
        if sites is not None and plain and (spring is not None or not stiffness):
            owners = [int(b) for b in model.site_bodyid[sites]]
            path = Path(
                jnp.asarray(model.site_pos[sites]),
                tuple(bodies[b - 1] if b else None for b in owners),
            )
            if stiffness and spring is not None:
                yield spring(path, stiffness, rest[1])
            if damping:
                yield Damper(path, damping)
        elif any(np.any(value) for value in numbers.values()):
            along = tendon_transmission(model, tendon, bodies, joints)
            if isinstance(along, FixedTendon):
                yield JointTendon(along, rest_lengths=rest, name=named.get(tendon), **numbers)
            else:
                # Type checkers do not see that its path is a property, and no argument.
                yield Tendon(  # pyright: ignore
                    transmission=along, rest_lengths=rest, name=named.get(tendon), **numbers
                )


def stop_names(model: Any) -> dict[int, str]:
    """The names of the tendons whose stops have a force that a sensor reads."""
    measured = np.asarray(model.sensor_type) == _STOP_FORCE
    taken = {*body_names(model), *joint_names(model), *site_names(model)}
    taken |= {name for own in command_names(model) for name in own}
    found = {}
    for tendon in sorted(set(model.sensor_objid[measured].tolist())):
        if model.tendon_limited[tendon]:
            plain = (element_name(model, "tendon", tendon) or f"tendon{tendon}").translate(SIGNS)
            found[tendon] = distinct(plain, taken)
            taken.add(found[tendon])
    return found


# The numbers of a tendon's law that springs and dampers along a path have as well.
_PLAIN = "stiffness", "damping"


def _law(model: Any, tendon: int) -> dict[str, Any]:
    """The numbers of a tendon's law but its lengths at rest, with the dampers of its actuators."""
    along = (model.actuator_trntype == TENDON) & (model.actuator_trnid[:, 0] == tendon)
    ratio = gears(model)[along, 0] ** 2
    dampers = higher_terms(model, "tendon_damping")[tendon]
    dampers = dampers + ratio @ higher_terms(model, "actuator_damping")[along]
    springs = higher_terms(model, "tendon_stiffness")[tendon]
    stiffness = float(model.tendon_stiffness[tendon])
    if tendon_yields(model)[tendon]:  # a spring that yields is a force of its own
        stiffness, springs = 0.0, np.zeros(2)
    return {
        "stiffness": stiffness,
        "damping": float(model.tendon_damping[tendon] + rotors(model)["damping"][along].sum()),
        "friction": float(model.tendon_frictionloss[tendon]),
        "higher_stiffness": springs if np.any(springs) else None,
        "higher_damping": dampers if np.any(dampers) else None,
    }


def _stop(model: Any, tendon: int) -> dict[str, Any]:
    """The numbers of the stops at the limits of a tendon."""
    if not model.tendon_limited[tendon]:
        return {}
    soft = model.tendon_solref_lim[tendon], model.tendon_solimp_lim[tendon]
    stiffness, dissipation = soft_numbers(model, *soft, float(model.tendon_invweight0[tendon]))
    return {
        "length_range": model.tendon_range[tendon].copy(),
        "stop_stiffness": stiffness,
        "stop_dissipation": dissipation,
    }


def unused_tendons(model: Any) -> Iterator[tuple[str, str, list[int]]]:
    """The features of tendons that `tendon_couplings` ignores, "tendon", and which have them."""
    gone = [t for t in range(model.ntendon) if lost(model, t)]
    yield "tendons around shapes that are missing", "tendon", gone


def inertances(model: Any) -> NDArray:
    """The armature of each tendon (ntendon,), with that of its actuators; 0 in older versions."""
    found = np.array(getattr(model, "tendon_armature", np.zeros(model.ntendon)), float)
    along = model.actuator_trntype == TENDON
    np.add.at(found, model.actuator_trnid[along, 0], rotors(model)["armature"][along])
    return found


def tendon_yields(model: Any) -> NDArray:
    """The stretch (ntendon,) at which the spring of each tendon yields; 0 where it does not."""
    stretches = np.array(getattr(model, "tendon_springyield", np.zeros(model.ntendon)), float)
    springs = np.column_stack((model.tendon_stiffness, higher_terms(model, "tendon_stiffness")))
    return np.where(springs.any(axis=1), stretches, 0.0)


def lost(model: Any, tendon: int) -> bool:
    """Whether a tendon passes around a geom whose shape is missing."""
    parts = slice(model.tendon_adr[tendon], model.tendon_adr[tendon] + model.tendon_num[tendon])
    kinds, numbers = model.wrap_type[parts], model.wrap_objid[parts]
    return any(stands_in(model, geom) for geom in numbers[kinds > _SITE])


def tendon_transmission(
    model: Any, tendon: int, bodies: Sequence[str], joints: Sequence[str], gear: float = 1.0
) -> FixedTendon | SpatialTendon:
    """A tendon of a MuJoCo model as a transmission, its length times a gear.

    bodies, joints: the names of its bodies but the world, and of its joints.
    """
    first = int(model.tendon_adr[tendon])
    parts = range(first, first + int(model.tendon_num[tendon]))
    kinds = [int(model.wrap_type[w]) for w in parts]
    if _JOINT in kinds:
        numbers, coefficients = model.wrap_objid[parts], model.wrap_prm[parts]
        zero = model.qpos0[model.jnt_qposadr[numbers]]
        named = [joints[int(j)] for j in numbers]
        return FixedTendon(tuple(named), coefficients, offset=coefficients @ zero, gear=gear)

    def point(site: int) -> tuple[str | None, Any]:
        body = int(model.site_bodyid[site])
        return bodies[body - 1] if body else None, model.site_pos[site].copy()

    points: list[tuple[str | None, Any]] = []
    wraps, branches, divisors = [], [], [1.0]
    for w, kind in zip(parts, kinds, strict=True):
        on, parameter = int(model.wrap_objid[w]), float(model.wrap_prm[w])
        if kind == _SITE:
            points.append(point(on))
        elif kind == _PULLEY:
            # A tendon may begin with a pulley, and then has no branch before it.
            branches += [len(points)] if points else []
            divisors = [*divisors, parameter] if points else [parameter]
        else:
            body = int(model.geom_bodyid[on])
            centre, turn = model.geom_pos[on].copy(), of_quaternion(model.geom_quat[on])
            frame = Frame(bodies[body - 1] if body else None, centre, turn)
            side = point(round(parameter)) if parameter >= 0 else None
            cylinder, radius = kind == _CYLINDER, model.geom_size[on, 0]
            wraps.append(Wrap(len(points) - 1, frame, radius, cylinder, side))
    return SpatialTendon(points, wraps, branches, divisors, gear=gear)


def _sites(model: Any, tendon: int) -> np.ndarray | None:
    """The sites a tendon passes through; None where it also wraps something else."""
    parts = slice(model.tendon_adr[tendon], model.tendon_adr[tendon] + model.tendon_num[tendon])
    if np.all(model.wrap_type[parts] == _SITE):
        return model.wrap_objid[parts]
    return None


def _spring(model: Any, tendon: int) -> type[Spring] | type[Rope] | None:
    """The class of a tendon's spring, by its range of lengths at rest."""
    shortest, longest = model.tendon_lengthspring[tendon]
    if shortest == longest:
        return Spring
    return Rope if shortest == 0 else None

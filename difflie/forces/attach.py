"""Couplings put on a system, and what is checked before."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..system.system import System
from ..system.validation import ModelError, nearest, shown
from .at_joint import check_joint
from .contacts import SphereContact
from .couplings import Coupling, FollowerForce, PointForce, SmoothTensionDamper, SmoothTensionSpring
from .drives import Drive
from .stops import JointStop
from .stribeck import Stribeck

_NOT_NEGATIVE = (
    *("stiffness", "rest_length", "damping", "dissipation", "friction", "slip_velocity"),
    *("smoothing", "radius", "radii", "load_friction", "breakaway", "delay"),
)
_POSITIVE = {"smoothing": "m", "rate_smoothing": "m/s"}
# Of what stands at a joint.
_VELOCITIES = "slip_velocity", "stribeck_velocity"
_SMOOTH = (SmoothTensionSpring, SmoothTensionDamper)
_VECTORS = {"force": (3,), "normal": (3,), "radii": (2,)}
_SCALARS = (
    *(*_NOT_NEGATIVE, "rate_smoothing", "exponent", "torque_scale", "torque_bias"),
    "stribeck_velocity",
)
_SHAPES = {**dict.fromkeys(_SCALARS, ()), **_VECTORS}
_POINTS = {PointForce: "one point", FollowerForce: "one point", SphereContact: "two points"}


def attach(system: System, *couplings: Coupling | JointStop | Drive | Stribeck) -> System:
    """The system with couplings behind those it has.

    They are springs, forces, contacts and stops, drives and Stribeck friction.

    Their numbers take on the system's precision and are leaves like all others:
    `system.couplings[0].stiffness` is a scalar in N/m, `system.couplings[0].path.points` (n, 3) in
    m. To take them off again: `dataclasses.replace(system, couplings=())`. Raises `ModelError` for
    an unknown body or joint (with the nearest known one), a wrong shape, a wrong number of points,
    a number that is not finite, a negative stiffness, rest length, damping, friction, radius or
    smoothing, a smooth spring without smoothing, an exponent below 1, a plane without normal, a
    stop at a joint without limits, a second drive or Stribeck friction at a joint, and a velocity
    over which one of these acts that is not positive.
    """
    for k, coupling in enumerate(couplings, start=len(system.couplings)):
        where = f"{system.name}: coupling {k}, {coupling}"
        if isinstance(coupling, Coupling):
            _check_path(system, coupling, where)
        elif isinstance(coupling, JointStop):
            _check_joints(system, coupling, where)
        elif isinstance(coupling, Drive | Stribeck):
            check_joint(system, system.couplings, coupling, where)
        else:
            raise ModelError(
                f"{system.name}: {shown(coupling)} cannot be attached; give springs, "
                "dampers, forces, contacts, stops, drives or Stribeck friction"
            )
        _check_numbers(coupling, where)
    added = jax.tree.map(lambda a: jnp.asarray(a, system.dtype), couplings)
    return replace(system, couplings=(*system.couplings, *added))


def _check_path(system: System, coupling: Coupling, where: str) -> None:
    bodies = coupling.path.bodies
    for name in bodies:
        if name is not None and name not in system.body_names:
            raise ModelError(
                f"{where}: no body is named {name!r}{nearest(name, system.body_names)}"
            )
    needed = _POINTS.get(type(coupling), "two points or more")
    fits = {"one point": len(bodies) == 1, "two points": len(bodies) == 2}
    if not fits.get(needed, len(bodies) >= 2):
        raise ModelError(f"{where}: its path has {len(bodies)} points; give it {needed}")


def _check_joints(system: System, stop: JointStop, where: str) -> None:
    t = system.topology
    for name in stop.joints or ():
        if name not in t.joints:
            raise ModelError(f"{where}: no joint is named {name!r}{nearest(name, t.joints)}")
    limits = system.joints.lower, system.joints.upper
    if any(isinstance(a, Tracer) for a in limits):
        return
    limited = np.isfinite(limits).any(axis=0) & (t.row_coordinate >= 0)
    stopped = {t.joints[b] for b in t.row_body[limited]}
    if stop.joints is None and not stopped:
        raise ModelError(f"{where}: no joint has a limit; give one a lower or an upper limit")
    for name in stop.joints or ():
        if name not in stopped:
            raise ModelError(
                f"{where}: the joint {name!r} has no limit; give it a lower or an upper limit (on "
                "spherical and free joints, which have no plain coordinate, there are none)"
            )


def _check_numbers(coupling: Coupling | JointStop | Drive | Stribeck, where: str) -> None:
    numbers = {}
    if isinstance(coupling, Coupling):
        numbers["points"] = coupling.path.points, (len(coupling.path.bodies), 3)
    for name, shape in _SHAPES.items():
        if getattr(coupling, name, None) is not None:
            numbers[name] = getattr(coupling, name), shape
    for name, (value, shape) in numbers.items():
        if jnp.shape(value) != shape:
            wanted = f"{shape} of every field of this name: give it so, or rename the field"
            raise ModelError(f"{where}: {name} has shape {jnp.shape(value)}, needed is {wanted}")
        if isinstance(value, Tracer):
            continue
        if not np.all(np.isfinite(value)):
            raise ModelError(f"{where}: {name} is {np.asarray(value).tolist()}; it must be finite")
        if name in _NOT_NEGATIVE and np.any(np.asarray(value) < 0):
            raise ModelError(
                f"{where}: {name} is {np.asarray(value).tolist()}; it must not be negative"
            )
        if name in _VELOCITIES and isinstance(coupling, Drive | Stribeck) and value <= 0:
            raise ModelError(f"{where}: {name} is {float(value)}; it must be positive")
        if name == "exponent" and value < 1:
            raise ModelError(f"{where}: exponent is {float(value)}; it must be 1 or more")
        if name == "normal" and not np.any(value):
            raise ModelError(f"{where}: the normal is zero; give it a direction")
        if name in _POSITIVE and isinstance(coupling, _SMOOTH) and value <= 0:
            exact = type(coupling).__name__.removeprefix("Smooth")
            raise ModelError(
                f"{where}: {name} is {float(value)} {_POSITIVE[name]}; it must be positive, or use "
                f"{exact}"
            )

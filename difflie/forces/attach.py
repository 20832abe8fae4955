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
from .couplings import Coupling
from .drives import Drive
from .stops import JointStop
from .stribeck import Stribeck


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
            _check_bodies(system, coupling, where)
        elif isinstance(coupling, JointStop):
            _check_joints(system, coupling, where)
        elif isinstance(coupling, Drive | Stribeck):
            check_joint(system, system.couplings, coupling, where)
        else:
            raise ModelError(
                f"{system.name}: {shown(coupling)} cannot be attached; give springs, "
                "dampers, forces, contacts, stops, drives or Stribeck friction"
            )
        for fault in coupling.faults():
            raise ModelError(f"{where}: {fault}")
    added = jax.tree.map(lambda a: jnp.asarray(a, system.dtype), couplings)
    return replace(system, couplings=(*system.couplings, *added))


def _check_bodies(system: System, coupling: Coupling, where: str) -> None:
    for name in coupling.path.bodies:
        if name is not None and name not in system.body_names:
            raise ModelError(
                f"{where}: no body is named {name!r}{nearest(name, system.body_names)}"
            )


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

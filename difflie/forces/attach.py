"""Couplings put on a system, and what is checked before."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp

from ..system.system import System
from ..system.validation import ModelError, shown
from .at_joint import JointCoupling
from .couplings import Coupling
from .drives import Drive


def attach(system: System, *couplings: Coupling | JointCoupling | Drive) -> System:
    """The system with couplings behind those it has.

    They are springs, forces, bushings, contacts, stops, friction and drives, or of a class of one's
    own: a `Coupling` acts at points of bodies, a `JointForce` at a joint, a `JointCoupling` along
    the coordinates of all joints.

    Their numbers take on the system's precision and are leaves like all others:
    `system.couplings[0].stiffness` is a scalar in N/m, `system.couplings[0].path.points` (n, 3) in
    m. To take them off again: `dataclasses.replace(system, couplings=())`. Raises `ModelError` for
    what a class says of its numbers, path and law (`faults`), and why it does not go with the
    system (`misfits`): an unknown body or joint (with the nearest known one), a stop at a joint
    without limits, a second drive or force of one class at a joint.
    """
    dtype = system.dtype
    for coupling in couplings:
        where = f"{system.name}: coupling {len(system.couplings)}, {coupling}"
        if not isinstance(coupling, Coupling | JointCoupling | Drive):
            raise ModelError(
                f"{system.name}: {shown(coupling)} cannot be attached; give springs, "
                "dampers, forces, contacts, stops, drives or friction, or derive the class from "
                "dl.Coupling or dl.JointForce"
            )
        for fault in coupling.misfits(system, system.couplings) or coupling.faults():
            raise ModelError(f"{where}: {fault}")
        added = jax.tree.map(lambda a: jnp.asarray(a, dtype), coupling)
        system = replace(system, couplings=(*system.couplings, added))
    return system

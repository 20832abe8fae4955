"""From an arm's file to the numbers it starts at, and from numbers to the arm."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ...dynamics.regressor import parameters as inertial_parameters
from ...dynamics.regressor import properties
from ...forces import Drive, Stribeck, attach
from ...parameters.nearest_consistent import nearest_consistent
from ...parameters.pseudo_inertia import inconsistency
from ...system.system import System
from ..torque_rows import Friction, TorqueModel


def nearest_start(model: TorqueModel) -> tuple[NDArray, list[str]]:
    """The file's numbers (p,), with bodies that no mass has replaced by the nearest ones; notes."""
    bodies, notes = model.system.bodies, []
    inertia = np.asarray(bodies.inertia, float).copy()
    for b in model.bodies:
        if inconsistency((inertia[b] + inertia[b].T) / 2):
            near = nearest_consistent(float(bodies.mass[b]), inertia[b])
            before, after = (np.linalg.eigvalsh(x) for x in (inertia[b], near))
            notes.append(
                f"{model.system.body_names[b]}: no rigid body has its principal moments of inertia "
                f"{_listed(before)} kg m^2; the nearest that one has, {_listed(after)}, are taken "
                "as its estimate"
            )
            inertia[b] = near
    start = model.file_numbers()
    changed = model.system.replace(inertia=jnp.asarray(inertia, model.system.dtype))
    start[: model.inertial] = np.asarray(inertial_parameters(changed.bodies), float)[
        list(model.bodies)
    ].ravel()
    return start, notes


def machine(model: TorqueModel, friction: Friction, x: NDArray) -> System:
    """The arm with the numbers x (p,); offsets and load friction are those of drives.

    Of a motor that turns with a sum of joint rates neither inertia nor friction is in it.
    """
    system, at = model.system, list(model.bodies)
    mass, com, inertia = (
        np.asarray(a, float).copy()
        for a in (system.bodies.mass, system.bodies.com, system.bodies.inertia)
    )
    mass[at], com[at], inertia[at] = (
        np.asarray(a) for a in properties(jnp.asarray(x[: model.inertial].reshape(-1, 10)))
    )
    values = {leaf: model.joint_numbers(x, leaf) for leaf in model.leaves}
    leaves = {"mass": mass, "com": com, "inertia": inertia}
    own = {leaf: np.maximum(values[leaf], 0) for leaf in ("armature", "damping", "friction")}
    for leaf, value in {**own, "friction_velocity": friction.rise}.items():
        leaves[leaf] = np.asarray(getattr(system.joints, leaf), float).copy()
        leaves[leaf][model.dofs] = value
    system = system.replace(**{k: jnp.asarray(v, system.dtype) for k, v in leaves.items()})
    more = []
    for j, joint in enumerate(model.joints):
        peak = values["breakaway"][j]
        if np.isfinite(friction.fading[j]):
            more.append(Stribeck(joint, max(peak, 0.0), friction.fading[j]))
        offset = values["offset"][j] if model.offsets else 0.0
        load = model.joint_numbers(x, "load_friction")[j] if model.load else 0.0
        if model.offsets or model.load:
            law = {"torque_bias": -offset, "load_friction": load, "slip_velocity": friction.rise[j]}
            more.append(Drive(joint, **law))
    return attach(system, *more) if more else system


def _listed(moments: NDArray) -> str:
    return ", ".join(f"{m:.4g}" for m in moments)

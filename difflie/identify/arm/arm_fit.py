"""The `Fit` of an arm: consistent numbers as parameters of its system, with standard errors."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ...parameters import Parameters, entries
from ..consistency import Consistent, Distance
from ..fitting import Fit, judged
from ..losses import Squares
from ..minimiser import Outcome
from ..nominal import NominalPrior
from ..torque_rows import ArmTorques, Friction, TorqueModel
from .equations import Equations, Logs
from .machine import machine

# A number of a joint whose torque is so small a part of the noise is none.
_NO_NUMBER = 1e-6


def fitted_arm(
    logs: Logs,
    model: TorqueModel,
    friction: Friction,
    equations: Equations,
    deviations: NDArray,
    start: NDArray,
    found: Consistent,
    weight: float,
    distance: Distance,
) -> Fit:
    """The `Fit` of consistent numbers that were found, with standard errors.

    start (p,): the file's numbers; weight and distance: of the nearness to these. Parameters are
    those numbers on which some torque depends, and the velocities of friction; what the system
    cannot have is of the log.
    """
    known = np.diag(found.hessian) > 0
    slopes, columns = logs.bends(model, friction, found.x)
    parameters = _parameters(machine(model, friction, start), model, known, columns)
    # Zero has no free numbers; what is much less than an error stands for it.
    counts, deviation = equations.counts, deviations / np.sqrt(equations.weight)[:, None]
    rows = (equations.columns / deviation[:, :, None])[counts]
    length = np.linalg.norm(rows, axis=0)
    least = np.zeros(len(length))
    signed = model.nonnegative
    least[signed] = _NO_NUMBER / np.where(length > 0, length, np.inf)[signed]
    values = np.maximum(found.x, np.where(least > 0, least, -np.inf))
    x = parameters.x_of(machine(model, friction, values))
    scales = equations.scales(deviations)
    held = np.flatnonzero(known[model.inertial :] & np.isfinite(scales[model.inertial :]))
    held = held + model.inertial
    channel = np.broadcast_to(np.arange(counts.shape[1]), counts.shape)[counts]
    of, t = (np.broadcast_to(a[:, None], counts.shape)[counts] for a in (equations.of, equations.t))
    torques = ArmTorques(
        model=model,
        matrix=jnp.asarray(rows),
        slopes=jnp.asarray((slopes / deviation[:, :, None])[counts]),
        target=jnp.asarray((equations.torque / deviation)[counts]),
        near=jnp.asarray(start[held]),
        deviations=jnp.asarray(scales[held] / np.sqrt(weight)),
        velocities=jnp.asarray(np.concatenate((friction.rise, friction.fading))[columns]),
        columns=tuple(columns.tolist()),
        held=tuple(held.tolist()),
        places=(jnp.asarray(of), jnp.asarray(t), jnp.asarray(channel)),
    )
    # Its cost is half of the squares of residuals: twice the weight.
    more = {"distance": distance, "bodies": model.bodies, "is_scaled": True}
    near = NominalPrior.of(parameters.system, 2 * weight, **more)
    sums = jnp.asarray(found.x[[model.names.index(n.name) for n in model.sums]])
    message = f"{'' if found.converged else 'not '}converged after {found.steps} steps"
    best = Outcome((x, (sums, jnp.zeros(0))), found.steps, found.converged, message)
    fit = judged(parameters, (torques, near), Squares(), False, x, best)
    # Zeros of the file are its numbers, too.
    begin = np.concatenate((parameters.initial, np.zeros(len(model.sums))))
    return dataclasses.replace(fit, start=begin)


def _parameters(system: Any, model: TorqueModel, known: NDArray, velocities: NDArray) -> Parameters:
    """All numbers of an arm on which some torque depends, by the masks known (p,), velocities."""
    paths = {entry.path for entry in entries(system)}
    names = [f"{system.body_names[b]}/inertial" for b in model.bodies]
    fields = {"offset": "torque_bias"}
    summed = {n.name for n in model.sums}
    for name, there in zip(model.names[model.inertial :], known[model.inertial :], strict=True):
        joint, leaf = name.rsplit("/", 1)
        if there and name not in summed:
            names.append(_path(paths, joint, fields.get(leaf, leaf)))
    for k in velocities.tolist():
        leaf = ("friction_velocity", "stribeck_velocity")[k // len(model.joints)]
        names.append(_path(paths, model.joints[k % len(model.joints)], leaf))
    return Parameters(system, names)


def _path(paths: set[str], joint: str, leaf: str) -> str:
    """The path of a number of one degree of freedom: "joint/leaf", or "joint/leaf[1]"."""
    owner, bracket, number = joint.partition("[")
    path = f"{joint}/{leaf}"
    return path if path in paths or not bracket else f"{owner}/{leaf}[{number}"

"""The torques at the joints of an arm with actuators: measured, or delivered for its commands."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..sensors.sensor import Sensor
from ..system.system import System
from .inverse_dynamics import InverseDynamics
from .recordings import DataError, Recording, filled, refuse
from .statistics import listed


def without_actuators(system: System) -> System:
    """The machine without its actuators, and without sensors of the file that measure these."""
    bare = dataclasses.replace(system, actuators=(), sensors=())
    kept = tuple(
        s for s in system.sensors if not (isinstance(s, Sensor) and s.incompatibilities(bare, ()))
    )
    return dataclasses.replace(bare, sensors=kept)


def at_joints(
    system: System, recordings: Sequence[Recording], commands: bool
) -> tuple[Recording, ...]:
    """Recordings with the torques (n, nv) at the joints as tau.

    commands: whether tau are the commands (n, nu) of the actuators. What these deliver for them is
    then computed along the measured motion; rows in which q, v or tau has a gap are gaps. Raises
    DataError for commands of a machine without actuators, for columns of another number, and for
    those of commands that are to be torques.
    """
    refuse(
        system.name,
        (
            commands and not system.actuators,
            "tau cannot be commands, as it has no actuators; attach these, or leave commands out",
        ),
    )
    for r in recordings:
        said = "its contacts are closed; declare parameters, and fit by InverseDynamics"
        refuse(r.name, (bool(r.closed), said))
    if commands:
        return tuple(_delivered(system, r) for r in recordings)
    for r in recordings if system.nu != system.nv else ():
        refuse(
            r.name,
            (
                r.tau is not None and r.tau.shape[1] == system.nu,
                f"tau has {system.nu} columns, as many as {system.name} has actuators, and not as "
                f"its {system.nv} joints; say commands = true for their commands",
            ),
        )
    return tuple(recordings)


def said_of_actuators(system: System, commands: bool) -> list[str]:
    """One sentence on what a fit of an arm does with its actuators; none where it has none."""
    names = listed(list(system.actuator_names))
    if not system.actuators:
        return []
    if commands:
        return [
            f"torques are what the actuators {names} deliver for the commands along the measured "
            "motion; the fitted machine is without these actuators"
        ]
    return [
        f"tau are taken as the torques at the joints: the actuators {names} are left aside, and "
        "the fitted machine is without them (commands = true for a log of their commands)"
    ]


def _delivered(system: System, recording: Recording) -> Recording:
    q, tau = recording.q, recording.tau
    for name, values, size in (("q", q, system.nq), ("tau", tau, system.nu)):
        if values is None or values.shape[1] != size:
            count = "no" if values is None else values.shape[1]
            raise DataError(
                f"{recording.name}: {name} has {count} columns; with commands the machine has "
                f"{system.nq} joints and {system.nu} commands, {', '.join(system.actuator_names)}"
            )
    assert q is not None
    assert tau is not None
    t = recording.t
    v = np.gradient(filled(t, q), t, axis=0) if recording.v is None else recording.v
    lost = np.any(np.isnan(np.concatenate((q, v, tau), axis=1)), axis=1)
    rows = (jnp.asarray(filled(t, x), system.dtype) for x in (q, v, tau))
    efforts = np.array(_efforts(system, jnp.asarray(t, system.dtype), *rows))
    efforts[lost] = np.nan
    columns = {key: names for key, names in recording.columns.items() if key != "tau"}
    return dataclasses.replace(recording, tau=efforts, columns=columns)


@eqx.filter_jit
def _efforts(
    system: System, t: jax.Array, q: jax.Array, v: jax.Array, tau: jax.Array
) -> Float[Array, "n nv"]:
    first, there = jnp.zeros(len(t), int), jnp.ones(v.shape, bool)
    rows = InverseDynamics(t, first, q, v, jnp.zeros_like(v), tau, there, jnp.ones_like(v), None)
    return rows.efforts(system)

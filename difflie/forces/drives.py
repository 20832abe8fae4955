"""Drives: what a joint gets of the effort that is measured or told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..system.fields import number
from ..system.slices import replaced
from ..system.system import System
from .at_joint import AtJoint


class Drive(AtJoint):
    """A drive with a gear at a joint of one degree of freedom.

        tau = torque_scale u + torque_bias,    effort = tau - load_friction |tau| tanh(v / v0)

    u in N m or N is what a simulation is given as its control, or a recording as its torque, and
    torque_scale, without unit, the error of the torque constant. load_friction, without unit, is
    friction that grows with the load, as in gears: of what a motor drives less arrives, and of what
    drives a motor more is held. v0 = slip_velocity in rad/s or m/s. All are scalars. A torque
    sensor that reads scale tau + bias is one as well, with torque_scale = 1 / scale and torque_bias
    = -bias / scale.

    delay in s, a scalar: u arrives that much later, and its first value is there from before; None
    for no delay, which is no leaf. In each step of a simulation, or between two rows of a
    recording, the mean of what is held acts, exactly, so that all is piecewise linear in the delay.
    """

    joint: str = eqx.field(static=True)
    torque_scale: jax.Array = eqx.field(converter=number(), default=1.0, kw_only=True)
    torque_bias: jax.Array = eqx.field(converter=number(unit="N m or N"), default=0.0, kw_only=True)
    load_friction: jax.Array = eqx.field(
        converter=number(nonnegative=True), default=0.0, kw_only=True
    )
    slip_velocity: jax.Array = eqx.field(
        converter=number(unit="rad/s or m/s", positive=True), default=0.05, kw_only=True
    )
    delay: jax.Array | None = eqx.field(
        converter=number(unit="s", nonnegative=True, optional=True), default=None, kw_only=True
    )

    def effort(self, told: Float[Array, ""], v: Float[Array, ""]) -> Float[Array, ""]:
        """The effort () at the joint for the one that is told () and the joint's velocity ()."""
        tau = self.torque_scale * told + self.torque_bias
        return tau - self.load_friction * jnp.abs(tau) * jnp.tanh(v / self.slip_velocity)

    def gain(self, told: jax.Array, v: jax.Array) -> jax.Array:
        """The derivative () of the effort by the one that is told (), without unit."""
        tau = self.torque_scale * told + self.torque_bias
        lost = self.load_friction * jnp.sign(tau) * jnp.tanh(v / self.slip_velocity)
        return self.torque_scale * (1 - lost)


def has_drives(system: System) -> bool:
    """Whether the system has any."""
    return any(isinstance(c, Drive) for c in system.couplings)


def driven(
    system: System, told: Float[Array, " nv"], v: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """The efforts (nv,) that arrive of those told (nv,) at the velocities v (nv,)."""
    for drive in system.couplings:
        if isinstance(drive, Drive):
            k = drive.velocity(system.topology)
            told = replaced(told, k, drive.effort(told[k], v[k]))
    return told


def gains(system: System, told: jax.Array, v: jax.Array) -> jax.Array:
    """The derivatives (nv,) of the efforts that arrive by those told (nv,) at v (nv,)."""
    found = jnp.ones_like(told)
    for drive in system.couplings:
        if isinstance(drive, Drive):
            k = drive.velocity(system.topology)
            found = replaced(found, k, drive.gain(told[k], v[k]))
    return found


def delayed(system: System) -> list[tuple[Drive, jax.Array]]:
    """The drives that have a delay, and this ()."""
    drives = [c for c in system.couplings if isinstance(c, Drive)]
    return [(drive, drive.delay) for drive in drives if drive.delay is not None]


def late(
    system: System, told: Float[Array, "n nv"], rule: Callable[[jax.Array, jax.Array], jax.Array]
) -> Float[Array, "n nv"]:
    """What comes of efforts told (n, nv) row by row; rule(column (n,), delay) gives one column."""
    for drive, delay in delayed(system):
        k = drive.velocity(system.topology)
        # Not by an update in place: fed to nested loops, XLA for CPUs reads it at the wrong row.
        own = np.arange(told.shape[1]) == k
        told = jnp.where(own, rule(told[:, k], delay)[:, None], told)
    return told


def prompt(system: System) -> System:
    """The system without the delays, for efforts that are late already."""
    drives = (replace(c, delay=None) if isinstance(c, Drive) else c for c in system.couplings)
    return replace(system, couplings=tuple(drives))

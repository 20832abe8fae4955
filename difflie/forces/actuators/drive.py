"""Drives with gears: the torque that a joint receives of a commanded or measured one."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ...system.fields import number
from .actuator import Scalar
from .delayed import Delayed


class Drive(Delayed):
    """A drive with a gear, commanded by its torque in N m or force in N.

        tau = torque_scale u + torque_bias,    torque = tau - load_friction |tau| tanh(v / v0)

    u is the control of a simulation, or the torque of a recording. torque_scale, without unit,
    corrects the torque constant. load_friction, without unit, is 1 less the efficiency of the gear:
    friction that grows with the load. It reduces the torque that drives the joint and adds to the
    torque that brakes it. v0 = slip_velocity in rad/s or m/s. All are scalars. A torque sensor that
    reads scale tau + bias is a Drive too, with torque_scale = 1 / scale and torque_bias = -bias /
    scale.

    delay: as of `Delayed`.
    """

    joint: str | None = eqx.field(static=True, default=None)
    torque_scale: jax.Array = eqx.field(converter=number(), default=1.0, kw_only=True)
    torque_bias: jax.Array = eqx.field(converter=number(unit="N m or N"), default=0.0, kw_only=True)
    load_friction: jax.Array = eqx.field(
        converter=number(nonnegative=True), default=0.0, kw_only=True
    )
    slip_velocity: jax.Array = eqx.field(
        converter=number(unit="rad/s or m/s", positive=True), default=0.05, kw_only=True
    )

    def torque(self, command: Scalar, q: Scalar, v: Scalar, memory: Any) -> tuple[Scalar, Any]:
        delayed, memory = self.late(command, memory)
        tau = self.torque_scale * delayed + self.torque_bias
        lost = self.load_friction * jnp.abs(tau) * jnp.tanh(v / self.slip_velocity)
        return tau - lost, memory

"""Drives with gears: the torque that a joint receives of a commanded or measured one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer

from ...system.fields import number
from .actuator import Actuator, Scalar
from .delay_line import DelayLine

# The whole delay line is carried from step to step, so its length is bounded.
_LONGEST = 10_000


class Drive(Actuator):
    """A drive with a gear, commanded by its torque in N m or force in N.

        tau = torque_scale u + torque_bias,    torque = tau - load_friction |tau| tanh(v / v0)

    u is the control of a simulation, or the torque of a recording. torque_scale, without unit,
    corrects the torque constant. load_friction, without unit, is 1 less the efficiency of the gear:
    friction that grows with the load. It reduces the torque that drives the joint and adds to the
    torque that brakes it. v0 = slip_velocity in rad/s or m/s. All are scalars. A torque sensor that
    reads scale tau + bias is a Drive too, with torque_scale = 1 / scale and torque_bias = -bias /
    scale.

    delay in s, a scalar: u acts that much later; before the motion u has its first value. None
    means no delay, and is no leaf. In each step of a simulation, or between two samples of a
    recording, the mean of the held commands acts, exactly, so the motion is piecewise linear in the
    delay. The delay may be at most most_steps steps long; `simulate` refuses a longer one, and a
    longer traced one makes the motion not finite.
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
    delay: jax.Array | None = eqx.field(
        converter=number(unit="s", nonnegative=True, optional=True), default=None, kw_only=True
    )
    most_steps: int = eqx.field(static=True, default=32, kw_only=True)

    def faults(self) -> list[str]:
        steps = self.most_steps
        if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= _LONGEST:
            return [f"most_steps is {steps!r}; it must be a whole number from 1 to {_LONGEST}"]
        return super().faults()

    def forgets(self, dt: float, steps: int) -> list[str]:
        if self.delay is None or isinstance(self.delay, Tracer):
            return []
        # Up to rounding.
        needed = math.ceil(float(jnp.max(self.delay)) / dt * (1 - 1e-6))
        if min(needed, steps) <= self.most_steps:
            return []
        return [f"its delay is {needed} steps of {dt} s; give it most_steps={needed}"]

    def finer(self, n: int) -> Drive:
        return self if self.delay is None else replace(self, most_steps=n * self.most_steps)

    def init(self, command: Scalar, q: Scalar, v: Scalar) -> Any:
        return None if self.delay is None else DelayLine.filled(command, self.most_steps)

    def torque(self, command: Scalar, q: Scalar, v: Scalar, memory: Any) -> tuple[Scalar, Any]:
        delayed = command
        if self.delay is not None and memory is not None:
            line: DelayLine = memory.kept
            delayed = line.delayed(command, self.delay, memory.dt)
            memory = memory._replace(kept=line.after(command, memory.dt))
        tau = self.torque_scale * delayed + self.torque_bias
        lost = self.load_friction * jnp.abs(tau) * jnp.tanh(v / self.slip_velocity)
        return tau - lost, memory

"""Servos: motors with a controller of their own, towards a position or a velocity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax

from ...system.fields import number
from ...system.system import System
from .actuator import Actuator, Scalar
from .delayed import Delayed
from .saturation import within


class PositionServo(Delayed):
    """A motor that follows a commanded position u in rad or m of its joint: kp (u - q) - kd v.

    kp in N m/rad or N/m, kd in N m s/rad or N s/m, and max_torque in N m or N, to which the torque
    is limited, None for no limit; all are scalars. delay: of u, as of `Delayed`. Its joint must
    have a single coordinate.
    """

    joint: str | None = eqx.field(static=True, default=None)
    kp: jax.Array = eqx.field(
        converter=number(unit="N m/rad or N/m", nonnegative=True), kw_only=True
    )
    kd: jax.Array = eqx.field(
        converter=number(unit="N m s/rad or N s/m", nonnegative=True), default=0.0, kw_only=True
    )
    max_torque: jax.Array | None = eqx.field(
        converter=number(unit="N m or N", positive=True, optional=True), default=None, kw_only=True
    )

    def incompatibilities(self, system: System, there: Sequence[Actuator]) -> list[str]:
        incompatibilities = super().incompatibilities(system, there)
        if incompatibilities or (self.joint is not None and self.coordinate(system.topology) >= 0):
            return incompatibilities
        return ["there is no coordinate that is a plain number; take a VelocityServo"]

    def torque(self, command: Scalar, q: Scalar, v: Scalar, memory: Any) -> tuple[Scalar, Any]:
        u, memory = self.late(command, memory)
        return within(self.kp * (u - q) - self.kd * v, self.max_torque), memory


class VelocityServo(Delayed):
    """A motor that follows a commanded velocity u in rad/s or m/s of its joint: kd (u - v).

    kd in N m s/rad or N s/m and max_torque in N m or N, to which the torque is limited, None for no
    limit; both are scalars. delay: of u, as of `Delayed`.
    """

    joint: str | None = eqx.field(static=True, default=None)
    kd: jax.Array = eqx.field(
        converter=number(unit="N m s/rad or N s/m", nonnegative=True), kw_only=True
    )
    max_torque: jax.Array | None = eqx.field(
        converter=number(unit="N m or N", positive=True, optional=True), default=None, kw_only=True
    )

    def torque(self, command: Scalar, q: Scalar, v: Scalar, memory: Any) -> tuple[Scalar, Any]:
        u, memory = self.late(command, memory)
        return within(self.kd * (u - v), self.max_torque), memory

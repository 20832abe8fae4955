"""Motors that are commanded by their current."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax

from ...system.fields import number
from .actuator import Actuator, Scalar
from .saturation import within


class CurrentMotor(Actuator):
    """A motor behind a gear, commanded by its current i in A: torque = n k i.

    torque_constant k in N m/A; gear_ratio n, turns of the motor for one of the joint, or rad/m;
    max_current in A, to which i is limited, None for no limit. All are scalars.
    """

    joint: str | None = eqx.field(static=True, default=None)
    torque_constant: jax.Array = eqx.field(converter=number(unit="N m/A"), kw_only=True)
    gear_ratio: jax.Array = eqx.field(
        converter=number(unit="1 or rad/m"), default=1.0, kw_only=True
    )
    max_current: jax.Array | None = eqx.field(
        converter=number(unit="A", positive=True, optional=True), default=None, kw_only=True
    )

    def torque(self, command: Scalar, q: Scalar, v: Scalar, memory: Any) -> tuple[Scalar, Any]:
        current = within(command, self.max_current)
        return self.gear_ratio * self.torque_constant * current, memory

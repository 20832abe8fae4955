"""Motors that are commanded by their voltage."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float

from ...system.fields import number
from .actuator import Actuator, Scalar
from .saturation import within


class VoltageMotor(Actuator):
    """A direct-current motor behind a gear, commanded by its voltage u in V.

    With gear_ratio n (motor turns for one of the joint, or rad/m), torque_constant k (N m/A, which
    is that of the back-EMF in V s/rad), the winding's resistance R (ohm) and rotor_inertia J
    (kg m^2), all scalars, and without inductance:

        i = (u - k n v) / R,    torque = n k i,    armature = n^2 J

    max_voltage in V and max_current in A limit u and i, None for no limit. Give `armature` to the
    joint: `system.replace(armature=system.joints.armature.at[k].set(motor.armature))`, k its dof.
    """

    joint: str | None = eqx.field(static=True, default=None)
    torque_constant: jax.Array = eqx.field(converter=number(unit="N m/A"), kw_only=True)
    resistance: jax.Array = eqx.field(converter=number(unit="ohm", positive=True), kw_only=True)
    gear_ratio: jax.Array = eqx.field(
        converter=number(unit="1 or rad/m"), default=1.0, kw_only=True
    )
    rotor_inertia: jax.Array = eqx.field(
        converter=number(unit="kg m^2", nonnegative=True), default=0.0, kw_only=True
    )
    max_voltage: jax.Array | None = eqx.field(
        converter=number(unit="V", positive=True, optional=True), default=None, kw_only=True
    )
    max_current: jax.Array | None = eqx.field(
        converter=number(unit="A", positive=True, optional=True), default=None, kw_only=True
    )

    def current(self, command: Float[Array, ""], v: Float[Array, ""]) -> Float[Array, ""]:
        """The current () in A at a voltage () in V and a joint velocity v () in rad/s or m/s."""
        voltage = within(command, self.max_voltage)
        free = (voltage - self.torque_constant * self.gear_ratio * v) / self.resistance
        return within(free, self.max_current)

    def torque(self, command: Scalar, q: Scalar, v: Scalar, memory: Any) -> tuple[Scalar, Any]:
        return self.gear_ratio * self.torque_constant * self.current(command, v), memory

    @property
    def armature(self) -> Float[Array, ""]:
        """The reflected inertia () of the rotor at the joint, in kg m^2 or kg."""
        return self.gear_ratio * self.gear_ratio * self.rotor_inertia

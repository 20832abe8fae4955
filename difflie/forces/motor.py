"""Electric drives at the joints."""

from __future__ import annotations

import equinox as eqx
import jax
from jaxtyping import Array, Float

from ..system.fields import number


class Motor(eqx.Module):
    """A direct-current motor behind a gear at every velocity, or at one.

    With gear_ratio n (motor turns for one of the joint, or rad/m), torque_constant k (N m/A, which
    is that of the back-EMF in V s/rad), the winding's resistance R (ohm) and rotor_inertia J
    (kg m^2), each a scalar or (nv,), and without inductance:

        i = (u - k n v) / R,    tau = n k i,    armature = n^2 J

    Give `effort` to `simulate` as its control, and `armature` to the joints.
    """

    gear_ratio: jax.Array = eqx.field(converter=number(unit="1 or rad/m", shape=None))
    torque_constant: jax.Array = eqx.field(converter=number(unit="N m/A", shape=None))
    resistance: jax.Array = eqx.field(converter=number(unit="ohm", shape=None))
    rotor_inertia: jax.Array = eqx.field(converter=number(unit="kg m^2", shape=None), default=0.0)

    def current(self, voltage: jax.Array | float, v: Float[Array, " *nv"]) -> Float[Array, " *nv"]:
        """The current in A at a voltage u in V and a velocity v of the joint, both (nv,)."""
        return (voltage - self.torque_constant * self.gear_ratio * v) / self.resistance

    def effort(self, voltage: jax.Array | float, v: Float[Array, " *nv"]) -> Float[Array, " *nv"]:
        """The generalised force (nv,) in N m or N at a voltage (nv,) in V."""
        return self.gear_ratio * self.torque_constant * self.current(voltage, v)

    @property
    def armature(self) -> Float[Array, "*nv"]:
        """The rotor's inertia as the joint feels it, in kg m^2 or kg, a scalar or (nv,)."""
        return self.gear_ratio * self.gear_ratio * self.rotor_inertia

"""The drag of a fluid at a joint, which grows with the square of its rate."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..system.fields import number
from .at_joint import JointForce


class JointDrag(JointForce):
    """Air or another fluid at rest that a joint with one degree of freedom moves a body through.

        effort = -drag v |v|

    in N m or N, with v the joint's rate. drag in N m s^2 or N s^2/m^2, a scalar: half the fluid's
    density times a drag coefficient, times the area's third moment about the axis (or the area). It
    always dissipates. Where a joint carries another, only the rate between the two counts.
    Batchelor 1967, section 5.11.
    """

    joint: str = eqx.field(static=True)
    drag: jax.Array = eqx.field(converter=number(unit="N m s^2 or N s^2/m^2", nonnegative=True))

    def effort(self, x: Float[Array, ""], v: Float[Array, ""]) -> Float[Array, ""]:
        return -self.drag * v * jnp.abs(v)

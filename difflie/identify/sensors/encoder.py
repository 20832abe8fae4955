"""Encoders of joints: how measured configurations and velocities depend on the true ones."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ...forces.at_joint import AtJoint
from ...system.fields import number
from ...system.protocols import SensorElement
from ...system.system import System


class Encoder(AtJoint):
    """The encoder of a joint with one degree of freedom, with its scale and zero.

        reading = position_scale q + position_bias

    position_scale, without unit, is negative for reversed counting; position_bias in rad or m is
    the reading at q = 0. Velocities and accelerations are taken as derivatives of the reading. For
    a torque sensor use `Drive`.
    """

    joint: str = eqx.field(static=True)
    position_scale: jax.Array = eqx.field(converter=number(), default=1.0, kw_only=True)
    position_bias: jax.Array = eqx.field(
        converter=number(unit="rad or m"), default=0.0, kw_only=True
    )

    def incompatibilities(self, system: System, there: Sequence[SensorElement]) -> list[str]:
        return super().incompatibilities(system, there) or self.needs_coordinate(system)

    def problems(self) -> list[str]:
        scale = self.position_scale
        zero = not isinstance(scale, Tracer) and not np.any(scale)
        more = ["position_scale is 0.0; it must not be zero"] if zero else []
        return [*super().problems(), *more]


def seen(
    system: System, q: Float[Array, "*batch nq"], v: Float[Array, "*batch nv"]
) -> tuple[Float[Array, "*batch nq"], Float[Array, "*batch nv"]]:
    """The readings for q (..., nq) and v (..., nv), in rad, m and the same per s."""
    scale, bias, rate = _calibration(system, q.shape[:-1])
    return scale * q + bias, rate * v


def meant(system: System, q: jax.Array, *rates: jax.Array) -> tuple[jax.Array, ...]:
    """The true q (..., nq), and velocities or accelerations (..., nv), for these readings."""
    scale, bias, rate = _calibration(system, q.shape[:-1])
    return (q - bias) / scale, *(x / rate for x in rates)


def _calibration(system: System, batch: tuple[int, ...]) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The scales (*batch, nq) and biases of coordinates, the scales (*batch, nv) of their rates."""
    t = system.topology
    scale, rate = (jnp.ones(n, system.dtype) for n in (t.nq, t.nv))
    bias = jnp.zeros_like(scale)
    for encoder in system.sensors:
        if not isinstance(encoder, Encoder):
            continue
        i, k = encoder.coordinate(t), encoder.velocity(t)
        scale = scale.at[i].set(encoder.position_scale)
        bias = bias.at[i].set(encoder.position_bias)
        rate = rate.at[k].set(encoder.position_scale)
    scale, bias, rate = (jnp.broadcast_to(x, (*batch, x.size)) for x in (scale, bias, rate))
    return scale, bias, rate

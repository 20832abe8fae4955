"""Sensors at the joints: what is read instead of the motion there is.

They exert nothing, so that they are no couplings: simulations do not know them, and only what
compares a motion with measurements does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ..forces.at_joint import AtJoint
from ..system.fields import number
from ..system.system import System
from ..system.validation import ModelError


class Encoder(AtJoint):
    """The encoder of a joint with one degree of freedom, and the zero that it was given.

        reading = position_scale q + position_bias

    position_scale, without unit, is negative where it counts backwards; position_bias in rad or m
    is what it reads at q = 0. Velocities and accelerations are taken for derivatives of the
    reading. A torque sensor has its numbers in a `Drive`.
    """

    joint: str = eqx.field(static=True)
    position_scale: jax.Array = eqx.field(converter=number(), default=1.0, kw_only=True)
    position_bias: jax.Array = eqx.field(
        converter=number(unit="rad or m"), default=0.0, kw_only=True
    )

    def misfits(self, system: System, there: Sequence[eqx.Module]) -> list[str]:
        return super().misfits(system, there) or self.needs_coordinate(system)

    def faults(self) -> list[str]:
        scale = self.position_scale
        zero = not isinstance(scale, Tracer) and not np.any(scale)
        more = ["position_scale is 0.0; it must not be zero"] if zero else []
        return [*super().faults(), *more]


def with_encoders(system: System, *encoders: Encoder) -> System:
    """The system with encoders behind those it has, in `system.sensors`.

    Their numbers, scalars () with biases in rad or m, take on the system's precision and are leaves
    like all others, with the paths "joint/position_bias" and "joint/position_scale". Raises
    `ModelError` for a joint that is unknown (with the nearest known one), follows another, has
    several degrees of freedom or an encoder already, and for a number that is not finite, a wrong
    shape and a zero scale.
    """
    for encoder in encoders:
        where = f"{system.name}: {encoder}"
        for fault in encoder.misfits(system, system.sensors) or encoder.faults():
            raise ModelError(f"{where}: {fault}")
        system = replace(system, sensors=(*system.sensors, encoder))
    dtype = system.dtype
    return replace(system, sensors=jax.tree.map(lambda a: jnp.asarray(a, dtype), system.sensors))


def seen(
    system: System, q: Float[Array, "*batch nq"], v: Float[Array, "*batch nv"]
) -> tuple[Float[Array, "*batch nq"], Float[Array, "*batch nv"]]:
    """What is measured of q (..., nq) and v (..., nv)."""
    scale, bias, rate = _calibration(system)
    return scale * q + bias, rate * v


def meant(system: System, q: jax.Array, *rates: jax.Array) -> tuple[jax.Array, ...]:
    """What was measured as q (..., nq) and as velocities or accelerations (..., nv)."""
    scale, bias, rate = _calibration(system)
    return (q - bias) / scale, *(x / rate for x in rates)


def _calibration(system: System) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The scales (nq,) and biases (nq,) of coordinates, and the scales (nv,) of their rates."""
    t = system.topology
    scale, rate = (jnp.ones(n, system.dtype) for n in (t.nq, t.nv))
    bias = jnp.zeros_like(scale)
    for encoder in system.sensors:
        assert isinstance(encoder, Encoder)
        i, k = encoder.coordinate(t), encoder.velocity(t)
        scale = scale.at[i].set(encoder.position_scale)
        bias = bias.at[i].set(encoder.position_bias)
        rate = rate.at[k].set(encoder.position_scale)
    return scale, bias, rate

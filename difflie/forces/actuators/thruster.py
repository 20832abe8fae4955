"""Thrusters: actuators that only push, with a lag."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ...system.fields import number
from .actuator import Actuator, Scalar
from .drive import Drive
from .saturation import between


class Thruster(Actuator):
    """A thruster, propeller or muscle, commanded by its force in N, from 0 to max_thrust.

    lag T in s: the thrust f follows the command u as T df/dt = min(max(u, 0), max_thrust) - f does,
    from f = 0, with u held over each time step. The mean of f over the step acts, so that impulses
    are exact. None means no lag, and is no leaf. max_thrust in N, None for no limit; both are
    scalars.

        dl.Thruster(axis=dl.Axis("hull", (0, 0, -0.3), (0, 0, 1)), max_thrust=20.0, lag=0.05)
    """

    joint: str | None = eqx.field(static=True, default=None)
    max_thrust: jax.Array | None = eqx.field(
        converter=number(unit="N", positive=True, optional=True), default=None, kw_only=True
    )
    lag: jax.Array | None = eqx.field(
        converter=number(unit="s", positive=True, optional=True, fix="or leave it out for no lag"),
        default=None,
        kw_only=True,
    )

    @property
    def command_bounds(self) -> tuple[Any, Any]:
        return 0.0, jnp.inf if self.max_thrust is None else self.max_thrust

    def unbounded(self) -> Actuator:
        if self.lag is not None:
            return self
        return Drive(joint=self.joint, axis=self.axis, name=self.name)

    def init(self, command: Scalar, q: Scalar, v: Scalar) -> Any:
        return None if self.lag is None else jnp.zeros_like(command)

    def torque(self, command: Scalar, q: Scalar, v: Scalar, memory: Any) -> tuple[Scalar, Any]:
        target = between(command, 0.0, jnp.inf if self.max_thrust is None else self.max_thrust)
        if self.lag is None or memory is None:
            return target, memory
        x = memory.dt / self.lag
        decayed = -jnp.expm1(-x)
        missing = memory.kept - target
        thrust = target + missing * (1 - decayed)
        return target + missing * (decayed / x), memory._replace(kept=thrust)

"""Motors that are commanded by their torque, within their limits of torque and speed."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...system.fields import number
from .actuator import Actuator, Scalar
from .drive import Drive
from .saturation import between


class Motor(Actuator):
    """A motor with its controller, commanded by its torque in N m or force in N, within its limits.

        |torque| <= max_torque,    torque <= s (1 - v / v_0),    torque >= -s (1 + v / v_0)

    max_torque in N m or N. The torque-speed line runs from the torque s = stall_torque (N m or N)
    at v = 0 to zero at v_0 = no_load_speed (rad/s or m/s); give both or neither. All are scalars.
    Beyond v_0 a motor can brake but not drive. At a limit the derivative by the command is zero.
    """

    joint: str | None = eqx.field(static=True, default=None)
    max_torque: jax.Array = eqx.field(
        converter=number(unit="N m or N", positive=True), kw_only=True
    )
    stall_torque: jax.Array | None = eqx.field(
        converter=number(unit="N m or N", positive=True, optional=True), default=None, kw_only=True
    )
    no_load_speed: jax.Array | None = eqx.field(
        converter=number(unit="rad/s or m/s", positive=True, optional=True),
        default=None,
        kw_only=True,
    )

    def problems(self) -> list[str]:
        if (self.stall_torque is None) != (self.no_load_speed is None):
            missing = "stall_torque" if self.stall_torque is None else "no_load_speed"
            return [f"{missing} is missing; the line of torque against speed has two ends"]
        return super().problems()

    @property
    def command_bounds(self) -> tuple[Any, Any]:
        return -self.max_torque, self.max_torque

    def unbounded(self) -> Actuator:
        if self.stall_torque is not None:
            return self
        return Drive(joint=self.joint, axis=self.axis, name=self.name)

    def torque(self, command: Scalar, q: Scalar, v: Scalar, memory: Any) -> tuple[Scalar, Any]:
        return between(command, -self._most(-v), self._most(v)), memory

    def _most(self, v: Float[Array, ""]) -> Float[Array, ""]:
        """The largest torque () in the direction of the velocity v ()."""
        if self.stall_torque is None or self.no_load_speed is None:
            return self.max_torque
        left = self.stall_torque * (1 - v / self.no_load_speed)
        return between(left, jnp.zeros_like(left), self.max_torque)

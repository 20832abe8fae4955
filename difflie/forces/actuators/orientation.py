"""A servo of an orientation, as three actuators that know each other's commands."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ...groups import quaternion, so3
from ...system.fields import number
from ..path import inverse, root
from .actuator import Scalar
from .delayed import Delayed
from .general import inside


def _names(given: Any) -> tuple[str, ...]:
    return tuple(map(str, given))


class OrientationServo(Delayed):
    """One of the three axes of a servo that turns a body to an orientation.

        m = kp log(R^T R_u) - kd w

    in N m, in the axes of the body, with its rotation R relative to another one, and the angular
    velocity w. This actuator exerts the part of m along axis number `index`, 0 to 2. Its command is
    the component `index` of the rotation vector of R_u in rad, and `others` are the names of the
    actuators along the other two axes, in order. With by_quaternion the commands are (w, x, y, z),
    of any length, and the first of three `others` is the `ExtraCommand` of w; a command of zero is
    the identity. Its transmission has as its length the component of the rotation vector of R: a
    `JointTransmission` along one axis of a spherical joint, or a `SiteTransmission` with a
    reference, whose moment is along an axis of the reference, in_reference=True. kp in N m/rad and
    kd in N m s/rad, scalars; max_torque in N m limits the length of m, None for no limit.
    command_range (2,) limits its command. It is the `orientation` of MuJoCo 4. delay and
    most_steps: as of `Drive`; transmission and name: as of `Actuator`.
    """

    index: int = eqx.field(static=True, kw_only=True)
    others: tuple[str, ...] = eqx.field(static=True, converter=_names, kw_only=True)
    by_quaternion: bool = eqx.field(static=True, default=False, kw_only=True)
    in_reference: bool = eqx.field(static=True, default=False, kw_only=True)
    kp: jax.Array = eqx.field(converter=number(unit="N m/rad", nonnegative=True), kw_only=True)
    kd: jax.Array = eqx.field(
        converter=number(unit="N m s/rad", nonnegative=True), default=0.0, kw_only=True
    )
    max_torque: jax.Array | None = eqx.field(
        converter=number(unit="N m", nonnegative=True, optional=True), default=None, kw_only=True
    )
    command_range: jax.Array | None = eqx.field(
        converter=number(shape=(2,), optional=True, ascending=True), default=None, kw_only=True
    )

    @property
    def partners(self) -> tuple[str, ...]:
        return self.others

    def problems(self) -> list[str]:
        wanted = 3 if self.by_quaternion else 2
        if self.index not in (0, 1, 2):
            return [f"index is {self.index}; it must be 0, 1 or 2"]
        if len(self.others) != wanted:
            return [f"others are {len(self.others)} names; give it {wanted}"]
        return super().problems()

    def passed_on(self, command: Scalar) -> Scalar:
        return inside(command, self.command_range)

    def torque(
        self, command: jax.Array, q: jax.Array, v: jax.Array, memory: Any
    ) -> tuple[Scalar, Any]:
        command = command.at[0].set(inside(command[0], self.command_range))
        # Its own entry comes first; in their order they are those of the axes x, y, z.
        order = [k + 1 if k < self.index else k for k in range(3)]
        order[self.index] = 0
        first = int(self.by_quaternion)
        order = [k + first if k else 0 for k in order]
        along, rate, goal = (jnp.stack([a[k] for k in order]) for a in (q, v, command))
        if self.by_quaternion:
            whole = jnp.concatenate((command[1][None], goal))
            square = jnp.sum(whole * whole)
            identity = jnp.zeros(4, whole.dtype).at[0].set(1)
            target = jnp.where(square > 0, whole * inverse(root(square)), identity)
        else:
            target = quaternion.exp(goal)
        now = quaternion.exp(along)
        error = quaternion.log(quaternion.multiply(quaternion.conjugate(now), target))
        turn = so3.exp(along)
        moment = self.kp * error - self.kd * (turn.T @ rate if self.in_reference else rate)
        if self.max_torque is not None:
            size = root(jnp.sum(moment * moment))
            excess = size > self.max_torque
            moment = moment * jnp.where(excess, self.max_torque * inverse(size), 1)
        return (turn @ moment if self.in_reference else moment)[self.index], memory

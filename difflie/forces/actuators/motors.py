"""Drives, motors, servos and thrusters: the actuators that there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...system.fields import number
from ...system.system import System
from .actuator import Actuator, Scalar, between, within
from .delayed import Delayed


class Drive(Delayed):
    """A drive with a gear, commanded by its torque in N m or force in N.

        tau = torque_scale u + torque_bias,    torque = tau - load_friction |tau| tanh(v / v0)

    u is the control of a simulation, or the torque of a recording. torque_scale, without unit,
    corrects the torque constant. load_friction, without unit, is 1 less the efficiency of the gear:
    friction that grows with the load. It reduces the torque that drives the joint and adds to the
    torque that brakes it. v0 = slip_velocity in rad/s or m/s. All are scalars. A torque sensor that
    reads scale tau + bias is a Drive too, with torque_scale = 1 / scale and torque_bias = -bias /
    scale.

    delay in s, a scalar, at most most_steps steps: u acts that much later; None for none. joint,
    axis and name: as of `Actuator`.

    >>> lift = dl.chain([dl.Body(name="lift", joint=dl.Prismatic(), mass=2.0)])
    >>> system = dl.attach(lift, dl.Drive("lift", torque_scale=0.9, torque_bias=1.0))
    >>> end = dl.step(system, [0.0], [0.0], dt=0.1, control=[20.0])
    >>> print(end.v.round(4))  # ((0.9 20 + 1) / 2 - 9.81) 0.1, in m/s
    [-0.031]
    """

    joint: str | None = eqx.field(static=True, default=None)
    torque_scale: jax.Array = eqx.field(converter=number(), default=1.0, kw_only=True)
    torque_bias: jax.Array = eqx.field(converter=number(unit="N m or N"), default=0.0, kw_only=True)
    load_friction: jax.Array = eqx.field(
        converter=number(nonnegative=True), default=0.0, kw_only=True
    )
    slip_velocity: jax.Array = eqx.field(
        converter=number(unit="rad/s or m/s", positive=True), default=0.05, kw_only=True
    )

    def torque(self, command: Scalar, q: Scalar, v: Scalar, memory: Any) -> tuple[Scalar, Any]:
        tau = self.torque_scale * command + self.torque_bias
        lost = self.load_friction * jnp.abs(tau) * jnp.tanh(v / self.slip_velocity)
        return tau - lost, memory


class Motor(Actuator):
    """A motor with its controller, commanded by its torque in N m or force in N, within its limits.

        |torque| <= max_torque,    torque <= s (1 - v / v_0),    torque >= -s (1 + v / v_0)

    max_torque in N m or N. The torque-speed line runs from the torque s = stall_torque (N m or N)
    at v = 0 to zero at v_0 = no_load_speed (rad/s or m/s); give both or neither. All are scalars.
    Beyond v_0 a motor can brake but not drive. At a limit the derivative by the command is zero.
    joint, axis and name: as of `Actuator`.

    >>> cart = dl.chain([dl.Body(name="cart", joint=dl.Prismatic(axis=(1, 0, 0)), mass=2.0)])
    >>> system = dl.attach(cart, dl.Motor("cart", max_torque=5.0))
    >>> print(dl.step(system, [0.0], [0.0], dt=0.1, control=[20.0]).v.round(3))  # 5 / 2 0.1, in m/s
    [0.25]
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
        return Drive(**self.place)

    def torque(self, command: Scalar, q: Scalar, v: Scalar, memory: Any) -> tuple[Scalar, Any]:
        return between(command, -self._most(-v), self._most(v)), memory

    def _most(self, v: Float[Array, ""]) -> Float[Array, ""]:
        """The largest torque () in the direction of the velocity v ()."""
        if self.stall_torque is None or self.no_load_speed is None:
            return self.max_torque
        left = self.stall_torque * (1 - v / self.no_load_speed)
        return between(left, jnp.zeros_like(left), self.max_torque)


class CurrentMotor(Actuator):
    """A motor behind a gear, commanded by its current i in A: torque = n k i.

    torque_constant k in N m/A; gear_ratio n, turns of the motor for one of the joint, or rad/m;
    max_current in A, to which i is limited, None for no limit. All are scalars. joint, axis and
    name: as of `Actuator`.
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


class VoltageMotor(Actuator):
    """A direct-current motor behind a gear, commanded by its voltage u in V.

    With gear_ratio n (motor turns for one of the joint, or rad/m), torque_constant k (N m/A, which
    is that of the back-EMF in V s/rad), the winding's resistance R (ohm) and rotor_inertia J
    (kg m^2), all scalars, and without inductance:

        i = (u - k n v) / R,    torque = n k i,    armature = n^2 J

    max_voltage in V and max_current in A limit u and i, None for no limit. joint, axis and name: as
    of `Actuator`. Give `armature` to the joint:
    `system.replace(armature=system.joints.armature.at[k].set(motor.armature))`, k its dof.
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


class PositionServo(Delayed):
    """A motor that follows a commanded position u in rad or m of its joint: kp (u - q) - kd v.

    kp in N m/rad or N/m, kd in N m s/rad or N s/m, and max_torque in N m or N, to which the torque
    is limited, None for no limit; all are scalars. delay and most_steps: as of `Drive`; joint, axis
    and name: as of `Actuator`. Its joint must have a single coordinate.

    >>> cart = dl.chain([dl.Body(name="cart", joint=dl.Prismatic(axis=(1, 0, 0)), mass=2.0)])
    >>> system = dl.attach(cart, dl.PositionServo("cart", kp=200.0, kd=40.0))
    >>> print(dl.simulate(system, [0.0], [0.0], steps=2000, control=[0.3]).q[-1].round(3))  # in m
    [0.3]
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
        followed = self.transmission is not None or (
            self.joint is not None and self.coordinate(system.topology) >= 0
        )
        if incompatibilities or followed:
            return incompatibilities
        return ["there is no coordinate that is a plain number; take a VelocityServo"]

    def torque(self, command: Scalar, q: Scalar, v: Scalar, memory: Any) -> tuple[Scalar, Any]:
        return within(self.kp * (command - q) - self.kd * v, self.max_torque), memory


class VelocityServo(Delayed):
    """A motor that follows a commanded velocity u in rad/s or m/s of its joint: kd (u - v).

    kd in N m s/rad or N s/m and max_torque in N m or N, to which the torque is limited, None for no
    limit; both are scalars. delay and most_steps: as of `Drive`; joint, axis and name: as of
    `Actuator`.
    """

    joint: str | None = eqx.field(static=True, default=None)
    kd: jax.Array = eqx.field(
        converter=number(unit="N m s/rad or N s/m", nonnegative=True), kw_only=True
    )
    max_torque: jax.Array | None = eqx.field(
        converter=number(unit="N m or N", positive=True, optional=True), default=None, kw_only=True
    )

    def torque(self, command: Scalar, q: Scalar, v: Scalar, memory: Any) -> tuple[Scalar, Any]:
        return within(self.kd * (command - v), self.max_torque), memory


class Thruster(Actuator):
    """A thruster, propeller or muscle, commanded by its force in N, from 0 to max_thrust.

    lag T in s: the thrust f follows the command u as T df/dt = min(max(u, 0), max_thrust) - f does,
    from f = 0, with u held over each time step. The mean of f over the step acts, so that impulses
    are exact. None means no lag, and is no leaf. max_thrust in N, None for no limit; both are
    scalars. joint, axis and name: as of `Actuator`.

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
        return Drive(**self.place)

    def init(self, command: Scalar, q: Scalar, v: Scalar) -> Any:
        return None if self.lag is None else jnp.zeros_like(command)

    @property
    def has_state(self) -> bool:
        return self.lag is not None if type(self).init is Thruster.init else super().has_state

    def torque(self, command: Scalar, q: Scalar, v: Scalar, memory: Any) -> tuple[Scalar, Any]:
        target = between(command, 0.0, jnp.inf if self.max_thrust is None else self.max_thrust)
        if self.lag is None or memory is None:
            return target, memory
        x = memory.dt / self.lag
        decayed = -jnp.expm1(-x)
        missing = memory.kept - target
        thrust = target + missing * (1 - decayed)
        return target + missing * (decayed / x), memory._replace(kept=thrust)

"""Actuators with a controller inside, of one command or several: `PIDServo` and `DCMotor`.

An actuator of several commands takes the further ones from its partners, each an `ExtraCommand`.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...system.fields import number
from ..stateful import Stateful
from .actuator import Scalar, between, within
from .delayed import Delayed
from .general import ahead, inside, stopped

_KINDS = "position", "velocity", "effort", "voltage"
_LEAST = 1e-15  # of a friction by which another number is divided


class ExtraCommand(Delayed):
    """A command that another actuator takes beside its own, which it is a partner of.

    It exerts no force by itself. command_range (2,), in the unit of the command: to which the
    command is limited; None for no limit. delay and most_steps: as of `Drive`. joint, axis,
    transmission and name: those of the actuator that takes it, and a name of its own.

    >>> cart = dl.chain([dl.Body(name="cart", joint=dl.Prismatic(axis=(1, 0, 0)), mass=2.0)])
    >>> further = (("velocity", "cart/velocity"),)
    >>> servo = dl.PIDServo("cart", kp=30.0, kd=5.0, further=further)
    >>> system = dl.attach(cart, servo, dl.ExtraCommand("cart", name="cart/velocity"))
    >>> print(dl.step(system, [0.0], [0.0], dt=0.1, control=[0.0, 2.0]).v.round(2))  # towards 2
    [0.43]
    """

    joint: str | None = eqx.field(static=True, default=None)
    command_range: jax.Array | None = eqx.field(
        converter=number(shape=(2,), optional=True, ascending=True), default=None, kw_only=True
    )

    @property
    def command_bounds(self) -> tuple[Any, Any]:
        return _bounds(self.command_range)

    def passed_on(self, command: Scalar) -> Scalar:
        return inside(command, self.command_range)

    def torque(self, command: Scalar, q: Scalar, v: Scalar, memory: Any) -> tuple[Scalar, Any]:
        return jnp.zeros_like(q), memory


def _pairs(given: Sequence[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((str(kind), str(name)) for kind, name in given)


class Controlled(Stateful, Delayed):
    """An actuator with a PID controller, which wants the effort

        tau = kp (u_p - l) + kd (u_v - v) + ki s + u_e,    ds/dt = u_p - l

    of the commands of a position u_p, a velocity u_v and an effort u_e. Those that it does not have
    are 0.
    """

    joint: str | None = eqx.field(static=True, default=None)
    takes: str = eqx.field(static=True, default="position", kw_only=True)
    further: tuple[tuple[str, str], ...] = eqx.field(
        static=True, converter=_pairs, default=(), kw_only=True
    )
    kp: jax.Array = eqx.field(converter=number(unit="N m/rad or N/m"), default=0.0, kw_only=True)
    kd: jax.Array = eqx.field(
        converter=number(unit="N m s/rad or N s/m"), default=0.0, kw_only=True
    )
    ki: jax.Array | None = eqx.field(
        converter=number(unit="N m/(rad s) or N/(m s)", optional=True), default=None, kw_only=True
    )
    integral_limit: jax.Array | None = eqx.field(
        converter=number(unit="rad s or m s", positive=True, optional=True),
        default=None,
        kw_only=True,
    )
    integral_lead: jax.Array | None = eqx.field(
        converter=number(unit="s", nonnegative=True, optional=True), default=None, kw_only=True
    )
    activation_range: jax.Array | None = eqx.field(
        converter=number(shape=(2,), optional=True, ascending=True), default=None, kw_only=True
    )
    slew_rate: jax.Array | None = eqx.field(
        converter=number(unit="of the command per s", positive=True, optional=True),
        default=None,
        kw_only=True,
    )
    slew_lag: jax.Array = eqx.field(
        converter=number(unit="s", positive=True), default=2e-3, kw_only=True
    )
    command_range: jax.Array | None = eqx.field(
        converter=number(shape=(2,), optional=True, ascending=True), default=None, kw_only=True
    )
    force_range: jax.Array | None = eqx.field(
        converter=number(unit="N or N m", shape=(2,), optional=True, ascending=True),
        default=None,
        kw_only=True,
    )

    @property
    def partners(self) -> tuple[str, ...]:
        return tuple(name for _, name in self.further)

    @property
    def command_bounds(self) -> tuple[Any, Any]:
        return _bounds(self.command_range)

    def passed_on(self, command: Scalar) -> Scalar:
        return inside(command, self.command_range)

    @property
    def states(self) -> tuple[tuple[str, str], ...]:
        found = [("setpoint", "")] if self.slew_rate is not None else []
        return (*found, *([("integral", "")] if self.ki is not None else []))

    def problems(self) -> list[str]:
        kinds = [self.takes, *(kind for kind, _ in self.further)]
        known = self.known_commands()
        if any(kind not in known for kind in kinds) or len(set(kinds)) < len(kinds):
            return [
                f"its commands are {', '.join(kinds)}; give some of {', '.join(known)}, each once"
            ]
        if self.ki is not None and "position" not in kinds:
            return ["it integrates (ki) without a command of the position; give it one"]
        if "none" in kinds and (self.further or self.slew_rate is not None):
            return ["it takes no command (none); leave out slew_rate and further"]
        if self.slew_rate is not None and self.takes == "voltage":
            return ["it limits the slew rate of a voltage; leave out slew_rate"]
        return super().problems()

    @abc.abstractmethod
    def known_commands(self) -> tuple[str, ...]:
        """What its commands may be."""

    def split(self, memory: Any) -> dict[str, Scalar]:
        """The values () of its states, by name."""
        return (
            {} if memory is None else {name: memory[i] for i, (name, _) in enumerate(self.states)}
        )

    def joined(self, rates: dict[str, Scalar], memory: Any) -> Any:
        """dz/dt (k,) of the rates () of its states, by name."""
        return jnp.stack([rates[name] for name, _ in self.states]) if self.states else memory

    def commands(
        self, command: jax.Array, z: dict[str, Scalar]
    ) -> tuple[dict[str, Scalar], dict[str, Scalar]]:
        """Its commands () by kind, and the rate of the setpoint that follows the first, if any."""
        given = jnp.reshape(command, (-1,))
        own, rates = inside(given[0], self.command_range), {}
        if self.slew_rate is not None:
            rate = within((own - z["setpoint"]) / self.slew_lag, self.slew_rate)
            own = z["setpoint"] + self.slew_lag * rate
            rates["setpoint"] = stopped(rate, z["setpoint"], self.activation_range)
        found = {} if self.takes == "none" else {self.takes: own}
        return found | {kind: given[1 + i] for i, (kind, _) in enumerate(self.further)}, rates

    def wanted(
        self, commands: dict[str, Scalar], z: dict[str, Scalar], q: Scalar, v: Scalar
    ) -> tuple[Scalar, dict[str, Scalar]]:
        """The effort tau () in N m or N, and the rate of the integral, if any."""
        off = commands.get("position", jnp.zeros_like(q)) - q
        lag = commands.get("velocity", jnp.zeros_like(v)) - v
        effort = self.kp * off + self.kd * lag + commands.get("effort", jnp.zeros_like(q))
        if self.ki is None:
            return effort, {}
        most = self.integral_limit
        ends = None if most is None else jnp.stack((-most, most))
        rate = stopped(off, z["integral"], ends)
        if self.integral_lead is None:
            integral = z["integral"]
        else:
            integral = ahead(z["integral"], rate, self.integral_lead)
            integral = inside(integral, self.activation_range)
        rate = stopped(rate, z["integral"], self.activation_range)
        return effort + self.ki * integral, {"integral": rate}


class PIDServo(Controlled):
    """A servo of a position, a velocity and an effort, with an integral part.

        f = kp (u_p - l) + kd (u_v - v) + ki s + u_e,    ds/dt = u_p - l

    in N or N m, at the coordinate l and its rate v of the joint or transmission. takes: what its
    own command is, "position", "velocity" or "effort"; further: pairs of such a word and the name
    of the `ExtraCommand` that it is; commands that it does not have are 0. kp, kd, ki in N m/rad or
    N/m and the like, scalars; ki None: without the integral s, which stops at +- integral_limit
    in rad s or m s, None for no limit. With an integral_lead in s the force is that of s +
    integral_lead ds/dt. With a slew_rate, per s, the own command is followed by a setpoint z, dz/dt
    = (u - z) / slew_lag within +- slew_rate, and u is z + slew_lag dz/dt; slew_lag in s should not
    be less than half a time step. activation_range (2,): at which s and z stop; None for no limit.
    command_range (2,), in the unit of the own command, and force_range (2,) in N or N m: to which
    both are limited; None for no limit. It is the `pid` of MuJoCo 4. delay and most_steps: as of
    `Drive`, of its own command alone; joint, axis, transmission and name: as of `Actuator`; z0: as
    of `Stateful`.
    """

    def known_commands(self) -> tuple[str, ...]:
        return _KINDS[:3]

    def torque(
        self, command: jax.Array, q: jax.Array, v: jax.Array, memory: Any
    ) -> tuple[Scalar, Any]:
        z, (x, rate) = self.split(memory), (jnp.ravel(a)[0] for a in (q, v))
        commands, slewing = self.commands(command, z)
        effort, winding = self.wanted(commands, z, x, rate)
        return inside(effort, self.force_range), self.joined(slewing | winding, memory)


class DCMotor(Controlled):
    """A motor with brushes under a voltage: its current, temperature, friction and cogging.

        f = K i + A sin(n l + phi) - (sigma_0 b + sigma_1 db/dt)
        i = (U - K v) / R,    or    di/dt = ((U - K v) / R - i) / T_e
        U = U_c + u_U,    U_c = (R_0 / K) tau + K v

    in N m or N. The controller wants the effort tau of `PIDServo` of the commands "position",
    "velocity" and "effort"; takes and further may be "voltage" as well, which is u_U in V. Without
    the other three U_c is 0. With takes="none" it is a motor whose terminals are joined, U = 0: its
    command does nothing. torque_constant K in N m/A, resistance R_0 in Ohm; max_voltage in V,
    to which U_c is limited, None for no limit. electric_lag T_e in s: None without inductance; with
    it current_rate in A/s limits di/dt, and with a current_lead in s the current is i +
    current_lead di/dt; None for neither.
    thermal (4,): resistance R_T in K/W, capacitance C in J/K, the coefficient alpha in 1/K, and by
    how much, in K, the surroundings are warmer than where R_0 was measured, T_0: R = R_0 (1 + alpha
    (T + T_0)), with C dT/dt = R i^2 - T / R_T of the temperature T in K above the surroundings.
    None: R = R_0. bristle (5,): sigma_0 in N m/rad, sigma_1 in N m s/rad, Coulomb and static
    friction F_C and F_S in N m, and v_S in rad/s, of the friction db/dt = v - sigma_0 |v| b / (F_C
    + (F_S - F_C) exp(-(v / v_S)^2)) (Canudas de Wit et al. 1995). cogging (3,): A in N m, n, phi in
    rad. force_range limits K i. The others as of `PIDServo`. It is the `dcmotor` of MuJoCo 4; for
    one without controller and states use `VoltageMotor`. joint, axis, transmission and name: as of
    `Actuator`; z0: as of `Stateful`.
    """

    takes: str = eqx.field(static=True, default="voltage", kw_only=True)
    torque_constant: jax.Array = eqx.field(
        converter=number(unit="N m/A", positive=True), kw_only=True
    )
    resistance: jax.Array = eqx.field(converter=number(unit="Ohm", positive=True), kw_only=True)
    max_voltage: jax.Array | None = eqx.field(
        converter=number(unit="V", positive=True, optional=True), default=None, kw_only=True
    )
    electric_lag: jax.Array | None = eqx.field(
        converter=number(unit="s", positive=True, optional=True), default=None, kw_only=True
    )
    current_rate: jax.Array | None = eqx.field(
        converter=number(unit="A/s", positive=True, optional=True), default=None, kw_only=True
    )
    current_lead: jax.Array | None = eqx.field(
        converter=number(unit="s", nonnegative=True, optional=True), default=None, kw_only=True
    )
    thermal: jax.Array | None = eqx.field(
        converter=number(unit="K/W, J/K, 1/K, K", shape=(4,), optional=True),
        default=None,
        kw_only=True,
    )
    bristle: jax.Array | None = eqx.field(
        converter=number(unit="N m/rad and the like", shape=(5,), optional=True),
        default=None,
        kw_only=True,
    )
    cogging: jax.Array | None = eqx.field(
        converter=number(unit="N m, 1, rad", shape=(3,), optional=True), default=None, kw_only=True
    )

    def known_commands(self) -> tuple[str, ...]:
        return (*_KINDS, "none")

    @property
    def states(self) -> tuple[tuple[str, str], ...]:
        found = [("temperature", "K")] if self.thermal is not None else []
        found += [("bristle", "rad")] if self.bristle is not None else []
        return (
            *super().states,
            *found,
            *([("current", "A")] if self.electric_lag is not None else []),
        )

    def torque(
        self, command: jax.Array, q: jax.Array, v: jax.Array, memory: Any
    ) -> tuple[Scalar, Any]:
        z, (x, rate) = self.split(memory), (jnp.ravel(a)[0] for a in (q, v))
        commands, rates = self.commands(command, z)
        voltage = commands.get("voltage", jnp.zeros_like(x))
        if commands.keys() - {"voltage"}:
            effort, winding = self.wanted(commands, z, x, rate)
            own = self.resistance / self.torque_constant * effort + self.torque_constant * rate
            voltage, rates = voltage + within(own, self.max_voltage), rates | winding
        current, heating = self._current(z, voltage, rate)
        force = inside(self.torque_constant * current, self.force_range)
        if self.cogging is not None:
            force = force + self.cogging[0] * jnp.sin(self.cogging[1] * x + self.cogging[2])
        rates = rates | heating
        if self.bristle is not None:
            rubbing, rates["bristle"] = self._friction(z["bristle"], rate, self.bristle)
            force = force - rubbing
        return force, self.joined(rates, memory)

    def _current(
        self, z: dict[str, Scalar], voltage: Scalar, v: Scalar
    ) -> tuple[Scalar, dict[str, Scalar]]:
        """The current () in A that makes the force, and the rates of current and temperature."""
        resistance, rates = self.resistance, {}
        if self.thermal is not None:
            resistance = resistance * (1 + self.thermal[2] * (z["temperature"] + self.thermal[3]))
        steady = (voltage - self.torque_constant * v) / resistance
        current = given = steady
        if self.electric_lag is not None:
            given = z["current"]
            rates["current"] = within((steady - given) / self.electric_lag, self.current_rate)
            current = ahead(given, rates["current"], self.current_lead)
        if self.thermal is not None:
            outwards = z["temperature"] / self.thermal[0]
            rates["temperature"] = (resistance * given * given - outwards) / self.thermal[1]
        return current, rates

    @staticmethod
    def _friction(b: Scalar, v: Scalar, numbers: Float[Array, "5"]) -> tuple[Scalar, Scalar]:
        """The friction () in N m, and the rate of the bristle."""
        stiffness, damping, sliding, static, stribeck = numbers
        ratio = v / stribeck
        most = sliding + (static - sliding) * jnp.exp(-ratio * ratio)
        most = between(most, _LEAST, jnp.inf)
        rate = v - stiffness * jnp.abs(v) / most * b
        return stiffness * b + damping * rate, rate


def _bounds(limits: Float[Array, "2"] | None) -> tuple[Any, Any]:
    return (-jnp.inf, jnp.inf) if limits is None else (limits[0], limits[1])

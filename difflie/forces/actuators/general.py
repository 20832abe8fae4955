"""Actuators with an affine gain and bias, as MuJoCo's `general`, `damper` and `cylinder`."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...system.fields import number, number_faults
from ..stateful import Stateful
from .actuator import Scalar, between
from .delayed import Delayed
from .muscle_curves import MuscleCurves


class GeneralActuator(Delayed):
    """A force with an affine gain and bias, as of MuJoCo's actuators.

        f = (g_0 + g_1 l + g_2 v) u + b_0 + b_1 l + b_2 v

    in N or N m, at the coordinate l and its rate v of the joint, or of the transmission. gain g
    (3,) and bias b (3,) in units of f per u, and per l or v. contracts and resists: the
    `MuscleCurves` of a muscle, by which the gain is less by F FL FV, and the bias by F FP; None for
    none. command_range (2,), in the unit of u,
    and force_range (2,) in N or N m are the least and the largest u and f, to which they are
    limited; None for no limit. With a period P, in the unit of l, u is an angle that is taken as
    the nearest of u + n P to l. delay and most_steps: as of `Drive`. joint, axis, transmission and
    name: as of `Actuator`.

    >>> cart = dl.chain([dl.Body(name="cart", joint=dl.Prismatic(axis=(1, 0, 0)), mass=2.0)])
    >>> cylinder = dl.GeneralActuator("cart", gain=(30.0, 0, 0), bias=(0, 0, -5.0))
    >>> system = dl.attach(cart, cylinder)
    >>> print(dl.step(system, [0.0], [2.0], dt=0.1, control=[1.0]).v.round(3))  # towards 30 / 5
    [2.885]
    """

    joint: str | None = eqx.field(static=True, default=None)
    gain: jax.Array = eqx.field(
        converter=number(unit="N or N m per u", shape=(3,)), default=(1.0, 0.0, 0.0), kw_only=True
    )
    bias: jax.Array = eqx.field(
        converter=number(unit="N or N m", shape=(3,)), default=(0.0, 0.0, 0.0), kw_only=True
    )
    contracts: MuscleCurves | None = eqx.field(default=None, kw_only=True)
    resists: MuscleCurves | None = eqx.field(default=None, kw_only=True)
    command_range: jax.Array | None = eqx.field(
        converter=number(shape=(2,), optional=True, ascending=True), default=None, kw_only=True
    )
    force_range: jax.Array | None = eqx.field(
        converter=number(unit="N or N m", shape=(2,), optional=True, ascending=True),
        default=None,
        kw_only=True,
    )
    period: jax.Array | None = eqx.field(
        converter=number(unit="rad", positive=True, optional=True), default=None, kw_only=True
    )

    @property
    def command_bounds(self) -> tuple[Any, Any]:
        if self.command_range is None:
            return -jnp.inf, jnp.inf
        return self.command_range[0], self.command_range[1]

    def torque(self, command: Scalar, q: Scalar, v: Scalar, memory: Any) -> tuple[Scalar, Any]:
        return self.force(inside(command, self.command_range), q, v), memory

    def force(self, u: Scalar, length: Scalar, rate: Scalar) -> Scalar:
        """The force () in N or N m for an input u () within its range."""
        if self.period is not None:
            turns = jax.lax.stop_gradient(jnp.round((u - length) / self.period))
            u = u - self.period * turns
        at = jnp.stack((jnp.ones_like(length), length, rate))
        force = jnp.sum((self.gain * u + self.bias) * at)
        if self.contracts is not None:
            force = force - self.contracts.peak_force * self.contracts.curves(length, rate)[0] * u
        if self.resists is not None:
            force = force - self.resists.peak_force * self.resists.curves(length, rate)[1]
        return inside(force, self.force_range)

    def problems(self) -> list[str]:
        parts = {"contracts": self.contracts, "resists": self.resists}
        for name, part in parts.items():
            if faults := [] if part is None else number_faults(part):
                return [f"{name}: {fault}" for fault in faults]
        return super().problems()


def inside(x: Scalar, limits: Float[Array, "2"] | None) -> Scalar:
    """x () clipped to limits (2,), the least and the largest value; unchanged for None."""
    return x if limits is None else between(x, limits[0], limits[1])


class ActivatedActuator(Stateful, GeneralActuator):
    """A `GeneralActuator` whose input is an activation z, which follows the command u in time.

        dz/dt = u            without a time_constant T, or
        dz/dt = (u - z) / T

    and f is that of z. T in s, a scalar. With excitation_times (2,) in s, in place of T, dz/dt is
    that of a `Muscle` with these time constants and the same `smoothing`. activation_range (2,) are
    the least and the largest z, at which it stops; None for no limit. lead in s, a scalar: f is
    that of z + lead dz/dt; None for that of z. They are MuJoCo's `integrator`, `filter` and
    `filterexact`, with a lead those with `actearly`, and with a servo's bias its `intvelocity`.
    delay and most_steps: as of `Drive`; joint, axis, transmission and name: as of `Actuator`; z0:
    as of `Stateful`.
    """

    time_constant: jax.Array | None = eqx.field(
        converter=number(unit="s", positive=True, optional=True), default=None, kw_only=True
    )
    excitation_times: jax.Array | None = eqx.field(
        converter=number(unit="s", shape=(2,), positive=True, optional=True),
        default=None,
        kw_only=True,
    )
    smoothing: jax.Array | None = eqx.field(
        converter=number(positive=True, optional=True), default=None, kw_only=True
    )
    activation_range: jax.Array | None = eqx.field(
        converter=number(shape=(2,), optional=True, ascending=True), default=None, kw_only=True
    )
    lead: jax.Array | None = eqx.field(
        converter=number(unit="s", nonnegative=True, optional=True), default=None, kw_only=True
    )

    @property
    def states(self) -> tuple[tuple[str, str], ...]:
        return (("activation", ""),)

    def torque(self, command: Scalar, q: Scalar, v: Scalar, memory: Any) -> tuple[Scalar, Any]:
        u, z = inside(command, self.command_range), memory[0]
        rate = u if self.time_constant is None else (u - z) * (1 / self.time_constant)
        if self.excitation_times is not None:
            rate = excited(u, z, self.excitation_times, self.smoothing)
        force = self.force(inside(ahead(z, rate, self.lead), self.activation_range), q, v)
        return force, stopped(rate, z, self.activation_range)[None]


def ahead(z: Scalar, rate: Scalar, lead: Scalar | None) -> Scalar:
    """A state z () that changes at a rate () a time `lead` () later; z for None."""
    return z if lead is None else z + lead * rate


def excited(
    u: Scalar, z: Scalar, times: Float[Array, "2"], smoothing: Float[Array, ""] | None
) -> Scalar:
    """dz/dt () in 1/s of the activation z () of a muscle at an excitation u (); see `Muscle`.

    times (2,) in s: of activation and deactivation.
    """
    slowing = 0.5 + 1.5 * between(z, 0.0, 1.0)
    rising, falling = times[0] * slowing, times[1] / slowing
    excess = between(u, 0.0, 1.0) - z
    if smoothing is None:
        return excess / jnp.where(excess > 0, rising, falling)
    share = _step(excess / smoothing + 0.5)
    return excess / (falling + (rising - falling) * share)


def _step(x: Scalar) -> Scalar:
    """A step () from 0 at x = 0 to 1 at x = 1, with two continuous derivatives."""
    inside_it = between(x, 0.0, 1.0)
    return inside_it**3 * (3 * inside_it * (2 * inside_it - 5) + 10)


def stopped(rate: Scalar, z: Scalar, limits: Float[Array, "2"] | None) -> Scalar:
    """The rate () of a state z (), 0 where it leads beyond limits (2,)."""
    if limits is None:
        return rate
    beyond = ((z <= limits[0]) & (rate < 0)) | ((z >= limits[1]) & (rate > 0))
    return jnp.where(beyond, jnp.zeros_like(rate), rate)

"""Muscles: a force that depends on activation, length and velocity, as MuJoCo's `muscle`."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ...system.fields import number
from ..stateful import Stateful
from .actuator import Scalar
from .delayed import Delayed
from .general import ahead, excited, inside, stopped
from .muscle_curves import MuscleCurves


class Muscle(MuscleCurves, Stateful, Delayed):
    """A muscle with an activation z, which follows the excitation u in time.

        f = -F (FL(L) FV(V) z + FP(L)),    dz/dt = (c - z) / T(c, z)

    c is u clipped to [0, 1]. The force f in N pulls, so that it is negative; peak_force is F in N.
    L = r_0 + (l - l_0) / L_0 and V = v / (L_0 v_max), with the length l in m and its rate v of the
    transmission, l_0 and l_1 of length_range (2,) in m, r of operating_range (2,), and L_0 = (l_1 -
    l_0) / (r_1 - r_0). FL is a bump from `shortest` to `longest` with its peak 1 at L = 1. FV rises
    from 0 at V = -1 to 1 at V = 0, and on to `eccentric`. FP is 0 up to L = 1, and half of
    `passive` at L = (1 + longest) / 2. v_max = fastest in 1/s. T is time_constants (2,) in s: of
    activation, times (0.5 + 1.5 z), and of deactivation, divided by it, joined smoothly over a
    width `smoothing` of c - z; None for a jump. activation_range (2,) and lead: as of
    `ActivatedActuator`. With time_constants None there is no state, and z is u.
    Millard et al. 2013, and the documentation of MuJoCo. delay and most_steps: as of `Drive`;
    joint, axis, transmission and name: as of `Actuator`; z0: as of `Stateful`.
    """

    joint: str | None = eqx.field(static=True, default=None)
    time_constants: jax.Array | None = eqx.field(
        converter=number(unit="s", shape=(2,), positive=True, optional=True),
        default=(0.01, 0.04),
        kw_only=True,
    )
    smoothing: jax.Array | None = eqx.field(
        converter=number(positive=True, optional=True), default=None, kw_only=True
    )
    command_range: jax.Array | None = eqx.field(
        converter=number(shape=(2,), optional=True, ascending=True), default=None, kw_only=True
    )
    force_range: jax.Array | None = eqx.field(
        converter=number(unit="N", shape=(2,), optional=True, ascending=True),
        default=None,
        kw_only=True,
    )
    activation_range: jax.Array | None = eqx.field(
        converter=number(shape=(2,), optional=True, ascending=True), default=None, kw_only=True
    )
    lead: jax.Array | None = eqx.field(
        converter=number(unit="s", nonnegative=True, optional=True), default=None, kw_only=True
    )

    @property
    def states(self) -> tuple[tuple[str, str], ...]:
        return () if self.time_constants is None else (("activation", ""),)

    @property
    def command_bounds(self) -> tuple[Any, Any]:
        if self.time_constants is not None:
            return 0.0, 1.0
        limits = self.command_range
        return (-jnp.inf, jnp.inf) if limits is None else (limits[0], limits[1])

    def torque(self, command: Scalar, q: Scalar, v: Scalar, memory: Any) -> tuple[Scalar, Any]:
        u = active = inside(command, self.command_range)
        after = memory
        if self.time_constants is not None:
            z = memory[0]
            rate = excited(u, z, self.time_constants, self.smoothing)
            active = inside(ahead(z, rate, self.lead), self.activation_range)
            after = stopped(rate, z, self.activation_range)[None]
        active_part, passive_part = self.curves(q, v)
        force = -self.peak_force * (active_part * active + passive_part)
        return inside(force, self.force_range), after

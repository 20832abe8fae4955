"""Tendons as passive forces: a spring with slack, a damper and friction along a transmission."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..spatial import Force, Motion, Transform
from ..system.fields import number
from ..system.protocols import ForceElement
from ..system.system import Joints, System
from ..system.topology import Topology
from .at_joint import JointCoupling
from .coupling import Coupling
from .names_of_couplings import title
from .path import Path
from .polynomials import higher_damper, higher_energy, higher_spring
from .transmissions import FixedTendon, PointTransmission

# Annotations are evaluated in this file: otherwise Equinox takes an AbstractVar for a field.


class TendonLaw(eqx.Module):
    """The tension along a length l with the rate v, which pulls towards shorter lengths.

        T = k max(l - l_1, 0) + k min(l - l_0, 0) + c v + friction tanh(v / friction_velocity)

    stiffness k in N/m; rest_lengths (2,) in m, l_0 and l_1, between which the spring is slack;
    damping c in N s/m; friction in N and friction_velocity in m/s; all but rest_lengths scalars.
    higher_stiffness (2,) in N/m^2 and N/m^3 adds a s^2 + b s^3 of the stretch s, higher_damping
    (2,) in N s^2/m^2 and N s^3/m^3 adds c v |v| + d v^3; None for none. Beyond length_range (2,) in
    m, None for none, a stop adds K e max(1 + D v, 0) at a length that is too large by e, and
    likewise at one too small, with stop_stiffness K in N/m and stop_dissipation D in s/m, scalars.
    """

    stiffness: jax.Array = eqx.field(
        converter=number(unit="N/m", nonnegative=True), default=0.0, kw_only=True
    )
    rest_lengths: jax.Array = eqx.field(
        converter=number(unit="m", shape=(2,), ascending=True), default=(0.0, 0.0), kw_only=True
    )
    damping: jax.Array = eqx.field(
        converter=number(unit="N s/m", nonnegative=True), default=0.0, kw_only=True
    )
    friction: jax.Array = eqx.field(
        converter=number(unit="N", nonnegative=True), default=0.0, kw_only=True
    )
    friction_velocity: jax.Array = eqx.field(
        converter=number(unit="m/s", positive=True), default=1e-2, kw_only=True
    )

    higher_stiffness: jax.Array | None = eqx.field(
        converter=number(unit="N/m^n", shape=(2,), optional=True), default=None, kw_only=True
    )
    higher_damping: jax.Array | None = eqx.field(
        converter=number(unit="N s^n/m^n", shape=(2,), optional=True), default=None, kw_only=True
    )

    length_range: jax.Array | None = eqx.field(
        converter=number(unit="m", shape=(2,), optional=True, ascending=True),
        default=None,
        kw_only=True,
    )
    stop_stiffness: jax.Array = eqx.field(
        converter=number(unit="N/m", nonnegative=True), default=0.0, kw_only=True
    )
    stop_dissipation: jax.Array = eqx.field(
        converter=number(unit="s/m", nonnegative=True), default=0.0, kw_only=True
    )

    def stretch(self, length: Float[Array, ""]) -> Float[Array, ""]:
        """How far () in m a length () in m is outside of its range at rest."""
        over, under = length - self.rest_lengths[1], length - self.rest_lengths[0]
        return jnp.where(over > 0, over, 0) + jnp.where(under < 0, under, 0)

    def tension(self, length: Float[Array, ""], rate: Float[Array, ""]) -> Float[Array, ""]:
        """T () in N at a length () in m and its rate () in m/s."""
        rubbing = self.friction * jnp.tanh(rate / self.friction_velocity)
        stretch = self.stretch(length)
        force = self.stiffness * stretch + self.damping * rate + rubbing
        if self.higher_stiffness is not None:
            force = force + higher_spring(self.higher_stiffness, stretch)
        if self.higher_damping is not None:
            force = force + higher_damper(self.higher_damping, rate)
        return force if self.length_range is None else force + self.stop_tension(length, rate)

    def stop_tension(self, length: Float[Array, ""], rate: Float[Array, ""]) -> Float[Array, ""]:
        """What of T () in N is that of the stop, at a length () in m and its rate () in m/s."""
        if self.length_range is None:
            return jnp.zeros_like(length)
        over, under = self._excess(length, self.length_range)
        closing = self.stop_dissipation * rate
        held = over * jnp.maximum(1 + closing, 0) - under * jnp.maximum(1 - closing, 0)
        return self.stop_stiffness * held

    @staticmethod
    def _excess(
        length: Float[Array, ""], limits: Float[Array, "2"]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """By how much () in m a length () in m is too large, and too small."""
        return jnp.maximum(length - limits[1], 0), jnp.maximum(limits[0] - length, 0)

    def stored(self, length: Float[Array, ""]) -> Float[Array, ""]:
        """The energy () in J of the spring at a length () in m."""
        stretch = self.stretch(length)
        energy = self.stiffness * stretch * stretch / 2
        if self.higher_stiffness is not None:
            energy = energy + higher_energy(self.higher_stiffness, stretch)
        if self.length_range is not None:
            over, under = self._excess(length, self.length_range)
            energy = energy + self.stop_stiffness * (over * over + under * under) / 2
        return energy


class AlongTendon(Coupling):
    """A coupling along a transmission between bodies."""

    transmission: eqx.AbstractVar[PointTransmission]

    @property
    def path(self) -> Path:
        """The points of the transmission."""
        return self.transmission.path

    def problems(self) -> list[str]:
        faults = [f"its transmission: {fault}" for fault in self.transmission.problems()]
        return faults or super().problems()

    def incompatibilities(self, system: System, there: Sequence[ForceElement]) -> list[str]:
        return self.transmission.incompatibilities(system)

    def _wrong_path(self) -> list[str]:
        # How many points there are is the transmission's affair.
        return []


class AlongFixedTendon(JointCoupling):
    """A coupling along a fixed tendon, in joint coordinates."""

    transmission: eqx.AbstractVar[FixedTendon]

    def problems(self) -> list[str]:
        faults = [f"its transmission: {fault}" for fault in self.transmission.problems()]
        return faults or super().problems()

    def incompatibilities(self, system: System, there: Sequence[ForceElement]) -> list[str]:
        return self.transmission.incompatibilities(system)

    def __str__(self) -> str:
        return f"{title(self)} ({', '.join(map(repr, self.transmission.joints))})"


class Tendon(TendonLaw, AlongTendon):
    """A tendon between bodies with a spring, a damper and friction along it.

    transmission: a `SpatialTendon`, or another transmission between bodies. stiffness,
    rest_lengths, damping, friction, friction_velocity, higher_stiffness, higher_damping,
    length_range, stop_stiffness, stop_dissipation: as of `TendonLaw`. name: as of `Coupling`.
    Along a path without wrapping and pulleys `Spring`, `Rope` and `Damper` are simpler.
    """

    transmission: PointTransmission

    def energy(self, frames: Transform) -> Float[Array, ""]:
        return self.stored(self.transmission.lever(frames)[0])

    def wrenches(self, frames: Transform, twists: Motion) -> Force:
        length, wrenches = self.transmission.lever(frames)
        return wrenches * -self.tension(length, jnp.sum(twists.dot(wrenches)))


class JointTendon(TendonLaw, AlongFixedTendon):
    """A fixed tendon with a spring, a damper and friction along it, in joint coordinates.

    transmission: a `FixedTendon`. stiffness, rest_lengths, damping, friction, friction_velocity,
    higher_stiffness, higher_damping, length_range, stop_stiffness, stop_dissipation: as of
    `TendonLaw`. name: as of `Coupling`.
    """

    transmission: FixedTendon

    def efforts(
        self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"], rate: Float[Array, " n_dofs"]
    ) -> Float[Array, " n_dofs"]:
        length, arm = self.transmission.along(t, x)
        return -arm * self.tension(length, jnp.sum(arm * rate))

    def energy(self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"]) -> Float[Array, ""]:
        return self.stored(self.transmission.along(t, x)[0])

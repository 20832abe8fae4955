"""Lengths of transmissions, such as tendons, and of what actuators act through, and their rates."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..forces.actuators.acting import lengths
from ..forces.transmissions import CoordinateTransmission, PointTransmission, transmitted
from ..system.fields import number
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.validation import ModelError, format_value, nearest
from .quantity import Labels, Quantity


class _OfTransmission(Quantity):
    transmission: CoordinateTransmission | PointTransmission

    def labels(self, system: System) -> Labels:
        return ()

    def motion(
        self, system: System, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The length () and its rate ()."""
        if faults := self.transmission.incompatibilities(system):
            raise ModelError(f"{system.name}: {self.transmission}: {faults[0]}")
        tree = Tree.of(system)
        if isinstance(self.transmission, PointTransmission):
            return transmitted(tree, [self.transmission], q, v)[0]
        return self.transmission.motion(tree, q, v)


class TransmissionLength(_OfTransmission):
    """The length () of a transmission, in m or rad.

    transmission: such as a `SpatialTendon`. Raises `ModelError` where the system lacks one of its
    bodies or joints.
    """

    @property
    def name(self) -> str:
        return f"length of {self.transmission}"

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, ""]:
        return self.motion(system, q, v)[0]


class TransmissionVelocity(_OfTransmission):
    """The rate () of a transmission's length, in m/s or rad/s; as of `TransmissionLength`."""

    @property
    def name(self) -> str:
        return f"rate of {self.transmission}"

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, ""]:
        return self.motion(system, q, v)[1]


class LengthOverrun(_OfTransmission):
    """How far a transmission's length is beyond a range: () in m or rad, negative, 0 within it.

    transmission: as of `TransmissionLength`; length_range (2,), in m or rad. rate: whether to read
    the rate of it, in m/s or rad/s, which is 0 within the range. They are MuJoCo's
    `tendonlimitpos` and `tendonlimitvel`.
    """

    length_range: jax.Array = eqx.field(
        converter=number(unit="m or rad", shape=(2,), ascending=True)
    )
    rate: bool = eqx.field(static=True, default=False)

    @property
    def name(self) -> str:
        return f"{'rate of the ' if self.rate else ''}overrun of {self.transmission}"

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, ""]:
        length, speed = self.motion(system, q, v)
        below, above = length - self.length_range[0], self.length_range[1] - length
        values = (speed, -speed) if self.rate else (below, above)
        return jnp.where(below < 0, values[0], jnp.where(above < 0, values[1], 0))


class _OfActuator(Quantity):
    actuator: str = eqx.field(static=True)

    def labels(self, system: System) -> Labels:
        return ()

    def motion(
        self, system: System, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The length () and its rate ()."""
        names = system.actuator_names
        if self.actuator not in names:
            near = nearest(str(self.actuator), names)
            raise ModelError(
                f"{system.name}: no actuator is named {format_value(self.actuator)}{near}"
            )
        x, rate = lengths(Tree.of(system), q, v)
        return x[names.index(self.actuator)], rate[names.index(self.actuator)]


class ActuatorLength(_OfActuator):
    """The coordinate or length () on which an actuator's law depends, in rad or m.

    actuator: its name. Raises `ModelError` for an unknown one, with the nearest.
    """

    @property
    def name(self) -> str:
        return f"length of {self.actuator!r}"

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, ""]:
        return self.motion(system, q, v)[0]


class ActuatorVelocity(_OfActuator):
    """The rate () of an actuator's coordinate or length, in rad/s or m/s; as `ActuatorLength`."""

    @property
    def name(self) -> str:
        return f"rate of {self.actuator!r}"

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, ""]:
        return self.motion(system, q, v)[1]

"""The generalised forces at the joints, of the control and of the system itself, and the power."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..forces import passive_force
from ..forces.actuators.acting import delivered, torques
from ..forces.energy import lost_power
from ..system.joints import FORCE_UNITS
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.validation import ModelError, format_value, nearest
from .quantity import Labels, Quantity


class Effort(Quantity):
    """The generalised force (nv,) that the actuators apply to the joints, in N m or N.

    It is what the actuators deliver for the command u, or u itself without actuators; without
    control u is zero. The output of an actuator with a memory is known along a run only; elsewhere
    this raises ValueError.
    """

    @property
    def name(self) -> str:
        return "effort"

    def labels(self, system: System) -> Labels:
        return _labels(system)

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: Float[Array, " nu"] | None,
        t: jax.Array | float,
    ) -> Float[Array, " nv"]:
        check_known(system)
        command = jnp.zeros(system.nu, v.dtype) if u is None else u
        return delivered(Tree.of(system), command, q, v)


class ActuatorEffort(Quantity):
    """The torque () in N m, or the force in N, that an actuator delivers.

    actuator: its name. Raises `ModelError` for an unknown one, with the nearest, and as `Effort`
    does.
    """

    actuator: str = eqx.field(static=True)

    @property
    def name(self) -> str:
        return f"effort of {self.actuator!r}"

    def labels(self, system: System) -> Labels:
        return ()

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: Float[Array, " nu"] | None,
        t: jax.Array | float,
    ) -> Float[Array, ""]:
        names = system.actuator_names
        if self.actuator not in names:
            near = nearest(str(self.actuator), names)
            raise ModelError(
                f"{system.name}: no actuator is named {format_value(self.actuator)}{near}"
            )
        check_known(system)
        command = jnp.zeros(system.nu, v.dtype) if u is None else u
        return torques(Tree.of(system), command, q, v)[names.index(self.actuator)]


class Passive(Quantity):
    """The generalised force (nv,) of springs, damping, friction and couplings, in N m or N.

    See `difflie.passive_force`.
    """

    @property
    def name(self) -> str:
        return "passive"

    def labels(self, system: System) -> Labels:
        return _labels(system)

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, " nv"]:
        return passive_force(system, q, v)


def check_known(system: System) -> None:
    """Raises ValueError for an actuator whose output depends on what it remembers."""
    for actuator in system.actuators:
        if actuator.has_state:
            raise ValueError(
                f"{system.name}: what {actuator} applies depends on what it remembers; measure it "
                "along a run of this system"
            )


def _labels(system: System) -> Labels:
    return tuple(
        (name, FORCE_UNITS[unit.removesuffix("/s")])
        for name, unit in system.topology.velocity_labels
    )


class Power(Quantity):
    """The mechanical power (nv,) in W of the control at each degree of freedom: effort times v.

    The sum is the rate at which the control does work on the system; see `Effort`.
    """

    @property
    def name(self) -> str:
        return "power"

    def labels(self, system: System) -> Labels:
        return tuple((name, "W") for name, _ in system.topology.velocity_labels)

    def __call__(
        self,
        system: System,
        q: jax.Array,
        v: Float[Array, " nv"],
        u: Float[Array, " nu"] | None,
        t: jax.Array | float,
    ) -> Float[Array, " nv"]:
        return Effort()(system, q, v, u, t) * v


class Dissipation(Quantity):
    """The power () in W that passive forces take from the motion and do not store as energy.

    That of damping, friction and parts with internal states that lose energy. The energy of a
    machine without constraints and wrenches changes at the rate sum(Power) - Dissipation, with that
    which springs and internal states store, see `Energy`.
    """

    @property
    def name(self) -> str:
        return "dissipation"

    def labels(self, system: System) -> Labels:
        return (("dissipation", "W"),)

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: Float[Array, " nu"] | None,
        t: jax.Array | float,
    ) -> Float[Array, ""]:
        command = jnp.zeros(system.nu, v.dtype) if u is None else u
        return lost_power(Tree.of(system), command, q, v)

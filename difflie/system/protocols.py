"""What the parts of a `System` are to code that does not know their classes.

Force elements, actuators and constraints are defined by packages to the right, `forces` and
`constraints`, and by users; a system holds them by these protocols. The classes to derive from are
`difflie.Coupling`, `difflie.JointCoupling`, `difflie.Actuator` and those in `difflie.constraints`.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import jax

from .topology import Topology


@runtime_checkable
class ForceElement(Protocol):
    """A force between bodies or at joints, which depends on the motion alone."""

    @property
    def name(self) -> str | None:
        """Its name; None without one."""
        ...

    def problems(self) -> list[str]:
        """The faults of its numbers and its law, each with the fix."""
        ...

    @property
    def states(self) -> tuple[tuple[str, str], ...]:
        """The name and the unit of each of its internal states; see `internal_states.py`."""
        ...

    @property
    def stores_energy(self) -> bool:
        """Whether it has a potential energy."""
        ...

    @property
    def shapes(self) -> dict[str, ShapeElement]:
        """The shapes between which it acts, by name; empty for most."""
        ...


@runtime_checkable
class InertiaElement(Protocol):
    """A force element that has inertia along a length."""

    @property
    def inertance(self) -> jax.Array:
        """b () in kg or kg m^2."""
        ...

    @property
    def turns(self) -> bool:
        """Whether the moment arm depends on the configuration."""
        ...

    def arm(self, tree: Any, q: jax.Array) -> jax.Array:
        """The moment arm J (nv,) of the length at q (nq,)."""
        ...


@runtime_checkable
class ActuatorElement(Protocol):
    """A law from a command to one torque in N m or force in N, with or without a memory."""

    @property
    def label(self) -> str:
        """Its name."""
        ...

    @property
    def joint(self) -> str | None:
        """The joint, or the degree of freedom, at which it acts; None elsewhere."""
        ...

    @property
    def axis(self) -> Any:
        """The `Axis` on a body along which it acts; None elsewhere."""
        ...

    @property
    def transmission(self) -> Any:
        """The `Transmission` through which it acts; None elsewhere."""
        ...

    @property
    def place(self) -> dict[str, Any]:
        """The fields that say where it acts, and its name."""
        ...

    @property
    def in_coordinates(self) -> bool:
        """Whether what it does follows from the coordinates of joints; else it acts on bodies."""
        ...

    @property
    def states(self) -> tuple[tuple[str, str], ...]:
        """The name and the unit of each of its internal states; see `internal_states.py`."""
        ...

    @property
    def partners(self) -> tuple[str, ...]:
        """The names of other actuators whose commands its law takes as well."""
        ...

    def passed_on(self, command: jax.Array) -> jax.Array:
        """Its command () as actuators get it whose partner it is."""
        ...

    @property
    def has_state(self) -> bool:
        """Whether it has a memory."""
        ...

    def late(self, command: jax.Array, memory: Any) -> tuple[jax.Array, Any]:
        """The command () that its law gets in a step, and the memory that it gets."""
        ...

    @property
    def command_bounds(self) -> tuple[jax.Array | float, jax.Array | float]:
        """The least and the largest command () beyond which it delivers no more."""
        ...

    def problems(self) -> list[str]:
        """The faults of its numbers and its law, each with the fix."""
        ...

    def forgets(self, dt: float, steps: int) -> list[str]:
        """Why its memory is too short for so many steps of dt s; empty if it is long enough."""
        ...

    def refined(self, n: int) -> ActuatorElement:
        """The same for steps n times as short."""
        ...

    def unbounded(self) -> ActuatorElement:
        """The same where commands are kept within `command_bounds` by who gives them."""
        ...

    def velocity(self, t: Topology) -> int:
        """The index in v of its degree of freedom."""
        ...

    def single_dof(self, system: Any) -> int | None:
        """The index in v of the one degree of freedom at which it acts; None if there is none."""
        ...

    def coordinate(self, t: Topology) -> int:
        """The index in q of its joint's coordinate; -1 where that is not a single number."""
        ...

    def init(self, command: jax.Array, q: jax.Array, v: jax.Array) -> Any:
        """Its memory before the first step, a pytree of arrays; None without a memory."""
        ...

    def torque(
        self, command: jax.Array, q: jax.Array, v: jax.Array, memory: Any
    ) -> tuple[jax.Array, Any]:
        """The torque () in N m, or the force () in N, and the memory after the step."""
        ...


@runtime_checkable
class ConstraintElement(Protocol):
    """Equations that the motion of a system satisfies."""

    @property
    def equations(self) -> tuple[str, ...]:
        """A short name for each of them, for messages."""
        ...

    @property
    def holonomic(self) -> bool:
        """Whether all equations restrict positions; otherwise some restrict velocities only."""
        ...

    @property
    def positions(self) -> int:
        """How many of the equations restrict positions; they come first."""
        ...

    @property
    def size(self) -> int:
        """The number of equations."""
        ...

    def problems(self) -> list[str]:
        """The faults of its numbers, each with the fix."""
        ...


@runtime_checkable
class SensorElement(Protocol):
    """A reading of a quantity; it does not affect the motion."""

    def problems(self) -> list[str]:
        """The faults of its numbers, each with the fix."""
        ...


@runtime_checkable
class ShapeElement(Protocol):
    """A shape in a frame on a body."""

    @property
    def frame(self) -> Any:
        """The `Frame` in which it is."""
        ...

    def problems(self) -> list[str]:
        """The faults of its numbers, each with the fix."""
        ...

"""The actuator protocol: a law from a command and a motion to a torque, with or without memory.

One law serves simulation, control and identification. The command has a unit of the actuator's own:
a torque, a current, a position. The output is a torque in N m or a force in N, at one degree of
freedom of a joint, or along an axis of a body.

An actuator with a memory is a discrete-time system: its command and its memory are held over each
time step, and the memory is updated once, at the start of the step. Without a memory an actuator is
a function of the state like any force, evaluated at every stage of a method.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...deprecated import renamed
from ...system.fields import declared, number, number_faults
from ...system.system import Bodies, Joints, System
from ...system.topology import Topology
from ...system.validation import ModelError, format_value, nearest
from ..path import Path, unknown_frames
from ..transmissions import CoordinateTransmission, Transmission


class Axis(eqx.Module):
    """An axis fixed on a body: a point and a direction.

    body: its name, or None for the world; position (3,) in m, the point at which the force acts,
    and direction (3,), of any length, both in the body's frame.
    """

    body: str | None = eqx.field(static=True)
    position: jax.Array = eqx.field(converter=number(unit="m", shape=(3,)), default=(0.0, 0.0, 0.0))
    direction: jax.Array = eqx.field(
        converter=number(shape=(3,), kind="direction"), default=(0.0, 0.0, 1.0)
    )

    @property
    def unit(self) -> Float[Array, "3"]:
        """The direction (3,) with length one, in the body's frame."""
        return self.direction / jnp.sqrt(jnp.sum(self.direction * self.direction))

    @property
    def path(self) -> Path:
        """Its point, as a path of one point."""
        return Path(self.position[None], (self.body,))

    def __str__(self) -> str:
        return "the world" if self.body is None else repr(self.body)


def as_axis(axis: Any) -> Axis | None:
    """An `Axis` from a table {body, position (3,) in m, direction (3,)}; an Axis or None as it is.

    Raises `ModelError` for anything else.
    """
    if axis is None or isinstance(axis, Axis):
        return axis
    known = Axis.__dataclass_fields__.keys()
    if not isinstance(axis, Mapping) or not {"body"} <= axis.keys() <= known:
        raise ModelError(
            f"the axis is {format_value(axis)}; give a difflie.Axis, or a table with the keys "
            f"{', '.join(known)}"
        )
    return Axis(**axis)


Bound = jax.Array | float


def between(x: Float[Array, ""], least: Bound, most: Bound) -> Float[Array, ""]:
    """x () clipped to [least, most]; at a bound the derivative is that inside."""
    x = jnp.where(x < least, least, x)
    return jnp.where(x > most, most, x)


def within(x: Float[Array, ""], most: Bound | None) -> Float[Array, ""]:
    """x () clipped to [-most, most]; unchanged for None."""
    return x if most is None else between(x, -most, most)


Scalar = Float[Array, ""]


class Memory(NamedTuple):
    """What an actuator remembers at the start of a time step.

    kept: its own memory, a pytree of arrays. dt (): the length of the step in s, set by the time
    loop and not by the actuator.
    """

    kept: Any
    dt: Float[Array, ""]


@renamed(finer="refined", remembers="has_state", faults="problems", misfits="incompatibilities")
class Actuator(eqx.Module):
    """A law for one torque or force, and where it acts: at a joint, an axis, or a transmission.

    joint: the name of a joint with one degree of freedom, or of one degree of freedom of a joint
    with several, such as "ball[1]". axis: instead of a joint, an `Axis` along which a force acts.
    transmission: instead of both a `Transmission`, such as a `SpatialTendon`; q and v of its law
    are then the length of the transmission and the rate of it.
    name: its name in `system.actuator_names` and in paths, "name/gain"; by default the joint's or
    body's name. Its numbers are fields whose converter is `number`.

        class Spindle(dl.Actuator):
            gain: jax.Array = eqx.field(converter=dl.number(unit="N m/V", positive=True))

            def torque(self, command, q, v, memory):
                return self.gain * command * jnp.abs(command), memory

        system = dl.attach(system, Spindle(0.2, joint="elbow"))
    """

    joint: str | None = eqx.field(static=True, default=None, kw_only=True)
    axis: Axis | None = eqx.field(converter=as_axis, default=None, kw_only=True)
    transmission: Transmission | None = eqx.field(default=None, kw_only=True)
    name: str | None = eqx.field(static=True, default=None, kw_only=True)

    @abc.abstractmethod
    def torque(self, command: Scalar, q: Scalar, v: Scalar, memory: Any) -> tuple[Scalar, Any]:
        """The torque () in N m, or the force () in N, and the memory after the step.

        command () in the actuator's unit. q () in rad or m and v () in rad/s or m/s: the coordinate
        of its joint and the rate of it; q is 0 where the joint has no single coordinate. Along an
        axis q is 0, and v is the velocity of the axis' point along the axis. Of a transmission they
        are its length and rate. memory: the `Memory` at the start of the step, None without one; to
        change it return `memory._replace(kept=...)`.
        With internal states, see `Stateful`, it is z (k,), and dz/dt (k,) is returned beside it.
        With n `partners`, command, q and v are (1 + n,): its own first, then those of the partners.
        """

    def init(self, command: Scalar, q: Scalar, v: Scalar) -> Any:
        """The memory `kept` before the first step, a pytree of arrays; None without a memory.

        At the first command (), and q (), v () as in `torque`.
        """
        return None

    def late(self, command: Scalar, memory: Any) -> tuple[Scalar, Any]:
        """The command () that its law gets in a step, and the memory that it gets; by default both.

        An actuator with a delay gets an earlier command, and the memory after the step. memory: the
        `Memory` at the start of the step, None without one.
        """
        return command, memory

    @property
    def partners(self) -> tuple[str, ...]:
        """The names of other actuators whose commands its law takes as well; by default none.

        So an actuator of several commands is one that has a force, and an `ExtraCommand` for each
        further command.
        """
        return ()

    def passed_on(self, command: Scalar) -> Scalar:
        """Its command () as actuators get it whose partner it is; by default as it is."""
        return command

    @property
    def states(self) -> tuple[tuple[str, str], ...]:
        """The name and the unit of each internal state; none, unless it is a `Stateful` as well."""
        return ()

    @property
    def has_state(self) -> bool:
        """Whether it has a memory."""
        own = type(self).init is not Actuator.init
        return own and jax.eval_shape(self.init, *3 * [_scalar()]) is not None

    @property
    def label(self) -> str:
        """Its name; by default that of its joint or body."""
        if self.name is not None:
            return self.name
        if self.transmission is not None:
            return self.transmission.label
        return str(self.joint if self.axis is None else self.axis.body)

    @property
    def place(self) -> dict[str, Any]:
        """The fields of an actuator that say where it acts, and its name."""
        fields = "joint", "axis", "transmission", "name"
        return {field: getattr(self, field) for field in fields}

    @property
    def in_coordinates(self) -> bool:
        """Whether what it does follows from the coordinates of joints; else it acts on bodies."""
        held = self.transmission
        coordinates = isinstance(held, CoordinateTransmission) and not held.follows_bodies
        return self.joint is not None or coordinates

    def single_dof(self, system: System) -> int | None:
        """The index in v of the one degree of freedom at which it acts; None if there is none."""
        if isinstance(self.transmission, CoordinateTransmission):
            return self.transmission.single_dof(system)
        return None if self.joint is None else self.velocity(system.topology)

    def problems(self) -> list[str]:
        """The faults of its numbers or its law, each with the fix; a subclass may add to it."""
        faults = number_faults(self)
        if self.axis is not None:
            faults += [f"its axis: {fault}" for fault in number_faults(self.axis)]
        if self.transmission is not None:
            faults += [f"its transmission: {fault}" for fault in self.transmission.problems()]
        return faults or self._wrong_law()

    def incompatibilities(self, system: System, there: Sequence[Actuator]) -> list[str]:
        """Why it cannot be attached beside the actuators there; empty if it can."""
        places = {"a joint": self.joint, "an axis": self.axis, "a transmission": self.transmission}
        given = [place for place, value in places.items() if value is not None]
        if len(given) != 1:
            said = " and ".join(given) or "neither a joint nor an axis nor a transmission"
            return [f"it has {said}; give one of them"]
        incompatibilities = self._wrong_place(system)
        if not incompatibilities and self.label in (other.label for other in there):
            incompatibilities = [
                f"an actuator named {format_value(self.label)} is there already; give this one a "
                "name of its own, name=..."
            ]
        return incompatibilities or self._taken_paths(system)

    def forgets(self, dt: float, steps: int) -> list[str]:
        """Why its memory is too short for so many steps of dt s; empty if it is long enough."""
        return []

    def refined(self, n: int) -> Actuator:
        """The same for steps n times as short: itself, unless its memory is counted in steps."""
        return self

    @property
    def command_bounds(self) -> tuple[Any, Any]:
        """The least and the largest command () beyond which it delivers no more."""
        return -jnp.inf, jnp.inf

    def unbounded(self) -> Actuator:
        """The same where commands are kept within `command_bounds` by who gives them."""
        return self

    def velocity(self, t: Topology) -> int:
        """The index in v of the degree of freedom at which it acts; it must be at a joint."""
        return [name for name, _ in t.velocity_labels].index(str(self.joint))

    def coordinate(self, t: Topology) -> int:
        """The index in q of its joint's coordinate; -1 where that is not a single number."""
        own = np.flatnonzero(np.isin(np.arange(t.n_dofs), t.mimic_dofs, invert=True))
        (dof,) = own[t.dof_velocity[own] == self.velocity(t)]
        return int(t.dof_coordinate[dof])

    def _wrong_place(self, system: System) -> list[str]:
        t = system.topology
        if self.transmission is not None:
            return [f"its transmission: {f}" for f in self.transmission.incompatibilities(system)]
        if self.axis is not None:
            body = self.axis.body
            if unknown := unknown_frames(system, [body]):
                return [f"its axis is on {format_value(body)}; {unknown[0]}"]
            if body is not None and system.frame(body).body is not None:
                return []
            return ["its axis is on the world, which does not move; give the name of a body"]
        names = [name for name, _ in t.velocity_labels]
        if self.joint in names:
            return []
        several = [name for name in names if name.startswith(f"{self.joint}[")]
        if several:
            named = f"name one of them, such as {several[0]!r}"
            return [f"the joint has several degrees of freedom; {named}"]
        near = nearest(str(self.joint), names)
        return [f"no joint that moves by itself is named {format_value(self.joint)}{near}"]

    def _taken_paths(self, system: System) -> list[str]:
        """A fault for each number whose path is taken by a number of a joint or body."""
        taken = set()
        if self.label in system.topology.joints:
            taken |= Joints.__dataclass_fields__.keys()
        if self.label in system.body_names:
            taken |= Bodies.__dataclass_fields__.keys()
        own = sorted(taken & declared(type(self)).keys())
        return [
            f"its number {name} has the path {self.label}/{name} of another; give the actuator a "
            "name of its own, name=..., or its number another"
            for name in own[:1]
        ]

    def _wrong_law(self) -> list[str]:
        at: Any = _scalar()
        kept = jax.eval_shape(self.init, at, at, at)
        memory: Any = None if kept is None else Memory(kept, at)
        if self.partners:
            at = jax.ShapeDtypeStruct((1 + len(self.partners),), at.dtype)
        if self.states:
            if kept is not None and type(self).late is Actuator.late:
                return ["it has internal states and a memory; give it one of them"]
            memory = jax.ShapeDtypeStruct((len(self.states),), at.dtype)
        output = jax.eval_shape(lambda *given: self.torque(*given), at, at, at, memory)
        if not isinstance(output, tuple) or len(output) != 2:
            return [
                f"its law returns {format_value(output)}; let torque return the torque and the "
                "memory"
            ]
        torque, after = output
        if getattr(torque, "shape", None) != ():
            return [
                f"its torque is {format_value(torque)}; let torque return one number, of shape ()"
            ]
        if self.states and getattr(after, "shape", None) != memory.shape:
            return [
                f"its dz/dt is {format_value(after)}; let torque return one number for each of its "
                f"{len(self.states)} states, of shape {memory.shape}"
            ]
        if not self.states and not _alike(memory, after):
            return [
                f"its memory {format_value(memory)} becomes {format_value(after)}; let init and "
                "torque return what is alike"
            ]
        return []

    def __str__(self) -> str:
        where = repr(self.joint) if self.axis is None else f"along an axis of {self.axis}"
        where = where if self.transmission is None else str(self.transmission)
        named = "" if self.name is None else f"{self.name!r}, "
        return f"{type(self).__name__} ({named}{where})"


def _scalar() -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((), jnp.result_type(float))


def _alike(a: Any, b: Any) -> bool:
    """Whether two pytrees have the same parts, of the same shapes."""
    shapes = [jax.tree.map(jnp.shape, x) for x in (a, b)]
    return jax.tree.structure(a) == jax.tree.structure(b) and shapes[0] == shapes[1]

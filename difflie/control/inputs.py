"""What the controls of a problem are: the map from controls to the commands of a system.

Without a map the controls are the commands of the system's actuators. For a system without
actuators a command is a generalised force (nv,), and a map says where it comes from.
"""

from __future__ import annotations

import abc
import fnmatch
from collections.abc import Callable, Sequence
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..deprecated import renamed
from ..forces.actuators.acting import dof_commands
from ..forces.actuators.actuator import Axis, as_axis
from ..forces.point_forces import FollowerForce
from ..forces.points import coupling_force
from ..quantities import Effort
from ..quantities.quantity import Labels, no_leaf
from ..system.fields import Numbers, number
from ..system.kinematic_tree import Tree
from ..system.shown import some
from ..system.system import System
from ..system.user_functions import called
from ..system.validation import ModelError, format_value, nearest

_THRUST = number(unit="N", shape=None, finite=False)
Bounds = tuple[Float[Array, " nu"], Float[Array, " nu"]]


class Input(eqx.Module):
    """A map from controls u (nu,) to the command (m,) of a system, m = system.nu."""

    @abc.abstractmethod
    def size(self, system: System) -> int:
        """nu. Raises ModelError for a system on which it cannot act."""

    @abc.abstractmethod
    def bounds(self, system: System) -> Bounds:
        """The least and the largest controls (nu,) of the input itself; infinite for none."""

    def limits(self, system: System) -> Bounds:
        """Those (nu,) together with the limits in the robot's file."""
        return self.bounds(system)

    @abc.abstractmethod
    def labels(self, system: System) -> Labels:
        """The name and the unit of each of the controls (nu,); "" for units that are not known."""

    @abc.abstractmethod
    def command(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: Float[Array, " nu"],
        t: jax.Array | float,
    ) -> Float[Array, " m"]:
        """The command (m,)."""


class Commands(Input):
    """The controls are the commands of the system's actuators, or the generalised force (nv,)."""

    def size(self, system: System) -> int:
        return system.nu

    def bounds(self, system: System) -> Bounds:
        if system.actuators:
            both = [actuator.command_bounds for actuator in system.actuators]
            lower, upper = (
                jnp.stack([jnp.asarray(b[i], system.dtype) for b in both]) for i in (0, 1)
            )
            return lower, upper
        upper = jnp.full(system.nv, jnp.inf, system.dtype)
        return -upper, upper

    def limits(self, system: System) -> Bounds:
        if system.actuators:
            return self.bounds(system)
        return _effort_limits(system)

    def labels(self, system: System) -> Labels:
        if system.actuators:
            return tuple((name, "") for name in system.actuator_names)
        return Effort().labels(system)

    def command(
        self, system: System, q: jax.Array, v: jax.Array, u: jax.Array, t: jax.Array | float
    ) -> jax.Array:
        return u


@renamed(dofs="commands")
class Motors(Input):
    """Torques or forces at the degrees of freedom of joints, in N m or N.

    joints: names of joints, or patterns such as "*_knee"; a degree of freedom of a joint with
    several has the name "joint[0]". `Limits.of` bounds them by the efforts in the robot's file. On
    a system with actuators they are the commands of those that act at these joints by themselves,
    in their units and bounds; the commands of all others are 0.
    """

    joints: tuple[str, ...] = eqx.field(
        static=True, converter=lambda names: (names,) if isinstance(names, str) else tuple(names)
    )

    def commands(self, system: System) -> np.ndarray:
        """(nu,) the entries of the system's command that they are."""
        if not self.joints:
            raise ModelError("Motors has no joints; name one or more, or patterns such as '*'")
        names = [name for name, _ in system.topology.velocity_labels]
        at = dof_commands(system)
        chosen: list[int] = []
        for pattern in self.joints:
            fitting = [i for i, name in enumerate(names) if _fits(name, pattern)]
            if not fitting:
                raise ModelError(
                    f"{system.name}: no joint that moves by itself fits {format_value(pattern)}"
                    f"{nearest(pattern, names)}"
                )
            own = [k for i in fitting for k in at[i]]
            if not own:
                raise ModelError(
                    f"{system.name}: no actuator acts at a joint {format_value(pattern)} by "
                    f"itself; attach one there, or choose among {some(system.actuator_names, 8)}"
                )
            chosen += [k for k in own if k not in chosen]
        return np.array(chosen)

    def size(self, system: System) -> int:
        return len(self.commands(system))

    def bounds(self, system: System) -> Bounds:
        return self._own(system, *Commands().bounds(system))

    def limits(self, system: System) -> Bounds:
        return self._own(system, *Commands().limits(system))

    def _own(self, system: System, lower: jax.Array, upper: jax.Array) -> Bounds:
        own = self.commands(system)
        return lower[own], upper[own]

    def labels(self, system: System) -> Labels:
        every = Commands().labels(system)
        return tuple(every[i] for i in self.commands(system))

    def command(
        self, system: System, q: jax.Array, v: jax.Array, u: jax.Array, t: jax.Array | float
    ) -> jax.Array:
        return jnp.zeros(system.nu, u.dtype).at[self.commands(system)].set(u)


class Thrusters(Input):
    """Forces in N along axes of bodies, which turn with them: jets, propellers.

    axes: a `difflie.Axis` each. lower, upper () or (nu,) in N: by default they only push. On a
    system with actuators there is no place for other forces in its command: attach an actuator
    along each axis, such as `dl.Thruster(axis=...)`, and name these, or patterns such as "jet_*",
    in `actuators`, in place of axes. The controls are then their commands, in their units and
    bounds and, with those, between lower and upper; the commands of all others are 0, as with
    `Motors`.
    """

    axes: tuple[Axis, ...] = eqx.field(
        converter=lambda axes: cast(tuple[Axis, ...], tuple(as_axis(a) for a in axes)), default=()
    )
    lower: Numbers = eqx.field(converter=_THRUST, default=0.0)
    upper: Numbers = eqx.field(converter=_THRUST, default=jnp.inf)
    actuators: tuple[str, ...] = eqx.field(
        static=True,
        converter=lambda names: (names,) if isinstance(names, str) else tuple(names),
        default=(),
    )

    def size(self, system: System) -> int:
        if self.actuators:
            return len(self.commands(system))
        if not self.axes:
            raise ModelError("Thrusters has neither axes nor actuators; give one or more of one")
        for axis in self.axes:
            if axis.body not in system.body_names:
                near = nearest(str(axis.body), system.body_names)
                raise ModelError(
                    f"{system.name}: a thruster is on {format_value(axis.body)}, and no body has "
                    f"this name{near}"
                )
        if system.actuators:
            raise ModelError(
                f"{system.name}: it has actuators, and a command of these has no place for other "
                "forces; attach each of the Thrusters as an actuator, dl.Thruster(axis=...), and "
                "name these, Thrusters(actuators=...)"
            )
        return len(self.axes)

    def commands(self, system: System) -> np.ndarray:
        """(nu,) the entries of the system's command that they are, where `actuators` are named."""
        if self.axes:
            raise ModelError("Thrusters have axes and actuators; give one of them")
        along = {a.label: i for i, a in enumerate(system.actuators) if a.axis is not None}
        chosen: list[int] = []
        for pattern in self.actuators:
            own = [i for name, i in along.items() if _fits(name, pattern)]
            if not own:
                raise ModelError(
                    f"{system.name}: no actuator along an axis fits {format_value(pattern)}"
                    f"{nearest(pattern, list(along))}; attach one, dl.Thruster(axis=...)"
                )
            chosen += [i for i in own if i not in chosen]
        return np.array(chosen)

    def bounds(self, system: System) -> Bounds:
        lower, upper = _for_each(self, self.size(system))
        if not self.actuators:
            return lower, upper
        own = self.commands(system)
        least, most = Commands().bounds(system)
        return jnp.maximum(lower, least[own]), jnp.minimum(upper, most[own])

    def labels(self, system: System) -> Labels:
        if self.actuators:
            every = Commands().labels(system)
            return tuple(every[i] for i in self.commands(system))
        return tuple((f"{axis.body} thruster {i}", "N") for i, axis in enumerate(self.axes))

    def command(
        self, system: System, q: jax.Array, v: jax.Array, u: jax.Array, t: jax.Array | float
    ) -> jax.Array:
        if self.actuators:
            return jnp.zeros(system.nu, u.dtype).at[self.commands(system)].set(u)
        forces = [
            FollowerForce(axis.path, u[i] * axis.unit.astype(u.dtype))
            for i, axis in enumerate(self.axes)
        ]
        return coupling_force(Tree.of(system), forces, q, v)


class Map(Input):
    """Any map: function(system, q, v, u, t) -> command (m,), with so many controls.

    controls: how many, nu. lower, upper () or (nu,): their bounds, in their units.
    """

    function: Callable[..., Any] = eqx.field(converter=no_leaf)
    controls: int = eqx.field(static=True)
    lower: jax.Array = eqx.field(converter=number(shape=None, finite=False), default=-jnp.inf)
    upper: jax.Array = eqx.field(converter=number(shape=None, finite=False), default=jnp.inf)

    def size(self, system: System) -> int:
        return self.controls

    def bounds(self, system: System) -> Bounds:
        return _for_each(self, self.controls)

    def labels(self, system: System) -> Labels:
        return tuple((f"u[{i}]", "") for i in range(self.controls))

    def command(
        self, system: System, q: jax.Array, v: jax.Array, u: jax.Array, t: jax.Array | float
    ) -> jax.Array:
        return self.function(system, q, v, u, t)


def _for_each(bounded: Thrusters | Map, n: int) -> Bounds:
    """The bounds of n controls, given for all or for each."""
    for name in ("lower", "upper"):
        shape = getattr(bounded, name).shape
        if shape not in ((), (n,)):
            raise ModelError(
                f"{type(bounded).__name__}: {name} has the shape {shape}; give one number, or "
                f"{n}, one for each control"
            )
    return jnp.broadcast_to(bounded.lower, (n,)), jnp.broadcast_to(bounded.upper, (n,))


class Concatenated(Input):
    """Several inputs beside each other; their commands add up."""

    inputs: tuple[Input, ...] = eqx.field(converter=tuple)

    def size(self, system: System) -> int:
        return sum(each.size(system) for each in self.inputs)

    def bounds(self, system: System) -> Bounds:
        lower, upper = zip(*(each.bounds(system) for each in self.inputs), strict=True)
        return jnp.concatenate(lower), jnp.concatenate(upper)

    def limits(self, system: System) -> Bounds:
        lower, upper = zip(*(each.limits(system) for each in self.inputs), strict=True)
        return jnp.concatenate(lower), jnp.concatenate(upper)

    def labels(self, system: System) -> Labels:
        return tuple(label for each in self.inputs for label in each.labels(system))

    def command(
        self, system: System, q: jax.Array, v: jax.Array, u: jax.Array, t: jax.Array | float
    ) -> jax.Array:
        ends = np.cumsum([each.size(system) for each in self.inputs])
        parts = jnp.split(u, ends[:-1])
        commands = (
            called(each.command, system, q, v, part, t)
            for each, part in zip(self.inputs, parts, strict=True)
        )
        return sum(commands, jnp.zeros(system.nu, u.dtype))


def as_input(value: Input | Sequence[Input]) -> Input:
    """An input itself, several as one. Raises TypeError for anything else."""
    if isinstance(value, Input):
        return value
    if isinstance(value, list | tuple) and value and all(isinstance(v, Input) for v in value):
        return Concatenated(tuple(value))
    raise TypeError(
        f"inputs is {format_value(value)}; give Motors, Thrusters or Map of difflie.control, or a "
        "list"
    )


def _fits(name: str, pattern: str) -> bool:
    """Whether a degree of freedom fits a pattern, itself or as one of its joint."""
    joint = name.rsplit("[", 1)[0]
    return name == pattern or joint == pattern or fnmatch.fnmatchcase(joint, pattern)


def _effort_limits(system: System) -> Bounds:
    """The limits (nv,) of efforts in the robot's file, infinite where there are none."""
    t = system.topology
    own = np.flatnonzero(np.isin(np.arange(t.n_dofs), t.mimic_dofs, invert=True))
    none, places = jnp.full(t.nv, jnp.inf, system.dtype), t.dof_velocity[own]
    least, most = (limit[own] for limit in system.joints.effort_limits)
    return (-none).at[places].set(least), none.at[places].set(most)

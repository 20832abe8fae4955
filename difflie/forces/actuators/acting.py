"""The actuators of a system together: their torques, generalised force and memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...system.frame import Frame
from ...system.frozen import unfreeze
from ...system.kinematic_tree import Tree
from ...system.protocols import ActuatorElement
from ...system.system import System, carried_tree
from ...system.user_functions import called, carried, settled
from ...system.validation import real_values
from ..coupling import Coupling
from ..effort_limits import limited, shared, sharing_limits
from ..point_forces import FollowerForce
from ..points import coupling_force, rates_along
from ..stateful import Stateful
from ..transmissions import (
    CoordinateTransmission,
    FixedTendon,
    PointTransmission,
    Pull,
    SiteTransmission,
    Transmission,
    entry,
    transmitted,
)
from ..transmissions.fixed_tendon import linear_motions, moment_arms
from .actuator import Actuator, Memory, Scalar
from .together import heard, outputs

Memories = tuple[Memory | None, ...]


def torques(
    tree: Tree,
    command: Float[Array, " nu"],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    memories: Memories | None = None,
) -> Float[Array, " nu"]:
    """The torques (nu,) in N m, or forces in N, that the actuators deliver for a command (nu,).

    command in the actuators' units; q (nq,), v (nv,). memories: those of the actuators; None where
    they have none, or are bound to theirs by `recalled`. Without actuators the command itself is
    returned.
    """
    if not tree.system.actuators:
        return command
    return _torques_at(tree.system, command, *lengths(tree, q, v), memories)


def slopes(
    tree: Tree,
    command: Float[Array, " nu"],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    memories: Memories | None = None,
) -> tuple[Float[Array, " nu"], Float[Array, " nu"]]:
    """How `torques` (nu,) change with the actuators' own lengths, and with their rates (nu,)."""
    x, rate = lengths(tree, q, v)

    def acting(x: list[jax.Array], rate: list[jax.Array]) -> jax.Array:
        return _torques_at(tree.system, command, x, rate, memories)

    still, moving = (jax.tree.map(f, x) for f in (jnp.zeros_like, jnp.ones_like))
    by_x, by_rate = (
        jax.jvp(acting, (x, rate), way)[1] for way in ((moving, still), (still, moving))
    )
    return by_x, by_rate


def levers(system: System) -> list[tuple[int, Transmission]]:
    """The actuators that do not act at a single degree of freedom, and along what they act."""
    found = []
    for i, a in enumerate(system.actuators):
        if a.axis is not None:
            gear = jnp.concatenate((jnp.zeros(3, system.dtype), a.axis.unit))
            found.append((i, SiteTransmission(Frame(a.axis.body, a.axis.position), gear)))
        elif a.transmission is not None and a.single_dof(system) is None:
            found.append((i, a.transmission))
    return found


def generalised(
    tree: Tree,
    torques: Float[Array, " nu"],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
) -> Float[Array, " nv"]:
    """The generalised force (nv,), the sum of J^T F, of the actuators' torques (nu,).

    Within the limits of effort of joints that have an `EffortLimit`.
    """
    total = joint_force_of(tree.system, torques)
    elsewhere = _transmitted_force_of(tree, torques, q, v)
    return limited(tree.system, total if elsewhere is None else total + elsewhere)


def output_rates(
    system: System, command: Float[Array, " nu"], x: Sequence[Scalar], rate: Sequence[Scalar]
) -> list[Float[Array, " k"]]:
    """dz/dt (k,) of each actuator with internal states, at those that it holds.

    command: what their laws get, see `acting_commands`. x, rate: the `lengths` of all actuators,
    and their rates; without such an actuator they may be empty.
    """
    actuators = system.actuators
    held = {i: a for i, a in enumerate(actuators) if a.states and isinstance(a, Stateful)}
    if not held:
        return []
    taken = _taken(system, command, x, rate)
    given = [(*taken[i], a.return_map(x[i], a.z)) for i, a in held.items()]
    return [rates for _, rates in outputs(list(held.values()), given)]


def joint_force_of(system: System, torques: Float[Array, " nu"]) -> Float[Array, " nv"]:
    """The generalised force (nv,) of the actuators at one degree of freedom, of torques (nu,)."""
    if not system.actuators:
        return torques
    at = [(i, a.single_dof(system)) for i, a in enumerate(system.actuators)]
    which, dofs = np.array([pair for pair in at if pair[1] is not None], dtype=int).reshape(-1, 2).T
    if not which.size:
        return jnp.zeros(system.nv, torques.dtype)
    if any(_geared(a) for a in system.actuators):
        torques = torques * joint_gears(system)
    return jnp.zeros(system.nv, torques.dtype).at[dofs].add(torques[which])


def _transmitted_force_of(
    tree: Tree,
    torques: Float[Array, " nu"],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
) -> Float[Array, " nv"] | None:
    """The generalised force (nv,) along axes and transmissions; None where there are none.

    Transmissions at one degree of freedom are left to `joint_force_of`.
    """
    pushing, system = pushes(tree.system, torques), tree.system
    geared = [
        (i, a.transmission)
        for i, a in enumerate(system.actuators)
        if _geared(a) and a.single_dof(system) is None
    ]
    fixed = [(i, gear) for i, gear in geared if type(gear) is FixedTendon]
    forces = [
        tree.generalised(gear.lever(tree, q)[1] * torques[i])
        for i, gear in geared
        if type(gear) is not FixedTendon
    ]
    if fixed:
        numbers = np.array([i for i, _ in fixed])
        arms = moment_arms(tree.topology, [tendon for _, tendon in fixed])
        forces.append(tree.generalised(jnp.sum(arms * torques[numbers][:, None], axis=0)))
    forces += [coupling_force(tree, pushing, q, v)] if pushing else []
    return sum(forces[1:], forces[0]) if forces else None


def pushes(system: System, torques: Float[Array, " nu"]) -> list[Coupling]:
    """The forces at points of bodies of the actuators along axes and between bodies.

    From all torques (nu,).
    """
    found: list[Coupling] = []
    for i, a in enumerate(system.actuators):
        if a.axis is not None:
            found.append(FollowerForce(a.axis.path, torques[i] * a.axis.unit))
        elif isinstance(a.transmission, PointTransmission):
            found.append(Pull(a.transmission.path, a.transmission, torques[i]))
    return found


def _geared(actuator: ActuatorElement) -> bool:
    return isinstance(actuator.transmission, CoordinateTransmission)


def dof_commands(system: System) -> list[list[int]]:
    """The indices of the commands that act at each degree of freedom (nv,) by itself."""
    if not system.actuators:
        return [[i] for i in range(system.nv)]
    at = [(i, a.single_dof(system)) for i, a in enumerate(system.actuators)]
    return [[i for i, dof in at if dof == k] for k in range(system.nv)]


def joint_gears(system: System) -> Float[Array, " nu"] | float:
    """The effort at its degree of freedom for one of each actuator's torque (nu,); 1 elsewhere."""
    gears = [
        a.transmission.gear.ravel()[0] if _geared(a) and a.single_dof(system) is not None else 1.0
        for a in system.actuators
    ]
    return jnp.stack([jnp.asarray(g, system.dtype) for g in gears]) if gears else 1.0


def delivered(
    tree: Tree,
    command: Float[Array, " nu"],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
) -> Float[Array, " nv"]:
    """The generalised force (nv,) that the actuators deliver for a command (nu,).

    See `torques`.
    """
    return generalised(tree, torques(tree, command, q, v), q, v)


def remember(system: System) -> bool:
    """Whether any actuator of the system has a memory."""
    return any(a.has_state for a in system.actuators)


def acting_commands(
    system: System, command: Float[Array, " nu"], memories: Memories | None
) -> tuple[Float[Array, " nu"], Memories | None]:
    """The commands (nu,) that laws get, those with delays earlier ones, and the memories for them.

    command (nu,): that at the start of the step, with the memories then.
    """
    late = [] if memories is None else [i for i, m in enumerate(memories) if m is not None]
    if memories is None or not late:
        return command, memories
    given = [(entry(command, i), memories[i]) for i in late]
    found = heard([system.actuators[i] for i in late], given)
    after = list(memories)
    for i, (_, memory) in zip(late, found, strict=True):
        after[i] = memory
    return command.at[np.array(late)].set(jnp.stack([u for u, _ in found])), tuple(after)


def first_memories(
    tree: Tree,
    command: Float[Array, " nu"],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    dt: Float[Array, ""],
) -> Memories:
    """The memories before the first step of dt () s, at this command (nu,), q (nq,), v (nv,)."""
    x, rate = lengths(tree, q, v)
    actuators = tree.system.actuators
    begins = [a.init for a in actuators]
    kept = [called(f, command[i], x[i], rate[i]) for i, f in enumerate(begins)]
    memories = tuple(None if k is None else Memory(k, dt) for k in kept)
    return settled(memories, lambda m: _after(tree, command, q, v, m), q.dtype)


def next_memories(
    tree: Tree,
    command: Float[Array, " nu"],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    memories: Memories,
) -> Memories:
    """The memories after a step, from those, the command (nu,) and the state at its start."""
    return carried(_after(tree, command, q, v, memories), memories)


def _after(tree: Tree, command: jax.Array, q: jax.Array, v: jax.Array, memories: Any) -> Memories:
    """The memories after a step in the types that the laws give them."""
    actuators = tree.system.actuators
    _, heard_by = acting_commands(tree.system, command, memories)
    found = zip(actuators, heard_by or (), _laws(tree, command, q, v, memories), strict=True)
    # What an actuator without a memory returns beside its torque is no memory.
    return tuple(
        None if kept is None else kept if a.states else after for a, kept, (_, after) in found
    )


def timed(memories: Memories, dt: Float[Array, ""]) -> Memories:
    """The memories before a step of another length dt () in s."""
    return tuple(None if m is None else m._replace(dt=dt) for m in memories)


def recalled(system: System, memories: Memories | None) -> System:
    """The system with each actuator bound to its memory, so that none has a memory of its own.

    For use within one time step, over which memories are held.
    """
    if memories is None:
        return system
    pairs = zip(system.actuators, memories, strict=True)
    return _with_actuators(system, (a if m is None else Recalled.of(a, m) for a, m in pairs))


class Recalled(Actuator):
    """An actuator bound to its memory at one moment."""

    actuator: ActuatorElement
    memory: Memory

    @staticmethod
    def of(actuator: ActuatorElement, memory: Memory) -> Recalled:
        if isinstance(actuator, Stateful):
            return _RecalledWithStates(actuator, memory, z0=actuator.z, **_labelled(actuator))
        return Recalled(actuator, memory, **_labelled(actuator))

    @property
    def partners(self) -> tuple[str, ...]:
        return self.actuator.partners

    def passed_on(self, command: Scalar) -> Scalar:
        return self.actuator.passed_on(self._heard(command)[0])

    def torque(self, command: Scalar, q: Scalar, v: Scalar, memory: Any) -> tuple[Scalar, Any]:
        u, kept = self._heard(jnp.ravel(command)[0])
        # What partners pass on is late already.
        command = command.at[0].set(u) if self.partners else u
        torque, after = called(self.actuator.torque, command, q, v, memory if self.states else kept)
        return torque, after if self.states else memory

    def _heard(self, command: Scalar) -> tuple[Scalar, Any]:
        return called(self.actuator.late, command, self.memory)


class _RecalledWithStates(Stateful, Recalled):
    """The same of an actuator with internal states."""

    @property
    def states(self) -> tuple[tuple[str, str], ...]:
        return self.actuator.states

    @property
    def has_return_map(self) -> bool:
        return isinstance(self.actuator, Stateful) and self.actuator.has_return_map

    def return_map(self, *args: Any, **kwargs: Any) -> Float[Array, " k"]:
        assert isinstance(self.actuator, Stateful)
        return self.actuator.return_map(*args, **kwargs)


def applied(system: System, torques: Float[Array, " nu"] | None) -> System:
    """The system whose actuators with a memory deliver given torques (nu,), held constant.

    And those that hear commands of these, or may share a limit with them.
    """
    if torques is None:
        return system
    held = sharing_limits(system)
    held = held.union(a.label for a in system.actuators if a.has_state)
    pairs = enumerate(system.actuators)
    return _with_actuators(
        system,
        (
            Applied.of(a, torques[i]) if held.intersection((a.label, *a.partners)) else a
            for i, a in pairs
        ),
    )


def _labelled(actuator: ActuatorElement) -> dict[str, Any]:
    """Where an actuator acts, with its name also where that is the default."""
    return {**actuator.place, "name": actuator.label}


class Applied(Actuator):
    """An actuator that delivers a constant torque: what another one delivered at one moment."""

    given: jax.Array

    @staticmethod
    def of(actuator: ActuatorElement, given: Float[Array, ""]) -> Applied:
        if isinstance(actuator, Stateful):
            return _AppliedWithStates(given, actuator, z0=actuator.z, **_labelled(actuator))
        return Applied(given, **_labelled(actuator))

    def torque(self, command: Scalar, q: Scalar, v: Scalar, memory: Any) -> tuple[Scalar, Any]:
        return self.given, memory


class _AppliedWithStates(Stateful, Applied):
    """The same in place of an actuator with internal states, which stay as they are."""

    actuator: ActuatorElement

    @property
    def states(self) -> tuple[tuple[str, str], ...]:
        return self.actuator.states

    def torque(self, command: Scalar, q: Scalar, v: Scalar, memory: Any) -> tuple[Scalar, Any]:
        return self.given, jnp.zeros_like(memory)


def _with_actuators(system: System, actuators: Iterable[ActuatorElement]) -> System:
    """The system with other actuators, not frozen; it carries its tree if it did before."""
    made, tree = replace(unfreeze(system), actuators=tuple(actuators)), carried_tree(system)
    return made if tree is None else replace(tree, system=made).carried()


def _laws(
    tree: Tree,
    command: jax.Array,
    q: jax.Array,
    v: jax.Array,
    memories: Memories | None,
) -> list[tuple[jax.Array, Any]]:
    """The torque () of each actuator, and its memory after the step, or dz/dt of its states."""
    return _laws_at(tree.system, command, *lengths(tree, q, v), memories)


def _laws_at(
    system: System,
    command: jax.Array,
    x: Sequence[Scalar],
    rate: Sequence[Scalar],
    memories: Memories | None,
) -> list[tuple[jax.Array, Any]]:
    """`_laws` at lengths () and their rates ()."""
    actuators = system.actuators
    command, heard_by = acting_commands(system, command, memories)
    memories = len(actuators) * (None,) if heard_by is None else heard_by
    held = [
        a.return_map(x[i], a.z) if a.states and isinstance(a, Stateful) else memories[i]
        for i, a in enumerate(actuators)
    ]
    taken = _taken(system, command, x, rate)
    given = [(*each, memory) for each, memory in zip(taken, held, strict=True)]
    found = outputs(actuators, given)
    return [
        (real_values(f"the torque of {actuator}", torque, system.dtype), after)
        for actuator, (torque, after) in zip(actuators, found, strict=True)
    ]


def _torques_at(
    system: System,
    command: jax.Array,
    x: Sequence[Scalar],
    rate: Sequence[Scalar],
    memories: Memories | None,
) -> jax.Array:
    """`torques` (nu,) at lengths () and their rates ()."""
    own = jnp.stack([torque for torque, _ in _laws_at(system, command, x, rate, memories)])
    within = shared(system, own)
    # What was delivered was within the limits that actuators share, and stays.
    given = np.array([isinstance(a, Applied) for a in system.actuators])
    return jnp.where(given, own, within) if given.any() else within


def _taken(
    system: System, command: Float[Array, " nu"], x: Sequence[Scalar], rate: Sequence[Scalar]
) -> list[tuple[jax.Array, jax.Array, jax.Array]]:
    """The command, coordinate and rate that the law of each actuator takes.

    Scalars; with n partners (1 + n,), theirs after its own. x, rate: as of `output_rates`.
    """
    actuators, names = system.actuators, system.actuator_names
    commands = [entry(command, i) for i in range(len(actuators))]
    found = []
    for i, actuator in enumerate(actuators):
        own = commands[i], x[i], rate[i]
        if actuator.partners:
            those = [names.index(name) for name in actuator.partners]
            heard = [actuators[k].passed_on(commands[k]) for k in those]
            rows = [own, *((u, x[k], rate[k]) for u, k in zip(heard, those, strict=True))]
            own = tuple(map(jnp.stack, zip(*rows, strict=True)))
        found.append(own)
    return found


def lengths(tree: Tree, q: jax.Array, v: jax.Array) -> tuple[list[jax.Array], list[jax.Array]]:
    """The coordinate or the length () of each actuator, and its rate ()."""
    t, zero, actuators = tree.topology, jnp.zeros((), q.dtype), tree.system.actuators
    axes = [a.axis for a in actuators if a.axis is not None]
    along = iter(())
    if axes:
        units = jnp.stack([axis.unit for axis in axes])
        along = iter(rates_along(tree, [axis.path for axis in axes], units, q, v))
    between = [a.transmission for a in actuators if isinstance(a.transmission, PointTransmission)]
    lengths = iter(transmitted(tree, between, q, v))
    tendons = [a.transmission for a in actuators if type(a.transmission) is FixedTendon]
    linear = iter(linear_motions(tree, tendons, q, v))
    x, rate = [], []
    for actuator in actuators:
        if type(actuator.transmission) is FixedTendon:
            for values, value in zip((x, rate), next(linear), strict=True):
                values.append(value)
            continue
        if isinstance(actuator.transmission, CoordinateTransmission):
            for values, value in zip(
                (x, rate), actuator.transmission.motion(tree, q, v), strict=True
            ):
                values.append(value)
            continue
        if actuator.transmission is not None:
            for values, value in zip((x, rate), next(lengths), strict=True):
                values.append(value)
            continue
        if actuator.axis is not None:
            x.append(zero)
            rate.append(next(along))
            continue
        place = actuator.coordinate(t)
        x.append(entry(q, place) if place >= 0 else zero)
        rate.append(entry(v, actuator.velocity(t)))
    return x, rate

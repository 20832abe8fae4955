"""The machine, the state and the control of a configuration, and errors with their place in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from ..constraints import assemble, lock
from ..integrators import Method, by_name
from ..system.arguments import checked, on_manifold
from ..system.internal_states import with_states
from ..system.named_states import NamedState
from ..system.system import System
from ..system.validation import format_value, nearest
from . import load
from .config import ControlTable, InitialTable, MachineFile, MotionFile
from .contact_tables import with_tables
from .couplings import closed, coupled
from .toml import ConfigError


@contextmanager
def located(where: str) -> Iterator[None]:
    """Turns a ValueError into a `ConfigError` whose message starts with the place in a file."""
    try:
        yield
    except ValueError as error:
        raise ConfigError(f"{where}{error}") from None


def load_system(config: MachineFile) -> System:
    """The robot of [system], with its locked joints and the forces and actuators of the file.

    Raises as `load` does, and `ConfigError` for joints and forces that do not suit the robot.
    """
    table = config.system
    assert table is not None
    loops = table.loops_file(config.path.parent)
    given = {"base": table.base, "gravity": table.gravity, "strict": table.strict}
    given |= {"actuators": table.actuators, "contacts": table.contacts}
    given |= {"limits": table.limits, "disabled": table.disabled_file(config.path.parent)}
    system = load(config.robot, loops=loops, **given)
    with located(f"{config.path}: system.frames: "):
        system = system.with_frames(table.frames) if table.frames else system
    if table.locked:
        with located(f"{config.path}: system.locked: "):
            system = lock(system, table.locked)
    system = with_tables(system, config.shapes, config.touching, config.path)
    return coupled(system, config.couplings, config.path)


class Start(NamedTuple):
    """A system, its state at the start, q (nq,) and v (nv,), the guess of that, and a method."""

    system: System
    q: jax.Array
    v: jax.Array
    guess: tuple[jax.Array, jax.Array]
    method: Method


def start_of(config: MotionFile, where: str, method: str) -> Start:
    """What a motion begins with: the system with its constraints, a start on them, the method.

    Internal states begin as in a named state. method: its name, which the key `where` of the file
    has. Raises as `load_system`, `ConfigError` for a state or method that does not suit, and
    `ModelError` for such constraints.
    """
    system = closed(load_system(config), config.constraint, config.path)
    with located(f"{config.path}: {where}: "):
        found = by_name(method)
    guess = state_of(system, config.initial, f"{config.path}: initial")
    if config.initial.state is not None:
        system = with_states(system, system.internal_state(config.initial.state))
    with located(f"{config.path}: initial: "):
        return Start(system, *assemble(system, *guess), guess, found)


def state_of(system: System, table: InitialTable, where: str) -> tuple[Any, Any]:
    """The state (q (nq,), v (nv,)) that a table gives as a whole, or for single joints by name.

    All other joints are as in the named state of the table, or at zero and at rest. Raises
    `ConfigError`, which begins with the place `where`, for a wrong size, an unknown joint or state
    (with the nearest one), and values not finite.
    """
    t, named = system.topology, named_state(system, table, where)
    begun = (system.neutral(), 0.0) if named is None else named[:2]
    q = numbers_of(f"{where}.q", table.q, system.nq, np.asarray(begun[0]))
    v = numbers_of(f"{where}.v", table.v, system.nv, np.asarray(begun[1]))
    for key, values, vector, starts in (
        ("joints", table.joints, q, t.coordinate_start),
        ("rates", table.rates, v, t.velocity_start),
    ):
        scalar = {
            t.joints[b]: int(starts[b])
            for b in t.coordinate_joints
            if t.manifolds[b].plain and len(t.kinds[b]) == 1
        }
        for name, value in values.items():
            if name not in scalar:
                raise ConfigError(
                    f"{where}.{key}: {system.name} has no joint {format_value(name)} with "
                    f"one degree of freedom{nearest(name, scalar)}"
                )
            if not np.isfinite(value):
                raise ConfigError(f"{where}.{key}.{name} is {value}; it must be finite")
            vector[scalar[name]] = value
    try:
        q = on_manifold(system, f"{where}.q: {system.name}", "q", q)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    with located(f"{where}.q: "):
        q, v = checked(system, q=(q.tolist(), q.shape), v=(v.tolist(), v.shape))
    return q, v


def named_state(system: System, table: InitialTable, where: str) -> NamedState | None:
    """The state that a table names; None if it names none. Raises as `state_of`."""
    with located(f"{where}.state: "):
        return None if table.state is None else system.state(table.state)


def numbers_of(where: str, given: Sequence[float] | None, size: int, default: Any = 0.0) -> NDArray:
    """The numbers (size,) that are given, or the default.

    Raises `ConfigError`, which begins with the place `where`, for another size, and values that are
    not finite.
    """
    if given is None:
        return np.array(np.broadcast_to(default, size), float)
    if len(given) != size:
        raise ConfigError(f"{where} has {len(given)} numbers; {size} are needed")
    if not np.all(np.isfinite(given)):
        raise ConfigError(f"{where} is {given}; all must be finite")
    return np.array(given, float)


class HeldCommand(eqx.Module):
    """A command (nu,) that stays the same, in the units of the actuators."""

    command: Float[Array, " nu"]

    def __call__(self, t: Any, q: Any, v: Any) -> Float[Array, " nu"]:
        return self.command


class JointControl(eqx.Module):
    """tau = effort + stiffness (target - q) - damping v, (nv,) each.

    effort in N m or N, stiffness in N m/rad or N/m, damping in N m s/rad or N s/m, target in rad or
    m; None for joints on groups, for which there is no spring.
    """

    effort: Float[Array, " nv"]
    stiffness: Float[Array, " nv"]
    damping: Float[Array, " nv"]
    target: Float[Array, " nv"] | None

    def __call__(self, t: Any, q: jax.Array, v: jax.Array) -> Float[Array, " nv"]:
        tau = self.effort - self.damping * v
        return tau if self.target is None else tau + self.stiffness * (self.target - q)


def control_of(
    table: ControlTable, system: System, path: Path, initial: InitialTable
) -> HeldCommand | JointControl | None:
    """The control of a table in the file at a path; None if it has none.

    Without a command it is that of the named state of `initial`, where this has one.

    Raises `ConfigError` for keys that do not suit the system, and numbers of a wrong size.
    """
    unfit = ("effort", "stiffness", "damping", "target") if system.actuators else ("command",)
    for name in unfit:
        if getattr(table, name) is not None:
            fix = "actuators; give control.command" if system.actuators else "no actuators"
            raise ConfigError(f"{path}: control.{name}: {system.name} has {fix}")

    def numbers(name: str, size: int) -> np.ndarray:
        return numbers_of(f"{path}: control.{name}", getattr(table, name), size)

    begun = named_state(system, initial, f"{path}: initial")
    if system.actuators and table.command is None and begun and begun.command is not None:
        return HeldCommand(begun.command)
    if system.actuators:
        return HeldCommand(jnp.asarray(numbers("command", system.nu), system.dtype))
    effort, stiffness, damping, target = (
        jnp.asarray(numbers(name, system.nv), system.dtype)
        for name in ("effort", "stiffness", "damping", "target")
    )
    if table.effort is table.stiffness is table.damping is None:
        return None
    if table.stiffness is not None and system.nq != system.nv:
        raise ConfigError(
            f"{path}: control.stiffness: {system.name} has joints that move on a group, "
            "towards which a spring on the coordinates is not defined; leave stiffness out"
        )
    return JointControl(effort, stiffness, damping, None if table.stiffness is None else target)

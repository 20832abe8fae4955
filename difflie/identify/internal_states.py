"""Internal states along measured motions: dz/dt = f(z, q, v, u) from row to row.

Between two rows the velocity is interpolated, and the configuration along its manifold; commands
are held from one row to the next. The method is implicit, of two stages and order 2, and L-stable,
so that states which are much faster than the rows follow the motion. Alexander 1977.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from numpy.typing import NDArray

from .. import native
from ..forces.actuators.acting import (
    acting_commands,
    first_memories,
    next_memories,
    timed,
)
from ..forces.internal_states import (
    Rates,
    implicit_change,
    implicit_states,
    rates_at,
    returned_states,
)
from ..integrators.method import chosen
from ..system.internal_states import states_of
from ..system.kinematic_tree import Tree
from ..system.system import System

_STAGE = 1 - 0.5**0.5
# Between two rows, so that errors are those of the measured motion and not of the method.
_SUBSTEPS = 4

Rows = tuple[jax.Array, ...]
"""q (n, nq) and v (n, nv)."""


def states_between(
    system: System,
    begins: Bool[Array, " n"],
    h: Float[Array, " n"],
    before: Rows,
    after: Rows,
    commands: Float[Array, "n nu"],
) -> Float[Array, "n nz"]:
    """The internal states (n, nz) at the starts of n steps, NaN from where they are not found on.

    begins (n,): whether a step is the first of a motion, which starts with the states that the
    system holds. h (n,) in s; before and after: the true motions at the ends of each step.
    """
    tree, start, steps = Tree.of(system), states_of(system), len(h)
    way = jax.vmap(system.manifold.difference)(before[0], after[0]), after[1] - before[1]

    def step(z: jax.Array, row: tuple) -> tuple[jax.Array, jax.Array]:
        begins, h, part, q, v, dq, dv, u = row
        z = chosen(begins, start, z)

        def at(part: jax.Array) -> Rates:
            return rates_at(tree, u, system.manifold.retract(q, part * dq), v + part * dv)

        within = part + _STAGE / _SUBSTEPS
        middle, found = implicit_states(system, at(within), z, _STAGE * h)
        base = z + (1 - _STAGE) / _STAGE * (middle - z)
        part = part + 1 / _SUBSTEPS
        end, also = implicit_states(system, at(part), base, _STAGE * h)
        end = returned_states(tree, system.manifold.retract(q, part * dq), end)
        end = jnp.where(found & also, end, jnp.nan)
        return end, end

    commands = _heard(tree, begins, h, before, commands)
    first = jnp.arange(_SUBSTEPS) == 0
    parts = jnp.arange(_SUBSTEPS, dtype=h.dtype) / _SUBSTEPS
    rows = h / _SUBSTEPS, *before, *way, commands
    h, *rest = (jnp.repeat(x, _SUBSTEPS, axis=0) for x in rows)
    rows = (begins[:, None] & first).ravel(), h, jnp.tile(parts, steps), *rest
    ends = native.scan(step, start, rows, _SUBSTEPS * steps, every=_SUBSTEPS)[1]
    return jnp.where(begins[:, None], start, jnp.concatenate((start[None], ends[:-1])))


def _heard(
    tree: Tree,
    begins: Bool[Array, " n"],
    h: Float[Array, " n"],
    motion: Rows,
    commands: Float[Array, "n nu"],
) -> Float[Array, "n nu"]:
    """The commands (n, nu) of n steps as laws get them, those of actuators with delays later."""
    system = tree.system
    if not any(a.has_state and a.states for a in system.actuators):
        return commands

    def turn(memories: Any, row: tuple) -> tuple[Any, jax.Array]:
        begins, h, u, q, v = row
        memories = chosen(begins, first_memories(tree, u, q, v, h), timed(memories, h))
        acts = acting_commands(system, u, memories)[0]
        return next_memories(tree, u, q, v, memories), acts

    h = jnp.where(h > 0, h, 1)  # where nothing follows
    q, v = motion
    start = first_memories(tree, commands[0], q[0], v[0], h[0])
    return jax.lax.scan(turn, start, (begins, h, commands, q, v))[1]


def states_at_rows(
    system: System,
    first: Int[Array, " n"],
    t: Float[Array, " n"],
    q: Float[Array, "n nq"],
    v: Float[Array, "n nv"],
    commands: Float[Array, "n nu"],
) -> Float[Array, "n nz"] | None:
    """The internal states (n, nz) at the rows of recordings, None of a system without any.

    first (n,): the first row of each row's recording; t (n,) in s; q, v: the true motion, without
    gaps.
    """
    if not system.nz:
        return None
    n = len(t)
    follows = first[1:] == first[:-1]
    # After the last row of a recording they stay.
    h = jnp.append(jnp.where(follows, jnp.diff(t), 0), 0)
    after = q[np.minimum(np.arange(n) + 1, n - 1)], v[np.minimum(np.arange(n) + 1, n - 1)]
    return states_between(system, first == jnp.arange(n), h, (q, v), after, commands)


def lasting_change(
    tree: Tree,
    z: Float[Array, " nz"],
    command: Float[Array, " nu"],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    duration: Float[Array, ""],
) -> Float[Array, " nz"]:
    """The change (nz,) of states z (nz,) by a shift 1 of commands that has lasted for a duration.

    By one implicit step of this length, in s: that of their rest, where they have one.
    """
    ones = jnp.ones_like(command)
    slope = jax.jvp(lambda u: rates_at(tree, u, q, v)(z), (command,), (ones,))[1]
    rates = rates_at(tree, command, q, v)
    return implicit_change(tree.system, rates, z, duration, duration * slope)


def last_there(gap: Bool[Array, " n"] | NDArray) -> Int[Array, " n"]:
    """The row (n,) before each one, or itself, that is no gap; 0 where there is none."""
    return jax.lax.cummax(jnp.where(gap, 0, jnp.arange(len(gap))))

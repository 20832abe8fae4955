"""Shapes that touch: contacts between the shapes of a system, on request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ..collision.clearance import distance
from ..collision.pairs import Pair, matching_pairs, pairs_that_match
from ..system.shown import some
from ..system.system import System
from ..system.topology import WORLD
from ..system.validation import ModelError, warn
from .attach import attach
from .shape_contact import OF_PAIRS, ShapeContact

# How far the lighter of two machines sinks in under its weight, on one contact point, in m.
_DEPTH = 1e-3
DEFAULTS: dict[str, Any] = {
    "stiffness": None,
    "dissipation": 10.0,
    "friction": 0.8,
    "spinning": 0.0,
    "rolling": 0.0,
    "margin": 0.0,
}


def touching(
    system: System,
    first: str = "*",
    second: str = "*",
    *,
    without: Iterable[Pair] = (),
    disabled: Iterable[Pair] = (),
    stiffness: ArrayLike | None = None,
    dissipation: ArrayLike = DEFAULTS["dissipation"],
    friction: ArrayLike = DEFAULTS["friction"],
    spinning: ArrayLike = 0.0,
    rolling: ArrayLike = 0.0,
    margin: ArrayLike = 0.0,
    **common: Any,
) -> System:
    """The system with shapes in contact, which were idle: those that two patterns select.

    first, second: patterns for names of `System.shapes`; which pairs touch is said by
    `matching_pairs`. without: pairs of patterns that do not. disabled: pairs of names of bodies of
    which no shapes do, such as `difflie.io.read_disabled` reads from an SRDF file. The numbers are
    those of the contact points of each pair: stiffness in N/m, dissipation in s/m, friction mu,
    spinning and rolling, arms in m, margin in m; scalars or (m,). By default the stiffness is
    such that the lighter of the two machines sinks in by 1 mm under its weight on one point.
    common: slip_velocity, spin_velocity, exponent and smoothing of `ShapeContact`.

    All contacts of a system are one coupling, named "contacts", whose numbers have the paths
    "contacts/friction[0]"; those of the shapes are "foot/radius". What touches already keeps its
    numbers; a pair that is there is replaced. Raises ValueError as `matching_pairs`, and
    `ModelError` for faults of numbers.

    >>> ball = dl.chain([dl.Body(name="ball", joint=dl.Prismatic(axis=(0, 0, 1)), mass=2.0)])
    >>> ball = ball.with_shapes({"ball": dl.Sphere("ball", 0.1), "ground": dl.Plane()})
    >>> system = dl.touching(ball, "ball", "ground", stiffness=1e4)
    >>> print(dl.passive_force(system, [0.098], [0.0]).round(3))  # in N
    [20.]
    """
    pairs = matching_pairs(system, first, second, without, disabled)
    given = (stiffness, dissipation, friction, spinning, rolling, margin)
    return with_contacts(system, pairs, dict(zip(OF_PAIRS, given, strict=True)), **common)


def touching_apart(system: System, disabled: Sequence[Pair] = ()) -> System:
    """The system with all shapes in contact that may be, and are apart at zero coordinates.

    With the numbers that `touching` has by default. disabled: as of it. Warns of those that overlap
    there. Raises ValueError for an unknown body.
    """
    pairs = pairs_that_match(system, disabled=disabled) if system.shapes else []
    if not pairs:
        return system
    found = distance(system, system.neutral())
    gaps = dict(zip(found.pairs, np.asarray(found.distance), strict=True))
    rows = [(pair, gaps[pair]) for pair in pairs]
    clear = [pair for pair, gap in rows if gap > 0]
    if inside := [" and ".join(pair) for pair, gap in rows if gap <= 0]:
        warn(
            f"{system.name}: shapes that overlap at zero coordinates do not touch: "
            f"{some(inside, 4)}; let them by dl.touching"
        )
    return with_contacts(system, clear, DEFAULTS) if clear else system


def with_contacts(
    system: System, pairs: Sequence[Pair], numbers: Mapping[str, Any], **common: Any
) -> System:
    """The system with pairs of shapes in contact; numbers: of each pair, scalars or (m,).

    As of `touching`; a stiffness of None is its default.
    """
    if numbers["stiffness"] is None:
        stiffness = jnp.stack([_supporting(system, pair) for pair in pairs])
        numbers = {**numbers, "stiffness": stiffness}
    there = [c for c in system.couplings if isinstance(c, ShapeContact)]
    own = {name: _each(name, numbers[name], len(pairs)) for name in OF_PAIRS}
    shapes, old = system.shapes, there[0] if there else None
    if old is not None:
        new = {frozenset(pair) for pair in pairs}
        kept = np.array([k for k, p in enumerate(old.pairs) if frozenset(p) not in new], int)
        own = {n: jnp.concatenate((getattr(old, n)[kept], own[n])) for n in OF_PAIRS}
        pairs = [*(old.pairs[k] for k in kept), *pairs]
        same = {n: getattr(old, n) for n in ("exponent", "slip_velocity", "spin_velocity")}
        common = {**same, "smoothing": old.smoothing, **common}
    used = {name: shapes[name] for pair in pairs for name in pair}
    idle = {name: shape for name, shape in shapes.items() if name not in used}
    others = tuple(c for c in system.couplings if not isinstance(c, ShapeContact))
    contact = ShapeContact(used, tuple(pairs), **own, **common, name="contacts")  # pyright: ignore
    bare = replace(system, idle_shapes=idle, couplings=others)
    return attach(bare, contact)


def _each(name: str, value: Any, count: int) -> jax.Array:
    """A number of each pair (m,), from one or all of them."""
    array = jnp.asarray(value, float) if not isinstance(value, jax.Array) else value
    if array.shape not in ((), (count,)):
        raise ModelError(
            f"touching: {name} has shape {array.shape}; give a number, or one for each of the "
            f"{count} pairs"
        )
    return jnp.broadcast_to(array, (count,))


def _supporting(system: System, pair: Pair) -> Any:
    """The stiffness () in N/m by which the lighter machine of a pair sinks in by `_DEPTH`."""
    t, masses = system.topology, []
    for name in pair:
        body = system.shapes[name].frame.body
        if body is not None:
            root = _root(t.parents, system.body_names.index(body))
            of = np.array([_root(t.parents, k) == root for k in range(len(t.bodies))])
            masses.append(jnp.sum(jnp.where(of, system.bodies.mass, 0)))
    weight = jnp.sqrt(jnp.sum(system.gravity**2))
    weight = jnp.where(weight > 0, weight, 9.81) * jnp.min(jnp.stack(masses))
    return weight / _DEPTH


def _root(parents: Sequence[int], b: int) -> int:
    """The root body of the tree that a body is in."""
    while parents[b] != WORLD:
        b = int(parents[b])
    return b

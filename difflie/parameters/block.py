"""The values of one declaration, stacked: of one leaf of a system, or of a user's function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.tree_util import keystr, tree_leaves_with_path

from ..system.fields import Number
from ..system.system import System
from ..system.user_functions import called, no_leaf
from .declaration import Parameter, transform_of
from .inertias import InertiaRatios, LogCholesky, SecondMoments
from .paths import Entry, Places, about, is_angle, kind, named, places_of, read, unit, write
from .pseudo_inertia import from_six, inconsistency, nearest_consistent, to_six
from .transforms import Transform

_SMALL = 1e-3


class Block(eqx.Module):
    """k values of a system, of which `count` are free: all k, or one if they are tied.

    starts (count, *shape): the values at which the free numbers start; prior: mean and standard
    deviation (count, size) of their components. names, units: of the components; paths (k,).
    repaired: the bodies that start at the nearest inertia which a rigid body can have. origin: the
    system from whose directions the angles of directions count, None where there are none.
    """

    transform: Transform
    starts: jax.Array
    prior: tuple[jax.Array, jax.Array] | None
    places: Places = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True)
    paths: tuple[str, ...] = eqx.field(static=True)
    tied: bool = eqx.field(static=True)
    repaired: tuple[str, ...] = eqx.field(static=True)
    origin: System | None

    def values(self, x: jax.Array) -> jax.Array:
        """The values (count, *shape) from free numbers x (count size,)."""
        return jax.vmap(self.transform.value)(self._each(x), self.starts)

    def of_components(self, components: jax.Array) -> jax.Array:
        """The values (count, *shape) from their components (count size,)."""
        return jax.vmap(self.transform.of_components)(self._each(components), self.starts)

    def components(self, values: jax.Array) -> jax.Array:
        """The components (count, size) of values (count, *shape)."""
        return jax.vmap(self.transform.components)(values, self.starts)

    def inverse(self, values: jax.Array) -> jax.Array:
        """The free numbers (count size,) from values (count, *shape)."""
        return jax.vmap(self.transform.inverse)(values, self.starts).ravel()

    def residual(self, x: jax.Array) -> jax.Array:
        """(components - mean) / deviation of the prior (count size,); (0,) without a prior."""
        if self.prior is None:
            return x[:0]
        mean, deviation = self.prior
        return ((self.components(self.values(x)) - mean) / deviation).ravel()

    def read(self, system: System) -> jax.Array:
        """The values (count, *shape) in a system; of tied values the first."""
        return read(system, self.places, self.origin)[: len(self.starts)]

    def written(self, system: System, values: jax.Array) -> System:
        """The system with these values (count, *shape)."""
        if self.tied:
            values = jnp.broadcast_to(values, (len(self.paths), *values.shape[1:]))
        return write(system, self.places, values, self.origin)

    @property
    def meanings(self) -> list[tuple[tuple[str, ...], Any]]:
        """The names of each value's components, and what decides its free numbers.

        That is its transform, its start and its prior.
        """
        size = len(self.names) // len(self.starts)
        found = []
        for k, start in enumerate(self.starts):
            prior = None if self.prior is None else (self.prior[0][k], self.prior[1][k])
            found.append((self.names[k * size :][:size], (self.transform, start, prior)))
        return found

    @property
    def limits(self) -> list[np.ndarray]:
        """The bounds (count size,) of the components, below and above."""
        return [
            np.broadcast_to(limit, self.starts.shape).ravel()
            if np.ndim(limit)
            else np.full(len(self.names), limit)
            for limit in self.transform.limits
        ]

    @property
    def bounded(self) -> list[np.ndarray]:
        """Whether a bound is at x = -infinity, and at infinity (count size,)."""
        return [np.full(len(self.names), end) for end in self.transform.bounded]

    def compare(self, ours: System, theirs: System) -> None:
        """Raises ValueError where one of two systems lacks the coupling, constraint or sensor."""
        at = np.cumsum([0, *(len(index) or 1 for _, index in self.places)]).tolist()
        for (place, _), k in zip(self.places, at, strict=False):
            if kind(ours, place) != kind(theirs, place):
                raise ValueError(
                    f"{theirs.name} has nothing like that of which {self.paths[k]} is in "
                    f"{ours.name}; give it the same, in the same order"
                )

    def check(self, name: str, values: jax.Array) -> None:
        """Raises ValueError for values (count, *shape) in the system `name` without free numbers.

        Traced values are not checked.
        """
        if any(isinstance(a, Tracer) for a in jax.tree.leaves((values, self))):
            return
        faults = {}
        starts = np.asarray(self.starts)
        for path, value, start in zip(self.paths, np.asarray(values), starts, strict=False):
            fault = self.transform.fault(value, start)
            if not np.all(np.isfinite(value)):
                fault = f"is {value.tolist()}, and must be finite; fix it"
            if fault:
                faults[path] = fault
        if faults:
            (path, fault), *others = faults.items()
            rest = f"; likewise {', '.join(path for path, _ in others)}" if others else ""
            raise ValueError(f"{name}: {path} {fault}{rest}")

    def _each(self, x: jax.Array) -> jax.Array:
        return x.reshape(len(self.starts), -1)


def block_of(system: System, p: Parameter, group: Sequence[Entry]) -> Block:
    """The `Block` of a declaration for a group of entries of one leaf and shape (k, *shape).

    Raises ValueError for an unsuitable transform, bounds or prior, and for tied values that differ.
    """
    where = f"{system.name}: {p.label!r}"
    starts = _starts(system, p, group)
    leaf, shape = group[0].leaf, starts.shape[1:]
    transform = transform_of(where, p, leaf, about(system, group[0].place), shape)
    starts, repaired = _consistent(system, p, group, transform, starts)
    if p.tied:
        if not isinstance(starts, Tracer) and not np.all(starts == starts[:1]):
            raise ValueError(
                f"{where}: the tied values differ at the start, from "
                f"{np.asarray(starts).min():.4g} to {np.asarray(starts).max():.4g}; give `start`"
            )
        starts = starts[:1]
    labels = transform.labels(leaf, shape)
    owners = [(entry.owner, entry.suffix) for entry in group]
    if p.tied and len(group) > 1:
        owners = [(p.label.rpartition("/")[0], "")]
    names = tuple(named(owner, label) + suffix for owner, suffix in owners for label in labels)
    if p.tied and len(p.patterns) > 1:
        names = (p.label,) if len(labels) == 1 else tuple(f"{p.label}: {part}" for part in labels)
    each = [unit(system, entry) for entry in group]
    each = [" or ".join(dict.fromkeys(each))] if p.tied else each
    units = tuple(one for declared in each for one in transform.units(declared, shape))
    paths = tuple(entry.path for entry in group)
    places, origin = places_of(group), system if any(is_angle(system, e) for e in group) else None
    block = Block(transform, starts, None, places, names, units, paths, p.tied, repaired, origin)
    return with_prior(system, p, block)


def with_prior(system: System, p: Parameter, block: Block) -> Block:
    """The block with the declared prior, if there is one; ValueError for an unsuitable one."""
    if p.prior is None:
        return block
    mean, deviation = p.prior
    size = (len(block.starts), len(block.names) // len(block.starts))
    mean = block.components(block.starts) if mean is None else mean
    mean = numbers(system, p, "prior's mean", mean, size)
    deviation = numbers(system, p, "prior's deviation", deviation, size)
    if not isinstance(deviation, Tracer) and not np.all(deviation > 0):
        raise ValueError(
            f"{system.name}: {p.label!r}: the prior's deviation is "
            f"{np.asarray(p.prior[1]).tolist()}; it must be positive"
        )
    return eqx.tree_at(lambda b: b.prior, block, (mean, deviation), is_leaf=lambda a: a is None)


def with_start(system: System, p: Parameter, group: Sequence[Entry]) -> System:
    """The system with the declared start, which must be finite and of the leaf's shape."""
    old = read(system, places_of(group))
    start = numbers(system, p, "start", p.start, old.shape[1:])
    return write(system, places_of(group), jnp.broadcast_to(start, old.shape))


def _starts(system: System, p: Parameter, group: Sequence[Entry]) -> jax.Array:
    """The values (k, *shape) at which free numbers start: the system's, or small ones for zero.

    Zero damping, friction and armature have no logarithm. They start at a thousandth of the value
    that uses the joint's whole effort at its limits; without limits at a thousandth of the SI unit.
    """
    leaf, values = group[0].leaf, read(system, places_of(group))
    if p.start is not None or p.transform is not None or p.bounds is not None:
        return values
    places = {entry.place for entry in group}
    if places != {("joints", leaf)} or leaf not in ("damping", "friction", "armature"):
        return values
    if isinstance(values, Tracer) or not np.any(values == 0):
        return values
    at = np.array([entry.index for entry in group])
    effort, speed = (
        np.asarray(x)[at] for x in (system.joints.max_effort, system.joints.max_velocity)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        whole = {"damping": effort / speed, "friction": effort}.get(leaf, np.ones(len(at)))
    start = _SMALL * np.where(np.isfinite(whole) & (whole > 0), whole, 1)
    start = np.full(len(at), start.min()) if p.tied else start
    return jnp.where(np.asarray(values) == 0, jnp.asarray(start, system.dtype), values)


def _consistent(
    system: System, p: Parameter, group: Sequence[Entry], transform: Transform, starts: jax.Array
) -> tuple[jax.Array, tuple[str, ...]]:
    """The starts (k, *shape) with inertias that rigid bodies can have, and the bodies that changed.

    Where a body with mass has another one, and no start is declared, it starts at the nearest.
    """
    own = isinstance(transform, SecondMoments | InertiaRatios | LogCholesky)
    if p.start is not None or not own or isinstance(starts, Tracer):
        return starts, ()
    values, repaired = np.array(starts), []
    for k, (entry, value) in enumerate(zip(group, values, strict=True)):
        mass = float(system.bodies.mass[entry.index])
        inertia = value if value.ndim == 2 else np.asarray(from_six(starts[k, 4:]))
        if mass > 0 and inconsistency(inertia):
            near = nearest_consistent(mass, inertia)
            value[...] = near if value.ndim == 2 else [*value[:4], *to_six(jnp.asarray(near))]
            repaired.append(entry.owner)
    return jnp.asarray(values), tuple(repaired)


def numbers(
    system: System, p: Parameter, what: str, value: Any, shape: tuple[int, ...]
) -> jax.Array:
    """The declared numbers, in the system's precision and of this shape."""
    array = jnp.asarray(value, system.dtype)
    try:
        array = jnp.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(
            f"{system.name}: {p.label!r}: the {what} has shape {array.shape}, needed is {shape}"
        ) from None
    if not isinstance(array, Tracer) and not np.all(np.isfinite(array)):
        raise ValueError(f"{system.name}: {p.label!r}: the {what} must be finite")
    return array


class FunctionBlock(Block):
    """One value, of any shape, that of(system, value) writes into a system."""

    of: Callable[..., System]

    def read(self, system: System) -> jax.Array:
        """The value (1, *shape) at the start: a system does not have it."""
        return self.starts

    def written(self, system: System, values: jax.Array) -> System:
        return called(self.of, system, values[0])

    def compare(self, ours: System, theirs: System) -> None:
        """Raises ValueError: no system says what was written into it."""
        raise ValueError(
            f"{ours.name}: {self.paths[0]!r} is written by a function, so that no system tells "
            "it; take x_at(values), or declare no such number"
        )


def function_block(system: System, p: Parameter) -> Block:
    """The `FunctionBlock` of a declaration with a function.

    Raises ValueError where its start is missing, for a tie or a fixed one, for an unsuitable
    transform, bounds or prior, and for a function that fails, or does not return the system with
    other numbers.
    """
    where = f"{system.name}: {p.label!r}"
    if len(p.patterns) != 1 or p.start is None:
        raise ValueError(f"{where} is written by a function; give it one name, and a `start`")
    if p.tied or p.fixed:
        raise ValueError(
            f"{where} is written by a function, which may write it to many places, or write "
            "constants; leave out `tied` and `fixed`"
        )
    start = numbers(system, p, "start", p.start, np.shape(p.start))
    transform = transform_of(where, p, p.label, Number(), start.shape)
    of: Any = no_leaf(p.of)
    name = getattr(p.of, "__name__", repr(p.of))
    _check_function(f"{where}: {name}(system, value)", of, system, start)
    names = transform.labels(p.label, start.shape)
    units = transform.units(p.unit, start.shape)
    block = FunctionBlock(
        transform, start[None], None, (), names, units, (p.label,), False, (), None, of
    )
    return with_prior(system, p, block)


def _check_function(called: str, of: Any, system: System, start: jax.Array) -> None:
    """Raises ValueError, which begins with the call, unless it gives the system other numbers."""
    try:
        made = eqx.filter_eval_shape(of, system, start)
    except Exception as error:
        raise ValueError(
            f"{called} fails at the start: {type(error).__name__}: {error}; correct the function"
        ) from error
    if not isinstance(made, System) or jax.tree.structure(made) != jax.tree.structure(system):
        raise ValueError(
            f"{called} must return the system with other numbers and no other parts, as "
            f"system.replace(mass=...) does; it returns {type(made).__name__}"
        )
    before, after = tree_leaves_with_path(system), tree_leaves_with_path(made)
    for (keys, old), (_, new) in zip(before, after, strict=True):
        if (old.shape, old.dtype) != (new.shape, new.dtype):
            raise ValueError(
                f"{called} makes {keystr(keys).lstrip('.')} {new.dtype} of shape {new.shape}; keep "
                f"{old.dtype} and {old.shape}"
            )

"""Which numbers of a system are free, and the machine they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..system.fields import Number
from ..system.system import System
from ..system.validation import checked, warn
from .selection import Entry, Places, about, alike, kind, named, places, read, select, write
from .transforms import Transform, natural, within

_SMALL = 1e-3


@dataclass(frozen=True)
class Parameter:
    """A declaration: what is free, or fixed, and what is known of it.

    path: that of the values or a pattern for several, "joint*/damping"; see `selection`. Each value
    that matches is free by itself; `tied`: one value for all of them. `fixed`: none is free, which
    takes them out of what an earlier pattern selects. start: the value to begin with, of the
    leaf's shape, where it is not the system's; an inertial one is (10,), as in tables.

    transform: how the value is made of free numbers. Without it inertias stay physically
    consistent, masses, frictions and stiffnesses positive, rotations and directions on their
    manifold. bounds: (lower, upper), numbers or of the value's shape in its unit, None for no
    bound. prior: (mean, standard deviation), in the numbers and units of tables; a mean None is the
    start.
    """

    path: str
    transform: Transform | None = None
    bounds: tuple[Any, Any] | None = None
    start: Any = None
    prior: tuple[Any, Any] | None = None
    tied: bool = False
    fixed: bool = False


class _Block(eqx.Module):
    """The values of one declaration in one leaf, and how they are made.

    Of k values in the system `count` are free: all, or one if they are tied. starts (count, *shape)
    are the values at first; prior: mean and standard deviation (count, size).
    """

    transform: Transform
    starts: jax.Array
    prior: tuple[jax.Array, jax.Array] | None
    places: Places = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True)
    paths: tuple[str, ...] = eqx.field(static=True)
    tied: bool = eqx.field(static=True)

    def free(self, x: jax.Array) -> jax.Array:
        return x.reshape(len(self.starts), -1)

    def into(self, system: System, x: jax.Array) -> System:
        return self.written(system, jax.vmap(self.transform.value)(self.free(x), self.starts))

    def of_table(self, system: System, numbers: jax.Array) -> System:
        values = jax.vmap(self.transform.of_table)(self.free(numbers), self.starts)
        return self.written(system, values)

    def written(self, system: System, values: jax.Array) -> System:
        if self.tied:
            values = jnp.broadcast_to(values, (len(self.paths), *values.shape[1:]))
        return write(system, self.places, values)

    def table(self, x: jax.Array) -> jax.Array:
        """(count, size)"""
        return jax.vmap(self.transform.table)(self.free(x), self.starts)

    def residual(self, x: jax.Array) -> jax.Array:
        if self.prior is None:
            return x[:0]
        mean, deviation = self.prior
        return ((self.table(x) - mean) / deviation).ravel()

    @property
    def limits(self) -> list[np.ndarray]:
        """The bounds of the numbers in tables, below and above, each for all of them."""
        return [
            np.broadcast_to(limit, self.starts.shape).ravel()
            if np.ndim(limit)
            else np.full(len(self.names), limit)
            for limit in self.transform.limits
        ]

    def values_of(self, system: System) -> jax.Array:
        return read(system, self.places)[: len(self.starts)]

    def inverse(self, system: System) -> jax.Array:
        return jax.vmap(self.transform.inverse)(self.values_of(system), self.starts).ravel()

    def compare(self, ours: System, theirs: System) -> None:
        """Raises ValueError where a machine has no such coupling, constraint or sensor."""
        at = np.cumsum([0, *(len(index) or 1 for _, index in self.places)]).tolist()
        for (place, _), k in zip(self.places, at, strict=False):
            if kind(ours, place) != kind(theirs, place):
                raise ValueError(
                    f"{theirs.name} has nothing like that of which {self.paths[k]} is in "
                    f"{ours.name}; give it the same, in the same order"
                )

    def check(self, system: System) -> None:
        """Raises ValueError for a value that no free numbers make, unless it is traced."""
        values = self.values_of(system)
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
            raise ValueError(f"{system.name}: {path} {fault}{rest}")


class Parameters(eqx.Module):
    """The free parameters of a system as one vector x (n,) of real numbers, and back.

    Every x makes values that a machine can have; whether closed loops of other lengths still close
    is for `assemble` to find. Declarations are `Parameter`s, or their paths alone; where two select
    the same value the later one counts. The machine at the start is `system`, with the starts that
    are declared; where there is none, damping, friction and armature of zero, which have no
    logarithm, start at a small value, with a warning. All methods are differentiable and batchable
    in x, compile themselves and inline in a trace: `jax.jit(lambda x: parameters.machine(x))`.

    names: one for each number of `values`, "link2/com_x"; of tied values they have the pattern.
    units: the SI unit of each, as its field declares it, "" for none; "rad or m" for both.
    start (n,): the x of `system`.

    Raises ValueError, naming the parameter and the mend, for a pattern that matches nothing (with
    the nearest path), a value that its transform cannot make, tied values that differ at the
    start, a transform or bounds unfit for the leaf, parts of an inertia that two declarations
    share, and a declaration whose values later ones all take.
    """

    system: System
    start: jax.Array
    names: tuple[str, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True)
    _blocks: tuple[_Block, ...]

    def __init__(self, system: System, parameters: Sequence[Parameter | str]) -> None:
        declared = [Parameter(p) if isinstance(p, str) else p for p in parameters]
        chosen = list(zip(declared, _shared_out(system, declared), strict=True))
        for p, selected in chosen:
            for group in alike(system, selected):
                if p.start is not None:
                    system = write(system, places(group), _start(system, p, group))
                elif not p.fixed and p.transform is None and p.bounds is None:
                    system = _lifted(system, p, group)
        self.system = system
        self._blocks = tuple(
            _block(system, p, group)
            for p, selected in chosen
            if not p.fixed
            for group in _groups(system, p, selected)
        )
        self.names = tuple(name for block in self._blocks for name in block.names)
        self.units = tuple(unit for block in self._blocks for unit in block.units)
        self.start = self.x_of(system)

    @property
    def prior_names(self) -> tuple[str, ...]:
        """The names of the numbers of `residual` (n_prior,)."""
        return tuple(n for block in self._blocks if block.prior is not None for n in block.names)

    @property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """The bounds (n,) that `values` do not reach, below and above, infinite for none."""
        each, none = [block.limits for block in self._blocks], np.zeros(0)
        lower, upper = (np.concatenate([none, *(pair[k] for pair in each)]) for k in (0, 1))
        return lower, upper

    def machine(self, x: Any) -> System:
        """The system with the free numbers x (n,)."""
        return _machine(self, self._checked(x))

    def values(self, x: Any) -> jax.Array:
        """The physical values (n,) for tables, named by `names`, in SI units.

        Inertias are about the centre of mass. Directions have two angles in rad from the start.
        """
        return _values(self, self._checked(x))

    def residual(self, x: Any) -> jax.Array:
        """(values - mean) / deviation (n_prior,) of those that have a prior, in the order of them.

        Half its square is minus the logarithm of a normal prior, up to a constant.
        """
        return _residual(self, self._checked(x))

    def with_values(self, values: Any) -> System:
        """The system with any numbers (n,) of tables, as `values` has them; bounds included."""
        system = self.system
        for block, part in self._parts(self._checked(values)):
            system = block.of_table(system, part)
        return system

    def x_of(self, system: System) -> jax.Array:
        """The free numbers x (n,) of a system with the same bodies and joints: `machine` inverted.

        Of tied values the first counts. Raises ValueError for a value that no x has, for another
        machine, and for one without a spring, actuator or whatever else has numbers among them.
        """
        ours, theirs = self.system.topology, system.topology
        if (ours.bodies, ours.joints, ours.types) != (theirs.bodies, theirs.joints, theirs.types):
            raise ValueError(
                f"{system.name} has other bodies or joints than {self.system.name}, for which the "
                "parameters were declared; declare them for it"
            )
        for block in self._blocks:
            block.compare(self.system, system)
            block.check(system)
        return _inverse(self._blocks, system)

    def _parts(self, x: jax.Array) -> list[tuple[_Block, jax.Array]]:
        ends = np.cumsum([len(block.names) for block in self._blocks]).tolist()
        return [
            (block, x[end - len(block.names) : end])
            for block, end in zip(self._blocks, ends, strict=True)
        ]

    def _checked(self, x: Any) -> jax.Array:
        return checked(self.system, x=(x, self.start.shape))[0]


@jax.jit
def _machine(parameters, x):
    system = parameters.system
    for block, part in parameters._parts(x):
        system = block.into(system, part)
    return system


@jax.jit
def _values(parameters, x):
    return jnp.concatenate(
        [x[:0], *(block.table(part).ravel() for block, part in parameters._parts(x))]
    )


@jax.jit
def _residual(parameters, x):
    return jnp.concatenate([x[:0], *(block.residual(part) for block, part in parameters._parts(x))])


@jax.jit
def _inverse(blocks, system):
    return jnp.concatenate([system.gravity[:0], *(block.inverse(system) for block in blocks)])


def _shared_out(system: System, declared: Sequence[Parameter]) -> list[list[Entry]]:
    """The entries of each declaration: those that no later one has."""
    owner: dict[Any, str] = {}
    chosen = []
    for p in reversed(declared):
        if p.fixed and (p.tied or (p.transform, p.bounds, p.prior) != (None, None, None)):
            raise ValueError(
                f"{system.name}: {p.path!r} is fixed; leave out its transform, bounds, prior, tie"
            )
        found = select(system, p.path)
        left = []
        for entry in found:
            taken = {owner[part] for part in entry.parts if part in owner}
            if taken and not entry.parts <= owner.keys():
                raise ValueError(
                    f"{system.name}: {entry.path!r} shares a part with {min(taken)!r}, which is "
                    "declared too; declare its mass, com and inertia one by one"
                )
            if not taken:
                left.append(entry)
        if not left:
            raise ValueError(
                f"{system.name}: later declarations select all of {p.path!r}; leave it out, or put "
                "it behind them"
            )
        owner.update({part: entry.path for entry in left for part in entry.parts})
        chosen.append(left)
    return chosen[::-1]


def _groups(system: System, p: Parameter, selected: Sequence[Entry]) -> list[list[Entry]]:
    groups = alike(system, selected)
    if p.tied and len(groups) > 1:
        unlike = " and ".join(repr(group[0].path) for group in groups[:2])
        raise ValueError(
            f"{system.name}: {p.path!r} ties {unlike}; tie values of one leaf and shape"
        )
    return groups


def _start(system: System, p: Parameter, group: Sequence[Entry]) -> jax.Array:
    """The values (k, *shape) with which a declaration begins."""
    old = read(system, places(group))
    return jnp.broadcast_to(_numbers(system, p, "start", p.start, old.shape[1:]), old.shape)


def _lifted(system: System, p: Parameter, group: Sequence[Entry]) -> System:
    """With a start for joints that have no damping, friction or armature.

    A thousandth of what takes the whole effort at the joint's limits; without these of 1 in the SI
    unit.
    """
    leaf, values = group[0].leaf, read(system, places(group))
    if group[0].place != ("joints", leaf) or leaf not in ("damping", "friction", "armature"):
        return system
    if isinstance(values, Tracer) or not np.any(values == 0):
        return system
    at = np.array([entry.index for entry in group])
    effort, speed = (
        np.asarray(x)[at] for x in (system.joints.max_effort, system.joints.max_velocity)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        whole = {"damping": effort / speed, "friction": effort}.get(leaf, np.ones(len(at)))
    start = _SMALL * np.where(np.isfinite(whole) & (whole > 0), whole, 1)
    start = np.full(len(at), start.min()) if p.tied else start
    zero = np.asarray(values) == 0
    said = ", ".join(
        f"{e.path} at {s:.3g}" for e, s, z in zip(group, start, zero, strict=True) if z
    )
    warn(
        f"{system.name}: zero has no logarithm, and the fit starts {said} (SI units); "
        "give `start` for another",
    )
    return write(system, places(group), jnp.where(zero, jnp.asarray(start, system.dtype), values))


def _block(system: System, p: Parameter, group: Sequence[Entry]) -> _Block:
    where = f"{system.name}: {p.path!r}"
    starts = read(system, places(group))
    leaf, shape = group[0].leaf, starts.shape[1:]
    meaning = about(system, group[0].place)
    transform = _transform(where, p, leaf, meaning, shape)
    if p.tied:
        if not isinstance(starts, Tracer) and not np.all(starts == starts[0]):
            raise ValueError(
                f"{where}: the tied values differ at the start, from "
                f"{np.asarray(starts).min():.4g} to {np.asarray(starts).max():.4g}; give `start`"
            )
        starts = starts[:1]
    labels = transform.labels(leaf, shape)
    owners = [(entry.owner, entry.suffix) for entry in group]
    if p.tied and len(group) > 1:
        owners = [(p.path.rpartition("/")[0], "")]
    names = tuple(named(owner, label) + suffix for owner, suffix in owners for label in labels)
    each = [about(system, entry.place).unit for entry in group]
    each = [" or ".join(dict.fromkeys(each))] if p.tied else each
    units = tuple(unit for of in each for unit in transform.units(of, shape))
    paths = tuple(entry.path for entry in group)
    block = _Block(transform, starts, None, places(group), names, units, paths, p.tied)
    if p.prior is None:
        return block
    mean, deviation = p.prior
    size = (len(starts), len(labels))
    if mean is None:
        block.check(system)
        mean = block.table(block.inverse(system))
    mean = _numbers(system, p, "prior's mean", mean, size)
    deviation = _numbers(system, p, "prior's deviation", deviation, size)
    if not isinstance(deviation, Tracer) and not np.all(deviation > 0):
        raise ValueError(
            f"{where}: the prior's deviation is {np.asarray(p.prior[1]).tolist()}; it must be "
            "positive"
        )
    return eqx.tree_at(lambda b: b.prior, block, (mean, deviation), is_leaf=lambda a: a is None)


def _transform(
    where: str, p: Parameter, leaf: str, meaning: Number, shape: tuple[int, ...]
) -> Transform:
    if p.transform is not None and p.bounds is not None:
        raise ValueError(f"{where} has a transform and bounds; give one of them")
    if p.bounds is None:
        transform = p.transform or natural(meaning)
        mend = f"take {type(natural(meaning)).__name__}"
    elif meaning.kind != "plain":
        raise ValueError(
            f"{where}: bounds on single numbers would leave the manifold of its values; give a "
            "prior, or WithinEllipsoid to inertial parameters"
        )
    else:
        transform = within(p.bounds)
        mend = "give numbers, or arrays of that shape"
    if not transform.suits(meaning.kind, shape):
        name = type(transform).__name__
        raise ValueError(f"{where}: {name} does not suit {leaf} with the shape {shape}; {mend}")
    return transform


def _numbers(
    system: System, p: Parameter, what: str, value: Any, shape: tuple[int, ...]
) -> jax.Array:
    """What was given, in the system's precision and in this shape."""
    array = jnp.asarray(value, system.dtype)
    try:
        array = jnp.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(
            f"{system.name}: {p.path!r}: the {what} has shape {array.shape}, needed is {shape}"
        ) from None
    if not isinstance(array, Tracer) and not np.all(np.isfinite(array)):
        raise ValueError(f"{system.name}: {p.path!r}: the {what} must be finite")
    return array

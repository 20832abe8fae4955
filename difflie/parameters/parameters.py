"""Numbers of a system by name: as physical values, as free numbers, and as a system with them."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from numpy.typing import ArrayLike, NDArray

from ..deprecated import renamed
from ..system.arguments import checked
from ..system.shown import subsample
from ..system.system import System
from ..system.validation import check_shape, format_value, nearest, real_numbers
from .block import Block, block_of, function_block, with_start
from .declaration import Parameter, groups, shared_out
from .paths import alike, compact


@renamed(machine="system_at")
class Parameters(eqx.Module):
    """Numbers of a system, chosen by path, as a vector, and back.

    Declarations are `Parameter`s, or their paths alone; where two select the same value the later
    one counts. The numbers have two representations as vectors (n,):

    - physical `values`, in SI units, named by `names`: `initial` are those of `system`, `values_of`
      those of another one, `vector` takes them by name, and `with_values` is the system that has
      them, as sweeps need it;
    - unconstrained free numbers x, as optimisers need them: `start` are those of `system`, `x_of`
      those of another one, and `machine` is the system that has them, whose values stay within
      bounds, positive, physically consistent or on their manifold; `values(x)` are the physical
      values.

    Closed loops with other lengths may not close; `assemble` finds out. All methods are
    differentiable and batchable, compile themselves and inline in a trace:
    `jax.vmap(parameters.with_values)(grid)`.

    system: the given one, with the declared starts, but for what functions write. names: one for
    each value, "link2/com_x"; tied values have the pattern; what functions write comes last.
    Inertias are about the centre of mass; directions are two angles in rad from the start. units:
    the SI unit of each, as its field declares it, "" for none; "rad or m" for values tied across
    angles and lengths.

    Raises ValueError, naming the parameter and the fix, for a pattern that matches nothing (with
    the nearest path), a string instead of a list, two numbers of one name, tied values that differ
    at the start, an unsuitable transform or bounds, parts of an inertia that two declarations
    share, a path declared twice, and a declaration whose values later ones all take.

    >>> lift = dl.chain([dl.Body(name="lift", joint=dl.Prismatic(damping=0.5), mass=2.0)])
    >>> parameters = dl.Parameters(lift, ["lift/mass", "lift/damping"])
    >>> parameters.names, parameters.units, parameters.initial.tolist()
    (('lift/mass', 'lift/damping'), ('kg', 'N s/m'), [2.0, 0.5])
    """

    system: System
    names: tuple[str, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True)
    _blocks: tuple[Block, ...]

    def __init__(self, system: System, parameters: Sequence[Parameter | str]) -> None:
        if isinstance(parameters, str):
            raise ValueError(
                f"{system.name}: the parameters are the string {format_value(parameters)}; give a "
                "list of paths"
            )
        declared = [Parameter(p) if isinstance(p, str) else p for p in parameters]
        by_path = [p for p in declared if p.of is None]
        chosen = list(zip(by_path, shared_out(system, by_path), strict=True))
        for p, selected in chosen:
            for group in alike(system, selected) if p.start is not None else ():
                system = with_start(system, p, group)
        self.system = system
        self._blocks = tuple(
            block_of(system, p, group)
            for p, selected in chosen
            if not p.fixed
            for group in groups(system, p, selected)
        )
        # Functions come last, as they may read what the others have written.
        self._blocks += tuple(function_block(system, p) for p in declared if p.of is not None)
        self.names = tuple(name for block in self._blocks for name in block.names)
        self.units = tuple(unit for block in self._blocks for unit in block.units)
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise ValueError(
                f"{system.name}: two numbers are named {twice[0]!r}; give the field of one of them "
                "another name, or the path of one that a function writes"
            )

    def __repr__(self) -> str:
        return parameters_text(self)

    @property
    def initial(self) -> jax.Array:
        """The values (n,) of `system`; of what functions write, the declared starts."""
        return _values_of(self._blocks, self.system)

    @property
    def start(self) -> jax.Array:
        """The free numbers x (n,) of `system`.

        Zero damping, friction and armature, which have no logarithm, start at a small value, unless
        a start, bounds or transform is declared. The `repaired` bodies start at the nearest inertia
        that a rigid body can have. Raises ValueError, naming the parameter and the fix, for other
        values without free numbers.
        """
        for block in self._blocks:
            block.check(self.system.name, block.starts)
        return _start(self._blocks, self.system)

    @property
    def repaired(self) -> tuple[str, ...]:
        """The bodies with mass whose inertia no rigid body can have, where no start is declared."""
        return tuple(dict.fromkeys(body for block in self._blocks for body in block.repaired))

    @property
    def prior_names(self) -> tuple[str, ...]:
        """The names (n_prior,) of the entries of `residual`."""
        return tuple(n for block in self._blocks if block.prior is not None for n in block.names)

    @property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """The lower and upper bounds (n,) of the values, infinite for none; no x reaches them."""
        each, none = [block.limits for block in self._blocks], np.zeros(0)
        lower, upper = (np.concatenate([none, *(pair[k] for pair in each)]) for k in (0, 1))
        return lower, upper

    @property
    def bounded(self) -> tuple[np.ndarray, np.ndarray]:
        """Whether each value nears a bound as its x goes to -infinity, and to infinity (n,)."""
        each, none = [block.bounded for block in self._blocks], np.zeros(0, bool)
        low, high = (np.concatenate([none, *(pair[k] for pair in each)]) for k in (0, 1))
        return low, high

    @property
    def meanings(self) -> list[tuple[tuple[str, ...], Any]]:
        """The names of the components of each value, and what decides its free numbers."""
        return [meaning for block in self._blocks for meaning in block.meanings]

    @property
    def title(self) -> str:
        """The name of the machine, for messages."""
        return self.system.name

    @property
    def given(self) -> dict[str, System]:
        """The given machine by its name, with the declared starts."""
        return {self.system.name: self.system}

    def system_at(self, x: ArrayLike) -> System:
        """The system with the free numbers x (n,)."""
        return _written(self, self._checked(x=x), Block.values)

    def values(self, x: ArrayLike) -> jax.Array:
        """The values (n,) of the free numbers x (n,)."""
        return _values(self, self._checked(x=x))

    def residual(self, x: ArrayLike) -> jax.Array:
        """(values - mean) / deviation (n_prior,) of the values with a prior, in their order.

        Half its square is minus the logarithm of a normal prior, up to a constant.
        """
        return _residual(self, self._checked(x=x))

    def with_values(self, values: ArrayLike) -> System:
        """The system with these values (n,); values on their bounds are allowed.

        Raises ValueError for concrete ones beyond their bounds. Physical consistency of inertias is
        not checked.
        """
        values = self._checked(values=values)
        if not isinstance(values, Tracer):
            self._check_bounds(np.asarray(values))
        return _written(self, values, Block.of_components)

    def vector(self, numbers: Mapping[str, Any]) -> jax.Array:
        """The values (n,) with these numbers by name; all others are those of `initial`.

        Raises ValueError for a name that is not in `names`, with the nearest one.
        """
        values, known = self.initial, {compact(name): k for k, name in enumerate(self.names)}
        for name, number in numbers.items():
            if compact(str(name)) not in known:
                raise ValueError(
                    f"{self.system.name}: no parameter is named {format_value(name)}"
                    f"{nearest(str(name), self.names)}"
                )
            array = real_numbers(self.system.name, name, number)
            check_shape(self.system.name, name, array.shape, ())
            values = values.at[known[compact(str(name))]].set(array.astype(values.dtype))
        return values

    def values_of(self, system: System) -> jax.Array:
        """The values (n,) of a system with the same bodies and joints; of tied values the first.

        Raises ValueError for another structure, for a system without a spring, actuator or other
        part that has one of the numbers, and where a function writes one, which no system tells.
        """
        self._compare(system)
        return _values_of(self._blocks, system)

    def x_of(self, system: System) -> jax.Array:
        """The free numbers x (n,) of a system with the same bodies and joints; inverts `machine`.

        Of tied values the first counts. Raises ValueError as `values_of`, and for a value without
        free numbers.
        """
        self._compare(system)
        for block in self._blocks:
            block.check(system.name, block.read(system))
        return _inverse(self._blocks, system)

    def x_at(self, values: ArrayLike) -> jax.Array:
        """The free numbers x (n,) of values (n,); inverts `values`.

        Raises ValueError for values without free numbers.
        """
        values = self._checked(values=values)
        for block, part in self._parts(values):
            block.check(self.system.name, block.of_components(part))
        return _x_at(self, values)

    def _compare(self, system: System) -> None:
        ours, theirs = self.system.topology, system.topology
        named = [(t.bodies, t.joints, t.types, *t.mimic_dofs.tolist()) for t in (ours, theirs)]
        if named[0] != named[1]:
            raise ValueError(
                f"{system.name} has other bodies or joints than {self.system.name}, for which the "
                "parameters were declared; declare them for it"
            )
        for block in self._blocks:
            block.compare(self.system, system)

    def _check_bounds(self, values: np.ndarray) -> None:
        lower, upper = (limit.astype(values.dtype) for limit in self.limits)
        for k in np.flatnonzero((values < lower) | (values > upper)):
            between = f"between {lower[k]:g} and {upper[k]:g}"
            between = between if np.isfinite(lower[k]) else f"at most {upper[k]:g}"
            between = between if np.isfinite(upper[k]) else f"at least {lower[k]:g}"
            raise ValueError(
                f"{self.system.name}: {self.names[k]} is {values[k]:g}; it must be {between} "
                f"{self.units[k]}".rstrip()
            )

    def _parts(self, x: jax.Array) -> list[tuple[Block, jax.Array]]:
        ends = np.cumsum([len(block.names) for block in self._blocks]).tolist()
        return [
            (block, x[end - len(block.names) : end])
            for block, end in zip(self._blocks, ends, strict=True)
        ]

    def _checked(self, **vector: Any) -> jax.Array:
        shape = (len(self.names),)
        return checked(self.system, **{name: (value, shape) for name, value in vector.items()})[0]


@functools.partial(jax.jit, static_argnums=2)
def _written(parameters, numbers, read):
    """The system with the numbers (n,), of which read(block, part) makes values."""
    system = parameters.system
    for block, part in parameters._parts(numbers):
        system = block.written(system, read(block, part))
    return system


@jax.jit
def _values(parameters, x):
    each = (block.components(block.values(part)).ravel() for block, part in parameters._parts(x))
    return jnp.concatenate([x[:0], *each])


@jax.jit
def _residual(parameters, x):
    return jnp.concatenate([x[:0], *(block.residual(part) for block, part in parameters._parts(x))])


@jax.jit
def _values_of(blocks, system):
    each = (block.components(block.read(system)).ravel() for block in blocks)
    return jnp.concatenate([system.gravity[:0], *each])


@jax.jit
def _inverse(blocks, system):
    each = (block.inverse(block.read(system)) for block in blocks)
    return jnp.concatenate([system.gravity[:0], *each])


@jax.jit
def _x_at(parameters, values):
    parts = parameters._parts(values)
    each = (block.inverse(block.of_components(part)) for block, part in parts)
    return jnp.concatenate([values[:0], *each])


@jax.jit
def _start(blocks, system):
    each = (block.inverse(block.starts) for block in blocks)
    return jnp.concatenate([system.gravity[:0], *each])


def parameters_text(parameters: Any) -> str:
    """A `Parameters` in some lines, without any number that may be traced."""
    lower, upper = parameters.limits
    rows = [
        (name, unit, between(low, high))
        for name, unit, low, high in zip(
            parameters.names, parameters.units, lower, upper, strict=True
        )
    ]
    count = f"{len(rows)} {'number' if len(rows) == 1 else 'numbers'}"
    title = f"{type(parameters).__name__} of {parameters.title}: {count}"
    return "\n".join([title, *subsample(("name", "unit", "bounds"), rows, "numbers")])


def between(low: float | NDArray, high: float | NDArray) -> str:
    """Bounds in words; "" for none."""
    if np.isinf(low) and np.isinf(high):
        return ""
    if np.isinf(high):
        return f"above {low:.6g}"
    return f"below {high:.6g}" if np.isinf(low) else f"{low:.6g} to {high:.6g}"

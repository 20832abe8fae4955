"""What a sweep computes: a function of numbers by name, for many rows of numbers at once."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from .. import native
from ..system.validation import format_value

Function = Callable[[dict[str, jax.Array]], Any]

# What is said of a row: how its motion ended, and what else may have become of it.
STATUS = "done", "not finite", "not solved", "singular", "refused", "failed"
REFUSED, FAILED = STATUS.index("refused"), STATUS.index("failed")
_RESULT = "result"
# Names in the store that are not of the function.
_OWN = frozenset(("status", "chunks", "failures", "variant"))
# The most entries of an output that become columns of their own.
_COLUMNS = 256


class Column(NamedTuple):
    """An output of a sweep: its name, the shape of one row, its type and unit.

    output, entry: of which output of the function it is which entry, None for all of it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: Any
    unit: str
    output: str
    entry: int | None


@dataclasses.dataclass(frozen=True, eq=False)
class Variants:
    """A function of numbers by name, and its derivatives by these numbers.

    function: takes a dictionary of scalars () and returns arrays by name, or one array; see
    `Motions`. names (n,): the numbers. gradient: whether to compute derivatives too.
    """

    function: Function
    names: tuple[str, ...]
    gradient: bool = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(
                f"sweep: {format_value(self.function)} is no function; give Motions(system, ...), "
                "or a function of a dictionary of numbers"
            )

    def one(self, row: jax.Array) -> dict[str, jax.Array]:
        """The outputs by name for one row (n,)."""
        found = self.function(dict(zip(self.names, row, strict=True)))
        if not isinstance(found, Mapping):
            found = {"value": found}
        return {str(name): jnp.asarray(x) for name, x in found.items()}

    @functools.cached_property
    def shapes(self) -> dict[str, jax.ShapeDtypeStruct]:
        """The shapes and types of the outputs of one row.

        Raises ValueError for a function that cannot be traced, and for one without outputs.
        """
        name = getattr(self.function, "__name__", type(self.function).__name__)
        row = jax.ShapeDtypeStruct((len(self.names),), self._dtype)
        try:
            shapes = jax.eval_shape(self.one, row)
        except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
            said = str(error).split("\n", 1)[0]
            raise ValueError(
                f"sweep: {name} cannot be traced by jax ({said}); write it with jax.numpy, without "
                "Python's if and float() of its numbers"
            ) from None
        if not shapes:
            raise ValueError(f"sweep: {name} returns nothing; give it reductions or outputs")
        return shapes

    @functools.cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the table, of which `arrays` are made, the result left out."""
        found = []
        for name, x in self.shapes.items():
            if name != _RESULT:
                found += _split(name, x.shape, x.dtype, self._entries(name, x.shape))
        if self.gradient:
            found += [self._slope(c, n) for c in found[:] for n in self.names if _is_real(c)]
        names = [column.name for column in found] + list(self.names)
        for name in _OWN.intersection(names):
            raise ValueError(
                f"sweep: an output or a number is named {name!r}, which every table has itself; "
                "give it another name"
            )
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"sweep: two columns of the table are named {twice[0]!r}; give one of them, an "
                "output or a number, another name"
            )
        return tuple(found)

    def arrays(self, rows: NDArray) -> tuple[dict[str, NDArray], NDArray]:
        """The columns (k, ...) by name and the status (k,) for rows (k, n) of numbers."""
        count, devices = len(rows), jax.local_devices()
        each = -(-count // len(devices))
        padded = np.resize(rows, (len(devices), each, len(self.names))).astype(self._dtype)
        # All devices compute before one is waited for. Each runs the program of a single one: in
        # shard_map the loop over time would be compiled in another way, with other last bits.
        parts = zip(padded, devices, strict=True)
        found = [self._program(each, d)(jax.device_put(x, d)) for x, d in parts]
        outputs, slopes = (
            {name: np.concatenate([x[k][name] for x in found])[:count] for name in found[0][k]}
            for k in range(2)
        )
        made = {}
        for c in self.columns:
            of, name = c.output.rsplit("\0", 1) if "\0" in c.output else (c.output, None)
            x = outputs[of] if name is None else slopes[of][..., self.names.index(name)]
            made[c.name] = x if c.entry is None else x.reshape(len(rows), -1)[:, c.entry]
        status = np.array(outputs.get(_RESULT, np.zeros(len(rows))), np.int8)
        bad = np.zeros(len(rows), bool)
        for x in made.values():
            if x.dtype.kind == "f":
                bad |= np.isnan(x).reshape(len(rows), -1).any(axis=1)
        status[bad & (status == 0)] = STATUS.index("not finite")
        return made, status

    def memory(self, count: int) -> int:
        """The bytes that so many rows take while they are computed, as XLA plans them."""
        plan = self._program(-(-count // len(jax.local_devices()))).memory_analysis()
        if plan is None:
            return 0
        each = plan.temp_size_in_bytes + plan.output_size_in_bytes + plan.argument_size_in_bytes
        return each * len(jax.local_devices())

    def _program(self, count: int, device: Any = None) -> jax.stages.Compiled:
        """The program for so many rows on a device, by default the first."""
        device = device or jax.local_devices()[0]
        if (count, device) not in self._programs:
            where = jax.sharding.SingleDeviceSharding(device)
            shape = count, len(self.names)
            rows = jax.ShapeDtypeStruct(shape, self._dtype, sharding=where)
            self._programs[count, device] = self._batch.lower(rows).compile()
        return self._programs[count, device]

    @functools.cached_property
    def _programs(self) -> dict[Any, jax.stages.Compiled]:
        return {}

    def digest(self) -> str | None:
        """A digest of all that is computed, derivatives included; None if it cannot be read."""
        row = jax.ShapeDtypeStruct((len(self.names),), self._dtype)
        return native.digest(jax.make_jaxpr(self._values_and_slopes)(row), self.function)

    @property
    def _dtype(self) -> Any:
        return jnp.result_type(float)

    @functools.cached_property
    def _batch(self) -> jax.stages.Wrapped:
        """The outputs and their derivatives for rows (k, n) on one device."""
        return jax.jit(jax.vmap(lambda row: self._values_and_slopes(row)))

    def _values_and_slopes(self, row: jax.Array) -> tuple[dict, dict]:
        """The outputs and their derivatives for one row (n,)."""
        if not self.gradient:
            return self.one(row), {}

        def real(row: jax.Array) -> tuple[dict, dict]:
            found = self.one(row)
            return {k: x for k, x in found.items() if x.dtype.kind == "f"}, found

        many = sum(int(np.prod(x.shape)) for x in self.shapes.values() if x.dtype.kind == "f")
        by = jax.jacfwd if len(self.names) <= 4 * many else jax.jacrev
        slopes, found = by(real, has_aux=True)(row)
        return found, slopes

    def _entries(self, name: str, shape: tuple[int, ...]) -> Sequence[tuple[str, str]]:
        entries = getattr(self.function, "entries", None)
        return () if entries is None else entries(name)

    def _slope(self, c: Column, name: str) -> Column:
        unit = getattr(self.function, "unit", lambda name: "")(name)
        per = f"{c.unit or '1'} / ({unit})" if unit else c.unit
        return c._replace(name=f"d {c.name} / d {name}", unit=per, output=f"{c.output}\0{name}")


def _is_real(column: Column) -> bool:
    return np.dtype(column.dtype).kind == "f"


def _split(
    name: str, shape: tuple[int, ...], dtype: Any, labels: Sequence[tuple[str, str]]
) -> list[Column]:
    """The columns of one output: one for each entry of a vector, one for anything else."""
    if len(shape) == 1 and 0 < shape[0] <= _COLUMNS:
        labels = labels if len(labels) == shape[0] else [(str(k), "") for k in range(shape[0])]
        return [
            Column(f"{name} {entry}".strip(), (), dtype, unit, name, k)
            for k, (entry, unit) in enumerate(labels)
        ]
    unit = labels[0][1] if len(labels) == 1 else ""
    return [Column(name, tuple(shape), dtype, unit, name, None)]

"""The sweep: chunks that are not there yet, computed, and written while the next is computed."""

from __future__ import annotations

import collections
import dataclasses
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..system.validation import format_value
from .chunks import chunk_size
from .design import Design
from .multi_process import Program
from .store import Store
from .store_location import NoStoreError
from .variants import FAILED, REFUSED, Function, Variants

if TYPE_CHECKING:
    import xarray

Progress = Callable[[int, int], None]


class Computed(NamedTuple):
    """A chunk: rows (k, n), columns (k, ...), status (k,), and reasons by the index of the row."""

    rows: NDArray
    arrays: dict[str, NDArray]
    status: NDArray
    failures: dict[int, str]


class Engine(Protocol):
    """What computes chunks: this process, or workers of a cluster."""

    def computed(
        self, sweep: Sweep, chunks: list[int]
    ) -> Generator[tuple[int, Computed], None, None]:
        """The chunks with these numbers, in any order."""
        ...

    def chunk_size(self, variants: Variants, design: Design) -> int:
        """How many rows are best computed at once."""
        ...


@dataclasses.dataclass(frozen=True, eq=False)
class Sweep:
    """A function of numbers, the values that they take, and the rows of a chunk."""

    variants: Variants
    design: Design
    chunk: int

    def compute(self, chunk: int) -> Computed:
        """A chunk, padded to its full size; what fails in it is computed again in halves."""
        first = chunk * self.chunk
        last = min(self.design.size, first + self.chunk)
        rows = self.design.rows(first, last)
        refused = _refused(self.variants, rows)
        good = np.array([k for k in range(len(rows)) if k not in refused], int)
        arrays = {
            c.name: np.full((len(rows), *c.shape), _nothing(c.dtype), c.dtype)
            for c in self.variants.columns
        }
        status = np.full(len(rows), REFUSED, np.int8)
        failures = {first + k: text for k, text in refused.items()}
        for part, found in self._halved(rows, good, self.chunk):
            if isinstance(found, str):
                status[part] = FAILED
                failures |= {first + int(k): found for k in part}
                continue
            for name, x in found[0].items():
                arrays[name][part] = x
            status[part] = found[1]
        return Computed(rows, arrays, status, failures)

    def _halved(self, rows: NDArray, part: NDArray, size: int) -> Iterator[tuple[NDArray, Any]]:
        """The parts of some rows with their arrays and status, or with the reason of a failure."""
        if not len(part):
            return
        given = rows[np.resize(part, size)]
        try:
            arrays, status = self.variants.arrays(given)
        except Exception as error:
            if len(part) == 1:
                yield part, f"{_named(self.variants.names, rows[part[0]])}: {_reason(error)}"
                return
            half = -(-len(part) // 2)
            for some in (part[:half], part[half:]):
                yield from self._halved(rows, some, half)
            return
        kept = {name: x[: len(part)] for name, x in arrays.items()}
        yield part, (kept, status[: len(part)])


# Chunks that this process has in hand.
_AT_ONCE = 2


class LocalEngine:
    """This process, with all its devices."""

    def computed(
        self, sweep: Sweep, chunks: list[int]
    ) -> Generator[tuple[int, Computed], None, None]:
        """The chunks with these numbers, in their order."""
        waiting: collections.deque[tuple[int, Future]] = collections.deque()
        # While one chunk is computed, the next is prepared and the one before is sorted; but none
        # delays the first.
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for k, chunk in enumerate(chunks):
                waiting.append((chunk, pool.submit(sweep.compute, chunk)))
                if k == 0 or len(waiting) == _AT_ONCE:
                    done, future = waiting.popleft()
                    yield done, future.result()
            for done, future in waiting:
                yield done, future.result()

    def chunk_size(self, variants: Variants, design: Design) -> int:
        """How many rows are best computed at once, by measured time and memory."""
        return chunk_size(variants, design)


def sweep(
    function: Function,
    design: Design,
    out: str | Path | None = None,
    *,
    gradient: bool = False,
    chunk: int | None = None,
    about: Mapping[str, Any] | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> xarray.Dataset:
    """A table of what a function returns for all rows of a design, in chunks that are kept.

    function: `Motions(system, ...)`, or any function that jax can trace from a dictionary of
    numbers () to arrays by name, such as an optimal control or a fit. design: see `Grid`, `Listed`,
    `Random`, `LatinHypercube`, `Sobol` and `Saltelli`, and products of them.

    out: a folder, or an address such as "s3://bucket/sweep", of a zarr store, which can be read at
    any time; None keeps it in memory. The same call goes on where an earlier one ended: chunks that
    are written are kept, those whose checksum is wrong are computed again. gradient: whether the
    derivatives of all real outputs by all numbers become columns too. chunk: rows that are computed
    at once; by default found from measured time and memory, and kept in the store. about: what else
    the store says of itself, in plain types; a store with anything else is refused. engine:
    `LocalEngine`, or `Dask` for the workers of a cluster. progress: called as progress(rows done,
    rows) after each chunk.

    Returns an xarray dataset along `variant`, with the numbers as coordinates, a column for each
    entry of each output, and `status`: "done", "not finite", "not solved", "singular", "refused"
    (numbers that no machine can have) or "failed"; `failures(out)` says why. `to_dataframe()` makes
    it a table of pandas.

    A chunk that raises an error is computed again in halves, down to the rows that fail, which are
    recorded with their reason. Rows do not depend on the chunk they are in, nor on the number of
    devices and workers of one kind.

    In a program of several processes (`jax.distributed`) all call this alike: each computes and
    writes a part of the chunks, waits for the others, and returns the whole table; progress counts
    the rows of its part and those that were there. Where a process ends with an error, all others
    raise StoreError once their part is done; where one dies, jax ends all of them; the same call
    goes on.

    Raises ValueError for a number of the design that names nothing, values that are
    refused all along, and a function that cannot be traced; StoreError for a store of another sweep
    or a later version, and for a full disk or an object store that does not answer; ImportError
    without the extra `sweep`, or what opens an object store; and what the engine raises.

    >>> table = dl.sweep(lambda x: {"weight": 9.81 * x["mass"]}, dl.Grid({"mass": [1.0, 2.0]}))
    >>> print(table["weight"].values.round(2))
    [ 9.81 19.62]
    """
    if not isinstance(design, Design):
        raise TypeError(
            f"sweep: the design is {format_value(design)}; give one such as Sobol({{...}}, count)"
        )
    variants = Variants(function, design.names, gradient)
    _check_support(variants, design)
    configuration = _configuration(variants, design, about)
    engine, program = LocalEngine() if engine is None else engine, Program(out)
    store, pending = program.pending(
        lambda: prepared(variants, design, out, chunk, configuration, engine),
        lambda: _found(out, configuration),
    )
    mine = pending[program.index :: program.count]
    left = {k: b - a for k in pending for a, b in [store.bounds(k)]}
    done = store.size - sum(left.values())
    size = done + sum(left[k] for k in mine)
    chunks = engine.computed(Sweep(variants, design, store.chunk), mine)
    with program.part(), ThreadPoolExecutor(1) as writer, closing(chunks):
        waiting: Future | None = None
        for k, computed in chunks:
            if waiting is not None:
                waiting.result()
            waiting = writer.submit(store.write, k, *computed)
            done += len(computed.rows)
            if progress is not None:
                progress(done, size)
        if waiting is not None:
            waiting.result()
    return store.dataset()


def failures(out: str | Path) -> dict[int, str]:
    """Why rows of a stored sweep were refused or failed, with their numbers, by their index."""
    return Store.opened(out).failures()


def prepared(
    variants: Variants,
    design: Design,
    out: str | Path | None,
    chunk: int | None,
    configuration: Mapping[str, Any],
    engine: Engine,
) -> Store:
    """The store of a sweep: the one that is there, if it belongs to it, or a new one."""
    if out is not None:
        with suppress(NoStoreError):
            return _found(out, configuration)
    size = engine.chunk_size(variants, design) if chunk is None else _checked(chunk)
    units = getattr(variants.function, "unit", lambda name: "")
    names = {name: units(name) for name in design.names}
    return Store.created(out, configuration, design.size, size, names, variants.columns)


def _configuration(
    variants: Variants, design: Design, about: Mapping[str, Any] | None
) -> dict[str, Any]:
    """All that a sweep is, in plain types."""
    return {
        **(about or {}),
        "design": design.described,
        "gradient": variants.gradient,
        "columns": [
            [c.name, list(c.shape), np.dtype(c.dtype).name, c.unit] for c in variants.columns
        ],
        "function": variants.digest(),
    }


def _found(out: Any, configuration: Mapping[str, Any]) -> Store:
    store = Store.opened(out)
    store.check(configuration)
    return store


def _checked(chunk: Any) -> int:
    if isinstance(chunk, bool) or not isinstance(chunk, int | np.integer) or chunk < 1:
        raise ValueError(
            f"sweep: chunk is {format_value(chunk)}; it must be a whole number, 1 or more"
        )
    return int(chunk)


def _check_support(variants: Variants, design: Design) -> None:
    """Raises ValueError for numbers that a design gives to nothing, or that no machine can have."""
    fault = getattr(variants.function, "fault", None)
    if fault is None:
        return
    for name, ends in zip(design.names, design.support.T, strict=True):
        said = [fault(name, float(x)) if np.isfinite(x) else fault(name, 1.0) and "" for x in ends]
        if any(said):
            raise ValueError(f"sweep: {next(filter(None, said))}; {name} is varied to it")


def _refused(variants: Variants, rows: NDArray) -> dict[int, str]:
    """Why the rows (k, n) that no machine can have are refused, by their index."""
    fault, found = getattr(variants.function, "fault", None), {}
    if fault is None or not len(rows):
        return {}
    for name, column in zip(variants.names, rows.T, strict=True):
        # What is allowed is an interval.
        if not (fault(name, float(column.min())) or fault(name, float(column.max()))):
            continue
        for k, value in enumerate(column):
            if said := fault(name, float(value)):
                found.setdefault(k, f"{_named(variants.names, rows[k])}: {said}")
    together = getattr(variants.function, "row_faults", lambda names, rows: {})
    for k, said in together(variants.names, rows).items():
        found.setdefault(k, f"{_named(variants.names, rows[k])}: {said}")
    return found


def _named(names: tuple[str, ...], row: NDArray) -> str:
    return ", ".join(f"{name} = {value:.9g}" for name, value in zip(names, row, strict=True))


def _reason(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1].strip() if lines else 'no message'}"


def _nothing(dtype: Any) -> Any:
    return np.nan if np.dtype(dtype).kind == "f" else 0


class Rate:
    """The rate of a sweep and the time that is left, from the rows done since it began."""

    def __init__(self) -> None:
        self._begin: tuple[float, int] | None = None

    def after(self, done: int, size: int) -> str:
        """What is said after so many of all rows."""
        now = time.perf_counter()
        if self._begin is None:
            self._begin = now, done
            return f"{done} of {size}"
        passed, more = now - self._begin[0], done - self._begin[1]
        rate = more / passed if passed > 0 else 0.0
        left = (size - done) / rate if rate > 0 else float("nan")
        return f"{done} of {size}, {rate:.4g} a second, {left:.0f} s left"

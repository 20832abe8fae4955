"""The store of a sweep: a zarr group, complete chunk by chunk, that xarray reads.

One array for each column along the axis `variant`, with the numbers of the design as coordinates.
A chunk of the sweep is one chunk of every array. All are written with a checksum, each file as a
whole or not at all. When all arrays of a chunk are there, its entry in `chunks` says so. What
failed is said in the attributes of the group `failures/CHUNK`.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..io.results import machine
from ..io.unbroken import unbroken
from ..system.installation import extra
from ..system.validation import shown
from .places import is_address, place, zarr
from .variants import STATUS, Column

if TYPE_CHECKING:
    import xarray
    from zarr import Group

# Of what is written: a store of a later format is refused.
FORMAT = 1
PENDING, WRITTEN = 0, 1
# Of a group that is becoming a store.
_MAKING = "difflie makes a store"
# What reading raises where a checksum is wrong, or an end is missing.
_DAMAGES = ValueError, RuntimeError, OSError
# Packages that object stores are reached with.
_REMOTE = "botocore", "aiobotocore", "aiohttp", "gcsfs", "google", "azure"
# Chunks that are checked at once.
_AT_ONCE = 8


class StoreError(ValueError):
    """A store that cannot be used, with the reason and the fix."""


class NoStoreError(StoreError):
    """Where there is no store, or only the beginning of one."""


class Store:
    """The arrays of a sweep in a folder, at an address of an object store, or in memory.

    group: of zarr. configuration: what the sweep is, in plain types. version, machine: with which
    it was begun.
    """

    def __init__(self, group: Group, where: str) -> None:
        self.group, self.where = group, where
        attributes = dict(group.attrs)
        if "difflie" not in attributes:
            raise StoreError(f"{where} is no store of a sweep; give another folder")
        described: dict[str, Any] = attributes["difflie"]  # pyright: ignore[reportAssignmentType]
        if described["format"] > FORMAT:
            raise StoreError(
                f"{where} was written by difflie {described['version']}, whose stores this version "
                "does not know; update difflie, or give another folder"
            )
        self.version, self.machine = described["version"], described["machine"]
        self.configuration: dict[str, Any] = described["configuration"]
        self.chunk, self.size = int(described["chunk"]), int(described["size"])
        self.names, self.columns = described["names"], described["columns"]

    @staticmethod
    def created(
        where: str | Path | None,
        configuration: Mapping[str, Any],
        size: int,
        chunk: int,
        names: Mapping[str, str],
        columns: Sequence[Column],
    ) -> Store:
        """A new store with chunks of so many of `size` rows; names: the units of the numbers."""
        groups = zarr()
        from zarr.codecs import BytesCodec, Crc32cCodec, ZstdCodec

        described = {
            "format": FORMAT,
            "version": importlib.metadata.version("difflie"),
            "machine": machine(),
            "configuration": configuration,
            "size": size,
            "chunk": chunk,
            "names": list(names),
            "columns": [c.name for c in columns],
        }
        with _quiet(), _said(where, "not written"):
            # What is there is no store, or one that was not made to its end; it is one at the last.
            group = groups.open_group(place(where), mode="a")
            group.attrs[_MAKING] = True

            def array(name: str, shape: tuple, chunks: tuple, dtype: Any, **about: Any) -> None:
                wide = tuple(f"{name} axis {k}" for k in range(1, len(shape)))
                axis = "chunk" if name == "chunks" else "variant"
                group.create_array(
                    _escaped(name),
                    overwrite=True,
                    shape=shape,
                    chunks=chunks,
                    dtype=dtype,
                    fill_value=np.nan if np.dtype(dtype).kind == "f" else 0,
                    serializer=BytesCodec(),
                    compressors=[ZstdCodec(level=1), Crc32cCodec()],
                    dimension_names=(axis, *wide),
                    attributes=about,
                )

            for name, unit in names.items():
                array(name, (size,), (chunk,), float, units=unit, coordinate=True)
            for c in columns:
                shape = c.shape
                array(c.name, (size, *shape), (chunk, *shape), c.dtype, units=c.unit)
            meanings = " ".join(word.replace(" ", "_") for word in STATUS)
            flags = {"flag_values": list(range(len(STATUS))), "flag_meanings": meanings}
            array("status", (size,), (chunk,), np.int8, **flags)
            array("chunks", (-(-size // chunk),), (1,), np.int8)
            group.create_group("failures", overwrite=True)
            group.attrs.put({"difflie": described})
        return Store(group, str(where))

    @staticmethod
    def opened(where: str | Path) -> Store:
        """The store in this place. Raises StoreError where there is none, or another thing."""
        found = place(where)
        try:
            with _quiet(), _said(where, "not opened"):
                group = zarr().open_group(found, mode="r+")
        except (FileNotFoundError, zarr().errors.GroupNotFoundError):
            raise NoStoreError(f"{where}: there is no store of a sweep") from None
        if _MAKING in group.attrs:
            raise NoStoreError(f"{where}: the store of a sweep was not made to its end")
        return Store(group, str(where))

    @property
    def count(self) -> int:
        """The number of chunks."""
        return -(-self.size // self.chunk)

    def bounds(self, chunk: int) -> tuple[int, int]:
        """The first row of a chunk, and that behind its last."""
        return chunk * self.chunk, min(self.size, (chunk + 1) * self.chunk)

    def check(self, configuration: Mapping[str, Any]) -> None:
        """Raises StoreError, with the difference, where the store belongs to another sweep."""
        other = json.loads(json.dumps(configuration))
        differs = next(_differences(self.configuration, other), None)
        if differs is not None:
            raise StoreError(
                f"{self.where} belongs to another sweep: {differs}; give another folder, or remove "
                "this one"
            )

    def pending(self) -> list[int]:
        """The chunks that are not written, or not as they were: found by their checksums."""
        marks = self._marks()
        with ThreadPoolExecutor(_AT_ONCE) as pool, _said(self.where, "not read"):
            whole = list(pool.map(self._is_whole, np.flatnonzero(marks == WRITTEN).tolist()))
        marks[marks == WRITTEN] = np.where(whole, WRITTEN, PENDING)
        return np.flatnonzero(marks != WRITTEN).tolist()

    def missing(self) -> int:
        """How many chunks are not written."""
        return int(np.count_nonzero(self._marks() != WRITTEN))

    def write(
        self,
        chunk: int,
        rows: NDArray,
        arrays: Mapping[str, NDArray],
        status: NDArray,
        failures: Mapping[int, str],
    ) -> None:
        """Writes a chunk: rows (k, n) of numbers, columns (k, ...), the status (k,), and reasons.

        failures: what became of rows that are not computed, by the index of the row in the sweep.
        """
        first, last = self.bounds(chunk)
        parts = dict(zip(self.names, rows.T, strict=True)) | dict(arrays) | {"status": status}
        with unbroken(), _said(self.where, "not written"):
            for name, values in parts.items():
                self._array(name)[first:last] = values
            if failures:
                said = {str(row): text for row, text in failures.items()}
                self._failures().create_group(str(chunk), overwrite=True, attributes=said)
            self._array("chunks")[chunk] = WRITTEN

    def failures(self) -> dict[int, str]:
        """Why rows were refused or failed, by the index of the row."""
        found: dict[int, str] = {}
        for _, group in sorted(self._failures().groups(), key=lambda item: int(item[0])):
            found |= {int(row): str(text) for row, text in group.attrs.items()}
        return dict(sorted(found.items()))

    def dataset(self) -> xarray.Dataset:
        """All that has been written, as an xarray dataset that is read where it is used.

        The status is in words; rows that are not computed yet have the status "pending".
        """
        try:
            import xarray
        except ImportError:
            raise ImportError(
                f"to read a sweep as a table xarray is needed; {extra('sweep')}"
            ) from None
        with _quiet():
            raw = xarray.open_zarr(
                self.group.store, group=self.group.path or None, consolidated=False, chunks=None
            )
        raw = raw.rename({_escaped(n): n for n in (*self.names, *self.columns) if _escaped(n) != n})
        done = np.repeat(np.asarray(raw["chunks"]) == WRITTEN, self.chunk)[: self.size]
        words = np.array(STATUS)[np.asarray(raw["status"])]
        status = np.where(done, words, "pending")
        data = raw[list(self.columns)]
        data = data.assign_coords({name: raw[name] for name in self.names})
        data = data.assign_coords(variant=np.arange(self.size))
        data = data.assign(status=("variant", status))
        data.attrs = {"configuration": json.dumps(self.configuration), "version": self.version}
        return data

    def _marks(self) -> NDArray:
        """The entries (count,) of `chunks`; one that is damaged is none."""
        array = self._array("chunks")
        try:
            return np.array(array[:])
        except _DAMAGES:
            marks = np.full(self.count, PENDING, np.int8)
            for chunk in range(self.count):
                with contextlib.suppress(*_DAMAGES):
                    marks[chunk] = array[chunk]
            return marks

    def _is_whole(self, chunk: int) -> bool:
        from zarr.core.sync import sync

        first, last = self.bounds(chunk)
        try:
            for name in (*self.names, *self.columns, "status"):
                array = self._array(name)
                key = array.metadata.encode_chunk_key((chunk, *(0,) * (array.ndim - 1)))
                # zarr would take what is not there for nothing but fill values.
                if not sync((array.store_path / key).exists()):
                    return False
                array[first:last]
        except _DAMAGES:
            return False
        return True

    def _array(self, name: str) -> Any:
        array: Any = self.group[_escaped(name)]
        return array.with_config({"write_empty_chunks": True})

    def _failures(self) -> Any:
        return self.group["failures"]


def _escaped(name: str) -> str:
    """The name of an array in the store: a path would be a group."""
    return name.replace("%", "%25").replace("/", "%2F")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without zarr's warnings of what its specification leaves open."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="zarr")
        yield


@contextlib.contextmanager
def _said(where: Any, what: str) -> Iterator[None]:
    """Errors of a disk or of an object store, in a sentence."""
    try:
        yield
    except Exception as error:
        # The packages of object stores have errors of their own.
        known = isinstance(error, OSError) or type(error).__module__.startswith(_REMOTE)
        if not known or (isinstance(error, FileNotFoundError) and what != "not written"):
            raise
        said = getattr(error, "strerror", None) or error
        when = "it can be reached" if is_address(where) else "there is room"
        raise StoreError(
            f"{where}: {what} ({said}); what is there is whole, and the same command goes on when "
            f"{when}"
        ) from error


def _differences(before: Any, after: Any, at: str = "") -> Iterator[str]:
    """Where two descriptions in plain types differ, in words."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            place = f"{at}.{key}" if at else key
            if key not in before or key not in after:
                yield f"{place} is only in {'this sweep' if key in after else 'the store'}"
            else:
                yield from _differences(before[key], after[key], place)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for k, pair in enumerate(zip(before, after, strict=True)):
            yield from _differences(*pair, f"{at}[{k}]")
    elif before != after:
        yield f"{at} is {shown(after)} here and {shown(before)} there"

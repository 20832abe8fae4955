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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..io.results import machine
from ..system.validation import shown
from .variants import STATUS, Column

if TYPE_CHECKING:
    import xarray
    import zarr

# Of what is written: a store of a later format is refused.
FORMAT = 1
PENDING, WRITTEN = 0, 1
_INSTALL = "install the extra: pip install 'difflie[sweep]'"


class StoreError(ValueError):
    """A store that cannot be used, with the reason and the fix."""


class Store:
    """The arrays of a sweep in a folder, at an address of an object store, or in memory.

    group: of zarr. configuration: what the sweep is, in plain types. version, machine: with which
    it was begun.
    """

    def __init__(self, group: zarr.Group, where: str) -> None:
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
        zarr = _zarr()
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
        with _quiet(), _said(where):
            group = zarr.open_group(_place(where), mode="w-", attributes={"difflie": described})

            def array(name: str, shape: tuple, chunks: tuple, dtype: Any, **about: Any) -> None:
                wide = tuple(f"{name} axis {k}" for k in range(1, len(shape)))
                axis = "chunk" if name == "chunks" else "variant"
                group.create_array(
                    _escaped(name),
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
            group.create_group("failures")
        return Store(group, str(where))

    @staticmethod
    def opened(where: str | Path) -> Store:
        """The store in this place. Raises StoreError where there is none, or another thing."""
        zarr = _zarr()
        try:
            with _quiet():
                return Store(zarr.open_group(_place(where), mode="r+"), str(where))
        except (FileNotFoundError, zarr.errors.GroupNotFoundError):
            raise StoreError(f"{where}: there is no store of a sweep") from None

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
        return [c for c in range(self.count) if not self._is_whole(c)]

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
        with _said(self.where):
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
            raise ImportError(f"to read a sweep as a table xarray is needed; {_INSTALL}") from None
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

    def _is_whole(self, chunk: int) -> bool:
        first, last = self.bounds(chunk)
        try:
            if self._array("chunks")[chunk] != WRITTEN:
                return False
            for name in (*self.names, *self.columns, "status"):
                self._array(name)[first:last]
        except (ValueError, RuntimeError, OSError):
            return False
        return True

    def _array(self, name: str) -> Any:
        return self.group[_escaped(name)]

    def _failures(self) -> Any:
        return self.group["failures"]


def _zarr() -> Any:
    try:
        import zarr
    except ImportError:
        raise ImportError(f"to store a sweep zarr is needed; {_INSTALL}") from None
    return zarr


def _place(where: str | Path | None) -> Any:
    """What zarr takes for a place: a folder, an address such as "s3://bucket/sweep", or memory."""
    if where is None:
        return _zarr().storage.MemoryStore()
    return str(where)


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
def _said(where: Any) -> Iterator[None]:
    """Errors of writing, in a sentence."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{where}: not written ({error.strerror or error}); what is there is whole, and the "
            "same command goes on when there is room"
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

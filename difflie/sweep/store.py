"""The store of a sweep: a zarr group, complete chunk by chunk, that xarray reads.

One array for each column along the axis `variant`, with the numbers of the design as coordinates.
A chunk of the sweep is one chunk of every array. All are written with a checksum, each file as a
whole or not at all. When all arrays of a chunk are there, its entry in `chunks/checksum` says so: a
checksum of the chunk's number and of all that it holds, so that files of two chunks, or of two
columns, are not taken for each other. What failed is said in the attributes of the group
`failures/CHUNK`.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..io.interrupt_guard import unbroken
from ..io.results import machine
from ..system.installation import extra
from .store_location import NoStoreError, StoreError, differences, place, quiet, said, without, zarr
from .variants import REFUSED, STATUS, Column

if TYPE_CHECKING:
    import xarray
    from zarr import Group

# Of what is written: a store of another format is refused.
FORMAT = 2
# The entry of a chunk that is not written; checksums are not negative.
_PENDING = -1
_CHECKSUMS = "chunks/checksum"
# Of a group that is becoming a store.
_MAKING = "difflie makes a store"
# What reading raises where a checksum is wrong, or an end is missing.
_DAMAGES = ValueError, RuntimeError, OSError
# Chunks that are checked at once.
_AT_ONCE = 8


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
        if described["format"] != FORMAT:
            later = described["format"] > FORMAT
            raise StoreError(
                f"{where} was written by difflie {described['version']}, whose stores this version "
                f"does not know; {'update difflie' if later else 'xarray.open_zarr reads it'}, or "
                "give another folder"
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
        with quiet(), said(where, "not written"):
            # What is there is no store, or one that was not made to its end; it is one at the last.
            group = groups.open_group(place(where), mode="a", attributes={_MAKING: True})
            group.attrs[_MAKING] = True
            group.create_group("chunks", overwrite=True)

            def array(
                path: str,
                axes: tuple,
                shape: tuple,
                chunks: tuple,
                dtype: Any,
                fill: Any,
                **about: Any,
            ) -> None:
                group.create_array(
                    path,
                    overwrite=True,
                    shape=shape,
                    chunks=chunks,
                    dtype=dtype,
                    fill_value=fill,
                    serializer=BytesCodec(),
                    compressors=[ZstdCodec(level=1), Crc32cCodec()],
                    dimension_names=axes,
                    attributes=about,
                )

            def column(name: str, shape: tuple, dtype: Any, **about: Any) -> None:
                axes = "variant", *(f"{name} axis {k}" for k in range(1, len(shape) + 1))
                fill = np.nan if np.dtype(dtype).kind == "f" else 0
                path, sizes = _escaped(name), ((size, *shape), (chunk, *shape))
                array(path, axes, *sizes, dtype, fill, **about)

            for name, unit in names.items():
                column(name, (), float, units=unit, coordinate=True)
            for c in columns:
                column(c.name, c.shape, c.dtype, units=c.unit)
            meanings = " ".join(word.replace(" ", "_") for word in STATUS)
            flags = {"flag_values": list(range(len(STATUS))), "flag_meanings": meanings}
            column("status", (), np.int8, **flags)
            count = -(-size // chunk)
            array(_CHECKSUMS, ("chunk",), (count,), (1,), np.int64, _PENDING)
            group.create_group("failures", overwrite=True)
            group.attrs.put({"difflie": described})
        return Store(group, str(where))

    @staticmethod
    def opened(where: str | Path) -> Store:
        """The store in this place.

        Raises StoreError where there is none, another thing, or one whose description is damaged.
        """
        found = place(where)
        try:
            with quiet(), said(where, "not opened"):
                group = zarr().open_group(found, mode="r+")
        except (FileNotFoundError, zarr().errors.GroupNotFoundError):
            with quiet(), said(where, "not opened"):
                lost = _has_status(found)
            if lost:
                raise without(where, "zarr.json") from None
            raise NoStoreError(f"{where}: there is no store of a sweep") from None
        except StoreError:  # a ValueError, too
            raise
        except (ValueError, TypeError, KeyError):
            raise without(where, "zarr.json") from None
        if _MAKING in group.attrs:
            raise NoStoreError(f"{where}: the store of a sweep was not made to its end")
        store = Store(group, str(where))
        store._check_description()
        return store

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
        differs = next(differences(self.configuration, other), None)
        if differs is not None:
            raise StoreError(
                f"{self.where} belongs to another sweep: {differs}; give another folder, or remove "
                "this one"
            )

    def pending(self) -> list[int]:
        """The chunks that are not written, or not as they were: found by their checksums."""
        marks = self._marks()
        with ThreadPoolExecutor(_AT_ONCE) as pool, said(self.where, "not read"):
            whole = np.array(list(pool.map(self._is_whole, range(self.count), marks.tolist())))
        return np.flatnonzero(~whole).tolist()

    def missing(self) -> int:
        """How many chunks are not written."""
        return int(np.count_nonzero(self._marks() == _PENDING))

    def check_rows(self) -> None:
        """Raises StoreError where a chunk that was written is not as it was."""
        damaged = len(self.pending()) - self.missing()
        if damaged:
            raise StoreError(
                f"{self.where}: {damaged} of {self.count} chunks are not as they were written; the "
                "sweep that wrote them, started again, computes them anew"
            )

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
        reasons = {str(row): text for row, text in failures.items()}
        with unbroken(), said(self.where, "not written"):
            for name, values in parts.items():
                self._array(name)[first:last] = values
            if failures:
                self._failures().create_group(str(chunk), overwrite=True, attributes=reasons)
            kept = {name: np.asarray(v, self._array(name).dtype) for name, v in parts.items()}
            self._checksums()[chunk] = _checksum(chunk, [kept[n] for n in self._all], reasons)

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
        with quiet():
            raw = xarray.open_zarr(
                self.group.store, group=self.group.path or None, consolidated=False, chunks=None
            )
        raw = raw.rename({_escaped(n): n for n in (*self.names, *self.columns) if _escaped(n) != n})
        done = np.repeat(self._marks() != _PENDING, self.chunk)[: self.size]
        words = np.array(STATUS)[np.asarray(raw["status"])]
        status = np.where(done, words, "pending")
        data = raw[list(self.columns)]
        data = data.assign_coords({name: raw[name] for name in self.names})
        data = data.assign_coords(variant=np.arange(self.size))
        data = data.assign(status=("variant", status))
        data.attrs = {"configuration": json.dumps(self.configuration), "version": self.version}
        return data

    @property
    def _all(self) -> tuple[str, ...]:
        """The names of the arrays that have rows."""
        return (*self.names, *self.columns, "status")

    def _marks(self) -> NDArray:
        """The checksums (count,) of chunks, -1 where none is written or it is damaged itself."""
        array = self._checksums()
        try:
            return np.array(array[:])
        except _DAMAGES:
            marks = np.full(self.count, _PENDING)
            for chunk in range(self.count):
                with contextlib.suppress(*_DAMAGES):
                    marks[chunk] = array[chunk]
            return marks

    def _is_whole(self, chunk: int, checksum: int) -> bool:
        from zarr.core.sync import sync

        first, last = self.bounds(chunk)
        if checksum == _PENDING:
            return False
        values = []
        try:
            for name in self._all:
                array = self._array(name)
                key = array.metadata.encode_chunk_key((chunk, *(0,) * (array.ndim - 1)))
                # zarr would take what is not there for nothing but fill values.
                if not sync((array.store_path / key).exists()):
                    return False
                values.append(array[first:last])
            reasons = {}
            if values[-1].max() >= REFUSED:
                reasons = dict(self._failures()[str(chunk)].attrs)
        except (*_DAMAGES, KeyError):
            return False
        return _checksum(chunk, values, reasons) == checksum

    def _check_description(self) -> None:
        """Raises StoreError where what describes an array or a group is lost or damaged."""
        paths = [*map(_escaped, self._all), _CHECKSUMS, "failures"]

        def is_there(path: str) -> bool:
            try:
                return self.group[path] is not None
            except (KeyError, ValueError, TypeError):
                return False

        with quiet(), said(self.where, "not read"), ThreadPoolExecutor(_AT_ONCE) as pool:
            there = list(pool.map(is_there, paths))
        if not all(there):
            raise without(self.where, f"{paths[there.index(False)]}/zarr.json")

    def _array(self, name: str) -> Any:
        array: Any = self.group[_escaped(name)]
        return array.with_config({"write_empty_chunks": True})

    def _checksums(self) -> Any:
        return self.group[_CHECKSUMS]

    def _failures(self) -> Any:
        return self.group["failures"]


def _checksum(chunk: int, values: Sequence[NDArray], reasons: Mapping[str, str]) -> int:
    """Of a chunk's number, of its rows (k, ...) of each array, and of what is said of them."""
    found = zlib.crc32(json.dumps([chunk, reasons], sort_keys=True).encode())
    for array in values:
        found = zlib.crc32(np.ascontiguousarray(array).tobytes(), found)
    return found


def _has_status(found: Any) -> bool:
    """Whether there is an array of a store in this place, even if there is no store."""
    try:
        return zarr().open_array(found, path="status", mode="r") is not None
    except (FileNotFoundError, zarr().errors.ArrayNotFoundError):
        return False


def _escaped(name: str) -> str:
    """The name of an array in the store: a path would be a group."""
    return name.replace("%", "%25").replace("/", "%2F")

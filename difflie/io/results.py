"""Results as files: figures in JSON, arrays in archives of NumPy, the computer they were made on.

Archives that are read may not become larger in memory than they promise.
"""

from __future__ import annotations

import csv
import dataclasses
import importlib.metadata
import io
import json
import os
import platform
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import jax
import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..deprecated import Subscripted, with_old_keys
from .files import write_whole, written

COMMAND: ContextVar[str] = ContextVar("COMMAND", default="none: called from Python")
"""The command that is executed, as it was called."""


class Results(Subscripted):
    """Results that JSON can hold: a dataclass, whose fields are the keys.

    docs/results.md lists them. A field whose name is a keyword of Python ends with _, its key does
    not.
    """


def save_arrays(path: str | os.PathLike[str], **arrays: Any) -> None:
    """Writes named arrays (...), of any shapes, as a NumPy .npz file, completely or not at all."""
    with written(path) as file:
        np.savez(file, allow_pickle=False, **{k: np.asarray(a) for k, a in arrays.items()})


def save_table(path: str | os.PathLike[str], columns: dict[str, Any]) -> None:
    """Writes columns (n,) by name as CSV, at full precision, completely or not at all."""
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(columns)
    table = np.stack([np.asarray(a) for a in columns.values()], axis=1)
    with written(path) as file:
        file.write(header.getvalue().encode())
        np.savetxt(file, table, fmt="%.9g" if table.dtype.itemsize < 8 else "%.17g", delimiter=",")


def save_json(path: str | os.PathLike[str], results: Results | dict[str, Any]) -> None:
    """Writes results as JSON, completely or not at all; a number that is not finite is null."""
    write_whole(path, json.dumps(_plain(results), indent=2, allow_nan=False) + "\n")


def machine() -> dict[str, str]:
    """The computer and the versions with which results were made."""
    device = jax.devices()[0]
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "device": " ".join(dict.fromkeys((device.platform, device.device_kind))),  # not cpu cpu
        "python": platform.python_version(),
        "jax": jax.__version__,
        "numpy": np.__version__,
        "difflie": _version(),
    }


def provenance(made: Mapping[str, object], **about: object) -> dict[str, object]:
    """Where results come from, for their page: the command, what is told, versions, and the date.

    made: the computer and the versions that made them, as of `machine`. about: more by name, such
    as the configuration; what is None or empty is left out.
    """
    told = {name.replace("_", " "): value for name, value in about.items() if value}
    now = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S %z")
    return {"command": COMMAND.get(), **told, **made, "page written": now}


def _version() -> str:
    try:
        return importlib.metadata.version("difflie")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        found = {name.rstrip("_"): _plain(getattr(value, name)) for name in names}
        return with_old_keys(found, type(value).__name__)
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray | jax.Array):
        return _plain(np.asarray(value).tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


# The most bytes of all arrays that are read from one file: a few kB can be packed into an archive
# so that they become more than any memory holds.
LARGEST = 2**31
# What is raised for broken files.
BROKEN = OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error
BROKEN += RuntimeError, NotImplementedError


class TooLargeError(ValueError):
    """An archive whose arrays are larger than is read."""


def read_arrays(
    path: str | os.PathLike[str], names: Sequence[str] | None = None
) -> dict[str, NDArray]:
    """The arrays of an .npz file by name: all of them, or those of these names.

    Their sizes are known before anything is unpacked. Raises `TooLargeError` where they have more
    than 2 GiB together, KeyError for a name that is missing, and for a broken file what NumPy and
    zipfile raise, `BROKEN`.
    """
    found = {}
    with zipfile.ZipFile(path) as archive:
        sizes = {e.filename.removesuffix(".npy"): e.file_size for e in archive.infolist()}
        chosen = list(sizes) if names is None else list(names)
        size = sum(sizes[name] for name in chosen)
        if size > LARGEST:
            raise TooLargeError(
                f"its arrays have {size / 2**30:.3g} GiB, at most {LARGEST / 2**30:.3g} are read; "
                "cut it into several files"
            )
        for name in chosen:
            with archive.open(f"{name}.npy") as file:
                _check_header(file, name, sizes[name])
            with archive.open(f"{name}.npy") as file:
                found[name] = npy.read_array(file, allow_pickle=False)
    return found


def _check_header(file: IO[bytes], name: str, size: int) -> None:
    """Raises ValueError where an array says that it is larger than its part of the archive."""
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(file)
    # NumPy makes the array before it reads it.
    if int(np.prod(shape, dtype=object)) * dtype.itemsize > size:
        raise ValueError(f"the array {name} ends too early")

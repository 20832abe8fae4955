"""Arrays and results as files, and the computer they were made on."""

from __future__ import annotations

import csv
import dataclasses
import importlib.metadata
import io
import json
import os
import platform
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..deprecated import Subscripted
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
        return {name.rstrip("_"): _plain(getattr(value, name)) for name in names}
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

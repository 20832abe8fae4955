"""Arrays in archives of NumPy, which may not become larger in memory than the file promises."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Sequence
from typing import IO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

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

"""Where a store may be: in a folder, in an object store at an address, or in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..system.installation import extra
from ..system.validation import nearest

# Folders, which zarr writes file by file, each as a whole.
_LOCAL = "file", "local"
_PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs"}
_PACKAGES |= dict.fromkeys(("abfs", "abfss", "az"), "adlfs")


def zarr() -> Any:
    """The package; raises ImportError with the way to install it."""
    try:
        import zarr
    except ImportError:
        raise ImportError(f"to store a sweep zarr is needed; {extra('sweep')}") from None
    return zarr


def is_address(where: str | Path | None) -> bool:
    """Whether this is an address of an object store, such as "s3://bucket/sweep"."""
    protocol, found, _ = str(where).partition("://")
    return bool(found) and protocol not in _LOCAL


def place(where: str | Path | None) -> Any:
    """What zarr takes for a folder, for an address, which fsspec opens, or for memory.

    Credentials and all else about an object store are read by fsspec, from its own files and
    variables. Raises ValueError for an address of a kind that fsspec does not know, and ImportError
    where its package is not installed.
    """
    if where is None:
        return zarr().storage.MemoryStore()
    if not is_address(where):
        return str(where).partition("://")[2] or str(where)
    protocol = str(where).partition("://")[0]
    try:
        # What others write is seen at once.
        return zarr().storage.FsspecStore.from_url(str(where), {"use_listings_cache": False})
    except ImportError as error:
        package = "fsspec" if error.name == "fsspec" else _PACKAGES.get(protocol)
        fix = f"install what opens it: pip install {package}" if package else str(error)
        raise ImportError(f"{where}: {fix}") from None
    except ValueError as error:
        if "Protocol not known" not in str(error):
            raise
        from fsspec import available_protocols

        hint = nearest(protocol, available_protocols())
        raise ValueError(
            f"{where}: fsspec knows no stores of the kind {protocol!r}{hint}"
        ) from None

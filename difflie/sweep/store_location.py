"""Where a store may be, a folder, an object store or memory, and what can be wrong with it."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..system.installation import extra
from ..system.validation import format_value, nearest

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


# Packages that object stores are reached with.
_REMOTE = "botocore", "aiobotocore", "aiohttp", "gcsfs", "google", "azure"


class StoreError(ValueError):
    """A store that cannot be used, with the reason and the fix."""


class NoStoreError(StoreError):
    """Where there is no store, or only the beginning of one."""


def without(where: Any, file: str) -> StoreError:
    """That a file of a store is missed, and what to do."""
    return StoreError(
        f"{where}: {file} is lost or damaged, without which the store cannot be read; put it back "
        "from a copy, or remove the store, and the sweep is computed anew"
    )


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without zarr's warnings of what its specification leaves open."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="zarr")
        yield


@contextlib.contextmanager
def said(where: Any, what: str) -> Iterator[None]:
    """Errors of a disk or of an object store, in a sentence."""
    try:
        yield
    except Exception as error:
        # The packages of object stores have errors of their own.
        known = isinstance(error, OSError) or type(error).__module__.startswith(_REMOTE)
        if not known or (isinstance(error, FileNotFoundError) and what != "not written"):
            raise
        reason = getattr(error, "strerror", None) or error
        when = "it can be reached" if is_address(where) else "there is room"
        raise StoreError(
            f"{where}: {what} ({reason}); what is there is whole, and the same command goes on "
            f"when {when}"
        ) from error


def differences(before: Any, after: Any, at: str = "") -> Iterator[str]:
    """Where two descriptions in plain types differ, in words."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            place = f"{at}.{key}" if at else key
            if key not in before or key not in after:
                yield f"{place} is only in {'this sweep' if key in after else 'the store'}"
            else:
                yield from differences(before[key], after[key], place)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for k, pair in enumerate(zip(before, after, strict=True)):
            yield from differences(*pair, f"{at}[{k}]")
    elif before != after and at == "function":
        yield (
            "what is computed is another function, which the store knows by a digest only: the "
            "system, its start, steps, dt, method, control, events, quantities or code was changed"
        )
    elif before != after:
        yield f"{at} is {format_value(after)} here and {format_value(before)} there"

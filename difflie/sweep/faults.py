"""What can be wrong with a store, and how it is said."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from ..system.validation import format_value
from .places import is_address

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
    elif before != after:
        yield f"{at} is {format_value(after)} here and {format_value(before)} there"

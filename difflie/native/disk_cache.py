"""Object code cached on disk between processes, in the user's cache or where DIFFLIE_CACHE says.

DIFFLIE_CACHE=0 switches it off. Without a folder that can be used there is no cache: nothing here
raises an error. Code is run without further checks, so only complete files are used that belong to
the user and lie where nobody else can write.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

# In bytes, of all files together.
LIMIT = 512 * 2**20
_SUFFIX = ".difflie"
_EACH = 64
_START = hashlib.sha256().digest_size
_writes = itertools.count()


def folder() -> Path | None:
    """Where the files are, whether it exists or not; none if switched off."""
    wanted = os.environ.get("DIFFLIE_CACHE")
    if wanted is not None:
        return None if wanted in ("", "0") else Path(wanted).absolute()
    try:
        if sys.platform == "win32":
            local = os.environ.get("LOCALAPPDATA")
            return (Path(local) if local else Path.home() / "AppData/Local") / "difflie/cache"
        if sys.platform == "darwin":
            return Path.home() / "Library/Caches/difflie"
        place = Path(os.environ.get("XDG_CACHE_HOME", ""))
        # Relative ones are to be ignored, says the standard.
        return (place if place.is_absolute() else Path.home() / ".cache") / "difflie"
    except RuntimeError:
        return None  # no home


def key_of(spec: Any) -> str:
    """The key of the data that `spec` determines."""
    return hashlib.sha256(repr(spec).encode()).hexdigest()


def cached(spec: Any, make: Callable[[], bytes]) -> bytes:
    """The data that `spec` determines, from the cache or made and put there."""
    key = key_of(spec)
    data = read(key)
    if data is None:
        data = make()
        write(key, data)
    return data


def read(key: str) -> bytes | None:
    """The data written under a key, if it is there and whole."""
    place = folder()
    if place is None:
        return None
    path = place / f"{key}{_SUFFIX}"
    try:
        with path.open("rb") as file:
            if not _private(place) or not _own(os.fstat(file.fileno())):
                return None
            content = file.read()
    except OSError:
        return None
    data = content[_START:]
    whole = content[:_START] == _checksum(key, data)
    with contextlib.suppress(OSError):
        # What was not used for longest is removed first.
        os.utime(path) if whole else path.unlink()
    return data if whole else None


def write(key: str, data: bytes) -> None:
    """Keeps data under a key, if possible."""
    write_to(folder(), key, data)


def write_to(place: Path | None, key: str, data: bytes) -> None:
    """The same in a folder that was asked for before."""
    if place is None:
        return
    with contextlib.suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _private(place):
            return
        # Renamed when complete: other processes find all of the file or none.
        number, temporary = tempfile.mkstemp(_SUFFIX, "part-", place)
        try:
            with os.fdopen(number, "wb") as file:
                file.write(_checksum(key, data) + data)
            os.replace(temporary, place / f"{key}{_SUFFIX}")
        except OSError:
            os.unlink(temporary)
        if next(_writes) % _EACH == 0:
            _shrink(place)


def _checksum(key: str, data: bytes) -> bytes:
    """Of the key as well: a renamed file is a wrong one."""
    return hashlib.sha256(key.encode() + data).digest()


def _private(place: Path) -> bool:
    """Whether nobody else can put files into a folder; Windows sees to that by itself."""
    return os.name == "nt" or not place.stat().st_mode & stat.S_IWOTH


def _own(status: os.stat_result) -> bool:
    mine = os.name == "nt" or status.st_uid == os.getuid()
    return mine and stat.S_ISREG(status.st_mode)


def _shrink(place: Path) -> None:
    """Removes the oldest files, to three quarters of the limit where they exceed it."""
    files = [(path, path.stat()) for path in place.glob(f"*{_SUFFIX}")]
    total = sum(status.st_size for _, status in files)
    if total <= LIMIT:
        return
    for path, status in sorted(files, key=lambda f: f[1].st_mtime):
        if total <= LIMIT * 3 // 4:
            return
        with contextlib.suppress(OSError):
            path.unlink()
            total -= status.st_size

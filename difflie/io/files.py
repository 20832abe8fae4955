"""Files: an error for a missing one, and writing a file completely or not at all."""

from __future__ import annotations

import contextlib
import io
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ..system.validation import InputError, nearest
from .interrupt_guard import unbroken


class OutputError(InputError):
    """A file that cannot be written; the message names the file, the fault and the fix."""


def file_name(name: str) -> str:
    """A machine's name as a file name: without path separators, and not too long."""
    return re.sub(r"[^\w .()+-]", "_", name).strip(" .")[:100] or "machine"


def existing(path: str | os.PathLike[str], kind: str) -> Path:
    """The path of an existing file; else raises FileNotFoundError with the nearest name."""
    path = Path(path)
    if path.is_dir():
        raise FileNotFoundError(f"{path} is a directory; give the path of a {kind} file")
    if not present(path):
        raise FileNotFoundError(f"the file {path} does not exist{absence(path)}")
    return path


def present(path: Path) -> bool:
    """Whether a path exists; a path that is too long does not."""
    with contextlib.suppress(OSError):
        return path.exists()
    return False


def absence(path: Path) -> str:
    """A hint for a missing file: the nearest name, or the target of a broken link."""
    with contextlib.suppress(OSError):
        if path.is_symlink():
            return f"; it is a link to {os.readlink(path)}, which is not there: correct the link"
        # Names that share little more than their ending are not near.
        there = [p.name for p in path.parent.iterdir() if nearest(path.stem, [p.stem])]
        return nearest(path.name, there)
    return ""


@contextlib.contextmanager
def written(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file to write into, which appears at the path when it is complete, or not at all.

    Links are followed, missing folders are made, and the permissions are those of the old file, or
    of a new one. A pipe or device receives the content at the end. Ctrl-C ends a command when the
    file is complete.
    """
    with unbroken(), _written(Path(path)) as file:
        yield file


@contextlib.contextmanager
def _written(path: Path) -> Iterator[IO[bytes]]:
    if path.exists() and (not path.is_file() or _standard_stream(path) is not None):
        content = io.BytesIO()
        yield content
        with _opened(path) as file:
            file.write(content.getvalue())
        return
    target = Path(os.path.realpath(path))
    if target.exists():
        target.open("r+b").close()  # replacing needs no right to write the file itself
    temporary = _beside(target)
    try:
        # `tempfile` is of no use: its files are readable by their owner only.
        with temporary.open("xb") as file:
            if target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            yield file
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Writes a string, as UTF-8, or bytes, with `written`."""
    with written(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def check_writable(path: Path) -> None:
    """Raises `OutputError` for a file that `written` could not write; makes its folders."""
    try:
        if path.is_dir():
            raise OutputError(f"{path}: this is a folder; name a file in it")
        for above in path.parents:
            if above.exists() and not above.is_dir():
                raise OutputError(f"{path}: {above} is no folder; name another")
        if path.is_symlink() and os.path.islink(os.path.realpath(path)):
            raise OutputError(f"{path}: this link leads to itself; name a file")
        if path.exists() and not path.is_file():
            _check_device(path)
            return
        if path.exists():
            path.open("r+b").close()
        probe = _beside(Path(os.path.realpath(path)))
        try:
            # At least one byte, as the disk may be full.
            probe.write_bytes(bytes(4096))
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputError(f"{path}: it cannot be written: {reason}; name another") from None


def _beside(target: Path) -> Path:
    """A new temporary name in the folder of a file, which is made if need be.

    Random, as other processes may write the same file at this moment.
    """
    for folder in target.parents:
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(f"{folder} is a file, and no folder; give another folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    return target.with_name(f".{secrets.token_hex(8)}.part")


def _check_device(path: Path) -> None:
    kind = path.stat().st_mode
    if not (stat.S_ISCHR(kind) or stat.S_ISFIFO(kind)):
        raise OutputError(f"{path}: this is no file, pipe or terminal; name one")
    if stat.S_ISCHR(kind):
        # An empty line, which harms neither a terminal nor the text that follows.
        with _opened(path) as file:
            file.write(b"\n")
    elif not os.access(path, os.W_OK):
        raise PermissionError(13, "permission denied")


def _opened(path: Path) -> IO[bytes]:
    """A pipe, a device, or this program's own output, opened for writing."""
    stream = _standard_stream(path)
    return path.open("wb") if stream is None else os.fdopen(os.dup(stream), "wb")


def _standard_stream(path: Path) -> int | None:
    """The number of this program's standard output or error, if the path is one of these."""
    there = path.stat()
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        with contextlib.suppress(OSError):
            if os.path.samestat(there, os.fstat(number)):
                stream.flush()
                return number
    return None

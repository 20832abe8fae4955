"""Files: the error for one that is not there, and writing one whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from ..system.validation import nearest


def existing(path: str | os.PathLike[str], kind: str) -> Path:
    """The path of a file that is there; raises FileNotFoundError with the nearest name if not."""
    path = Path(path)
    if path.is_dir():
        raise FileNotFoundError(f"{path} is a directory; give the path of a {kind} file")
    if not path.exists():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise FileNotFoundError(f"the file {path} does not exist{nearest(path.name, siblings)}")
    return path


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Writes a text as UTF-8, with the folders above it, whole or not at all."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)

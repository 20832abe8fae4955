"""Machines and configurations that come with the package.

A name is that of a file without its suffix, with its folder where it has one: "arm7", "satellite",
"control/cart_pole". The folder may be left out where one file alone has that name. A
configuration's `[system] file = "package:NAME"` is the same machine as `path(NAME)`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..system.validation import format_value, nearest

_PACKAGE = Path(__file__).resolve().parent.parent
# In a checkout the configurations stand beside the package.
_CONFIGS = next(
    (p for p in (_PACKAGE / "configs", _PACKAGE.parent / "configs") if p.is_dir()), None
)
_FOLDERS = (_PACKAGE / "data", *([_CONFIGS] if _CONFIGS else []))


def machines() -> list[str]:
    """The names of the robot files, in order."""
    return sorted(_files(".urdf"))


def configurations() -> dict[str, str]:
    """What each configuration does, in a sentence, by its name."""
    files = {name: file for name, file in _files(".toml").items() if "system" in _read(file)}
    return {name: _header(files[name])[0] for name in sorted(files)}


def path(name: str) -> Path:
    """The robot file of a name of `machines`; of a name with a suffix, that file.

    Raises ValueError for a name that none has, with the nearest ones.

    >>> import difflie as dl
    >>> dl.load(dl.examples.path("arm7")).nv
    7
    """
    suffix = next((s for s in (".toml", ".urdf") if name.endswith(s)), "")
    return _find(name.removesuffix(suffix), suffix or ".urdf")


def copy(name: str, folder: str | os.PathLike[str] = ".") -> list[Path]:
    """Copies a configuration, and the shipped files that it names, into a folder, to be changed.

    Returns the copies, the configuration first. Files that are there already with other contents
    are left as they are: raises ValueError, before anything is written. Raises ValueError also for
    a name that no configuration has. Measured data are not shipped.
    """
    file = _find(name.removesuffix(".toml"), ".toml")
    if "system" not in _read(file):
        raise ValueError(f"{format_value(name)} is a part of a configuration; copy that one")
    sources = list(dict.fromkeys(_with_what_it_names(file)))
    # Those in other folders are named by relative paths, which have to stay as they are.
    above = Path(os.path.commonpath([source.parent for source in sources]))
    copies = [Path(folder) / source.relative_to(above) for source in sources]
    for source, target in zip(sources, copies, strict=True):
        if target.exists() and not (
            target.is_file() and target.read_bytes() == source.read_bytes()
        ):
            raise ValueError(
                f"{target} is there and differs; copy into another folder, by --out FOLDER or "
                "folder=..., or remove it"
            )
    for source, target in zip(sources, copies, strict=True):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    return copies


def command(copied: Path) -> str:
    """The command that runs a configuration, of its head, for where it lies now."""
    line = next(line for line in _header(copied) if line.startswith("difflie "))
    return shlex.join(str(copied) if w.endswith(".toml") else w for w in line.split())


def _files(suffix: str) -> dict[str, Path]:
    found = [(folder, file) for folder in _FOLDERS for file in folder.rglob(f"*{suffix}")]
    return {file.relative_to(f).as_posix().removesuffix(suffix): file for f, file in found}


def _find(name: str, suffix: str) -> Path:
    files = _files(suffix)
    found = [f for f in files if f == name] or [f for f in files if f.rpartition("/")[2] == name]
    if len(found) == 1:
        return files[found[0]]
    what = "machine" if suffix == ".urdf" else "configuration"
    if found:
        raise ValueError(f"{what} {format_value(name)} is one of {', '.join(found)}; say which")
    raise ValueError(
        f"no {what} {format_value(name)} comes with difflie, `difflie examples` lists them"
        f"{nearest(name, files)}"
    )


def _with_what_it_names(file: Path) -> Iterator[Path]:
    """A configuration, the files beside it that it names, and what those name."""
    yield file
    if file.suffix != ".toml":
        return
    for text in _texts(_read(file)):
        module, is_code, _ = text.partition(":")
        named = (file.parent / (f"{module}.py" if is_code else text)).resolve()
        if _CONFIGS and named.is_file() and named.is_relative_to(_CONFIGS):
            yield from _with_what_it_names(named)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _read(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _header(file: Path) -> list[str]:
    """The comments at the head of a file, line by line."""
    lines = file.read_text(encoding="utf-8").splitlines()
    end = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return [line.lstrip("# ").rstrip() for line in lines[:end]]

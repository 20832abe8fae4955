"""Python modules that a configuration names, and the permission to import them.

To import a module runs its code, so a file from somebody else must not decide it: readers refuse a
file that names code unless they are called with allow_code=True, and `imported`, the only place
where a named module is imported, refuses it once more.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from ..system.validation import format_value, nearest
from .toml import ConfigError

# The keys that may name code, as "module:name", by their tables.
_NAMING = {
    "coupling": "type",
    "actuator": "type",
    "cost": "function",
    "bound": "function",
    "guess": "function",
    "keep": "quantity",
    "parameter": "of",
    "sensor": "kind",
    "sweep": "function",
}


def code_allowed(flag: bool) -> bool:
    """Whether a command may import what its file names: by its flag, or DIFFLIE_ALLOW_CODE=1."""
    return flag or os.environ.get("DIFFLIE_ALLOW_CODE") == "1"


def check_code(tables: dict[str, Any], path: Path, allow_code: bool) -> None:
    """Raises `ConfigError` if the tables of the file at a path name code that is not allowed."""
    named = {} if allow_code else dict(_code(tables))
    if named:
        raise _refused(path, named)


def _code(tables: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The keys that name code, such as "cost[0].function", and the modules that they name."""
    for name, key in _NAMING.items():
        given = tables.get(name)
        many = isinstance(given, list)
        for i, row in enumerate(given if isinstance(given, list) else [given]):
            value = row.get(key) if isinstance(row, dict) else None
            if isinstance(value, str) and ":" in value:
                yield f"{name}[{i}].{key}" if many else f"{name}.{key}", value.partition(":")[0]


def _refused(path: Path, named: dict[str, str]) -> ConfigError:
    where = f"{' and '.join(named)} {'names' if len(named) == 1 else 'name'}"
    modules = (f"{format_value(m)} from {_origin(m, path)}" for m in dict.fromkeys(named.values()))
    return ConfigError(
        f"{path}: {where} Python code, and to import it would run it: {', '.join(modules)}; read "
        "it, and if you trust it, allow it by --allow-code or DIFFLIE_ALLOW_CODE=1, in Python by "
        "allow_code=True"
    )


def _origin(module: str, path: Path) -> str:
    """Where a module would be imported from, found without importing anything."""
    root, *inner = module.split(".")
    if root in sys.modules:
        return getattr(sys.modules[root], "__file__", None) or "Python itself"
    folder = path.parent.resolve()
    if (folder / root).is_dir():
        package = folder.joinpath(root, *inner)
        return str(package if package.is_dir() else package.with_suffix(".py"))
    beside = folder / f"{root}.py"
    return str(beside) if beside.is_file() else "the installed packages, if it is there"


def imported(module: str, path: Path, where: str, allow_code: bool) -> ModuleType:
    """The module that the file at a path names in the key `where`; one beside the file comes first.

    Raises `ConfigError` where it is not allowed, there is none, or it cannot be imported.
    """
    if not all(part.isidentifier() for part in module.split(".")):
        raise ConfigError(
            f"{where}: {format_value(module)} is no name of a module; write module:name"
        )
    if not allow_code:
        raise _refused(path, {where: module})
    folder = str(path.parent.resolve())
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and f"{module}.".startswith(f"{error.name}."):
            raise ConfigError(
                f"{where}: there is no module {format_value(module)}; put "
                f"{module.split('.')[0]}.py into the folder {folder}, or install it"
            ) from None
        raise ConfigError(f"{where}: the module {format_value(module)} needs: {error}") from error
    except Exception as error:
        raise ConfigError(
            f"{where}: the module {format_value(module)} cannot be imported: "
            f"{type(error).__name__}: {error}; correct it"
        ) from error
    finally:
        sys.path.remove(folder)


def function(named: str, path: Path, where: str, allow_code: bool) -> Callable[..., Any]:
    """The function "module:function" that the file at a path names in the key `where`.

    Raises `ConfigError` as `imported`, and for a module without this function.
    """
    module, colon, name = named.partition(":")
    if not colon:
        raise ConfigError(f'{where} is {format_value(named)}; write "module:function"')
    found = imported(module, path, where, allow_code)
    called = getattr(found, name, None)
    if not callable(called):
        own = [k for k, v in vars(found).items() if getattr(v, "__module__", "") == module]
        hint = nearest(name, own) or '; write "module:function"'
        raise ConfigError(
            f"{where}: the module {module} has no function {format_value(name)}{hint}"
        )
    return called

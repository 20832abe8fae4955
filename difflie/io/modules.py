"""Python modules that a configuration names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from ..system.validation import nearest, shown
from .toml import ConfigError


def imported(module: str, path: Path, where: str) -> ModuleType:
    """The module that the file at a path names in the key `where`; one beside the file comes first.

    Raises `ConfigError` where there is none, or it cannot be imported.
    """
    if not all(part.isidentifier() for part in module.split(".")):
        raise ConfigError(f"{where}: {shown(module)} is no name of a module; write module:name")
    folder = str(path.parent.resolve())
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and f"{module}.".startswith(f"{error.name}."):
            raise ConfigError(
                f"{where}: there is no module {shown(module)}; put {module.split('.')[0]}.py into "
                f"the folder {folder}, or install it"
            ) from None
        raise ConfigError(f"{where}: the module {shown(module)} needs: {error}") from error
    except Exception as error:
        raise ConfigError(
            f"{where}: the module {shown(module)} cannot be imported: {type(error).__name__}: "
            f"{error}; correct it"
        ) from error
    finally:
        sys.path.remove(folder)


def function(named: str, path: Path, where: str) -> Callable[..., Any]:
    """The function "module:function" that the file at a path names in the key `where`.

    Raises `ConfigError` as `imported`, and for a module without this function.
    """
    module, _, name = named.partition(":")
    found = imported(module, path, where)
    called = getattr(found, name, None)
    if not callable(called):
        own = [k for k, v in vars(found).items() if getattr(v, "__module__", "") == module]
        hint = nearest(name, own) or '; write "module:function"'
        raise ConfigError(f"{where}: the module {module} has no function {shown(name)}{hint}")
    return called

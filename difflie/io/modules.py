"""Python modules that a configuration names."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from ..system.validation import shown
from .toml import ConfigError


def imported(module: str, path: Path, where: str) -> ModuleType:
    """The module that the file at a path names in the key `where`; one beside the file comes first.

    Raises `ConfigError` where there is none, or it cannot be imported.
    """
    if not all(part.isidentifier() for part in module.split(".")):
        raise ConfigError(f"{where}: {shown(module)} is no name of a module; write module:Class")
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

"""difflie: differentiable multibody dynamics on Lie groups.

Conventions. Twists (omega, v) and wrenches (moment, force) have their angular part first and are
body-fixed; a pose takes body to world coordinates; dexp is right-trivialised; quaternions are
(w, x, y, z); units are SI. Importing the package changes no global setting: for double precision
set `jax.config.update("jax_enable_x64", True)` first.
"""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def _public() -> dict[str, str | None]:
    """The room of each public name, as the stub for type checkers says; None for a room itself."""
    stub = Path(__file__).with_suffix(".pyi").read_text()
    imports = (node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom))
    return {alias.name: node.module for node in imports for alias in node.names}


_ROOMS = _public()
__all__ = list(_ROOMS)  # pyright: ignore[reportUnsupportedDunderAll]


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("difflie")
    except PackageNotFoundError:
        return "0+unknown"  # sources on the path that are not installed


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    room = _ROOMS[name]
    module = importlib.import_module(f".{room or name}", __name__)
    value = module if room is None else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_ROOMS)


class _Package(ModuleType):
    """Importing the room `simulate` does not put it in the place of the function `simulate`."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and _ROOMS.get(name)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package

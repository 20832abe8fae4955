"""difflie: differentiable multibody dynamics on Lie groups.

Conventions. Twists (omega, v) and wrenches (moment, force) have their angular part first and are
body-fixed; a pose takes body to world coordinates; dexp is right-trivialised; quaternions are
(w, x, y, z); units are SI. Importing the package changes no global setting: for double precision
set `jax.config.update("jax_enable_x64", True)` first.
"""

from __future__ import annotations

from typing import Any

import lazy_loader

from .deprecated import NAMES, names_of
from .hints import HINTS, no_attribute

# The public names are those of the stub for type checkers.
_attribute, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name in NAMES[__name__]:
        return names_of(__name__)(name)
    if name == "__version__":
        return _version()
    if name in HINTS:
        raise no_attribute(name)
    return _attribute(name)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("difflie")
    except PackageNotFoundError:
        return "0+unknown"  # sources on the path that are not installed

"""Old names that still work, for one release, and the warnings that name the new ones.

With the next release this file is deleted, and what imports it is changed.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

# By the module, or the class, that had them.
NAMES = {
    "difflie.identify": {"ArmFit": "Fit"},
    "Fit": {
        **{name: f"assessment.{name}" for name in ("base", "friction", "held_out", "model")},
        **{name: f"assessment.{name}" for name in ("predictions", "scores", "verdict")},
        "weight": "assessment.held_out.best",
        "active": "at_bound",
    },
}


def warn_of(old: str, new: str, level: int = 3) -> None:
    """Warns that an old name is used; level: of the caller, as of `warnings.warn`."""
    text = f"{old} is now {new}; the old name works for one release"
    warnings.warn(text, DeprecationWarning, stacklevel=level)


class Subscripted(Mapping[str, Any]):
    """Results that were dictionaries: `results["rows"]` is now `results.rows`."""

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys():
            raise KeyError(key)
        name = self._keys()[key]
        warn_of(f"results[{key!r}]", f"results.{name}")
        return getattr(self, name)

    def __contains__(self, key: object) -> bool:
        return key in self._keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys())

    def __len__(self) -> int:
        return len(self._keys())

    def _keys(self) -> dict[str, str]:
        """The names of the fields, by the keys that they have in JSON."""
        assert dataclasses.is_dataclass(self)
        return {field.name.rstrip("_"): field.name for field in dataclasses.fields(self)}


def renamed(owner: Any, table: str, name: str) -> Any:
    """What an owner, a module or an object, has under an old name; raises AttributeError."""
    new = NAMES[table].get(name)
    found = owner
    for part in () if new is None else new.split("."):
        found = getattr(found, part, None)
    if new is None or found is None:
        raise AttributeError(f"{table} has no attribute {name!r}")
    warn_of(f"{table}.{name}", f"{table}.{new}", 4)
    return found

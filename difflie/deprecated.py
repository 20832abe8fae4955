"""Old names that still work, for one release, and the warnings that name the new ones.

With the next release this file is deleted, and what imports it is changed.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

Class = TypeVar("Class", bound=type)

# By package, or class: its old names, and the new ones.
NAMES = {
    "difflie": {"breaking_leaves": "inconsistent_parameters"},
    "difflie.constraints": {"breaking_leaves": "inconsistent_parameters"},
    "difflie.control": {
        "Apart": "MinDistance",
        "Between": "Bounded",
        "Together": "Concatenated",
    },
    "difflie.identify": {"ArmFit": "Fit", "Keep": "Bounded", "Nearness": "NominalPrior"},
    "difflie.quantities": {"LimitLeft": "LimitMargin"},
    "difflie.sweep": {"Here": "LocalEngine"},
    "difflie.view": {"Shown": "DrawOptions"},
    "Fit": {
        **{name: f"assessment.{name}" for name in ("base", "friction", "held_out", "model")},
        **{name: f"assessment.{name}" for name in ("predictions", "scores", "verdict")},
        "weight": "assessment.held_out.best",
        "active": "at_bound",
        "judgement": "assess",
    },
    "JointScore": {"floor_r2": "baseline_r2", "file_r2": "nominal_r2"},
}
# Of the tables of configuration files: the values of `type`.
TYPES = {"Apart": "MinDistance"}
# Modules that are elsewhere.
MODULES = {
    "difflie.io.study": "difflie.identify.files",
}


def warn_of(old: str, new: str, level: int = 3) -> None:
    """Warns that an old name is used; level: of the caller, as of `warnings.warn`."""
    text = f"{old} is now {new}; the old name works for one release"
    warnings.warn(text, DeprecationWarning, stacklevel=level)


class Subscripted(Mapping[str, Any]):
    """Results that were dictionaries: `results["rows"]` is now `results.rows`."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return by_old_name(self, type(self).__name__, name)

    def __getitem__(self, key: str) -> Any:
        name = NAMES.get(type(self).__name__, {}).get(key, key)
        if name not in self._keys():
            raise KeyError(key)
        name = self._keys()[name]
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


def with_old_keys(results: dict[str, Any], table: str) -> dict[str, Any]:
    """Results as JSON has them, with the keys of the release before beside the new ones."""
    old = NAMES.get(table, {}).items()
    return results | {key: results[new] for key, new in old if new in results}


def by_old_name(owner: Any, table: str, name: str) -> Any:
    """What an owner, a module or an object, has under an old name; raises AttributeError."""
    new = NAMES.get(table, {}).get(name)
    found = owner
    for part in () if new is None else new.split("."):
        found = getattr(found, part, None)
    if new is None or found is None:
        raise AttributeError(f"{table} has no attribute {name!r}")
    warn_of(f"{table}.{name}", f"{table}.{new}", 4)
    return found


def system_first(function: str, system: Any, path: Any) -> tuple[Any, Any]:
    """The system and the path of an export that was called as function(path, system)."""
    if not hasattr(path, "topology"):
        return system, path
    warnings.warn(
        f"{function}(path, system) is now {function}(system, path); the old order works for one "
        "release",
        DeprecationWarning,
        stacklevel=4,
    )
    return path, system


def names_of(package: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package that finds its old names."""

    def attribute(name: str) -> Any:
        return by_old_name(sys.modules[package], package, name)

    return attribute


def renamed(**names: str) -> Callable[[Class], Class]:
    """A decorator of a class whose methods and properties have new names: old="new".

    Old names are found on objects, and what a subclass defines under an old name is called by the
    new one.
    """

    def decorated(cls: Class) -> Class:
        before = cls.__dict__.get("__init_subclass__")

        def init_subclass(sub: type, **settings: Any) -> None:
            for old, new in names.items():
                if old in sub.__dict__ and new not in sub.__dict__:
                    warn_of(f"{sub.__name__}.{old}", new)
                    setattr(sub, new, sub.__dict__[old])
            super(cls, sub).__init_subclass__(**settings) if before is None else before.__get__(
                None, sub
            )(**settings)

        cls.__init_subclass__ = classmethod(init_subclass)  # pyright: ignore
        for old, new in names.items():
            setattr(cls, old, _old(cls.__name__, old, new))
        return cls

    return decorated


def _old(owner: str, old: str, new: str) -> property:
    def found(self: Any) -> Any:
        warn_of(f"{owner}.{old}", new)
        return getattr(self, new)

    return property(found)


def type_of(name: str) -> str:
    """The name of a type in a configuration file, the new one for an old one."""
    if name not in TYPES:
        return name
    warn_of(f'type = "{name}"', f'type = "{TYPES[name]}"')
    return TYPES[name]


def _moved(old: str, new: str) -> ModuleType:
    """A module whose names are those of another one."""
    module = ModuleType(old)

    def attribute(name: str) -> Any:
        if name.startswith("__"):  # `inspect` asks every module for its file
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(new), name)
        warn_of(f"{old}.{name}", f"{new}.{name}")
        return found

    vars(module)["__getattr__"] = attribute
    return module


sys.modules.update({old: _moved(old, new) for old, new in MODULES.items()})

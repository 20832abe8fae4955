"""Arguments and results by what they are, in words that every process finds again.

`described` says what a trace can read of its arguments: types and shapes of arrays, everything else
by content. `packed` writes how a result is put together from arrays, `unpacked` does so. Both know
what this package and jax define; of anything else they raise Unknown.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import importlib
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from .closures import Unknown
from .private import ShapedArray, varying_axes

_PLAIN = (type(None), bool, int, str, bytes)
# What comes with versions that a key names.
_KNOWN = ("difflie", "jax", "jaxlib", "numpy", "equinox", "builtins", "math", "operator")
_OWN = __name__.partition(".")[0]


def described(x: Any, array: Callable[[Any], Any] = lambda a: _type_of(a)) -> Any:
    """Nested tuples of names, numbers and text; of arrays of jax what `array` says."""
    kind = type(x)
    inner = functools.partial(described, array=array)
    if kind in _PLAIN:
        return x
    if kind is float or kind is complex:
        return kind.__name__, repr(x)
    if isinstance(x, jax.Array):
        return array(x)
    if isinstance(x, np.ndarray | np.generic):
        a = np.asarray(x)
        if a.dtype.hasobject:
            raise Unknown
        return "numpy", kind.__name__, a.dtype.str, a.shape, hashlib.sha256(a.tobytes()).hexdigest()
    if isinstance(x, np.dtype):
        return "dtype", x.name
    if isinstance(x, enum.Enum):
        return name_of(kind), x.name
    if isinstance(x, functools.partial):
        return name_of(kind), inner(x.func), inner(x.args), inner(x.keywords)
    if isinstance(x, types.MethodType):
        return "method", x.__func__.__qualname__, name_of(type(x.__self__)), inner(x.__self__)
    if kind in (tuple, list):
        return kind.__name__, *map(inner, x)
    if kind in (dict, types.MappingProxyType):
        return "dict", *((inner(key), inner(value)) for key, value in x.items())
    if kind in (set, frozenset):
        return "set", *sorted(map(repr, map(inner, x)))
    if isinstance(x, type) or not hasattr(kind, "__dataclass_fields__"):
        if isinstance(x, tuple) and hasattr(kind, "_fields"):
            return name_of(kind), *map(inner, x)
        return "named", name_of(x)
    fields = [(name, inner(getattr(x, name, "missing"))) for name in _fields(kind)]
    return name_of(kind), *fields


def _fields(kind: Any) -> list[str]:
    return [f.name for f in dataclasses.fields(kind)]


def _type_of(x: Any) -> Any:
    """The type of an array, but not its numbers."""
    kind = jax.typeof(x)
    plain = type(kind) is ShapedArray and isinstance(kind.dtype, np.dtype)
    if not plain or varying_axes(kind) or not kind.sharding.mesh.empty:
        raise Unknown
    return "array", kind.dtype.name, kind.shape, bool(kind.weak_type)


def name_of(x: Any) -> str:
    """The name by which a class or a function is found; raises Unknown where it is not found."""
    module, name = getattr(x, "__module__", None), getattr(x, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        raise Unknown
    if module.partition(".")[0] not in _KNOWN or _found(module, name) is not x:
        raise Unknown
    return f"{module}:{name}"


def _found(module: str, name: str) -> Any:
    try:
        return functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError):
        return None


def packed(x: Any, args: Any, arrays: list[Any]) -> Any:
    """How a result is put together, as JSON has it; its arrays go to the list.

    What it has from the arguments is written as a place among them.
    """
    places = {id(part): i for i, part in enumerate(_parts(args))}

    def written(x: Any) -> Any:
        kind = type(x)
        if kind in (type(None), bool, str):
            return x
        if kind is int:
            return ["int", x]
        if kind is float:
            return ["float", x.hex()]
        if isinstance(x, jax.Array | np.ndarray | np.generic):
            arrays.append(x)
            return ["array"]
        if id(x) in places:
            return ["given", places[id(x)]]
        if kind in (tuple, list):
            return [kind.__name__, *map(written, x)]
        if kind is dict:
            return ["dict", *([written(key), written(value)] for key, value in x.items())]
        name = name_of(kind)
        if not name.startswith(f"{_OWN}."):
            raise Unknown
        if isinstance(x, tuple):
            return ["record", name, *map(written, x)]
        if not hasattr(x, "__dict__"):
            raise Unknown
        fields = _fields(kind) if dataclasses.is_dataclass(x) else sorted(vars(x))
        return ["object", name, *([f, written(getattr(x, f))] for f in fields)]

    return written(x)


def unpacked(written: Any, args: Any, arrays: Sequence[Any]) -> Any:
    """The result that was `packed`, from its arrays and arguments `described` alike."""
    given, filled = list(_parts(args)), iter(arrays)

    def read(x: Any) -> Any:
        if not isinstance(x, list):
            return x
        kind, *rest = x
        if kind == "int":
            return rest[0]
        if kind == "float":
            return float.fromhex(rest[0])
        if kind == "array":
            return next(filled)
        if kind == "given":
            return given[rest[0]]
        if kind in ("tuple", "list"):
            return (tuple if kind == "tuple" else list)(map(read, rest))
        if kind == "dict":
            return {read(key): read(value) for key, value in rest}
        cls: Any = _found(*rest[0].split(":"))
        if kind == "record":
            return cls._make([read(part) for part in rest[1:]])
        made = object.__new__(cls)
        for name, value in rest[1:]:
            object.__setattr__(made, name, read(value))
        return made

    return read(written)


def _parts(x: Any) -> Iterator[Any]:
    """Objects within arguments that are no plain values, always in the same order."""
    kind = type(x)
    if kind in (tuple, list) or (isinstance(x, tuple) and hasattr(kind, "_fields")):
        for part in x:
            yield from _parts(part)
    elif kind in (dict, types.MappingProxyType):
        for part in dict(x).values():
            yield from _parts(part)
    elif dataclasses.is_dataclass(x) and not isinstance(x, type):
        yield x
        for name in _fields(kind):
            yield from _parts(getattr(x, name, None))

"""What functions of Python depend on besides their arguments, as a digest that changes with it.

A compiled program holds the numbers that a function closes over. A user who changes one of them, or
an attribute of an object, an entry of an array or a global, expects the next call to know. So a
function is compared by a digest of

- its code, its defaults, what it closes over, and the globals that its code reads by name,
- the attributes of objects, and the methods and attributes of their classes,
- the content of arrays of NumPy and of containers; arrays of jax, which do not change, by identity.

Functions and classes of installed packages, and those of this one, are compared by identity.
A `Watched` function is an argument of what is compiled, which is compiled anew after a change.
"""

from __future__ import annotations

import argparse
import contextlib
import dis
import functools
import hashlib
import inspect
import itertools
import sys
import sysconfig
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np

_PLAIN = (type(None), bool, int, str, bytes, complex)
_STANDARD = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
# The folders that packages are installed in, of this environment and of others on the path.
_INSTALLED = ("site-packages", "dist-packages")
_OWN = __name__.partition(".")[0]
_RECORDS = (types.SimpleNamespace, argparse.Namespace)
# Of names that code reads: those of global variables, each with the attributes read of it.
_Names = tuple[tuple[str, frozenset[str]], ...]


class Classes(tuple):
    """Some classes."""

    _all: ClassVar[dict[tuple, Classes]] = {}

    def __new__(cls, classes: tuple) -> Classes:
        """The same object for the same classes."""
        return cls._all.setdefault(classes, tuple.__new__(cls, classes))


def closed_over(x: Any) -> str:
    """A digest of what a function, an object or some classes depend on, within this process."""
    walk = _Walk(_serial)
    walk.value(x)
    return "|".join(walk.parts)


def content_of(x: Any) -> str:
    """The same for all processes, by names and contents. Raises Unknown for what has neither."""
    walk = _Walk(_named)
    walk.value(x)
    return "|".join(walk.parts)


class Unknown(Exception):
    """Something whose content cannot be read."""


class _Walk:
    """One walk through all that something depends on, each thing once.

    identity: what stands for an object that is not looked into, and for code.
    """

    def __init__(self, identity: Callable[[Any], str]) -> None:
        self.identity = identity
        self.parts: list[str] = []
        self._seen: dict[int, int] = {}

    def value(self, x: Any) -> None:
        """Adds a value of any kind."""
        kind, add = type(x), self.parts.append
        if kind is float:
            add(x.hex())
        elif kind in _PLAIN:
            add(f"{kind.__name__}{x!r}")
        elif isinstance(x, jax.Array):
            add(self.identity(x))
        elif id(x) in self._seen:
            add(f"again{self._seen[id(x)]}")
        else:
            self._seen[id(x)] = len(self._seen)
            self._thing(kind, x)

    def _thing(self, kind: type, x: Any) -> None:
        add = self.parts.append
        if isinstance(x, np.ndarray | np.generic):
            add(_array(x))
        elif kind is types.FunctionType:
            self._function(x)
        elif kind is types.MethodType:
            self.value(x.__func__)
            self.value(x.__self__)
        elif isinstance(x, functools.partial):
            add("partial")
            for part in (x.func, x.args, x.keywords):
                self.value(part)
        elif isinstance(x, tuple | list | set | frozenset | dict):
            add(f"{kind.__name__}{len(x)}")
            items = itertools.chain.from_iterable(x.items()) if isinstance(x, dict) else x
            for item in items:
                self._class(item) if kind is Classes else self.value(item)
        elif kind in _RECORDS:
            self.value(vars(x))
        elif isinstance(x, types.ModuleType | type) or is_library(kind):
            add(self.identity(x))
            if isinstance(x, jax.custom_jvp | jax.custom_vjp):
                self.value(x.fun)
        else:
            self._object(x)

    def _function(self, f: types.FunctionType) -> None:
        if is_library(f):
            self.parts.append(self.identity(f))
            return
        self.parts.append(self.identity(f.__code__))
        for part in (f.__defaults__, f.__kwdefaults__):
            if part:
                self.value(part)
        for cell in f.__closure__ or ():
            try:
                self.value(cell.cell_contents)
            except ValueError:
                self.parts.append("empty")
        there = f.__globals__
        for name, attributes in _names_of(f.__code__):
            if name in there:
                self._global(there[name], attributes)
            else:
                self.parts.append("builtin")

    def _global(self, x: Any, attributes: frozenset[str]) -> None:
        self.value(x)
        if isinstance(x, types.ModuleType) and not is_library(x):
            for name in sorted(attributes):
                self.value(getattr(x, name, None))

    def _object(self, x: Any) -> None:
        for c in type(x).__mro__:
            if not is_library(c):
                self._class(c)
        slots = [s for c in type(x).__mro__ for s in _slots(c)]
        for name in slots:
            self.value(getattr(x, name, None))
        own = getattr(x, "__dict__", None)
        if own is not None:
            for name, part in own.items():
                self.parts.append(name)
                self.value(part)
        elif not slots:
            self.parts.append(self.identity(x))

    def _class(self, c: type) -> None:
        if id(c) in self._seen:
            return
        self._seen[id(c)] = len(self._seen)
        self.parts.append(self.identity(c))
        for name, part in vars(c).items():
            if isinstance(part, staticmethod | classmethod):
                part = part.__func__
            elif isinstance(part, property):
                part = part.fget
            function = inspect.unwrap(part) if callable(part) else part
            # What a class statement itself makes is no part of what its methods do.
            if isinstance(function, types.FunctionType) or not name.startswith("_"):
                self.value(function)


def _slots(c: type) -> Iterator[str]:
    slots = vars(c).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else slots
    return (name for name in names if not name.startswith("__"))


_read: dict[int, tuple[types.CodeType, _Names]] = {}


def _names_of(code: types.CodeType) -> _Names:
    """The global names that code reads, also in functions within it, with attributes of theirs."""
    found = _read.get(id(code))
    if found is None:
        names: dict[str, set[str]] = {}
        for part in _codes(code):
            last = None
            for step in dis.get_instructions(part):
                if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                    last = names.setdefault(step.argval, set())
                elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and last is not None:
                    last.add(step.argval)
                    last = None
                elif step.opname not in ("CACHE", "PRECALL", "PUSH_NULL"):
                    last = None
        # The code is kept, so that no other one takes its number.
        found = _read[id(code)] = code, tuple((n, frozenset(a)) for n, a in names.items())
    return found[1]


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for x in code.co_consts:
        if isinstance(x, types.CodeType):
            yield from _codes(x)


_libraries: dict[str, bool] = {}


def is_library(x: Any) -> bool:
    """Whether a module, class, function or object belongs to an installed package or to this."""
    name = x.__name__ if isinstance(x, types.ModuleType) else getattr(x, "__module__", None)
    if not isinstance(name, str):
        return True  # written in C
    found = _libraries.get(name)
    if found is None:
        root = name.partition(".")[0]
        file = getattr(sys.modules.get(name), "__file__", None)
        user = name == "__main__" or name not in sys.modules
        found = root == _OWN or root in sys.builtin_module_names
        if not found and not user:
            found = file is None or file.startswith(_STANDARD)
            found = found or any(part in _INSTALLED for part in Path(file or "").parts)
        _libraries[name] = found
    return found


def _array(x: Any) -> str:
    content = repr(x.tolist()).encode() if x.dtype.hasobject else x.tobytes()
    return f"{x.dtype}{x.shape}{hashlib.blake2b(content, digest_size=16).hexdigest()}"


def _named(x: Any) -> str:
    """Code and arrays by content, other things by their names."""
    if isinstance(x, types.CodeType):
        constants = [_named(c) if isinstance(c, types.CodeType) else repr(c) for c in x.co_consts]
        return repr((x.co_code, x.co_names, x.co_varnames, constants))
    if isinstance(x, jax.Array):
        return _array(np.asarray(x))
    if isinstance(x, types.ModuleType):
        return x.__name__
    name = getattr(x, "__qualname__", None) or getattr(x, "__name__", None)
    if not isinstance(name, str):
        raise Unknown
    return f"{getattr(x, '__module__', '')}.{name}"


_serials: dict[int, tuple[Callable[[], Any], str]] = {}
_counter = itertools.count()


def _serial(x: Any) -> str:
    """A number for an object by identity, which no other one gets later."""
    found = _serials.get(id(x))
    if found is not None and found[0]() is x:
        return found[1]
    number, key = f"#{next(_counter)}", id(x)
    try:
        _serials[key] = weakref.ref(x, functools.partial(_forget, key, number)), number
    except TypeError:
        _serials[key] = (lambda: x), number
    return number


def _forget(key: int, number: str, _: Any) -> None:
    if key in _serials and _serials[key][1] == number:
        del _serials[key]


@jax.tree_util.register_pytree_node_class
class Watched:
    """A function as a pytree without leaves, whose structure changes with what it depends on.

    So whatever is compiled for it is compiled anew after a change. One that changes itself whenever
    it is called is given up, with a warning: it is compared by identity from then on.
    """

    __slots__ = ("compiled_for", "function")

    def __init__(self, function: Any, compiled_for: str | None = None) -> None:
        self.function, self.compiled_for = function, compiled_for

    def digest(self) -> str:
        """What it is compared by, besides its identity."""
        given_up = _given_up.get(id(self.function))
        return closed_over(self.function) if given_up is None else given_up

    def tree_flatten(self) -> tuple[tuple, _Moment]:
        return (), _Moment(self.function, self.digest())

    @classmethod
    def tree_unflatten(cls, moment: _Moment, leaves: tuple) -> Watched:
        return cls(moment.function, moment.digest)

    def __call__(self, *args: Any) -> Any:
        before = self.digest()
        result = self.function(*args)
        if self.digest() != before:
            self._give_up(before if self.compiled_for is None else self.compiled_for)
        return result

    def _give_up(self, digest: str) -> None:
        key = id(self.function)
        with contextlib.suppress(TypeError):
            weakref.finalize(self.function, _given_up.pop, key, None)
            _given_up[key] = digest
        warnings.warn(
            f"{self.__name__} changes what it depends on whenever it is called, such as a counter; "
            "once it is compiled, no change of it will be noticed, so keep what changes out of it, "
            "or in the memory of a controller",
            stacklevel=3,
        )

    @property
    def __name__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Watched) and self.function is other.function

    def __hash__(self) -> int:
        return hash(id(self.function))

    def __reduce__(self) -> tuple:
        return Watched, (self.function,)

    def __repr__(self) -> str:
        return repr(self.function)


class _Moment(NamedTuple):
    """A function with what it depended on at a moment."""

    function: Any
    digest: str

    def __eq__(self, other: Any) -> bool:
        same = isinstance(other, _Moment) and self.function is other.function
        return same and self.digest == other.digest

    def __ne__(self, other: Any) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((id(self.function), self.digest))


# What is given up, by identity, and the digest that it is compared by for good.
_given_up: dict[int, str] = {}


def watched(function: Any) -> Any:
    """A function as `Watched`; functions of packages, and pytrees with leaves, as they are."""
    if isinstance(function, Watched) or not callable(function) or is_library(function):
        return function
    if not isinstance(function, types.FunctionType | types.MethodType):
        leaves = jax.tree.leaves(function)
        if len(leaves) != 1 or leaves[0] is not function:
            return function
    return Watched(function)


def code_of(*parts: Any) -> Watched | None:
    """The methods of pytrees that users' classes make, as one thing to compare; None without any.

    Their fields are compared elsewhere, as leaves.
    """
    classes = [type(x) for x in parts if x is not None]
    users = tuple(dict.fromkeys(c for c in classes if c is not Watched and not is_library(c)))
    return Watched(Classes(users)) if users else None

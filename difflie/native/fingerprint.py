"""What a loop is known by in every process.

The code of a loop follows from its jaxprs and from how they are compiled. Cached code is found by a
digest of both, without the program being written again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import hashlib
import importlib.resources
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from .closures import Unknown, content_of
from .jaxprs import nested
from .private import ClosedJaxpr, Literal, scan_sizes
from .strict_user_code import is_strict

# Operations whose result is that of the function inside; what else is said of them is for jax.
CALLS = frozenset(
    "checkpoint closed_call core_call custom_jvp_call custom_vjp_call custom_vjp_call_jaxpr jit "
    "pjit remat2".split()
)


def fingerprint(loop: Any, *options: Any) -> str | None:
    """A digest of a loop, of any length, and of how it is compiled; None if there is none."""
    try:
        cache_key = loop.cache_key(_Reader().closed)
    except Unknown:
        return None
    versions = jax.__version__, np.__version__, jax.config.jax_enable_x64  # pyright: ignore
    return _digest((cache_key, options, versions, package()))


def _digest(parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


@functools.cache
def package() -> str:
    """A digest of the code of this package: its compiler, and its rules, which no jaxpr shows."""
    digest = hashlib.sha256()
    for name, content in sorted(sources(importlib.resources.files("difflie"))):
        digest.update(f"{name}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()


def sources(folder: Any, within: str = "") -> Iterator[tuple[str, bytes]]:
    """All code in a folder: names and contents.

    Without examples of configurations, which an installed package holds and a checkout does not.
    """
    for f in folder.iterdir():
        if f.is_dir() and f.name not in ("__pycache__", "configs"):
            yield from sources(f, f"{within}{f.name}/")
        elif f.name.endswith(".py"):
            yield within + f.name, f.read_bytes()


class _Reader:
    """Reads jaxprs, each once however often it is called."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def closed(self, closed: ClosedJaxpr) -> tuple[str, list[Any]]:
        """A digest of the equations, and the constants."""
        return self._jaxpr(closed.jaxpr), [_array(c) for c in closed.consts]

    def _jaxpr(self, jaxpr: Any) -> str:
        if id(jaxpr) not in self._known:
            self._known[id(jaxpr)] = self._equations(jaxpr)
        return self._known[id(jaxpr)]

    def _equations(self, jaxpr: Any) -> str:
        numbers: dict[Any, int] = {}

        def new(variables: Sequence[Any]) -> list[Any]:
            for v in variables:
                numbers[v] = len(numbers)
            return [(v.aval.dtype.name, v.aval.shape) for v in variables]

        def read(atoms: Sequence[Any]) -> list[Any]:
            return [
                (v.aval.dtype.name, _array(v.val)) if v.__class__ is Literal else numbers[v]
                for v in atoms
            ]

        lines: list[Any] = [new(jaxpr.constvars), new(jaxpr.invars)]
        for equation in jaxpr.eqns:
            name, operands = equation.primitive.name, read(equation.invars)
            if name in CALLS:
                said = [self.closed(inner) for inner in nested(equation.params)]
            else:
                params = equation.params
                if name == "scan":
                    # Newer versions say in trees how many arguments are of which kind.
                    params = {k: x for k, x in params.items() if k not in ("ft_in", "ft_out")}
                    params |= {"sizes": scan_sizes(equation.params)}
                said = [(key, self._value(x)) for key, x in params.items()]
            # Strict within what is not, and the other way round: what each equation says itself.
            region = is_strict(equation, True), is_strict(equation, False)
            lines.append((name, operands, said, region, new(equation.outvars)))
        return _digest((lines, read(jaxpr.outvars)))

    def _value(self, x: Any) -> Any:
        """A parameter of an operation."""
        if x is None or isinstance(x, bool | int | float | complex | str | bytes | np.dtype):
            return x
        if isinstance(x, enum.Enum):
            return str(x)
        if isinstance(x, jax.sharding.Sharding):
            return None  # Where arrays lie is no part of the code.
        if isinstance(x, type):
            return x.__module__, x.__qualname__
        if hasattr(x, "cache_key"):
            return x.cache_key(self.closed), x.length
        if hasattr(x, "jaxpr"):
            return self.closed(x)
        if hasattr(x, "eqns"):
            return self._jaxpr(x)
        if isinstance(x, np.ndarray | np.generic):
            return _array(x)
        if isinstance(x, tuple | list):
            return [type(x).__name__, *map(self._value, x)]
        if isinstance(x, dict):
            return [(self._value(key), self._value(value)) for key, value in x.items()]
        if dataclasses.is_dataclass(x):
            fields = [(f.name, self._value(getattr(x, f.name))) for f in dataclasses.fields(x)]
            return type(x).__name__, fields
        return content_of(x)


def _array(x: Any) -> Any:
    """A known array or number, bit by bit."""
    if x.__class__ is float or x.__class__ is int or x.__class__ is bool:
        return repr(x)
    a = np.asarray(x)
    return a.dtype.name, a.shape, a.tobytes() if a.nbytes < 1000 else _digest(a.tobytes())


def digest(closed: ClosedJaxpr, function: Any) -> str | None:
    """A digest of a traced function, the same in every process.

    Where an operation in it cannot be read, that of the code of the function and of what it closes
    over; None where neither can be read.
    """
    for read in (lambda: _Reader().closed(closed), lambda: content_of(function)):
        with contextlib.suppress(Unknown):
            return _digest(read())
    return None

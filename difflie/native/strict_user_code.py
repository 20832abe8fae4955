"""Which operations of a trace come from a user's function, and are computed strictly.

What a machine is made of has a structure of zeros and ones, which programs leave out (`program/`):
there 0 x is 0, whatever x is. In a user's function the same would hide mistakes, so that operations
from there are written as they stand, in derivatives too. Jax keeps the names of scopes with every
operation, through all transformations; the innermost of the two names below decides.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax

from .closures import Watched
from .jaxprs import nested
from .private import scopes

_STRICT, _STRUCTURED = "difflie.as_written", "difflie.structured"
_OWN = __name__.partition(".")[0] + "."


def as_written(f: Callable[..., Any], *args: Any) -> Any:
    """f(*args), computed strictly unless f is a function of this package."""
    if is_own(f):
        return f(*args)
    with jax.named_scope(_STRICT):
        return f(*args)


def structured() -> AbstractContextManager[Any]:
    """A region of operations on machines, of this package."""
    return jax.named_scope(_STRUCTURED)


def is_own(f: Any) -> bool:
    """Whether a function, a method, or the class of what is called belongs to this package."""
    f = f.function if isinstance(f, Watched) else f
    f = getattr(f, "__func__", f)
    return (getattr(f, "__module__", None) or "").startswith(_OWN)


def is_strict(equation: Any, outside: bool) -> bool:
    """Whether an operation is computed strictly, within an operation that is or is not."""
    for name in scopes(equation):
        if name in (_STRICT, _STRUCTURED):
            return name == _STRICT
    return outside


def has_strict(jaxpr: Any, outside: bool) -> bool:
    """Whether operations of a jaxpr are computed strictly, or of a function within it."""
    for e in jaxpr.eqns:
        strict = is_strict(e, outside)
        if strict or any(has_strict(inner.jaxpr, strict) for inner in nested(e.params)):
            return True
    return False


def region_within(equation: Any) -> AbstractContextManager[Any]:
    """The region of the functions in an operation, for tracing what they compute without it."""
    for name in scopes(equation):
        if name in (_STRICT, _STRUCTURED):
            return jax.named_scope(name)
    return contextlib.nullcontext()

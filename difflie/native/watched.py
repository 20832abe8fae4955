"""Functions of users as arguments of what is compiled, anew after their changes."""

from __future__ import annotations

import contextlib
import types
import warnings
import weakref
from typing import Any, NamedTuple

import jax

from .closures import Classes, closed_over, is_library


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

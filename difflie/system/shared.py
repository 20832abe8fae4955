"""What several quantities need of one state, computed once for all of them.

Within `sharing(system)` a function marked by `shared` returns for the same arguments, the very
arrays, what it returned before. So the readings of many sensors need one pass along the tree, and
a program that is traced and compiled in a fraction of the time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from .kinematic_tree import Tree
from .system import System

Function = TypeVar("Function", bound=Callable[..., Any])
# The attribute of a tree with its results, by function and arguments: beside its fields, as it is
# of this object alone.
_RESULTS = "_shared_results"


@contextmanager
def sharing(system: System) -> Iterator[System]:
    """The system with a tree that shares the results of functions until the end of the block."""
    tree = Tree.of(system)
    if _RESULTS in vars(tree):
        yield tree.carried()
        return
    object.__setattr__(tree, _RESULTS, {})
    try:
        yield tree.carried()
    finally:
        object.__delattr__(tree, _RESULTS)


def shared(function: Function) -> Function:
    """A function of a tree, or of the system that carries it, whose results are shared."""

    @functools.wraps(function)
    def of_tree(owner: Any, *arguments: Any) -> Any:
        tree = Tree.of(owner) if isinstance(owner, System) else owner
        results = vars(tree).get(_RESULTS)
        if results is None:
            return function(owner, *arguments)
        key = function, *map(id, arguments)
        if key not in results:
            # With the arguments, whose identities are then not given to others.
            results[key] = arguments, function(owner, *arguments)
        return results[key][1]

    return of_tree  # pyright: ignore

"""Systems that carry their tree, so that what gets one need not make it again.

The tree belongs to one object: it is no field, and copies of a system, such as those with other
numbers, and what comes out of a pytree, carry none. So it never disagrees with the numbers.
"""

from __future__ import annotations

from typing import Any

from .system import System


def carrying(system: System, tree: Any) -> System:
    """The same system, with its tree."""
    made = object.__new__(type(system))
    vars(made).update(vars(system))
    object.__setattr__(made, "_carried", tree)
    return made


def carried_tree(system: System) -> Any:
    """The tree that a system carries; None if it carries none."""
    return getattr(system, "_carried", None)

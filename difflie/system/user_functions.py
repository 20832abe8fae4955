"""How functions that users write are called: laws of forces, controls, events, quantities.

Compiled programs hold what such a function closes over. `watched` ones are compiled anew when that
changes; see `native/closures.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax

from ..native import as_written, code_of
from ..native import watched as watched
from .system import System


def called(f: Callable[..., Any], *args: Any) -> Any:
    """f(*args), with numbers as jax has them: 0 times infinity is no number, and 0 - 0 is not -0.

    In algorithms on a machine the zeros of its structure are left out instead. A function of this
    package keeps that.
    """
    return as_written(f, *args)


def users_code(system: System, *others: Any) -> Any:
    """The methods of users' classes among the parts of a system and others, to be compared by.

    As a static argument of what is compiled; None where there are none.
    """
    return code_of(*system.couplings, *system.actuators, *system.constraints, *others)


def no_leaf(function: Any) -> Any:
    """A function as a pytree without leaves; a module of Equinox as it is."""
    pytree = isinstance(function, eqx.Module | jax.tree_util.Partial)
    made = function if pytree else watched(function)
    # A function of a package, which is not watched, would be a leaf.
    return jax.tree_util.Partial(made) if made is function and not pytree else made

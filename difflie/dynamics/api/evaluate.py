"""How an algorithm on a tree becomes a function of a system."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
from jax.core import Tracer

from ...system.arguments import checked
from ...system.kinematic_tree import Tree
from ...system.system import System
from ...system.validation import nearest

Index = str | int | jax.Array

# Once for each algorithm; jax compiles it once for each topology.
compiled: Callable[..., Callable[..., Any]] = functools.cache(jax.jit)


def evaluated(algorithm: Callable[..., Any], system: System, **arguments: Any) -> Any:
    """The result of algorithm(tree, *arguments), compiled; each argument is checked by its name.

    q (nq,); body, a name or an index; wrench (nb, 6) and frames (nv, 4, 4), which may be None; all
    others (nv,). Raises ValueError and TypeError as `checked` does.
    """
    checked(system)
    shapes = {
        "q": (system.nq,),
        "wrench": (len(system.body_names), 6),
        "frames": (system.nv, 4, 4),
    }
    values = []
    for name, value in arguments.items():
        if name == "body":
            values.append(body_index(system, value))
        elif value is None and name in ("wrench", "frames"):
            values.append(None)
        else:
            values += checked(system, **{name: (value, shapes.get(name, (system.nv,)))})
    return compiled(algorithm)(bare_tree(system), *values)


def body_index(system: System, body: Index) -> int | jax.Array:
    """The index () of a body in `body_names`, from its name or index; traced indices pass through.

    Raises ValueError for an unknown name.
    """
    names = system.body_names
    if isinstance(body, str):
        if body not in names:
            raise ValueError(f"{system.name}: no body is named {body!r}{nearest(body, names)}")
        return names.index(body)
    return body if isinstance(body, Tracer) else range(len(names))[body]


def bare_tree(system: System) -> Tree:
    """The `Tree` of bodies and joints alone; what is attached to them causes no new compilation."""
    if system.couplings or system.constraints or system.actuators or system.sensors:
        system = replace(system, couplings=(), constraints=(), actuators=(), sensors=())
    return Tree.of(system)

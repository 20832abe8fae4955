"""Couplings put on a system, and what is checked before."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..system.system import System
from ..system.validation import ModelError, nearest
from .couplings import Coupling, FollowerForce, PointForce

_NOT_NEGATIVE = ("stiffness", "rest_length", "damping")
_POSITIVE = {"smoothing": "m", "rate_smoothing": "m/s"}
_SHAPES = {**dict.fromkeys((*_NOT_NEGATIVE, *_POSITIVE), ()), "force": (3,)}


def attach(system: System, *couplings: Coupling) -> System:
    """The system with couplings (springs, dampers, forces at points) behind those it has.

    Their numbers take on the system's precision and are leaves like all others:
    `system.couplings[0].stiffness` is a scalar, `system.couplings[0].path.points` (n, 3). To take
    them off again: `dataclasses.replace(system, couplings=())`. Raises `ModelError` for an unknown
    body (with the nearest known one), a wrong shape, too few points, a number that is not finite, a
    negative stiffness, rest length or damping, a smoothing length that is not positive.
    """
    for k, coupling in enumerate(couplings, start=len(system.couplings)):
        if not isinstance(coupling, Coupling):
            raise ModelError(
                f"{system.name}: {coupling!r} cannot be attached; give springs, dampers or forces"
            )
        _check(system, coupling, f"{system.name}: coupling {k}, {coupling}")
    added = jax.tree.map(lambda a: jnp.asarray(a, system.dtype), couplings)
    return replace(system, couplings=(*system.couplings, *added))


def _check(system: System, coupling: Coupling, where: str) -> None:
    path, acts_at_one = coupling.path, isinstance(coupling, PointForce | FollowerForce)
    for name in path.bodies:
        if name is not None and name not in system.body_names:
            raise ModelError(
                f"{where}: no body is named {name!r}{nearest(name, system.body_names)}"
            )
    count = len(path.bodies)
    if count != 1 if acts_at_one else count < 2:
        needed = "one point" if acts_at_one else "two points or more"
        raise ModelError(f"{where}: its path has {count} points; give it {needed}")
    numbers = {"points": (path.points, (count, 3))}
    for name, shape in _SHAPES.items():
        if hasattr(coupling, name):
            numbers[name] = getattr(coupling, name), shape
    for name, (value, shape) in numbers.items():
        if jnp.shape(value) != shape:
            raise ModelError(f"{where}: {name} has shape {jnp.shape(value)}, needed is {shape}")
        if isinstance(value, Tracer):
            continue
        if not np.all(np.isfinite(value)):
            raise ModelError(f"{where}: {name} is {np.asarray(value).tolist()}; it must be finite")
        if name in _NOT_NEGATIVE and value < 0:
            raise ModelError(f"{where}: {name} is {float(value)}; it must not be negative")
        if name in _POSITIVE and value <= 0:
            exact = type(coupling).__name__.removeprefix("Smooth")
            raise ModelError(
                f"{where}: {name} is {float(value)} {_POSITIVE[name]}; it must be positive, or use "
                f"{exact}"
            )

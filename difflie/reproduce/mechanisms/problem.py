"""What a reference problem is: a machine, where it starts, and what is known of where it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from ...system import System


@dataclass(frozen=True)
class Quantity:
    """A number that is known at the end: its name with the unit, its value, and the scale () that
    errors are relative to, in the same unit."""

    name: str
    value: float
    scale: float = 1.0


@dataclass(frozen=True)
class Problem:
    """A machine from the state q (nq,), v (nv,), and what is known after `time` s.

    measured(q, v) (k,) computes the k quantities from a state. target: the error, relative to the
    scales, that a good method is to reach; steps: how many a method of order 4 may begin with.
    drive (nv,): a constant generalised force. conserved: whether energy less the work of the drive
    is kept; over energy_time s, where that is not the time of the quantities, and within
    energy_target J, if there is one. source: where the machine and the numbers come from.
    """

    name: str
    source: str
    system: System
    q: jax.Array
    v: jax.Array
    time: float
    quantities: tuple[Quantity, ...]
    measured: Callable[[jax.Array, jax.Array], Any]
    target: float
    steps: int
    drive: jax.Array | None = None
    conserved: bool = True
    energy_time: float | None = None
    energy_target: float | None = None


def quantities(names: str, values: Any, scales: Any = 1.0) -> tuple[Quantity, ...]:
    """Quantities of these names, separated by commas, values (k,), and scales (k,) or ()."""
    heads = [name.strip() for name in names.split(",")]
    values = [float(v) for v in values]
    each = (
        [float(s) for s in scales] if hasattr(scales, "__len__") else [float(scales)] * len(heads)
    )
    return tuple(Quantity(n, v, s) for n, v, s in zip(heads, values, each, strict=True))

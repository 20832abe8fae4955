"""What a reference problem is: a machine, where it starts, and what is known of where it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ...system import System
from ..papers import printed

# What is known of the problems without a closed form, by name and quantity.
KNOWN = printed(__file__)


@dataclass(frozen=True)
class Problem:
    """A machine from the state q (nq,), v (nv,), and what is known after `time` s.

    quantities: the k numbers that are known at the end, by name with the unit; scales (k,) or ():
    what errors are relative to, in the same units. measured(q, v) (k,) computes them from a state.
    target: the error, relative to the scales, that a good method is to reach; steps: how many a
    method of order 4 may begin with. drive (nv,): a constant generalised force. conserved: whether
    energy less the work of the drive is kept; over energy_time s, where that is not the time of the
    quantities, and within energy_target J, if there is one. source: where the machine and the
    numbers come from.
    """

    name: str
    source: str
    system: System
    q: jax.Array
    v: jax.Array
    time: float
    quantities: dict[str, float]
    measured: Callable[[jax.Array, jax.Array], Any]
    target: float
    steps: int
    scales: Any = 1.0
    drive: jax.Array | None = None
    conserved: bool = True
    energy_time: float | None = None
    energy_target: float | None = None

    @property
    def values(self) -> np.ndarray:
        """The quantities (k,)."""
        return np.array(list(self.quantities.values()), float)


def named(names: str, values: Any) -> dict[str, float]:
    """Quantities of these names, separated by commas, and values (k,)."""
    return dict(zip(names.split(", "), map(float, values), strict=True))

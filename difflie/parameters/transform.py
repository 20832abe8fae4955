"""A bijection between free numbers and one value that has a meaning.

A transform takes free numbers x, any real ones, to one value: the damping of a joint, the inertial
parameters of a body. Every x gives a value that a machine can have, and every such value has one x.
A transform of a manifold has its free numbers in the tangent space at the value at the start.
"""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax
import numpy as np

Shape = tuple[int, ...]
XYZ = ("_x", "_y", "_z")
GIVE = "give another `start`"


class Transform(eqx.Module):
    """A bijection of free numbers x (size,) and one value of the given shape.

    `start` is the value of that shape which the machine has at first; transforms of manifolds count
    from there, the others make no use of it.
    """

    @abc.abstractmethod
    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        """The value of the free numbers x (size,)."""

    @abc.abstractmethod
    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        """The free numbers (size,) of a value; not a number where `fault` finds one."""

    def components(self, value: jax.Array, start: jax.Array) -> jax.Array:
        """The numbers (size,) in the value's unit that name it: its entries, for most."""
        return value.ravel()

    def of_components(self, components: jax.Array, start: jax.Array) -> jax.Array:
        """The value with these components (size,), whether or not free numbers make it."""
        return components.reshape(start.shape)

    def labels(self, leaf: str, shape: Shape) -> tuple[str, ...]:
        """The names (size,) of the components, for a leaf with values of this shape."""
        if shape == (3,):
            return tuple(leaf + i for i in XYZ)
        return tuple(leaf + (str(list(i)) if i else "") for i in np.ndindex(shape))

    @property
    def limits(self) -> tuple[Any, Any]:
        """The bounds that components never reach, below and above: of their shape, or for all."""
        return -np.inf, np.inf

    def units(self, unit: str, shape: Shape) -> tuple[str, ...]:
        """The units (size,) of the components, for a leaf with values in this unit."""
        return (unit,) * len(self.labels("", shape))

    def suits(self, kind: str, shape: Shape) -> bool:
        """Whether it is one for values of this kind (see `difflie.number`) and shape."""
        return kind not in ("inertia", "inertial", "semidefinite")

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        """Why a concrete value has no free numbers, with the fix; "" if it has them.

        Where only the rounding of a file is amiss it has them.
        """
        return ""


def nearly_equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether arrays are the same in half of their digits."""
    return bool(np.abs(a - b).max() <= np.sqrt(np.finfo(a.dtype).eps) * np.abs(b).max())

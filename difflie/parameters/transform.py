"""The transform protocol: a bijection between free numbers and one physical value.

A transform maps unconstrained free numbers x to one value: the damping of a joint, the inertial
parameters of a body. Every x gives an admissible value, and every admissible value has one x. For a
manifold x is in the tangent space at the start.
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
    """A bijection between free numbers x (size,) and one value of a given shape.

    `start` is the initial value, of that shape; transforms of manifolds are relative to it, others
    ignore it.
    """

    @abc.abstractmethod
    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        """The value with the free numbers x (size,)."""

    @abc.abstractmethod
    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        """The free numbers (size,) of a value; NaN where `fault` reports one."""

    def components(self, value: jax.Array, start: jax.Array) -> jax.Array:
        """The components (size,) of the value, in its unit: its entries, for most."""
        return value.ravel()

    def of_components(self, components: jax.Array, start: jax.Array) -> jax.Array:
        """The value with these components (size,), admissible or not."""
        return components.reshape(start.shape)

    def labels(self, leaf: str, shape: Shape) -> tuple[str, ...]:
        """The names (size,) of the components, for a leaf with values of this shape."""
        if shape == (3,):
            return tuple(leaf + i for i in XYZ)
        return tuple(leaf + (str(list(i)) if i else "") for i in np.ndindex(shape))

    @property
    def limits(self) -> tuple[Any, Any]:
        """The lower and upper bounds, which components never reach: one each, or of their shape."""
        return -np.inf, np.inf

    @property
    def bounded(self) -> tuple[bool, bool]:
        """Whether each component nears a bound as its x goes to -infinity, and to infinity.

        It must do so exponentially: equal steps of x leave equal ratios of the distance.
        """
        return False, False

    def units(self, unit: str, shape: Shape) -> tuple[str, ...]:
        """The units (size,) of the components, for a leaf with values in this unit."""
        return (unit,) * len(self.labels("", shape))

    def suits(self, kind: str, shape: Shape) -> bool:
        """Whether it is for values of this kind (see `difflie.number`) and shape."""
        return kind not in ("inertia", "inertial", "semidefinite")

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        """Why a concrete value has no free numbers, with the fix; "" if it has them.

        Errors of the size of a file's rounding are accepted.
        """
        return ""


def nearly_equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays (...) agree in half of their digits."""
    return bool(np.abs(a - b).max() <= np.sqrt(np.finfo(a.dtype).eps) * np.abs(b).max())

"""Transforms of single numbers: unbounded, within bounds, or one factor of a value.

Positive numbers are exponentials: equal steps of x are equal ratios, whatever the unit and size of
the number. Softplus, the alternative, has a scale: 1 in whatever the unit is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .transform import GIVE, Shape, Transform, nearly_equal


class Identity(Transform):
    """The value itself."""

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return x.reshape(start.shape)

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return value.ravel()


class Above(Transform):
    """Values above a limit: lower + e^x, x (size,). `lower` in the value's unit, of its shape."""

    lower: Any = eqx.field(converter=np.asarray)

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return jnp.asarray(self.lower, x.dtype) + jnp.exp(x).reshape(start.shape)

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return jnp.log(value - jnp.asarray(self.lower, value.dtype)).ravel()

    @property
    def limits(self) -> tuple[Any, Any]:
        return self.lower, np.inf

    @property
    def bounded(self) -> tuple[bool, bool]:
        return True, False

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        if np.all(value > self.lower):
            return ""
        return f"is {value.tolist()}, and must be above {self.lower.tolist()}; {GIVE}"


class Below(Transform):
    """Values below a limit: upper - e^x, x (size,). `upper` in the value's unit, of its shape."""

    upper: Any = eqx.field(converter=np.asarray)

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return jnp.asarray(self.upper, x.dtype) - jnp.exp(x).reshape(start.shape)

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return jnp.log(jnp.asarray(self.upper, value.dtype) - value).ravel()

    @property
    def limits(self) -> tuple[Any, Any]:
        return -np.inf, self.upper

    @property
    def bounded(self) -> tuple[bool, bool]:
        return True, False

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        if np.all(value < self.upper):
            return ""
        return f"is {value.tolist()}, and must be below {self.upper.tolist()}; {GIVE}"


class Interval(Transform):
    """Values between limits: lower + (upper - lower) / (1 + e^-x), x (size,).

    lower and upper in the value's unit and of its shape, or numbers. Raises ValueError where lower
    is not below upper.
    """

    lower: Any = eqx.field(converter=np.asarray)
    upper: Any = eqx.field(converter=np.asarray)

    def __check_init__(self) -> None:
        if not np.all(self.lower < self.upper):
            raise ValueError(
                f"the lower bound {self.lower.tolist()} is not below the upper bound "
                f"{self.upper.tolist()}; exchange them, or fix the parameter"
            )

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        lower, upper = jnp.asarray(self.lower, x.dtype), jnp.asarray(self.upper, x.dtype)
        return lower + (upper - lower) * jax.nn.sigmoid(x).reshape(start.shape)

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        lower, upper = jnp.asarray(self.lower, value.dtype), jnp.asarray(self.upper, value.dtype)
        return (jnp.log(value - lower) - jnp.log(upper - value)).ravel()

    @property
    def limits(self) -> tuple[Any, Any]:
        return self.lower, self.upper

    @property
    def bounded(self) -> tuple[bool, bool]:
        return True, True

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        if np.all(value > self.lower) and np.all(value < self.upper):
            return ""
        return (
            f"is {value.tolist()}, and must lie between {self.lower.tolist()} and "
            f"{self.upper.tolist()}; {GIVE}"
        )


def positive() -> Above:
    """Positive numbers e^x: `Above` zero, in any unit; x (size,) is the logarithm."""
    return Above(0.0)


class Scaled(Transform):
    """The value at the start times e^x: one free number, whatever its shape; its component is e^x.

    It keeps physical consistency, such as of an inertia of known shape and unknown scale.
    """

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return jnp.exp(x[0]) * start

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return (jnp.log(jnp.sum(value * start)) - jnp.log(jnp.sum(start * start)))[None]

    def components(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return (jnp.sum(value * start) / jnp.sum(start * start))[None]

    def of_components(self, components: jax.Array, start: jax.Array) -> jax.Array:
        return components[0] * start

    def labels(self, leaf: str, shape: Shape) -> tuple[str, ...]:
        return (f"{leaf}_factor",)

    def units(self, unit: str, shape: Shape) -> tuple[str, ...]:
        return ("",)

    def suits(self, kind: str, shape: Shape) -> bool:
        return True

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        if not np.any(start):
            return f"is zero at the start, which no factor changes; {GIVE}"
        factor = float(np.sum(value * start) / np.sum(start * start))
        if factor > 0 and nearly_equal(value, factor * start):
            return ""
        return (
            f"is {value.tolist()}, which is no positive multiple of {start.tolist()}, the value at "
            f"the start; {GIVE}, or another transform than Scaled"
        )


def within(bounds: Iterable[Any]) -> Transform:
    """The transform for bounds (lower, upper), numbers or of the value's shape; None for no bound.

    Raises ValueError unless there are two of them and they are finite.
    """
    given = tuple(bounds)
    if len(given) != 2 or given == (None, None):
        raise ValueError(f"the bounds are {given}; give (lower, upper), None where there is none")
    if not all(b is None or np.all(np.isfinite(b)) for b in given):
        raise ValueError(f"the bounds {given} are not finite; give None where there is none")
    lower, upper = given
    if upper is None:
        return Above(lower)
    return Below(upper) if lower is None else Interval(lower, upper)

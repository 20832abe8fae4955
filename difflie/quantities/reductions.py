"""Reductions of quantities along a motion: a number for each entry, instead of a curve.

The loop of a simulation hands a reduction the values x_0, ..., x_n of its quantity at the starts
t_0, ..., t_{n-1} of the steps and at the end t_n, one after the other, so that no motion has to be
kept. Integrals over time are by the trapezoidal rule.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..system.system import System
from .quantity import Labels, Quantity, as_quantity


class Reduction(eqx.Module):
    """What is kept of a quantity along a motion; values have its shape (...).

    quantity: one of difflie.quantities, or a function f(system, q, v, u, t).
    """

    quantity: Quantity = eqx.field(converter=as_quantity)
    word: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """Its name in tables and figures."""
        return f"{self.word} {self.quantity.name}"

    def labels(self, system: System) -> Labels:
        """The name and the SI unit of each of its entries; empty if they are not known."""
        return self.quantity.labels(system)

    @property
    def unit(self) -> str:
        """The unit of a quantity whose entries have no names."""
        return getattr(self.quantity, "unit", "")

    @abc.abstractmethod
    def begin(self, t: Float[Array, ""], value: jax.Array) -> Any:
        """What is kept at the start, at t () in s, of a value (...).

        The same moment may come again.
        """

    @abc.abstractmethod
    def after(self, kept: Any, t: Float[Array, ""], value: jax.Array) -> Any:
        """What is kept after one more moment, at t () in s, with its value (...)."""

    @abc.abstractmethod
    def result(self, kept: Any) -> jax.Array:
        """The value (...) from what is kept at the end."""


class Final(Reduction):
    """The value of a quantity at the end, x_n, in its unit."""

    word = "final"

    def begin(self, t: Float[Array, ""], value: jax.Array) -> jax.Array:
        return value

    def after(self, kept: jax.Array, t: Float[Array, ""], value: jax.Array) -> jax.Array:
        return value

    def result(self, kept: jax.Array) -> jax.Array:
        return kept


class Peak(Final):
    """The largest magnitude of a quantity, max_k |x_k|, entry by entry, in its unit."""

    word = "peak"

    def begin(self, t: Float[Array, ""], value: jax.Array) -> jax.Array:
        return jnp.abs(value)

    def after(self, kept: jax.Array, t: Float[Array, ""], value: jax.Array) -> jax.Array:
        return jnp.maximum(kept, jnp.abs(value))


class Greatest(Final):
    """The greatest value of a quantity, max_k x_k, entry by entry, in its unit."""

    word = "greatest"

    def after(self, kept: jax.Array, t: Float[Array, ""], value: jax.Array) -> jax.Array:
        return jnp.maximum(kept, value)


class Least(Final):
    """The least value of a quantity, min_k x_k, entry by entry, in its unit."""

    word = "least"

    def after(self, kept: jax.Array, t: Float[Array, ""], value: jax.Array) -> jax.Array:
        return jnp.minimum(kept, value)


class Drift(Reduction):
    """The largest departure of a quantity from its start, max_k |x_k - x_0|, in its unit.

    Entry by entry.
    """

    word = "drift of"

    def begin(self, t: Float[Array, ""], value: jax.Array) -> Any:
        return value, jnp.zeros_like(value)

    def after(self, kept: Any, t: Float[Array, ""], value: jax.Array) -> Any:
        first, largest = kept
        return first, jnp.maximum(largest, jnp.abs(value - first))

    def result(self, kept: Any) -> jax.Array:
        return kept[1]


class Mean(Reduction):
    """The mean of a quantity over time, 1/T int x dt; its value where no time passes.

    Entry by entry, in its unit.
    """

    word = "mean"

    def begin(self, t: Float[Array, ""], value: jax.Array) -> Any:
        x = self._integrand(value)
        return t, t, x, jnp.zeros_like(x)

    def after(self, kept: Any, t: Float[Array, ""], value: jax.Array) -> Any:
        first, before, last, integral = kept
        x = self._integrand(value)
        return first, t, x, integral + (t - before) * (x + last) / 2

    def result(self, kept: Any) -> jax.Array:
        first, t, last, integral = kept
        passed = t > first
        return jnp.where(passed, integral / jnp.where(passed, t - first, 1), last)

    def _integrand(self, value: jax.Array) -> jax.Array:
        return value


class RootMeanSquare(Mean):
    """The root of the mean square of a quantity over time, sqrt(1/T int x^2 dt), in its unit.

    Entry by entry.
    """

    word = "RMS of"

    def result(self, kept: Any) -> jax.Array:
        square = super().result(kept)
        # The root has no derivative at zero; of what is zero all along it is zero.
        return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)

    def _integrand(self, value: jax.Array) -> jax.Array:
        return value * value


class TimeTo(Reduction):
    """The time in s at which each entry of a quantity first comes to zero or below.

    Infinite for never.

    Between two moments the quantity is taken as linear in time, so that the error falls with the
    square of the step. What is not positive at the start has come at the start.
    """

    word = "time to"

    def labels(self, system: System) -> Labels:
        return tuple((name, "s") for name, _ in super().labels(system))

    @property
    def unit(self) -> str:
        return "s"

    def begin(self, t: Float[Array, ""], value: jax.Array) -> Any:
        return t, value, jnp.where(value > 0, jnp.inf, t)

    def after(self, kept: Any, t: Float[Array, ""], value: jax.Array) -> Any:
        before, last, when = kept
        comes = (last > 0) & (value <= 0) & (when == jnp.inf)
        fallen = jnp.where(comes, last - value, 1)
        return t, value, jnp.where(comes, before + (t - before) * last / fallen, when)

    def result(self, kept: Any) -> jax.Array:
        return kept[2]

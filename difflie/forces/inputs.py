"""Sampled inputs: controls and wrenches given as samples over time.

Samples change on the step grid, so that an input jumps exactly where a step begins.
"""

from __future__ import annotations

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class SampledInput(eqx.Module):
    """Samples: values (n, ...), one for every so many steps, from the start of the motion.

    In the units of the control or wrench. Raises ValueError for `every` below 1.
    """

    values: jax.Array
    every: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        if self.every < 1:
            raise ValueError(f"{type(self).__name__}: every is {self.every}; it must be 1 or more")

    @abc.abstractmethod
    def needed(self, steps: int) -> int:
        """The number of samples that a simulation of so many steps needs."""

    @abc.abstractmethod
    def rows(
        self, steps: int
    ) -> tuple[Float[Array, " {steps} *width"], Float[Array, " {steps} *width"]]:
        """The values (steps, ...) at the start of every step, and their slopes per step."""


class ZeroOrderHold(SampledInput):
    """Each of the values (n, ...) is held for so many steps, as by a digital controller.

    values (n, nu) of a control or (n, nb, 6) of wrenches, in their units; every: how many steps.
    `simulate` needs n = steps / every, rounded up, or a longer list.
    """

    def needed(self, steps: int) -> int:
        return -(-steps // self.every)

    def rows(
        self, steps: int
    ) -> tuple[Float[Array, " {steps} *width"], Float[Array, " {steps} *width"]]:
        held = jnp.repeat(self.values, self.every, axis=0)[:steps]
        return held, jnp.zeros_like(held)


class FirstOrderHold(SampledInput):
    """Linear interpolation between values (n, ...), so many steps apart.

    values (n, nu) of a control or (n, nb, 6) of wrenches, in their units; every: how many steps.
    `simulate` needs n = steps / every, rounded up, and one more, or a longer list.
    """

    def needed(self, steps: int) -> int:
        return -(-steps // self.every) + 1

    def rows(
        self, steps: int
    ) -> tuple[Float[Array, " {steps} *width"], Float[Array, " {steps} *width"]]:
        slopes = jnp.diff(self.values, axis=0) / self.every
        within = jnp.arange(steps, dtype=self.values.dtype) % self.every
        within = within.reshape((-1,) + (1,) * (self.values.ndim - 1))
        slope = jnp.repeat(slopes, self.every, axis=0)[:steps]
        return jnp.repeat(self.values[:-1], self.every, axis=0)[:steps] + within * slope, slope

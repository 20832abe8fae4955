"""Robust losses of residuals in standard deviations, which bound the effect of outliers."""

from __future__ import annotations

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class Loss(eqx.Module):
    """A loss rho(r) of residuals r (k,) in standard deviations: r^2 near zero, less far from it."""

    @abc.abstractmethod
    def __call__(self, r: Float[Array, " k"]) -> Float[Array, " k"]:
        """r times sqrt(rho(r) / r^2) (k,), whose square is the loss: least squares minimise it."""

    def influence(self, r: Float[Array, " k"]) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
        """psi = rho'(r) / 2 (k,), which is r near zero, and its derivative (k,)."""
        psi = jax.grad(lambda r: jnp.sum(self(r) ** 2) / 2)
        return jax.jvp(psi, (r,), (jnp.ones_like(r),))


class Squares(Loss):
    """rho = r^2: right where errors are Gaussian."""

    def __call__(self, r: Float[Array, " k"]) -> Float[Array, " k"]:
        return r


class _Limited(Loss):
    limit: float = eqx.field(static=True, default=2.0)

    def __check_init__(self) -> None:
        if not 0 < self.limit < np.inf:
            raise ValueError(
                f"{type(self).__name__}: the limit is {self.limit}; it must be positive and finite"
            )


class Huber(_Limited):
    """rho = r^2 up to the limit c, 2 c |r| - c^2 beyond. Huber 1964.

    limit c (): in standard deviations, without unit.
    """

    def __call__(self, r: Float[Array, " k"]) -> Float[Array, " k"]:
        c = self.limit
        size = jnp.abs(r)
        far = size > c
        return jnp.where(far, jnp.sign(r) * jnp.sqrt(2 * c * jnp.where(far, size, c) - c * c), r)


class Cauchy(_Limited):
    """rho = c^2 log(1 + (r / c)^2): residuals far beyond the limit c hardly count.

    limit c (): in standard deviations, without unit.
    """

    def __call__(self, r: Float[Array, " k"]) -> Float[Array, " k"]:
        c = self.limit
        square = (r / c) ** 2
        near = square < 1e-4
        # The series of log(1 + x) / x near zero, where the quotient has no derivative.
        series = 1 - square / 2 + square**2 / 3
        ratio = jnp.log1p(jnp.where(near, 1, square)) / jnp.where(near, 1, square)
        return r * jnp.sqrt(jnp.where(near, series, ratio))

"""Forward mode alone."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ... import native
from .adjoint import Adjoint, Steps, rows_of_steps


class Forward(Adjoint):
    """Forward mode, as by `jax.jvp` and `jax.jacfwd`: for derivatives along few parameters.

    No states are kept: memory does not grow with the number of steps; time grows with the number of
    directions. Reverse mode raises a TypeError.
    """

    def loop(self, steps: Steps, start: Any, inputs: Any, shape: tuple[int, int]) -> Any:
        found = rows_of_steps(steps.step, steps, start, inputs, shape, forward_only=True)
        return jax.tree.map(_forward_only, found)


def _forward_only(x: jax.Array) -> jax.Array:
    return _identity(x) if jnp.issubdtype(x.dtype, jnp.inexact) else x


@jax.custom_jvp
def _identity(x: jax.Array) -> jax.Array:
    return x


@_identity.defjvp
def _(primals: Any, tangents: Any) -> tuple[Any, Any]:
    return primals[0], _linear(tangents[0])


def _transpose(cotangent: Any, x: Any) -> Any:
    raise TypeError(
        "simulate: adjoint=Forward() has no reverse mode; differentiate with jax.jvp or "
        "jax.jacfwd, or take Direct() or RecursiveCheckpoint()"
    )


_linear = native.linear_identity("forward_tangent", _transpose)

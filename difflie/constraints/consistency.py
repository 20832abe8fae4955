"""Derivatives of solutions of redundant equations, NaN where the equations become inconsistent.

Redundant equations have a solution as long as they are consistent. A change of the machine that
makes them inconsistent has no derivative, but least squares would return a number all the same. The
residual of the linearized equations detects this.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


@jax.custom_jvp
def preserving_constraints(
    value: Float[Array, " n"], error: Float[Array, " m"], scale: Float[Array, ""]
) -> Float[Array, " n"]:
    """The value (n,), whose derivative is NaN where that of the error (m,) is not zero.

    error: the residual of the equations that determine the value. scale (): by how much an error
    changes with the value. In forward mode only: reverse mode is that of the value.
    """
    return value


@preserving_constraints.defjvp
def _(primals: tuple, tangents: tuple) -> tuple[jax.Array, jax.Array]:
    value, _, scale = primals
    change, left, _ = tangents
    n, eps = len(value), float(jnp.finfo(value.dtype).eps)

    # Solving with the identity, for what is done in a solution is left out of reverse mode.
    def checked(_: object, both: jax.Array) -> jax.Array:
        size = jnp.max(jnp.abs(both[:n]), initial=0)
        # Below the second of them is the rounding of changes of the size of one.
        tolerance = eps**0.4 * scale * size + eps**0.6
        kept = jnp.max(jnp.abs(both[n:]), initial=0) <= tolerance
        return jnp.where(kept, both, jnp.nan)

    both = jax.lax.custom_linear_solve(
        lambda x: x, jnp.concatenate((change, left)), checked, lambda _, x: x
    )
    return value, both[:n]

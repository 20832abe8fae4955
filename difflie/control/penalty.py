"""Bounds as an augmented Lagrangian has them (Rockafellar 1974), equalities among them.

For an entry c with bounds [a, b], a multiplier y and a weight w,

    penalty = (y'^2 - y^2) / 2 w,    y' = w (s - clip(s, a, b)),    s = c + y / w,

and y' is its derivative by c, and the next multiplier.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .discretization import Discretization
from .model import Model


class Bounds(NamedTuple):
    """lower, upper (N, m) of the bounded entries along the motion; end_lower, end_upper (m,)."""

    lower: jax.Array
    upper: jax.Array
    end_lower: jax.Array
    end_upper: jax.Array

    @staticmethod
    def of(knots: Discretization) -> Bounds:
        """Those of a problem; the state at the first knot, which is given, has none."""
        with_controls = _pair(knots, knots.bounds, False)
        states = _pair(knots, knots.state_bounds, True)
        final = _pair(knots, knots.final_bounds, True)
        along, first = [], jnp.arange(knots.steps)[:, None] == 0
        for controlled, state, none in zip(with_controls, states, (-jnp.inf, jnp.inf), strict=True):
            rows = jnp.where(first, jnp.asarray(none, state.dtype), state)
            controlled = jnp.broadcast_to(controlled, (knots.steps, *controlled.shape))
            along.append(jnp.concatenate((controlled, rows), axis=1))
        ends = [jnp.concatenate(both) for both in zip(states, final, strict=True)]
        return Bounds(*along, *ends)


def _pair(knots: Discretization, bounds: tuple, state_only: bool) -> tuple[jax.Array, jax.Array]:
    """The bounds (m,) of all entries."""
    dtype = knots.tree.dtype
    t = knots.tree.topology
    q, v = jnp.zeros(t.nq, dtype), jnp.zeros(t.nv, dtype)
    u = None if state_only else jnp.zeros(knots.nu, dtype)
    lower, upper = [jnp.zeros(0, dtype)], [jnp.zeros(0, dtype)]
    for bound in bounds:
        # Traced: no value has all zeros for a configuration, as a quaternion has not.
        value = jax.eval_shape(partial(bound.value, knots.system), q, v, u, knots.dt)
        lower.append(jnp.broadcast_to(bound.lower, value.shape).astype(dtype))
        upper.append(jnp.broadcast_to(bound.upper, value.shape).astype(dtype))
    return jnp.concatenate(lower), jnp.concatenate(upper)


class Penalty(NamedTuple):
    """along (N, m), end (m,): the multipliers; weight (): of the squares."""

    along: jax.Array
    end: jax.Array
    weight: jax.Array
    bounds: Bounds

    def after(self, model: Model) -> tuple[jax.Array, jax.Array]:
        """The next multipliers (N, m), (m,)."""
        b = self.bounds
        along = beyond(self.weight, model.along.bounded, self.along, b.lower, b.upper)
        return along, beyond(self.weight, model.end.bounded, self.end, b.end_lower, b.end_upper)

    def paid(self, model: Model) -> jax.Array:
        """The penalty () of all bounds."""
        b = self.bounds
        along = penalised(self.weight, model.along.bounded, self.along, b.lower, b.upper)
        return along + penalised(self.weight, model.end.bounded, self.end, b.end_lower, b.end_upper)


def violation(bounds: Bounds, model: Model) -> tuple[jax.Array, jax.Array]:
    """By how much bounds are broken (N, m) and, at the end, (m,)."""
    along, end = model.along.bounded, model.end.bounded
    return (
        along - jnp.clip(along, bounds.lower, bounds.upper),
        end - jnp.clip(end, bounds.end_lower, bounds.end_upper),
    )


def beyond(weight: Any, value: Any, multiplier: Any, lower: Any, upper: Any) -> jax.Array:
    """The next multipliers: weight times by how much value + multiplier / weight is out."""
    shifted = value + multiplier / weight
    return weight * (shifted - jnp.clip(shifted, lower, upper))


def penalised(weight: Any, value: Any, multiplier: Any, lower: Any, upper: Any) -> jax.Array:
    """The penalty () of bounded entries."""
    after = beyond(weight, value, multiplier, lower, upper)
    return jnp.sum(after**2 - multiplier**2) / (2 * weight)

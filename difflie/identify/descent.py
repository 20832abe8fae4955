"""First-order descent, with any optimiser of optax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from .minimiser import Minimiser, Point


class Descent(Minimiser):
    """For thousands of unknowns: many steps, each with one gradient in reverse mode.

    optimiser: such as optax.adam(1e-2) or optax.lbfgs(); it steps in the free numbers x (n,), which
    are logarithms for positive values, so that learning rates have no unit. Slow for strongly
    correlated parameters: use `LevenbergMarquardt` for these.
    """

    optimiser: optax.GradientTransformation = eqx.field(static=True)
    max_steps: int = eqx.field(static=True, default=1000, kw_only=True)
    tolerance: float = eqx.field(static=True, default=1e-6, kw_only=True)
    patience: int = eqx.field(static=True, default=50, kw_only=True)

    def begin(self, residual: Callable, unknown: Any, args: Any) -> Any:
        return unknown, self.optimiser.init(unknown)

    def step(self, residual: Callable, state: Any, args: Any) -> tuple[Point, Any]:
        cost, following = _stepped(self, residual, state, args)
        return Point(state[0], float(cost), True), following


@eqx.filter_jit
def _stepped(method, residual, state, args):
    unknown, inner = state

    def half_square(unknown):
        return jnp.sum(residual(unknown, args) ** 2) / 2

    cost, slope = jax.value_and_grad(half_square)(unknown)
    update, inner = optax.with_extra_args_support(method.optimiser).update(
        slope, inner, unknown, value=cost, grad=slope, value_fn=half_square
    )
    return cost, (optax.apply_updates(unknown, update), inner)

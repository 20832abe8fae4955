"""Munthe-Kaas methods that choose their own steps, by an embedded pair and a PI controller.

Both members of the pair live in one chart, so that their difference

    e = h sum_i (b_i - b_hat_i) f_i

estimates the local error as a tangent, without a logarithm. A sub-step is accepted where the root
mean square of e / (atol + rtol magnitude) is at most 1, and the next one is

    h' = 0.9 h err^(-0.7/k) err_before^(0.4/k),     k = order of the companion + 1

between a fifth and five times h. Gustafsson 1991; Hairer and Wanner 1996, IV.2; Munthe-Kaas 1999.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ..groups import Manifold
from . import tableaux
from .method import (
    Scalar,
    Stage,
    State,
    TableauMethod,
    VectorField,
    chosen,
    combination,
    in_precision_of,
)
from .munthe_kaas import MuntheKaas, chart_rates
from .tableau import EmbeddedTableau

_BLOCK = 8


class EmbeddedMuntheKaas(MuntheKaas, TableauMethod):
    """A Munthe-Kaas method that divides each step h into as many sub-steps as its tolerance needs.

    rtol: the relative tolerance of a sub-step, and the absolute one of an attitude in rad. atol:
    the absolute tolerance, in the units of each coordinate and velocity. substeps: the maximal
    number of attempts within one step h; a step that needs more is not solved. Raises ValueError
    for tolerances outside (0, 1) and for substeps below 1. coordinates: as of `MuntheKaas`.

    The lengths of the sub-steps are not differentiated: derivatives are exact for the sub-steps
    taken, in forward and reverse mode. Sub-steps end at each step h, so inputs that jump on the
    time grid, and states saved there, cost no accuracy. The sub-step length is kept for the next
    step.
    """

    tableau: EmbeddedTableau = eqx.field(static=True)
    rtol: float = eqx.field(static=True, default=1e-6)
    atol: float = eqx.field(static=True, default=1e-9)
    substeps: int = eqx.field(static=True, default=64)

    @property
    def stability(self) -> None:
        """None: the sub-steps are as short as the tolerance needs."""
        return None

    def __check_init__(self):
        for name in ("rtol", "atol"):
            value = getattr(self, name)
            if not 0 < value < 1:
                raise ValueError(f"{self.name}: {name} is {value}; it must lie between 0 and 1")
        if self.substeps < 1:
            raise ValueError(f"{self.name}: substeps is {self.substeps}; it must be 1 or more")

    def refined(self, n: int) -> EmbeddedMuntheKaas:
        """The method with tolerances divided by n^2: its error is about proportional to them."""
        return replace(self, rtol=self.rtol / n**2, atol=self.atol / n**2)

    def init(self, problem: VectorField, t: Scalar, y: Any, h: Scalar) -> State:
        """The memory: the length of the first attempt, the whole step, and the last error."""
        (h,) = in_precision_of(y, h)
        return State(y, (jax.lax.stop_gradient(h), jnp.ones_like(h)))

    def step(self, problem: VectorField, t: Scalar, state: State, h: Scalar) -> tuple[State, Any]:
        manifold, (y, memory) = problem.manifold, state
        t, h = in_precision_of(y, t, h)

        def attempt(state: tuple) -> tuple:
            remaining, y, (length, before) = state
            step = _landing(length, remaining)
            begins = remaining == h

            def field(t: jax.Array, y: Any, at_start: jax.Array) -> Any:
                return problem.rate(t, y, at_start & begins)

            proposal, estimate = self.attempt(manifold, field, t + h - remaining, y, step)
            error = self._error(manifold, y, proposal, estimate)
            accepted = error <= 1
            error = jnp.clip(jnp.where(jnp.isnan(error), jnp.inf, error), 1e-10, 1e10)
            next_length = jax.lax.stop_gradient(step) * self._factor(error, before, accepted)
            # A sub-step shortened to end on the grid does not limit the next one.
            landed = accepted & (jax.lax.stop_gradient(step) < length)
            next_length = jnp.where(landed, jnp.maximum(next_length, length), next_length)
            left = jnp.where(step < remaining, remaining - step, 0)
            memory = next_length, jnp.where(accepted, error, before)
            return (*chosen(accepted, (left, proposal), (remaining, y)), memory)

        def unfinished(state: tuple) -> jax.Array:
            return state[0] > 0

        left, y, memory = _bounded_while(unfinished, attempt, (h, y, memory), self.substeps)
        return State(y, memory), left == 0

    def attempt(
        self, manifold: Manifold, field: Stage, t: jax.Array, y: Any, h: jax.Array
    ) -> tuple[Any, Any]:
        """The point at t + h, and the error estimated by the companion, a tangent."""
        manifold = self.local(manifold)
        slopes = chart_rates(self.tableau, manifold, field, t, y, h)
        b = jnp.asarray(self.tableau.b, h.dtype)
        difference = b - jnp.asarray(self.tableau.b_hat, h.dtype)
        end = manifold.retract(y, combination(h, b, slopes))
        return end, combination(h, difference, slopes)

    def _error(self, manifold: Manifold, y: Any, end: Any, estimate: Any) -> jax.Array:
        y, end, estimate = jax.lax.stop_gradient((y, end, estimate))
        sizes = jax.tree.map(jnp.maximum, manifold.magnitude(y), manifold.magnitude(end))
        ratios = jax.tree.map(lambda e, s: e / (self.atol + self.rtol * s), estimate, sizes)
        entries = jnp.concatenate([r.ravel() for r in jax.tree.leaves(ratios)])
        # The largest entry is factored out, because squares of large ratios overflow in f32.
        largest = jnp.maximum(jnp.max(jnp.abs(entries), initial=0), 1e-10)
        return largest * jnp.sqrt(jnp.mean((entries / largest) ** 2))

    def _factor(self, error: jax.Array, before: jax.Array, accepted: jax.Array) -> jax.Array:
        k = self.tableau.order_hat + 1
        after_success = 0.9 * error ** (-0.7 / k) * before ** (0.4 / k)
        after_failure = jnp.minimum(0.9 * error ** (-1 / k), 0.9)
        return jnp.clip(jnp.where(accepted, after_success, after_failure), 0.2, 5.0)


class BogackiShampine32(EmbeddedMuntheKaas):
    """Order 3, with steps chosen by a companion of order 2. Bogacki and Shampine 1989.

    Arguments as of `EmbeddedMuntheKaas`.
    """

    tableau: ClassVar[EmbeddedTableau] = tableaux.BOGACKI_SHAMPINE32


class RungeKutta43(EmbeddedMuntheKaas):
    """Order 4, with steps chosen by a companion of order 3: RKMK4 and one stage more.

    Arguments as of `EmbeddedMuntheKaas`.
    """

    tableau: ClassVar[EmbeddedTableau] = tableaux.RK43


class DormandPrince54(EmbeddedMuntheKaas):
    """Order 5, with steps chosen by a companion of order 4. Dormand and Prince 1980.

    Arguments as of `EmbeddedMuntheKaas`.
    """

    tableau: ClassVar[EmbeddedTableau] = tableaux.DORMAND_PRINCE54


def _landing(length: jax.Array, remaining: jax.Array) -> jax.Array:
    """A step of about `length` that ends at `remaining`, or leaves room for a full one."""
    half = jnp.where(2 * length > remaining, remaining / 2, length)
    return jnp.where(length >= remaining, remaining, half)


def _bounded_while(
    unfinished: Callable[[Any], jax.Array], body: Callable[[Any], Any], state: Any, limit: int
) -> Any:
    """body, while unfinished(state), at most `limit` times; differentiable in both modes.

    Two nested loops, so that the unused part of the limit is skipped in blocks.
    """

    def guarded(body: Callable[[Any], Any]) -> Callable[[Any, None], tuple[Any, None]]:
        return lambda state, _: (
            jax.lax.cond(unfinished(state), body, lambda state: state, state),
            None,
        )

    def times(count: int, body: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda state: jax.lax.scan(guarded(body), state, None, length=count)[0]

    blocks, remainder = divmod(limit, _BLOCK)
    state = times(blocks, times(_BLOCK, body))(state)
    return times(remainder, body)(state) if remainder else state

"""The generalised-alpha method on a Lie group.

    q' = q . exp(h v + h^2 ((1/2 - beta) a + beta a')),    v' = v + h ((1 - gamma) a + gamma a')
    (1 - alpha_m) a' + alpha_m a = (1 - alpha_f) dv'/dt + alpha_f dv/dt

with the dynamics and the constraints at q', v', dv'/dt. The auxiliary a is the acceleration at
t + h (alpha_m - alpha_f), up to O(h^2). Bruels and Cardona 2010; Arnold, Bruels and Cardona 2015.
"""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from .descriptor import DescriptorMethod, DescriptorState, DescriptorSystem, End, across, expanded
from .method import Scalar


class GeneralizedAlpha(DescriptorMethod):
    """Order 2, implicit: positions, velocities and multipliers, with numerical dissipation.

    rho (), without unit: the spectral radius for h -> infinity, from 1, without dissipation, to 0,
    where motions too fast for the step vanish after one step. Position and velocity constraints are
    kept, with index=3 position constraints only. At the start a, and in index 3 the velocity, are
    shifted to the smooth numerical solution; otherwise the first multipliers would be of first
    order only. Where a step is too long for the expansion that this takes, as with strong damping,
    the first step is one of implicit Euler. With rho near 1 errors of multipliers decay like rho^n.
    Raises ValueError for rho outside [0, 1].
    """

    order: ClassVar[int] = 2

    rho: float = eqx.field(default=0.8, static=True)
    index: int = eqx.field(default=2, static=True)

    def __check_init__(self) -> None:
        super().__check_init__()
        if not 0 <= self.rho <= 1:
            raise ValueError(f"GeneralizedAlpha: rho is {self.rho}; it must be between 0 and 1")

    @property
    def coefficients(self) -> tuple[float, float, float, float]:
        """alpha_m, alpha_f, beta, gamma (Chung and Hulbert 1993)."""
        alpha_m, alpha_f = (2 * self.rho - 1) / (self.rho + 1), self.rho / (self.rho + 1)
        gamma = 0.5 + alpha_f - alpha_m
        return alpha_m, alpha_f, (gamma + 0.5) ** 2 / 4, gamma

    def init(
        self, problem: DescriptorSystem, t: Scalar, y: tuple[jax.Array, jax.Array], h: Scalar
    ) -> DescriptorState:
        q, v = y
        alpha_m, alpha_f, beta, _ = self.coefficients
        begin, ahead = expanded(problem, t, q, v, h), alpha_m - alpha_f
        a = begin.acceleration + h * ahead * begin.jerk
        if self.index == 3:
            missed = (1 / 6 - beta - ahead / 2) * begin.jerk + begin.bracket / 12
            v = v + h**2 * across(problem, q, missed)
        return DescriptorState(q, v, begin.acceleration, begin.multipliers, (a, begin.stiff))

    def step(
        self, problem: DescriptorSystem, t: Scalar, state: DescriptorState, h: Scalar
    ) -> tuple[DescriptorState, Bool[Array, ""]]:
        alpha_m, alpha_f, beta, gamma = self.coefficients
        # All times h^2, the unknown u = h (v' - v) too.
        memory, stiff = state.memory
        a, rate, euler = h**2 * memory, h**2 * state.acceleration, stiff > 0

        def end(u: jax.Array, correction: jax.Array) -> End:
            a1 = jnp.where(euler, u, (u - (1 - gamma) * a) / gamma)
            moved = jnp.where(euler, u, (0.5 - beta) * a + beta * a1)
            mean = ((1 - alpha_m) * a1 + alpha_m * a - alpha_f * rate) / (1 - alpha_f)
            return End(
                h * state.v + moved + correction,
                state.v + u / h,
                jnp.where(euler, u, mean),
                (a1 / h**2, jnp.zeros_like(stiff)),
            )

        return self.solved(problem, t, state, h, end, guess=a)

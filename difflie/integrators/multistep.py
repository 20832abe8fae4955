"""Methods in descriptor form that remember steps: generalised alpha and backward differences.

The generalised-alpha method on a Lie group.

    q' = q . exp(h v + h^2 ((1/2 - beta) a + beta a')),    v' = v + h ((1 - gamma) a + gamma a')
    (1 - alpha_m) a' + alpha_m a = (1 - alpha_f) dv'/dt + alpha_f dv/dt

with the dynamics and the constraints at q', v', dv'/dt. The auxiliary a is the acceleration at t +
h (alpha_m - alpha_f), up to O(h^2). Bruels and Cardona 2010; Arnold, Bruels and Cardona 2015.

Backward differences on a Lie group, with one and two steps.

    q' = q . exp(h D_n),    v' = sum_i gamma_i D_{n-i},    h dv'/dt = sum_i alpha_i v_{n+1-i}

with the dynamics and the constraints at the end of the step. In index 2 the correction of positions
is part of h D_n, but not of the velocity. Up to two steps need no commutators. Wieloch and Arnold
2021.
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

    index: as of `DescriptorMethod`. rho (), without unit: the spectral radius for h -> infinity,
    from 1, without dissipation, to 0, where motions too fast for the step vanish after one step.
    Position and velocity constraints are kept, with index=3 position constraints only. At the start
    a, and in index 3 the velocity, are shifted to the smooth numerical solution; otherwise the
    first multipliers would be of first order only. Where a step is too long for the expansion that
    this takes, as with strong damping, the first step is one of implicit Euler. With rho near 1
    errors of multipliers decay like rho^n. Raises ValueError for rho outside [0, 1].
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


class BDF1(DescriptorMethod):
    """Order 1, implicit Euler: v' = D, h dv'/dt = v' - v. It dissipates strongly.

    index: as of `DescriptorMethod`. D (nv,) is the rate with q' = q . exp(h D).
    """

    order: ClassVar[int] = 1

    def init(
        self, problem: DescriptorSystem, t: Scalar, y: tuple[jax.Array, jax.Array], h: Scalar
    ) -> DescriptorState:
        q, v = y
        a, multipliers = problem.acceleration(t, q, v)
        if self.index == 3:
            v = v - h / 2 * across(problem, q, a)
        return DescriptorState(q, v, a, multipliers, None)

    def step(
        self, problem: DescriptorSystem, t: Scalar, state: DescriptorState, h: Scalar
    ) -> tuple[DescriptorState, Bool[Array, ""]]:
        def end(u: jax.Array, correction: jax.Array) -> End:
            return End(h * state.v + u + correction, state.v + u / h, u, None)

        return self.solved(problem, t, state, h, end, guess=h**2 * state.acceleration)


class BDF2(DescriptorMethod):
    """Order 2, implicit: v' = (3 D_n - D_{n-1}) / 2, h dv'/dt = 3/2 v' - 2 v + 1/2 v_{n-1}.

    index: as of `DescriptorMethod`; D as of `BDF1`. The step before the first one is taken from the
    Taylor expansion of the motion. Where a step is too long for that, as with strong damping, the
    first step is one of implicit Euler. In index 3 the initial velocities are shifted to the smooth
    numerical solution; otherwise the first multipliers would be of first order only.
    """

    order: ClassVar[int] = 2

    def init(
        self, problem: DescriptorSystem, t: Scalar, y: tuple[jax.Array, jax.Array], h: Scalar
    ) -> DescriptorState:
        q, v = y
        begin = expanded(problem, t, q, v, h)
        a, jerk, bracket = begin.acceleration, begin.jerk, begin.bracket
        increment = v - h / 2 * a + h**2 * (jerk / 6 + bracket / 12)
        before = v - h * a + h**2 / 2 * jerk
        if self.index == 3:
            missed = h**2 * across(problem, q, bracket / 12 - jerk / 3)
            v, before = v + missed, before + missed
        past = (jnp.where(begin.stiff > 0, v, x) for x in (increment, before))
        return DescriptorState(q, v, a, begin.multipliers, (*past, begin.stiff))

    def step(
        self, problem: DescriptorSystem, t: Scalar, state: DescriptorState, h: Scalar
    ) -> tuple[DescriptorState, Bool[Array, ""]]:
        v, (increment, before, euler) = state.v, state.memory
        # 1 for two steps, 0 for one.
        two = 1 - euler

        def end(u: jax.Array, correction: jax.Array) -> End:
            # D_n = D_{n-1} + u / h.
            displacement = h * increment + u + correction
            v1 = increment + (1 + 0.5 * two) * u / h
            a1 = h * ((1 + 0.5 * two) * v1 - (1 + two) * v + 0.5 * two * before)
            return End(displacement, v1, a1, (displacement / h, v, jnp.zeros_like(v)))

        guess = h * (v - increment) + h**2 / 2 * state.acceleration
        return self.solved(problem, t, state, h, end, guess)

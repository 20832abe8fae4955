"""Backward differences on a Lie group, with one and two steps.

    q' = q . exp(h D_n),    v' = sum_i gamma_i D_{n-i},    h dv'/dt = sum_i alpha_i v_{n+1-i}

with the dynamics and the constraints at the end of the step. In index 2 the correction of positions
is part of h D_n, but not of the velocity. Up to two steps need no commutators. Wieloch and
Arnold 2021.
"""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from .descriptor import DescriptorMethod, DescriptorState, DescriptorSystem, End, across, expanded
from .method import Scalar


class BDF1(DescriptorMethod):
    """Order 1, implicit Euler: v' = D, h dv'/dt = v' - v. It dissipates strongly."""

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

    The step before the first one is taken from the Taylor expansion of the motion. Where a step is
    too long for that, as with strong damping, the first step is one of implicit Euler. In index 3
    the initial velocities are shifted to the smooth numerical solution; otherwise the first
    multipliers would be of first order only.
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

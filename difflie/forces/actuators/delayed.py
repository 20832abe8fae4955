"""Actuators whose commands act later."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer

from ...system.fields import number
from .actuator import Actuator, Scalar
from .delay_line import DelayLine

# The whole delay line is carried from step to step, so its length is bounded.
_LONGEST = 10_000


class Delayed(Actuator):
    """An actuator with a delay in s, a scalar: the command acts that much later.

    Before the motion the command has its first value. None means no delay, and is no leaf. In each
    step of a simulation, or between two samples of a recording, the mean of the held commands acts,
    exactly, so the motion is piecewise linear in the delay. The delay may be at most most_steps
    steps long; `simulate` refuses a longer one, and a longer traced one makes the motion not
    finite.
    """

    delay: jax.Array | None = eqx.field(
        converter=number(unit="s", nonnegative=True, optional=True), default=None, kw_only=True
    )
    most_steps: int = eqx.field(static=True, default=32, kw_only=True)

    def problems(self) -> list[str]:
        steps = self.most_steps
        if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= _LONGEST:
            return [f"most_steps is {steps!r}; it must be a whole number from 1 to {_LONGEST}"]
        return super().problems()

    def forgets(self, dt: float, steps: int) -> list[str]:
        if self.delay is None or isinstance(self.delay, Tracer):
            return []
        # Up to rounding.
        needed = math.ceil(float(jnp.max(self.delay)) / dt * (1 - 1e-6))
        if min(needed, steps) <= self.most_steps:
            return []
        return [f"its delay is {needed} steps of {dt} s; give it most_steps={needed}"]

    def refined(self, n: int) -> Delayed:
        return self if self.delay is None else replace(self, most_steps=n * self.most_steps)

    def init(self, command: Scalar, q: Scalar, v: Scalar) -> Any:
        return None if self.delay is None else DelayLine.filled(command, self.most_steps)

    def late(self, command: Scalar, memory: Any) -> tuple[Scalar, Any]:
        """The command () that acts in this step, and the memory after it."""
        if self.delay is None or memory is None:
            return command, memory
        line: DelayLine = memory.kept
        acts = line.delayed(command, self.delay, memory.dt)
        return acts, memory._replace(kept=line.after(command, memory.dt))

"""Actuators whose commands act later.

Their delay line holds the commands of the last steps. Commands are held from step to step. With a
delay d, the command that acts in a step of length h from the time t on is the mean of what was held
a delay earlier,

1/h integral of the command from t - d to t + h - d

exactly, for steps of any lengths. It is piecewise linear in the delay; at a kink, and at d = 0, the
derivative is that towards longer delays.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float

from ...system.fields import number
from .actuator import Actuator, Scalar


class DelayLine(NamedTuple):
    """The commands (n,) of the last n steps, the latest first, and since when each was held.

    begins (n,): the times at which they began, in s relative to the start of the coming step, so
    not positive. At the start of a motion the unused entries hold the initial command, for no time.
    """

    commands: Float[Array, " n"]
    begins: Float[Array, " n"]

    @staticmethod
    def filled(command: Float[Array, ""], length: int) -> DelayLine:
        """A line of so many steps at the start of a motion, filled with the command ()."""
        commands = jnp.broadcast_to(command, (length,))
        return DelayLine(commands, jnp.zeros_like(commands))

    def delayed(
        self, command: Float[Array, ""], delay: Float[Array, ""], h: Float[Array, ""]
    ) -> Float[Array, ""]:
        """The mean () of the delayed command over a step of h () s that begins with a command ().

        Before the motion the command was the line's first one. NaN where the delay () in s reaches
        back beyond the end of the line.
        """
        commands = jnp.concatenate((command[None], self.commands))
        begins = jnp.concatenate((jnp.zeros_like(self.begins[:1]), self.begins))
        ends = jnp.concatenate((h[None], begins[:-1]))
        start, end = -delay, h - delay

        def until(x: jax.Array) -> jax.Array:
            """For how long before x each command was held."""
            return jnp.where(x <= begins, 0, jnp.where(x > ends, ends, x) - begins)

        known, earliest = jnp.sum(commands * (until(end) - until(start))), begins[-1]
        inside = jnp.where(start <= earliest, earliest - start, 0)
        before = jnp.where(end <= earliest, h, inside)
        # A line that is just long enough must not fail by rounding.
        rounding = len(commands) * jnp.finfo(h.dtype).eps * delay
        lost = (ends[-1] > earliest) & (before > rounding)
        return (known + before * jnp.where(lost, jnp.nan, commands[-1])) / h

    def after(self, command: Float[Array, ""], h: Float[Array, ""]) -> DelayLine:
        """The line after a step of h () s in which the command () was held."""
        commands = jnp.concatenate((command[None], self.commands[:-1]))
        begins = jnp.concatenate((jnp.zeros_like(self.begins[:1]), self.begins[:-1]))
        return DelayLine(commands, begins - h)


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

    @property
    def has_state(self) -> bool:
        # Without a trace of `init`, which every call of a simulation would pay for.
        return self.delay is not None if type(self).init is Delayed.init else super().has_state

    def late(self, command: Scalar, memory: Any) -> tuple[Scalar, Any]:
        if self.delay is None or memory is None:
            return command, memory
        line: DelayLine = memory.kept
        acts = line.delayed(command, self.delay, memory.dt)
        return acts, memory._replace(kept=line.after(command, memory.dt))

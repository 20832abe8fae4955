"""A delay line: the commands of the last steps, and the delayed command of the present step.

Commands are held from step to step. With a delay d, the command that acts in a step of length h
from the time t on is the mean of what was held a delay earlier,

  1/h  integral of the command from t - d to t + h - d

exactly, for steps of any lengths. It is piecewise linear in the delay; at a kink, and at d = 0, the
derivative is that towards longer delays.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


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

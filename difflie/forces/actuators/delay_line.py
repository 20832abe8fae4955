"""A delay line: what was commanded in the last steps, and what of it arrives now.

Commands are held from step to step. A delay d later the mean of what was held acts in a step of
length h from the time t on,

    1/h  integral of the command from t - d to t + h - d

exactly, on steps of any lengths. It is piecewise linear in the delay; the derivative where it has a
kink, and at d = 0, is that by a longer one.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class DelayLine(NamedTuple):
    """The commands (n,) of the last n steps, the latest first, and since when each was held.

    begins (n,): in s before the step that comes, and so not positive. While the line is longer than
    the motion the others are as the command that was there before, held for no time.
    """

    commands: Float[Array, " n"]
    begins: Float[Array, " n"]

    @staticmethod
    def filled(command: Float[Array, ""], length: int) -> DelayLine:
        """The line of so many steps at the start of a motion, before which there was a command."""
        commands = jnp.broadcast_to(command, (length,))
        return DelayLine(commands, jnp.zeros_like(commands))

    def delayed(
        self, command: Float[Array, ""], delay: Float[Array, ""], h: Float[Array, ""]
    ) -> Float[Array, ""]:
        """The mean () of what arrives in a step of h () s, in which a command () begins to be held.

        Before the motion the signal was the line's first command. NaN where the delay () in s is
        longer than a line that has forgotten it.
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
        # What rounding makes of a line that is just long enough is not lost.
        rounding = len(commands) * jnp.finfo(h.dtype).eps * delay
        lost = (ends[-1] > earliest) & (before > rounding)
        return (known + before * jnp.where(lost, jnp.nan, commands[-1])) / h

    def after(self, command: Float[Array, ""], h: Float[Array, ""]) -> DelayLine:
        """The line at the end of a step of h () s in which a command () was held."""
        commands = jnp.concatenate((command[None], self.commands[:-1]))
        begins = jnp.concatenate((jnp.zeros_like(self.begins[:1]), self.begins[:-1]))
        return DelayLine(commands, begins - h)

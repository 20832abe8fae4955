"""What the control commands, kept in the time loop for the trajectory."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class Command(eqx.Module):
    """The commands (nv,) in N m or N of the steps that the trajectory tells of.

    latest: in the last step, as of its beginning. saved: in the last step that began at a time that
    is saved, which one in `every` does.
    """

    latest: Float[Array, " nv"]
    saved: Float[Array, " nv"]
    every: int = eqx.field(static=True)

    def after(self, step: jax.Array, command: Float[Array, " nv"], going: jax.Array) -> Command:
        """With the command of the step of this number (), if it was made ()."""
        # No remainder: native code knows none.
        begins = jax.lax.div(step, jnp.int32(self.every)) * self.every == step
        saves = going if self.every == 1 else going & begins
        latest = jnp.where(going, command, self.latest)
        return Command(latest, jnp.where(saves, command, self.saved), self.every)

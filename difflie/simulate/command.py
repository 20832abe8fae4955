"""What is commanded and given, kept in the time loop for the trajectory."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..integrators.method import chosen


class Command(eqx.Module):
    """The commands u (nu,) of the steps that the trajectory tells of, and the torques (nu,).

    latest: both in the last step, as of its beginning; None for commands without control, and for
    torques where no actuator remembers anything. saved: in the last step that began at a time that
    is saved, which one in `every` does.
    """

    latest: tuple[Any, Any]
    saved: tuple[Any, Any]
    every: int = eqx.field(static=True)

    def after(self, step: jax.Array, latest: tuple[Any, Any], going: jax.Array) -> Command:
        """With what was commanded in the step of this number (), if it was made ()."""
        # No remainder: native code knows none.
        begins = jax.lax.div(step, jnp.int32(self.every)) * self.every == step
        saves = going if self.every == 1 else going & begins
        saved = chosen(saves, latest, self.saved)
        return Command(chosen(going, latest, self.latest), saved, self.every)

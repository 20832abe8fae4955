"""Commands and delivered torques, recorded in the time loop for the trajectory."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..integrators.method import chosen


class Command(eqx.Module):
    """The commands u (nu,) and the torques (nu,) of the steps that the trajectory saves.

    latest: both at the start of the last step; commands are None without control, torques where no
    actuator has a memory. saved: those of the last step that began at a saved time, which one in
    `every` does.
    """

    latest: tuple[Any, Any]
    saved: tuple[Any, Any]
    every: int = eqx.field(static=True)

    def after(self, step: jax.Array, latest: tuple[Any, Any], going: jax.Array) -> Command:
        """Updated with the command and torques of step number `step` (), if it was made ()."""
        # Without the remainder operation, which native code lacks.
        begins = jax.lax.div(step, jnp.int32(self.every)) * self.every == step
        saves = going if self.every == 1 else going & begins
        saved = chosen(saves, latest, self.saved)
        return Command(chosen(going, latest, self.latest), saved, self.every)

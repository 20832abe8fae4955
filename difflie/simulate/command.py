"""What the control commands, kept in the time loop for the trajectory."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..integrators.method import chosen


class Command(eqx.Module):
    """The commands of the steps that the trajectory tells of, with the memories of the actuators.

    latest: (u, memories) in the last step, as of its beginning, u (nu,) in the units of the
    actuators; each None where there is none. saved: in the last step that began at a time that is
    saved, which one in `every` does.
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

"""States with names, such as the keyframes of an MJCF file."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax


class NamedState(NamedTuple):
    """A state of a system: q (nq,) and v (nv,), in rad and m and the same per s.

    command (nu,): what the actuators are given in it, in their units; None where it says nothing on
    them, or there are none.
    """

    q: jax.Array
    v: jax.Array
    command: jax.Array | None


class KeptState(eqx.Module):
    """A state as a system keeps it: q (nq,), v (nv,), the commands () by actuator.

    internal: internal states () by their labels. So it outlives the attachment of actuators.
    """

    q: jax.Array
    v: jax.Array
    commands: dict[str, jax.Array]
    internal: dict[str, jax.Array]

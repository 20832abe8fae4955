"""What all sensors of a system read along a motion."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..quantities import Quantity, along
from ..quantities.along import Motion
from ..quantities.quantity import Labels, joined
from ..system.shared import sharing
from ..system.system import System
from ..system.validation import format_value, nearest
from .sensor import Sensor


class _Together(Quantity):
    """The readings of several sensors, side by side, so that one program computes them all."""

    sensors: tuple[Sensor, ...]

    @property
    def name(self) -> str:
        return "readings"

    def labels(self, system: System) -> Labels:
        return ()

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: Float[Array, " nu"] | None,
        t: jax.Array | float,
    ) -> Float[Array, " K"]:
        with sharing(system) as known:
            return joined(*(sensor.predicted(known, q, v, None, u, t) for sensor in self.sensors))


def readings(
    system: System,
    run: Motion,
    names: Sequence[str] | None = None,
    noise: jax.Array | None = None,
    cutoff: bool = False,
) -> dict[str, Float[Array, "*batch k"]]:
    """What the sensors of a system read along a run: by name (m, k), in the sensors' units.

    names: of the sensors, None for all but encoders. noise: a key of `jax.random`, with which
    normally distributed errors of the sensors' `noise` are added; None for none. cutoff: whether
    readings are clipped at the sensors' `cutoff`, after the noise. Raises ValueError for an unknown
    name, with the nearest one, and as `along` does; and as their quantities do for sensors that
    cannot be measured, such as a force-torque sensor in a closed loop.
    """
    there = {s.name: s for s in system.sensors if isinstance(s, Sensor)}
    for name in () if names is None else names:
        if name not in there:
            near = nearest(str(name), there) or f"; there are {', '.join(there) or 'none'}"
            raise ValueError(f"{system.name}: no sensor is named {format_value(name)}{near}")
    chosen = list(there.values()) if names is None else [there[name] for name in names]
    if not chosen:
        return {}
    values = along(_Together(tuple(chosen)), system, run)
    # A bias has an entry for each reading of its sensor; see `with_sensors`.
    ends = np.cumsum([sensor.bias.size for sensor in chosen])
    parts = jnp.split(values, ends[:-1].tolist(), axis=-1)
    keys = [None] * len(chosen) if noise is None else jax.random.split(noise, len(chosen))
    found = {}
    for sensor, part, key in zip(chosen, parts, keys, strict=True):
        if key is not None and sensor.noise:
            part = part + sensor.noise * jax.random.normal(key, part.shape, part.dtype)
        if cutoff and sensor.cutoff:
            part = jnp.clip(part, -sensor.cutoff, sensor.cutoff)
        found[sensor.name] = part
    return found

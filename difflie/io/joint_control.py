"""The control that the table [control] of a file describes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..system.system import System
from .config import ControlTable
from .loading import numbers_of
from .toml import ConfigError


class HeldCommand(eqx.Module):
    """A command (nu,) that stays the same, in the units of the actuators."""

    command: Float[Array, " nu"]

    def __call__(self, t: Any, q: Any, v: Any) -> Float[Array, " nu"]:
        return self.command


class JointControl(eqx.Module):
    """tau = effort + stiffness (target - q) - damping v, (nv,) each.

    effort in N m or N, stiffness in N m/rad or N/m, damping in N m s/rad or N s/m, target in rad or
    m; None for joints on groups, for which there is no spring.
    """

    effort: Float[Array, " nv"]
    stiffness: Float[Array, " nv"]
    damping: Float[Array, " nv"]
    target: Float[Array, " nv"] | None

    def __call__(self, t: Any, q: jax.Array, v: jax.Array) -> Float[Array, " nv"]:
        tau = self.effort - self.damping * v
        return tau if self.target is None else tau + self.stiffness * (self.target - q)


def control_of(
    table: ControlTable, system: System, path: Path
) -> HeldCommand | JointControl | None:
    """The control of a table in the file at a path; None if it has none.

    Raises `ConfigError` for keys that do not suit the system, and numbers of a wrong size.
    """
    unfit = ("effort", "stiffness", "damping", "target") if system.actuators else ("command",)
    for name in unfit:
        if getattr(table, name) is not None:
            fix = "actuators; give control.command" if system.actuators else "no actuators"
            raise ConfigError(f"{path}: control.{name}: {system.name} has {fix}")

    def numbers(name: str, size: int) -> np.ndarray:
        return numbers_of(f"{path}: control.{name}", getattr(table, name), size)

    if system.actuators:
        return HeldCommand(jnp.asarray(numbers("command", system.nu), system.dtype))
    effort, stiffness, damping, target = (
        jnp.asarray(numbers(name, system.nv), system.dtype)
        for name in ("effort", "stiffness", "damping", "target")
    )
    if table.effort is table.stiffness is table.damping is None:
        return None
    if table.stiffness is not None and system.nq != system.nv:
        raise ConfigError(
            f"{path}: control.stiffness: {system.name} has joints that move on a group, "
            "towards which a spring on the coordinates is not defined; leave stiffness out"
        )
    return JointControl(effort, stiffness, damping, None if table.stiffness is None else target)

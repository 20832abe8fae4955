"""Stops: joints that are pushed back where they leave their limits."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..system.fields import number, number_faults
from ..system.system import Joints
from ..system.topology import Topology
from ..system.validation import ModelError
from .compliance import Compliance
from .path import Path


def _names(given: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise ModelError(f"the joints of a JointStop are {given!r}; give their names")
    return tuple(names)


class JointStop(Compliance):
    """Compliant stops at the limits of joints, as forces, after the law of `PlaneContact`.

    stiffness k in N m/rad^p or N/m^p, a scalar. joints: their names, or None for all that have a
    limit; the limits are the leaves `lower` and `upper` of `system.joints`, of which an infinite
    one has no stop. exponent p (1 or more), dissipation d in s/rad or s/m, smoothing eps in rad or
    m, scalars. Stops with other numbers for other joints can be attached beside.
    """

    stiffness: jax.Array = eqx.field(converter=number(unit="N m/rad^p or N/m^p", nonnegative=True))
    joints: tuple[str, ...] | None = eqx.field(static=True, converter=_names, default=None)
    exponent: jax.Array = eqx.field(converter=number(least=1), default=1.0, kw_only=True)
    dissipation: jax.Array = eqx.field(
        converter=number(unit="s/rad or s/m", nonnegative=True), default=0.0, kw_only=True
    )
    smoothing: jax.Array = eqx.field(
        converter=number(unit="rad or m", nonnegative=True), default=0.0, kw_only=True
    )

    def faults(self) -> list[str]:
        """What is wrong with its numbers, each with the fix."""
        return number_faults(self)

    @property
    def path(self) -> Path:
        """What it acts on in space: nothing, so that one point of the world stands for it."""
        return Path(jnp.zeros((1, 3), self.stiffness.dtype), (None,))

    def rows(self, t: Topology) -> np.ndarray:
        """Which rows (n_rows,) it acts on; those of spherical and free joints have no limits."""
        named = [self.joints is None or t.joints[b] in self.joints for b in t.row_body]
        return np.array(named, dtype=bool) & (t.row_coordinate >= 0)

    def efforts(
        self, t: Topology, joints: Joints, x: Float[Array, " n_rows"], rate: Float[Array, " n_rows"]
    ) -> Float[Array, " n_rows"]:
        """The efforts (n_rows,) in N m or N at coordinates and rates of the rows (n_rows,)."""
        (below, opens_below), (above, opens_above) = self._gaps(t, joints, x)
        push = jnp.where(opens_below, self.pressure(below, rate), 0)
        return push - jnp.where(opens_above, self.pressure(above, -rate), 0)

    def energy(self, t: Topology, joints: Joints, x: Float[Array, " n_rows"]) -> Float[Array, ""]:
        """The energy () in J at coordinates of the rows (n_rows,)."""
        (below, opens_below), (above, opens_above) = self._gaps(t, joints, x)
        stored = jnp.where(opens_below, self.potential(below), 0)
        return jnp.sum(stored + jnp.where(opens_above, self.potential(above), 0))

    def _gaps(self, t: Topology, joints: Joints, x: Float[Array, " n_rows"]):
        """To the lower and the upper limit (n_rows,), and whether there is one."""
        rows = self.rows(t)
        for gap in (x - joints.lower, joints.upper - x):
            exists = rows & jnp.isfinite(gap)
            yield jnp.where(exists, gap, 1), exists

    def __str__(self) -> str:
        which = "all joints" if self.joints is None else ", ".join(map(repr, self.joints))
        return f"JointStop ({which})"

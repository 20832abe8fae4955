"""Equations between the lengths of tendons that pass through points of bodies."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..forces.transmissions import SpatialTendon
from ..groups.components import Scalar
from ..system.fields import number
from ..system.frame import Frame
from .constraint import FrameConstraint
from .coupled import evaluated


class LengthConstraint(FrameConstraint):
    """l_1 - a_1 = c_0 + c_1 (l_2 - a_2) + c_2 (l_2 - a_2)^2 + ... of two lengths: 1 equation.

    first: a `SpatialTendon`, of the length l_1; second: another one, of l_2, or None for a length
    that is fixed. coefficients (k,), in powers of m, and origins (2,), a_1 and a_2 in m, are
    leaves. A cable that does not stretch, and hoses, belts and cables of one length in all. It is
    the equality of spatial tendons of MuJoCo. Where a tendon begins to touch what it is led around,
    the second derivative of its length jumps. Lengths have no derivative where two successive
    points of a tendon coincide. `problems` names coefficients of another shape.
    """

    first: SpatialTendon
    second: SpatialTendon | None = None
    coefficients: jax.Array = eqx.field(converter=number(shape=None), default=(0.0,))
    origins: jax.Array = eqx.field(converter=number(unit="m", shape=(2,)), default=(0.0, 0.0))

    equations = ("length",)

    @property
    def frames(self) -> tuple[Frame, ...]:
        return tuple(
            Frame(body, point)
            for tendon in (self.first, self.second)
            if tendon is not None
            for body, point in zip(tendon.path.bodies, tendon.path.points, strict=True)
        )

    @property
    def apart(self) -> tuple[tuple[Frame, ...], ...]:
        return ()

    def problems(self) -> list[str]:
        for tendon in (self.first, self.second):
            if faults := [] if tendon is None else tendon.problems():
                return [f"its {tendon}: {fault}" for fault in faults]
        if jnp.ndim(self.coefficients) != 1 or not jnp.size(self.coefficients):
            return [f"coefficients has shape {jnp.shape(self.coefficients)}, needed is (k,)"]
        if self.second is None and jnp.size(self.coefficients) > 1:
            return ["it has one tendon and several coefficients; give it one"]
        return super().problems()

    def residual(self, *frames: Any) -> list[Scalar]:
        count = len(self.first.path.bodies)
        own = _length(self.first, frames[:count]) - self.origins[0]
        if self.second is None:
            return [own - self.coefficients[0]]
        other = _length(self.second, frames[count:]) - self.origins[1]
        return [own - evaluated(self.coefficients, other)]


def _length(tendon: SpatialTendon, frames: Any) -> Scalar:
    """The length () in m of a tendon with its points at these frames in the world."""
    return tendon.lever(jax.tree.map(lambda *a: jnp.stack(a), *frames))[0]

"""Equations between the lengths of tendons."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..forces.transmissions import FixedTendon, SpatialTendon
from ..groups.components import Scalar
from ..system.fields import number
from ..system.frame import Frame
from .constraint import MixedConstraint
from .coupled import evaluated


class LengthConstraint(MixedConstraint):
    """l_1 - a_1 = c_0 + c_1 (l_2 - a_2) + c_2 (l_2 - a_2)^2 + ... of two lengths: 1 equation.

    first: a `SpatialTendon`, of the length l_1, or a `FixedTendon`, whose length is linear in the
    coordinates of joints; second: another one, of l_2, or None for a length that is fixed.
    coefficients (k,), in powers of m, and origins (2,), a_1 and a_2 in m, are leaves. A cable that
    does not stretch, one that a drum winds up, and hoses, belts and cables of one length in all. It
    is the equality of tendons of MuJoCo. Where a tendon begins to touch what it is led around,
    the second derivative of its length jumps. Lengths have no derivative where two successive
    points of a tendon coincide. `problems` names coefficients of another shape.
    """

    first: SpatialTendon | FixedTendon
    second: SpatialTendon | FixedTendon | None = None
    coefficients: jax.Array = eqx.field(converter=number(shape=None), default=(0.0,))
    origins: jax.Array = eqx.field(converter=number(unit="m", shape=(2,)), default=(0.0, 0.0))

    equations = ("length",)

    @property
    def frames(self) -> tuple[Frame, ...]:
        return tuple(
            Frame(body, point)
            for tendon in self.tendons
            if isinstance(tendon, SpatialTendon)
            for body, point in zip(tendon.path.bodies, tendon.path.points, strict=True)
        )

    @property
    def tendons(self) -> tuple[SpatialTendon | FixedTendon, ...]:
        """The one or two tendons."""
        return (self.first,) if self.second is None else (self.first, self.second)

    @property
    def joints(self) -> tuple[str, ...]:
        return tuple(
            joint
            for tendon in self.tendons
            if isinstance(tendon, FixedTendon)
            for joint in tendon.joints
        )

    @property
    def apart(self) -> tuple[tuple[Frame, ...], ...]:
        return ()

    def problems(self) -> list[str]:
        for tendon in self.tendons:
            if faults := tendon.problems():
                return [f"its {tendon}: {fault}" for fault in faults]
        if jnp.ndim(self.coefficients) != 1 or not jnp.size(self.coefficients):
            return [f"coefficients has shape {jnp.shape(self.coefficients)}, needed is (k,)"]
        if self.second is None and jnp.size(self.coefficients) > 1:
            return ["it has one tendon and several coefficients; give it one"]
        return super().problems()

    def residual(self, *given: Any) -> list[Scalar]:
        frames, coordinates = map(iter, (given[: len(self.frames)], given[len(self.frames) :]))
        own, *others = (
            _length(tendon, frames) if isinstance(tendon, SpatialTendon) else tendon.of(coordinates)
            for tendon in self.tendons
        )
        own = own - self.origins[0]
        if not others:
            return [own - self.coefficients[0]]
        return [own - evaluated(self.coefficients, others[0] - self.origins[1])]

    def __str__(self) -> str:
        return f"LengthConstraint ({' - '.join(map(str, self.tendons))})"


def _length(tendon: SpatialTendon, frames: Iterator[Any]) -> Scalar:
    """The length () in m of a tendon with its points at the next of these frames in the world."""
    own = itertools.islice(frames, len(tendon.path.bodies))
    return tendon.lever(jax.tree.map(lambda *a: jnp.stack(a), *own))[0]

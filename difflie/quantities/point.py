"""Where a point of a body is."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float

from ..system.frame import Frame, as_frame
from ..system.system import System
from .frames import placed
from .quantity import Labels, Quantity, xyz


class Origin(Quantity):
    """The position (3,), in m, of the origin of a frame.

    frame, reference: a `Frame`, or the name of a body for its own frame. The position is in the
    reference frame, by default the world; that of a camera may be unknown.
    """

    frame: Frame = eqx.field(converter=as_frame)
    reference: Frame = eqx.field(converter=as_frame, default=None)

    @property
    def name(self) -> str:
        return f"origin of {self.frame}"

    def labels(self, system: System) -> Labels:
        return xyz("m")

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: jax.Array,
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, "3"]:
        frame, reference = placed(system, q, self.frame, self.reference)
        return (reference.inverse() @ frame).translation.to_array()


class Point(Origin):
    """The position (3,), in m, of a point of a body, in the world or a reference frame.

    body: its name; position (3,) in m in the body's frame, a leaf; reference: as of `Origin`.
    """

    def __init__(
        self, body: str | None, position: Any = (0.0, 0.0, 0.0), reference: Any = None
    ) -> None:
        self.frame = Frame(body, position)
        self.reference = as_frame(reference)

    @property
    def name(self) -> str:
        return f"point of {self.frame}"

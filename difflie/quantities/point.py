"""Where a point of a body is."""

from __future__ import annotations

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from ..system.frame import Frame, as_frame
from ..system.system import System
from .frames import placed
from .quantity import Labels, Quantity, xyz


class Origin(Quantity):
    """The position (3,) in the world, in m, of the origin of a frame.

    frame: a `Frame`, or the name of a body for its own frame.
    """

    frame: Frame = eqx.field(converter=as_frame)

    @property
    def name(self) -> str:
        return f"origin of {self.frame}"

    def labels(self, system: System) -> Labels:
        return xyz("m")

    def __call__(
        self, system: System, q: Float[Array, " nq"], v: Any, u: Any, t: Any
    ) -> Float[Array, "3"]:
        (frame,) = placed(system, q, self.frame)
        return frame.translation.to_array()


class Point(Origin):
    """The position (3,) in the world, in m, of a point of a body.

    body: its name; position (3,) in m in the body's frame, a leaf.
    """

    def __init__(self, body: str | None, position: Any = (0.0, 0.0, 0.0)) -> None:
        self.frame = Frame(body, position)

    @property
    def name(self) -> str:
        return f"point of {self.frame}"

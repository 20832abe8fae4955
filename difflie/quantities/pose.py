"""The position and attitude of a frame."""

from __future__ import annotations

import equinox as eqx
import jax
from jaxtyping import Array, Float

from ..groups import so3
from ..system.frame import Frame, as_frame
from ..system.system import System
from .frames import placed
from .quantity import Labels, Quantity, joined, xyz


class Pose(Quantity):
    """The pose (6,) of a frame: its rotation vector in rad, then its origin in m.

    frame, reference: a `Frame`, or the name of a body for its own frame. Both parts are in the
    reference frame, by default the world; with the target as reference they are the tracking error.
    The rotation vector has a length of at most pi. Its derivatives are finite everywhere, also at
    zero; at pi, where two vectors stand for the same rotation, they are those of the one returned.
    """

    frame: Frame = eqx.field(converter=as_frame)
    reference: Frame = eqx.field(converter=as_frame, default=None)

    @property
    def name(self) -> str:
        return f"pose of {self.frame}"

    def labels(self, system: System) -> Labels:
        return (*xyz("rad", "turn "), *xyz("m"))

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: jax.Array,
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, "6"]:
        frame, reference = placed(system, q, self.frame, self.reference)
        seen = reference.inverse() @ frame
        turn: jax.Array = so3.log_components(seen.rotation).to_array()
        return joined(turn, seen.translation.to_array())

    def difference(self, value: Float[Array, "6"], other: Float[Array, "6"]) -> Float[Array, "6"]:
        """log(R_other^T R_value) in rad, then the difference of the origins in m.

        Rotation vectors of any length are allowed.
        """
        turn: jax.Array = so3.log(so3.exp(other[:3]).T @ so3.exp(value[:3]))
        return joined(turn, value[3:] - other[3:])

"""Where frames on bodies are: points, poses, and distances."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..dynamics.kinematics import body_world_poses
from ..forces.path import root
from ..groups import quaternion, so3
from ..spatial import Transform
from ..system.frame import Frame, as_frame
from ..system.kinematic_tree import Tree
from ..system.named_frames import placement
from ..system.system import System
from ..system.validation import ModelError, format_value
from .quantity import Labels, Quantity, joined, xyz


def placed(system: System, q: Float[Array, " nq"], *frames: Frame) -> list[Transform]:
    """The poses, components (), of the frames in the world at the configuration q (nq,), in m.

    Raises `ModelError` for a frame on an unknown body, with the nearest name.
    """
    where = [placement(system, frame, q.dtype) for frame in frames]
    poses = body_world_poses(Tree.of(system), q)

    def place(body: str | None, inner: Transform) -> Transform:
        if body is None:
            return inner
        b = system.body_names.index(body)
        return jax.tree.map(lambda a: a[b], poses) @ inner

    return [place(*each) for each in where]


class Origin(Quantity):
    """The position (3,), in m, of the origin of a frame.

    frame, reference: a `Frame`, or the name of a body or of a named frame. The position is in the
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


class Pose(Quantity):
    """The pose (6,) of a frame: its rotation vector in rad, then its origin in m.

    frame, reference: a `Frame`, or the name of a body or of a named frame. Both parts are in the
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


class Attitude(Quantity):
    """The attitude (4,) of a frame: its unit quaternion (w, x, y, z), with w >= 0.

    frame, reference: a `Frame`, or the name of a body or of a named frame. The attitude is in the
    reference frame, by default the world.
    """

    frame: Frame = eqx.field(converter=as_frame)
    reference: Frame = eqx.field(converter=as_frame, default=None)

    @property
    def name(self) -> str:
        return f"attitude of {self.frame}"

    def labels(self, system: System) -> Labels:
        return tuple((letter, "1") for letter in "wxyz")

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: jax.Array,
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, "4"]:
        frame, reference = placed(system, q, self.frame, self.reference)
        scalar, vector = quaternion.from_matrix_components(
            reference.rotation.transpose() @ frame.rotation
        )
        whole = joined(scalar, vector.to_array())
        return jnp.where(whole[0] < 0, -whole, whole)


class FrameAxis(Quantity):
    """The direction (3,) of an axis of a frame, of length one.

    frame, reference: as of `Attitude`; axis: "x", "y" or "z". The direction is in the axes of the
    reference frame, by default the world. Raises `ModelError` for another axis.
    """

    frame: Frame = eqx.field(converter=as_frame)
    axis: str = eqx.field(static=True, default="z")
    reference: Frame = eqx.field(converter=as_frame, default=None)

    def __check_init__(self) -> None:
        if self.axis not in ("x", "y", "z"):
            raise ModelError(f"the axis is {format_value(self.axis)}; it must be 'x', 'y' or 'z'")

    @property
    def name(self) -> str:
        return f"{self.axis} axis of {self.frame}"

    def labels(self, system: System) -> Labels:
        return xyz("1")

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: jax.Array,
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, "3"]:
        frame, reference = placed(system, q, self.frame, self.reference)
        turn = (reference.rotation.transpose() @ frame.rotation).to_array()
        return turn[:, "xyz".index(self.axis)]


class Distance(Quantity):
    """The distance in m, a scalar, between the origins of two frames.

    first, second: a `Frame`, or the name of a body or of a named frame. Where the origins coincide
    the derivative is zero, the subgradient of least norm.
    """

    first: Frame = eqx.field(converter=as_frame)
    second: Frame = eqx.field(converter=as_frame)

    @property
    def name(self) -> str:
        return f"distance of {self.first} and {self.second}"

    def labels(self, system: System) -> Labels:
        return ((self.name, "m"),)

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: jax.Array,
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, ""]:
        first, second = placed(system, q, self.first, self.second)
        return root((second.translation - first.translation).square())

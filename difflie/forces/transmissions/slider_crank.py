"""The slider of a slider-crank: a rod of given length between a slider's axis and a crank's pin."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...groups.components import Vector
from ...spatial import Force, Transform
from ...system.fields import number
from ...system.frame import Frame, as_frame
from ..path import Path, as_path
from .transmission import PointTransmission, stacked


class SliderCrank(PointTransmission):
    """A slider moves along an axis and drives the pin of a crank by a rod: the slider's position.

    pin: a pair (body, point (3,) in m in its frame) on the crank. slider: a `Frame` along whose z
    axis a it moves; rod: the length r of the rod in m; gear without unit, both scalars. With the
    vector s from the frame's origin to the pin the length is

        gear (a.s - sqrt((a.s)^2 + r^2 - s.s))

    Where the rod is too short to reach the axis, the root is 0, as in MuJoCo, whose transmission
    `slidercrank` it is.
    """

    pin: Path = eqx.field(converter=as_path)
    slider: Frame = eqx.field(converter=as_frame)
    rod: jax.Array = eqx.field(converter=number(unit="m", positive=True))
    gear: jax.Array = eqx.field(converter=number(), default=1.0, kw_only=True)

    @property
    def path(self) -> Path:
        points = jnp.concatenate((self.pin.points, self.slider.position[None]))
        return Path(points, (*self.pin.bodies, self.slider.body))

    def problems(self) -> list[str]:
        if len(self.pin.bodies) != 1:
            return [f"its pin has {len(self.pin.bodies)} points; give it one, [(body, point)]"]
        return super().problems()

    @property
    def label(self) -> str:
        return str(self.pin.bodies[0])

    def lever(self, frames: Transform) -> tuple[Float[Array, ""], Force]:
        pin, base = (jax.tree.map(lambda a, i=i: a[i], frames) for i in range(2))
        turn = base.rotation @ self.slider.pose.rotation
        axis = Vector(turn.xz, turn.yz, turn.zz)
        s = pin.translation - base.translation
        along = axis.dot(s)
        square = along * along + self.rod * self.rod - s.square()
        reaches = square > 0
        root = jnp.sqrt(jnp.where(reaches, square, 1))
        # The derivatives by s and by the axis, which turns with the slider's body.
        slope = jnp.where(reaches, 1 - along / root, 1)
        by_s = axis * slope + s * jnp.where(reaches, 1 / root, 0)
        by_axis = s * slope
        length = along - jnp.where(reaches, root, 0)
        nothing = s * 0.0
        moments = stacked([nothing, axis.cross(by_axis)])
        forces = stacked([by_s, -by_s])
        return self.gear * length, Force(moments, forces) * self.gear

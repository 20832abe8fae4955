"""The resistance of a fluid to a body, which is taken for a box."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ..groups import so3
from ..groups.components import Vector
from ..spatial import Force, Motion, Transform
from ..system.fields import number
from .coupling import Coupling
from .path import Path, as_path


class BoxInFluid(Coupling):
    """The drag of a fluid on a box, in its own axes, and its viscous resistance as to a sphere.

        f_i = -3 pi d mu v_i - rho b_j b_k |v_i| v_i / 2
        m_i = -pi d^3 mu w_i - rho b_i (b_j^4 + b_k^4) |w_i| w_i / 64

    with v the velocity of its centre relative to the fluid, w its angular velocity, b its sides,
    and d their mean. path: one pair (body, point (3,) in m in its frame), the centre. size b (3,)
    in m; rotation (3,): a rotation vector in rad, of its axes in the body. density rho in kg/m^3
    and viscosity mu in Pa s, scalars. wind (3,): the velocity of the fluid in m/s, in world
    coordinates. It is MuJoCo's inertia-box model. name: as of `Coupling`.
    """

    needs: ClassVar[str] = "one point"

    path: Path = eqx.field(converter=as_path)
    size: jax.Array = eqx.field(converter=number(unit="m", shape=(3,), positive=True))
    rotation: jax.Array = eqx.field(
        converter=number(unit="rad", shape=(3,), kind="rotation"), default=(0, 0, 0), kw_only=True
    )
    density: jax.Array = eqx.field(
        converter=number(unit="kg/m^3", nonnegative=True), default=0.0, kw_only=True
    )
    viscosity: jax.Array = eqx.field(
        converter=number(unit="Pa s", nonnegative=True), default=0.0, kw_only=True
    )
    wind: jax.Array = eqx.field(
        converter=number(unit="m/s", shape=(3,)), default=(0, 0, 0), kw_only=True
    )

    def wrenches(self, frames: Transform, twists: Motion) -> Force:
        turn = frames.rotation @ so3.exp_components(Vector.from_array(self.rotation))
        w = turn.transposed_times(twists.angular)
        v = turn.transposed_times(twists.linear - Vector.from_array(self.wind))
        x, y, z = self.size
        d = (x + y + z) / 3
        slow = -jnp.pi * d * self.viscosity
        faces = Vector(y * z, x * z, x * y)
        spins = Vector(x * (y**4 + z**4), y * (x**4 + z**4), z * (x**4 + y**4))

        def drag(rate: Vector, areas: Vector) -> Vector:
            return Vector(
                *(getattr(areas, a) * getattr(rate, a) * jnp.abs(getattr(rate, a)) for a in "xyz")
            )

        force = v * (3 * slow) - drag(v, faces) * (self.density / 2)
        moment = w * (slow * d * d) - drag(w, spins) * (self.density / 64)
        return Force(turn @ moment, turn @ force)

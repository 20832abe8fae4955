"""The resistance of a fluid to a body, which is taken for a box or an ellipsoid."""

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
from .path import Path, as_path, root


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


class EllipsoidInFluid(Coupling):
    """The forces of a fluid on an ellipsoid with semi-axes r, in its own axes.

    With v the velocity of its centre relative to the fluid, w its angular velocity, and V, d, A and
    A_m its volume, the mean of its diameters, its area across v and the largest such area, they are
    the sum of

        added mass    f = p x w,  m = p x v + l x w,  with p = rho M v, l = rho I w
        Magnus lift   f = magnus rho V w x v
        Kutta lift    f = kutta rho s A (n x v) x v,  s the cosine between v and the normal n
        drag          f = -(3 pi mu d + rho |v| (blunt A + slender (A_m - A))) v
                      m = -(pi mu d^3 + rho |D w|) w

    D_i = angular J_i + slender (J_m - J_i), with J_i = 8 pi r_i max(r_j, r_k)^4 / 15, and J_m that
    of the middle and the largest semi-axis. The added mass turns with the body and adds no inertia.
    path: one pair (body, point (3,) in m in its frame), the centre. size r (3,) in m; rotation
    (3,): a rotation vector in rad, of its axes in the body. added_mass M (3,) in m^3 and
    added_inertia I (3,) in m^5. blunt, slender, angular, kutta and magnus are without unit. density
    rho in kg/m^3 and viscosity mu in Pa s; all scalars. wind (3,): the velocity of the fluid in
    m/s, in world coordinates. It is MuJoCo's ellipsoid model. name: as of `Coupling`.
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
    added_mass: jax.Array = eqx.field(
        converter=number(unit="m^3", shape=(3,)), default=(0, 0, 0), kw_only=True
    )
    added_inertia: jax.Array = eqx.field(
        converter=number(unit="m^5", shape=(3,)), default=(0, 0, 0), kw_only=True
    )
    blunt: jax.Array = eqx.field(converter=number(), default=0.5, kw_only=True)
    slender: jax.Array = eqx.field(converter=number(), default=0.25, kw_only=True)
    angular: jax.Array = eqx.field(converter=number(), default=1.5, kw_only=True)
    kutta: jax.Array = eqx.field(converter=number(), default=1.0, kw_only=True)
    magnus: jax.Array = eqx.field(converter=number(), default=1.0, kw_only=True)

    def wrenches(self, frames: Transform, twists: Motion) -> Force:
        turn = frames.rotation @ so3.exp_components(Vector.from_array(self.rotation))
        w = turn.transposed_times(twists.angular)
        v = turn.transposed_times(twists.linear - Vector.from_array(self.wind))
        p = _times(self.added_mass * self.density, v)
        added = p.cross(v) + _times(self.added_inertia * self.density, w).cross(w)
        force = p.cross(w) + self._lift(v, w) - v * self._drag(v)
        moment = added - w * self._spin_drag(w)
        return Force(turn @ moment, turn @ force)

    def _lift(self, v: Vector, w: Vector) -> Vector:
        x, y, z = self.size
        volume = 4 / 3 * jnp.pi * x * y * z
        normal, _, across = self._shadow(v)
        # The cosine times the area, over the length of the normal.
        circulation = normal.cross(v) * (self.kutta * jnp.pi * across)
        magnus = w.cross(v) * (self.magnus * volume)
        return (circulation.cross(v) + magnus) * self.density

    def _drag(self, v: Vector) -> jax.Array:
        low, middle, high = jnp.sort(self.size)
        _, area, _ = self._shadow(v)
        largest = jnp.pi * middle * high
        blunt = self.blunt * area + self.slender * (largest - area)
        slow = 2 * jnp.pi * (low + middle + high) * self.viscosity
        return slow + self.density * root(v.square()) * blunt

    def _spin_drag(self, w: Vector) -> jax.Array:
        _, middle, high = jnp.sort(self.size)
        r = self.size
        others = jnp.maximum(jnp.roll(r, -1), jnp.roll(r, -2))
        own, most = (8 / 15 * jnp.pi * a * b**4 for a, b in ((r, others), (middle, high)))
        # By the largest one, as squares of fifth powers of small sizes are 0 in single precision.
        shares = self.angular * own / most + self.slender * (1 - own / most)
        d = 2 / 3 * jnp.sum(r)
        quadratic = most * root(_times(shares, w).square())
        return jnp.pi * d**3 * self.viscosity + self.density * quadratic

    def _shadow(self, v: Vector) -> tuple[Vector, jax.Array, jax.Array]:
        """The normal n, of any length, of the surface where it faces v, and the area A across v.

        Besides s A / (pi |n|), with the cosine s between n and v, 0 at rest.
        """
        # By the largest entries, as fourth powers of small ones are 0 in single precision. The
        # length of v changes nothing, so its derivative is none.
        pace = jax.lax.stop_gradient(jnp.max(jnp.abs(v.to_array())))
        moves = pace > jnp.finfo(pace.dtype).tiny
        u = jax.tree.map(lambda a: jnp.where(moves, a / jnp.where(moves, pace, 1), 1.0), v)
        x, y, z = self.size
        areas = jnp.stack((y * z, z * x, x * y))
        largest = jnp.max(areas)
        normal = _times((areas / largest) ** 2, u)
        along, own = normal.dot(u), normal.square()
        across = largest * jnp.sqrt(along / own) / root(u.square())
        return normal, jnp.pi * largest * jnp.sqrt(own / along), jnp.where(moves, across, 0)


def _times(diagonal: jax.Array, v: Vector) -> Vector:
    x, y, z = diagonal
    return Vector(x * v.x, y * v.y, z * v.z)

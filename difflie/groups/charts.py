"""Charts: local coordinates of rotations and rigid motions near the identity.

A chart writes a rotation as R = psi(x), and a rigid motion as psi(x, y) with the rotation psi(x)
and a translation; x (3,) is in rad, y (3,) in m. The derivative of psi at zero is the identity, so
small coordinates are tangents in every chart.

`Exponential`: the rotation vector, and screws. It is regular for rotations by less than 2 pi.

`Cayley`: x = 2 tan(t/2) times the axis, with t the rotation angle. This is twice the Rodrigues
parameters c of `so3.cay(c)`, and on rigid motions twice the extended ones (c, d) of `se3.cay`. It
needs no trigonometric function. Its rates are polynomials and regular everywhere. A rotation by pi
is at infinity.

Arguments are scalar components. Source: Mueller, sections 5 and 6.4.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass

import jax.numpy as jnp

from . import quaternion, se3, so3
from .components import Matrix, Scalar, Vector


class Chart(abc.ABC):
    """Local coordinates psi, with psi(0) = 1 and the derivative of psi at 0 the identity."""

    @abc.abstractmethod
    def turn(self, x: Vector) -> tuple[Scalar, Vector]:
        """The unit quaternion (4,) of the rotation psi(x), as scalar and vector part."""

    @abc.abstractmethod
    def turn_inverse(self, p0: Scalar, p: Vector) -> Vector:
        """The x (3,) of a unit quaternion (p0, p), the same for both of its signs."""

    @abc.abstractmethod
    def rotation(self, x: Vector) -> Matrix:
        """The rotation matrix (3, 3) psi(x)."""

    @abc.abstractmethod
    def translation(self, x: Vector, y: Vector) -> Vector:
        """The translation (3,) of psi(x, y), in m."""

    @abc.abstractmethod
    def translation_inverse(self, x: Vector, r: Vector) -> Vector:
        """The y (3,) for which psi(x, y) has the translation r (3,), in m."""

    @abc.abstractmethod
    def rate(self, x: Vector, w: Vector) -> Vector:
        """dpsi_{-x}^-1 w: dx/dt when psi(x(t)) has the body-fixed angular velocity w (3,)."""

    @abc.abstractmethod
    def twist_rate(self, x: Vector, y: Vector, w: Vector, v: Vector) -> tuple[Vector, Vector]:
        """dx/dt and dy/dt when psi(x(t), y(t)) has the body-fixed twist (w, v)."""


@dataclass(frozen=True)
class Exponential(Chart):
    """psi = exp: rotation vectors and screws."""

    def turn(self, x: Vector) -> tuple[Scalar, Vector]:
        return quaternion.exp_components(x)

    def turn_inverse(self, p0: Scalar, p: Vector) -> Vector:
        return quaternion.log_components(p0, p)

    def rotation(self, x: Vector) -> Matrix:
        return so3.exp_components(x)

    def translation(self, x: Vector, y: Vector) -> Vector:
        return se3.exp_translation_components(x, y)

    def translation_inverse(self, x: Vector, r: Vector) -> Vector:
        return so3.dexp_inv_components(x) @ r

    def rate(self, x: Vector, w: Vector) -> Vector:
        return so3.dexp_inv_components(-x) @ w

    def twist_rate(self, x: Vector, y: Vector, w: Vector, v: Vector) -> tuple[Vector, Vector]:
        diagonal = so3.dexp_inv_components(-x)
        return diagonal @ w, se3.dexp_inv_corner_components(-x, -y) @ w + diagonal @ v


@dataclass(frozen=True)
class Cayley(Chart):
    """psi(x, y) = cay(x / 2, y / 2): twice the (extended) Rodrigues parameters."""

    def turn(self, x: Vector) -> tuple[Scalar, Vector]:
        c = x * 0.5
        y = c.square()
        r = 1 / jnp.sqrt(1 + y)
        # Equals r. Near 1 it is rounded only once, so the errors of many small steps average out.
        return 1 - y * r * r / (1 + r), c * r

    def turn_inverse(self, p0: Scalar, p: Vector) -> Vector:
        return p * (2 / p0)

    def rotation(self, x: Vector) -> Matrix:
        return so3.cay_components(x * 0.5)

    def translation(self, x: Vector, y: Vector) -> Vector:
        return so3.half_one_plus_cay_components(x * 0.5) @ y

    def translation_inverse(self, x: Vector, r: Vector) -> Vector:
        return r - x.cross(r) * 0.5

    def rate(self, x: Vector, w: Vector) -> Vector:
        return so3.dcay_inv_components(x * -0.5) @ w * 2

    def twist_rate(self, x: Vector, y: Vector, w: Vector, v: Vector) -> tuple[Vector, Vector]:
        # The lower row of dcay_{-X}^-1 is (I + hat(x) / 2) [hat(y) / 2, I].
        u = v + y.cross(w) * 0.5
        return self.rate(x, w), u + x.cross(u) * 0.5

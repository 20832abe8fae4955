"""Charts: the local coordinates in which the manifolds of quaternions and poses take their steps.

A chart writes the rotations near the identity as R = psi(x) and the rigid motions as psi(x, y),
the turn psi(x) and a translation; x (3,) is in rad and y (3,) in m. At zero the derivative of psi
is the identity, so that small coordinates are tangents whatever the chart.

`Exponential` is the rotation vector and the screw, without a singularity in turns below 2 pi.
`Cayley` is x = 2 tan(t/2) along the axis, t the angle: twice the Rodrigues parameters c of
`so3.cay(c)`, and twice the extended ones (c, d) of `se3.cay` on rigid motions. It needs no
trigonometric function and its rates are polynomials, regular everywhere; a half turn is at
infinity.

Functions of components; Mueller, sections 5 and 6.4.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass

import jax.numpy as jnp

from . import quaternion, se3, so3
from .components import Matrix, Scalar, Vector


class Chart(abc.ABC):
    """Local coordinates psi, with psi(0) the identity and the identity as derivative there."""

    @abc.abstractmethod
    def turn(self, x: Vector) -> tuple[Scalar, Vector]:
        """The unit quaternion of psi(x)."""

    @abc.abstractmethod
    def turn_inverse(self, p0: Scalar, p: Vector) -> Vector:
        """The x of a quaternion, the same for both signs."""

    @abc.abstractmethod
    def rotation(self, x: Vector) -> Matrix:
        """The rotation matrix of psi(x)."""

    @abc.abstractmethod
    def translation(self, x: Vector, y: Vector) -> Vector:
        """The translation of psi(x, y)."""

    @abc.abstractmethod
    def translation_inverse(self, x: Vector, r: Vector) -> Vector:
        """The y with which psi(x, y) translates by r."""

    @abc.abstractmethod
    def rate(self, x: Vector, w: Vector) -> Vector:
        """dpsi_{-x}^-1 w: dx/dt when psi(x(t)) turns with the body rate w."""

    @abc.abstractmethod
    def twist_rate(self, x: Vector, y: Vector, w: Vector, v: Vector) -> tuple[Vector, Vector]:
        """The rates of (x, y) when psi(x(t), y(t)) moves with the body twist (w, v)."""


@dataclass(frozen=True)
class Exponential(Chart):
    """psi = exp: the rotation vector, and screws."""

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
        # r itself, but rounded once where it is near 1: the errors of many small steps average out.
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

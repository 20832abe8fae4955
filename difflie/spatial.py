"""Spatial algebra on scalar components: motions, forces, transforms and inertias.

Twists and accelerations are `Motion`s (angular, linear), wrenches are `Force`s (moment, force),
both expressed in, and taken at the origin of, a body frame. A `Transform` T takes coordinates of
its inner frame to its outer one: T = X_parent_child throughout. Units are SI.

All classes are pytrees whose components are floats or arrays of any one shape, operated on
elementwise: the same source describes one body, all bodies at once, or a batch of machines.
The formulas are those of Park and Chung 2005 and Reuss 2002 with the angular part first.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import jax
import jax.numpy as jnp

from .groups import quaternion, se3, so3
from .groups.components import Matrix, Scalar, Vector


def _pytree(cls: type) -> Any:
    names = tuple(f.name for f in fields(cls))
    return jax.tree_util.register_dataclass(cls, data_fields=names, meta_fields=())


@_pytree
@dataclass(frozen=True, slots=True)
class Motion:
    """A twist or a spatial acceleration: angular part (rad/s), linear part (m/s)."""

    angular: Vector
    linear: Vector

    def __add__(self, o: Motion) -> Motion:
        return Motion(self.angular + o.angular, self.linear + o.linear)

    def __mul__(self, s: Scalar) -> Motion:
        return Motion(self.angular * s, self.linear * s)

    def cross(self, o: Motion) -> Motion:
        """ad_self o, the Lie bracket."""
        return Motion(
            self.angular.cross(o.angular),
            self.angular.cross(o.linear) + self.linear.cross(o.angular),
        )

    def cross_force(self, f: Force) -> Force:
        """-ad_self^T f: the rate of change of a wrench carried along by the twist."""
        return Force(
            self.angular.cross(f.moment) + self.linear.cross(f.force), self.angular.cross(f.force)
        )

    # A motion may stand for a screw in any direction; see `Screw` for what follows.

    def times(self, rate: Scalar) -> Motion:
        return self * rate

    def add_to(self, m: Motion) -> Motion:
        """m + self."""
        return m + self

    def bracket(self, m: Motion) -> Motion:
        """ad_m self."""
        return m.cross(self)

    def column(self, i: ArticulatedInertia) -> Force:
        """i @ self: the wrench of a unit acceleration along the screw."""
        return i @ self

    def dot(self, f: Force) -> Scalar:
        """The power of a wrench on this twist (W)."""
        return self.angular.dot(f.moment) + self.linear.dot(f.force)

    def then(self, o: Motion) -> Motion:
        """log(exp(self) exp(o)), of least rotation, as precise in proportion as both are.

        The logarithm of a product of matrices would lose what is small beside one.
        """
        a, b = self.angular, o.angular
        turned = quaternion.exp_components(a)
        w = quaternion.log_components(
            *quaternion.multiply_components(*turned, *quaternion.exp_components(b))
        )
        moved = quaternion.to_matrix_components(*turned) @ se3.exp_translation_components(
            b, o.linear
        )
        moved = se3.exp_translation_components(a, self.linear) + moved
        return Motion(w, so3.dexp_inv_components(w) @ moved)

    @staticmethod
    def from_array(a: jax.Array) -> Motion:
        """The components of an array (..., 6), angular part first."""
        return Motion(Vector.from_array(a[..., :3]), Vector.from_array(a[..., 3:]))

    def to_array(self) -> jax.Array:
        """The array (..., 6), angular part first."""
        return jnp.concatenate((self.angular.to_array(), self.linear.to_array()), axis=-1)


@_pytree
@dataclass(frozen=True, slots=True)
class Force:
    """A wrench or a momentum: moment (N m or N m s), force (N or N s)."""

    moment: Vector
    force: Vector

    def __add__(self, o: Force) -> Force:
        return Force(self.moment + o.moment, self.force + o.force)

    def __sub__(self, o: Force) -> Force:
        return Force(self.moment - o.moment, self.force - o.force)

    def __mul__(self, s: Scalar) -> Force:
        return Force(self.moment * s, self.force * s)

    @staticmethod
    def from_array(a: jax.Array) -> Force:
        """The components of an array (..., 6), moment first."""
        return Force(Vector.from_array(a[..., :3]), Vector.from_array(a[..., 3:]))

    def to_array(self) -> jax.Array:
        """The array (..., 6), moment first."""
        return jnp.concatenate((self.moment.to_array(), self.force.to_array()), axis=-1)


@_pytree
@dataclass(frozen=True, slots=True)
class Transform:
    """A pose (R, p): x_outer = R x_inner + p."""

    rotation: Matrix
    translation: Vector

    def __matmul__(self, o: Transform) -> Transform:
        return Transform(
            self.rotation @ o.rotation, self.rotation @ o.translation + self.translation
        )

    def inverse_motion(self, m: Motion) -> Motion:
        """Ad^-1 m: a motion of the outer frame, seen from the inner one."""
        r = self.rotation
        return Motion(
            r.transposed_times(m.angular),
            r.transposed_times(m.linear - self.translation.cross(m.angular)),
        )

    def motion(self, m: Motion) -> Motion:
        """Ad m: a motion of the inner frame, seen from the outer one."""
        angular = self.rotation @ m.angular
        return Motion(angular, self.rotation @ m.linear + self.translation.cross(angular))

    def force(self, f: Force) -> Force:
        """Ad^-T f: a wrench of the inner frame, seen from the outer one."""
        force = self.rotation @ f.force
        return Force(self.rotation @ f.moment + self.translation.cross(force), force)

    def inverse_force(self, f: Force) -> Force:
        """Ad^T f: a wrench of the outer frame, seen from the inner one."""
        r = self.rotation
        return Force(
            r.transposed_times(f.moment - self.translation.cross(f.force)),
            r.transposed_times(f.force),
        )

    def inverse(self) -> Transform:
        return Transform(
            self.rotation.transpose(), -self.rotation.transposed_times(self.translation)
        )

    @staticmethod
    def exp(m: Motion) -> Transform:
        """The displacement along the screw m in unit time."""
        w = m.angular
        return Transform(so3.exp_components(w), se3.exp_translation_components(w, m.linear))

    def to_array(self) -> jax.Array:
        """The homogeneous matrices (..., 4, 4)."""
        r, p = self.rotation.to_array(), self.translation.to_array()
        top = jnp.concatenate((r, p[..., None]), axis=-1)
        last = jnp.asarray([0.0, 0.0, 0.0, 1.0], top.dtype)
        bottom = jnp.broadcast_to(last, (*top.shape[:-2], 1, 4))
        return jnp.concatenate((top, bottom), axis=-2)


@_pytree
@dataclass(frozen=True, slots=True)
class Symmetric:
    """A symmetric 3x3 matrix as its six components."""

    xx: Scalar
    xy: Scalar
    xz: Scalar
    yy: Scalar
    yz: Scalar
    zz: Scalar

    @staticmethod
    def from_array(a: jax.Array) -> Symmetric:
        """The symmetric part of arrays (..., 3, 3)."""

        def entry(i: int, j: int) -> jax.Array:
            return (a[..., i, j] + a[..., j, i]) / 2

        return Symmetric(
            a[..., 0, 0], entry(0, 1), entry(0, 2), a[..., 1, 1], entry(1, 2), a[..., 2, 2]
        )

    @staticmethod
    def of_outer(v: Vector, s: Scalar) -> Symmetric:
        """s v v^T."""
        x, y, z = v.x * s, v.y * s, v.z * s
        return Symmetric(x * v.x, x * v.y, x * v.z, y * v.y, y * v.z, z * v.z)

    def __add__(self, o: Symmetric) -> Symmetric:
        return Symmetric(
            *(self.xx + o.xx, self.xy + o.xy, self.xz + o.xz),
            *(self.yy + o.yy, self.yz + o.yz, self.zz + o.zz),
        )

    def __sub__(self, o: Symmetric) -> Symmetric:
        return Symmetric(
            *(self.xx - o.xx, self.xy - o.xy, self.xz - o.xz),
            *(self.yy - o.yy, self.yz - o.yz, self.zz - o.zz),
        )

    def __matmul__(self, v: Vector) -> Vector:
        return Vector(
            self.xx * v.x + self.xy * v.y + self.xz * v.z,
            self.xy * v.x + self.yy * v.y + self.yz * v.z,
            self.xz * v.x + self.yz * v.y + self.zz * v.z,
        )

    def matrix(self) -> Matrix:
        return Matrix(
            *(self.xx, self.xy, self.xz),
            *(self.xy, self.yy, self.yz),
            *(self.xz, self.yz, self.zz),
        )

    def rotated(self, r: Matrix) -> Symmetric:
        """r self r^T."""
        m = r @ self.matrix()
        return Symmetric(
            m.xx * r.xx + m.xy * r.xy + m.xz * r.xz,
            m.xx * r.yx + m.xy * r.yy + m.xz * r.yz,
            m.xx * r.zx + m.xy * r.zy + m.xz * r.zz,
            m.yx * r.yx + m.yy * r.yy + m.yz * r.yz,
            m.yx * r.zx + m.yy * r.zy + m.yz * r.zz,
            m.zx * r.zx + m.zy * r.zy + m.zz * r.zz,
        )


@_pytree
@dataclass(frozen=True, slots=True)
class Inertia:
    """The spatial inertia of a rigid body about its frame origin.

    mass (kg), first moment m c (kg m, c the centre of mass), second moments about the frame
    ORIGIN, not about the centre of mass (kg m^2).
    """

    mass: Scalar
    first: Vector
    second: Symmetric

    @staticmethod
    def about_com(mass: Scalar, com: Vector, central: Symmetric) -> Inertia:
        """From the inertia `central` about the centre of mass `com` (Steiner's theorem)."""
        first = com * mass
        square = first.dot(com)
        zero = square * 0
        shift = Symmetric(square, zero, zero, square, zero, square)
        return Inertia(mass, first, central + shift - Symmetric.of_outer(com, mass))

    def __add__(self, o: Inertia) -> Inertia:
        return Inertia(self.mass + o.mass, self.first + o.first, self.second + o.second)

    def __matmul__(self, m: Motion) -> Force:
        """The momentum of a twist, or the wrench of an acceleration."""
        return Force(
            self.second @ m.angular + self.first.cross(m.linear),
            m.linear * self.mass - self.first.cross(m.angular),
        )

    def change_frame(self, t: Transform) -> Inertia:
        """The same body about the outer frame of t."""
        h = t.rotation @ self.first
        p = t.translation
        # second moments shift by -(p~ h~ + h~ p~ + m p~ p~), h the rotated first moment
        trace = 2 * p.dot(h) + self.mass * p.square()
        o = trace * 0
        ph, pp = p.outer(h), Symmetric.of_outer(p, self.mass)
        mixed = Symmetric(
            2 * ph.xx, ph.xy + ph.yx, ph.xz + ph.zx, 2 * ph.yy, ph.yz + ph.zy, 2 * ph.zz
        )
        second = self.second.rotated(t.rotation) + Symmetric(trace, o, o, trace, o, trace)
        return Inertia(self.mass, h + p * self.mass, second - mixed - pp)


@_pytree
@dataclass(frozen=True, slots=True)
class ArticulatedInertia:
    """The 6x6 symmetric matrix [[A, H], [H^T, M]] that maps a Motion to a Force."""

    second: Symmetric
    coupling: Matrix
    mass: Symmetric

    @staticmethod
    def of_rigid(i: Inertia) -> ArticulatedInertia:
        o = i.mass * 0
        return ArticulatedInertia(
            i.second, Matrix.skew(i.first), Symmetric(i.mass, o, o, i.mass, o, i.mass)
        )

    def __add__(self, o: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia(
            self.second + o.second, self.coupling + o.coupling, self.mass + o.mass
        )

    def __matmul__(self, m: Motion) -> Force:
        return Force(
            self.second @ m.angular + self.coupling @ m.linear,
            self.coupling.transposed_times(m.angular) + self.mass @ m.linear,
        )

    def minus_outer(self, f: Force, s: Scalar) -> ArticulatedInertia:
        """self - s f f^T."""
        return ArticulatedInertia(
            self.second - Symmetric.of_outer(f.moment, s),
            self.coupling - (f.moment * s).outer(f.force),
            self.mass - Symmetric.of_outer(f.force, s),
        )

    def change_frame(self, t: Transform) -> ArticulatedInertia:
        """Ad_t^-T self Ad_t^-1: the same inertia for motions of the outer frame of t."""
        r, p = t.rotation, t.translation
        mass = self.mass.rotated(r)
        coupling = r @ self.coupling @ r.transpose()
        skew = Matrix.skew(p)
        shifted = coupling + skew @ mass.matrix()
        # A' = A + p~ H^T - H' p~ in rotated blocks, with p~ H^T = -(H p~)^T
        m = -((coupling @ skew).transpose() + shifted @ skew)
        second = self.second.rotated(r)
        return ArticulatedInertia(
            Symmetric(
                *(second.xx + m.xx, second.xy + m.xy, second.xz + m.xz),
                *(second.yy + m.yy, second.yz + m.yz, second.zz + m.zz),
            ),
            shifted,
            mass,
        )


@_pytree
@dataclass(frozen=True, slots=True)
class MotionTransform:
    """A 6x6 matrix [[A, 0], [C, A]] that maps a Motion to a Motion.

    Ad, ad, dexp, its inverse and all their products are of this kind: they are matrices A + e C of
    dual numbers, e^2 = 0, that act on the dual vectors (angular) + e (linear).
    """

    diagonal: Matrix
    corner: Matrix

    @staticmethod
    def of_inverse(t: Transform) -> MotionTransform:
        """Ad_t^-1."""
        r = t.rotation.transpose()
        return MotionTransform(r, -(r @ Matrix.skew(t.translation)))

    @staticmethod
    def dexp(m: Motion) -> MotionTransform:
        """The right-trivialised differential of the exponential map."""
        corner = se3.dexp_corner_components(m.angular, m.linear)
        return MotionTransform(so3.dexp_components(m.angular), corner)

    @staticmethod
    def dexp_inv(m: Motion) -> MotionTransform:
        """The inverse of `dexp`."""
        corner = se3.dexp_inv_corner_components(m.angular, m.linear)
        return MotionTransform(so3.dexp_inv_components(m.angular), corner)

    def __matmul__(self, o: Any) -> Any:
        """The product with a Motion or an MotionTransform."""
        if isinstance(o, Motion):
            return Motion(
                self.diagonal @ o.angular, self.corner @ o.angular + self.diagonal @ o.linear
            )
        return MotionTransform(
            self.diagonal @ o.diagonal, self.corner @ o.diagonal + self.diagonal @ o.corner
        )

    def transposed_times(self, o: Any) -> Any:
        """The product of the transpose with a Force or a MotionToForce."""
        if isinstance(o, Force):
            moment = self.diagonal.transposed_times(o.moment)
            moment = moment + self.corner.transposed_times(o.force)
            return Force(moment, self.diagonal.transposed_times(o.force))
        a, c = self.diagonal.transpose(), self.corner.transpose()
        return MotionToForce(
            *(a @ o.second + c @ o.lower, a @ o.upper + c @ o.mass), *(a @ o.lower, a @ o.mass)
        )


@_pytree
@dataclass(frozen=True, slots=True)
class MotionToForce:
    """Any 6x6 matrix [[A, H], [L, M]] that maps a Motion to a Force."""

    second: Matrix
    upper: Matrix
    lower: Matrix
    mass: Matrix

    @staticmethod
    def of_rigid(i: Inertia) -> MotionToForce:
        first = Matrix.skew(i.first)
        return MotionToForce(i.second.matrix(), first, -first, Matrix.scaled_identity(i.mass))

    def __add__(self, o: MotionToForce) -> MotionToForce:
        return MotionToForce(
            *(self.second + o.second, self.upper + o.upper),
            *(self.lower + o.lower, self.mass + o.mass),
        )

    def __matmul__(self, o: Any) -> Any:
        """The product with a Motion or an MotionTransform."""
        if isinstance(o, Motion):
            return Force(
                self.second @ o.angular + self.upper @ o.linear,
                self.lower @ o.angular + self.mass @ o.linear,
            )
        return MotionToForce(
            *(self.second @ o.diagonal + self.upper @ o.corner, self.upper @ o.diagonal),
            *(self.lower @ o.diagonal + self.mass @ o.corner, self.mass @ o.diagonal),
        )

    def transposed_times(self, m: Motion) -> Force:
        """self^T m."""
        a, v = m.angular, m.linear
        return Force(
            self.second.transposed_times(a) + self.lower.transposed_times(v),
            self.upper.transposed_times(a) + self.mass.transposed_times(v),
        )

    def minus_outer(self, f: Force, g: Force) -> MotionToForce:
        """self - f g^T."""
        return MotionToForce(
            *(self.second - f.moment.outer(g.moment), self.upper - f.moment.outer(g.force)),
            *(self.lower - f.force.outer(g.moment), self.mass - f.force.outer(g.force)),
        )

    def change_frame(self, t: Transform) -> MotionToForce:
        """Ad_t^-T self: the forces seen from the outer frame of t."""
        r, skew = t.rotation, Matrix.skew(t.translation)
        lower, mass = r @ self.lower, r @ self.mass
        return MotionToForce(
            *(r @ self.second + skew @ lower, r @ self.upper + skew @ mass), *(lower, mass)
        )


@_pytree
@dataclass(frozen=True, slots=True)
class Screw:
    """The axis of one degree of freedom, always the z axis of its own frame.

    angular: rad per unit of the coordinate (1 revolute, 0 prismatic); linear: m per unit of the
    coordinate (0 revolute, 1 prismatic, the pitch for helical). A component that is a Python
    number is structure: products with its zeros are never formed.
    """

    angular: Scalar
    linear: Scalar

    def times(self, rate: Scalar) -> Screw:
        return Screw(_product(self.angular, rate), _product(self.linear, rate))

    def add_to(self, m: Motion) -> Motion:
        """m + self."""
        a, v = m.angular, m.linear
        return Motion(
            Vector(a.x, a.y, _sum(a.z, self.angular)), Vector(v.x, v.y, _sum(v.z, self.linear))
        )

    def bracket(self, m: Motion) -> Motion:
        """ad_m self."""
        a, v, w, u = m.angular, m.linear, self.angular, self.linear
        o = a.x * 0
        return Motion(
            Vector(_sum(o, _product(w, a.y)), _sum(o, _product(w, -a.x)), o),
            Vector(
                _sum(_sum(o, _product(u, a.y)), _product(w, v.y)),
                _sum(_sum(o, _product(u, -a.x)), _product(w, -v.x)),
                o,
            ),
        )

    def dot(self, f: Force) -> Scalar:
        """The generalised force of a wrench along this screw."""
        return _sum(_product(self.angular, f.moment.z), _product(self.linear, f.force.z))

    def column(self, i: ArticulatedInertia) -> Force:
        """i @ self: the wrench of a unit acceleration along the screw."""
        h, w, u = i.coupling, self.angular, self.linear

        def entry(second: Scalar, first: Scalar) -> Scalar:
            return _sum(_product(w, second), _product(u, first))

        return Force(
            Vector(*(entry(i.second.xz, h.xz), entry(i.second.yz, h.yz), entry(i.second.zz, h.zz))),
            Vector(*(entry(h.zx, i.mass.xz), entry(h.zy, i.mass.yz), entry(h.zz, i.mass.zz))),
        )


def _product(structure: Scalar, a: Scalar) -> Scalar:
    if isinstance(structure, float):
        if structure == 0.0:
            return 0.0
        if structure == 1.0:
            return a
    return structure * a


def _sum(a: Scalar, b: Scalar) -> Scalar:
    if isinstance(b, float) and b == 0.0:
        return a
    if isinstance(a, float) and a == 0.0:
        return b
    return a + b

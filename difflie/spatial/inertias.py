"""Inertias of rigid and of articulated bodies."""

from __future__ import annotations

from dataclasses import dataclass

import jax

from ..groups.components import Componentwise, Matrix, Scalar, Vector, components
from .transforms import Transform
from .vectors import Force, Motion


@components
@dataclass(frozen=True, slots=True)
class Symmetric(Componentwise):
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
        """s v v^T (3, 3)."""
        x, y, z = v.x * s, v.y * s, v.z * s
        return Symmetric(x * v.x, x * v.y, x * v.z, y * v.y, y * v.z, z * v.z)

    def __matmul__(self, v: Vector) -> Vector:
        return Vector(
            self.xx * v.x + self.xy * v.y + self.xz * v.z,
            self.xy * v.x + self.yy * v.y + self.yz * v.z,
            self.xz * v.x + self.yz * v.y + self.zz * v.z,
        )

    def solve(self, b: Vector) -> Vector:
        """The x with self x = b, by L D L^T, for a positive definite matrix."""
        d, yx, zx = 1 / self.xx, self.xy, self.xz
        ly, lz = yx * d, zx * d
        e = 1 / (self.yy - ly * yx)
        zy = self.yz - ly * zx
        lzy = zy * e
        y = b.y - ly * b.x
        z = (b.z - lz * b.x - lzy * y) / (self.zz - lz * zx - lzy * zy)
        y = y * e - lzy * z
        return Vector(b.x * d - ly * y - lz * z, y, z)

    def matrix(self) -> Matrix:
        """All nine components."""
        return Matrix(
            *(self.xx, self.xy, self.xz),
            *(self.xy, self.yy, self.yz),
            *(self.xz, self.yz, self.zz),
        )

    def rotated(self, r: Matrix) -> Symmetric:
        """r self r^T (3, 3)."""
        m = r @ self.matrix()
        return Symmetric(
            m.xx * r.xx + m.xy * r.xy + m.xz * r.xz,
            m.xx * r.yx + m.xy * r.yy + m.xz * r.yz,
            m.xx * r.zx + m.xy * r.zy + m.xz * r.zz,
            m.yx * r.yx + m.yy * r.yy + m.yz * r.yz,
            m.yx * r.zx + m.yy * r.zy + m.yz * r.zz,
            m.zx * r.zx + m.zy * r.zy + m.zz * r.zz,
        )


@components
@dataclass(frozen=True, slots=True)
class Inertia(Componentwise):
    """The spatial inertia of a rigid body about its frame origin, in its frame.

    mass (kg); first: the first moment of mass m c (kg m), c the centre of mass; second: the inertia
    about the frame ORIGIN (kg m^2), not about the centre of mass.
    """

    mass: Scalar
    first: Vector
    second: Symmetric

    @staticmethod
    def about_com(mass: Scalar, com: Vector, central: Symmetric) -> Inertia:
        """From mass, centre of mass (m) and the inertia about it (kg m^2): Steiner's theorem."""
        first = com * mass
        square = first.dot(com)
        zero = square * 0
        shift = Symmetric(square, zero, zero, square, zero, square)
        return Inertia(mass, first, central + shift - Symmetric.of_outer(com, mass))

    def __matmul__(self, m: Motion) -> Force:
        """I V: the momentum of a twist, or the wrench of a spatial acceleration."""
        return Force(
            self.second @ m.angular + self.first.cross(m.linear),
            m.linear * self.mass - self.first.cross(m.angular),
        )

    def change_frame(self, t: Transform) -> Inertia:
        """The inertia of the same body about the outer frame of t, in its axes."""
        h = t.rotation @ self.first
        p = t.translation
        # the second moment shifts by -(p~ h~ + h~ p~ + m p~ p~), h the rotated first moment
        trace = 2 * p.dot(h) + self.mass * p.square()
        o = trace * 0
        ph, pp = p.outer(h), Symmetric.of_outer(p, self.mass)
        mixed = Symmetric(
            2 * ph.xx, ph.xy + ph.yx, ph.xz + ph.zx, 2 * ph.yy, ph.yz + ph.zy, 2 * ph.zz
        )
        second = self.second.rotated(t.rotation) + Symmetric(trace, o, o, trace, o, trace)
        return Inertia(self.mass, h + p * self.mass, second - mixed - pp)


@components
@dataclass(frozen=True, slots=True)
class ArticulatedInertia(Componentwise):
    """The symmetric 6x6 matrix [[A, H], [H^T, M]] that maps a Motion to a Force."""

    second: Symmetric
    coupling: Matrix
    mass: Symmetric

    @staticmethod
    def zero(o: Scalar) -> ArticulatedInertia:
        """Zero inertia; o is a zero of the components' shape."""
        return ArticulatedInertia(Symmetric(*[o] * 6), Matrix(*[o] * 9), Symmetric(*[o] * 6))

    @staticmethod
    def of_rigid(i: Inertia) -> ArticulatedInertia:
        """The inertia of one rigid body, as a 6x6 matrix."""
        o = i.mass * 0
        return ArticulatedInertia(
            i.second, Matrix.skew(i.first), Symmetric(i.mass, o, o, i.mass, o, i.mass)
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
        """Ad_t^-T self Ad_t^-1: the same inertia, expressed in the outer frame of t."""
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

"""6x6 operators without symmetry, as dynamics in discrete time needs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..groups import se3, so3
from ..groups.components import Componentwise, Matrix, components
from .inertias import Inertia
from .transforms import Transform
from .vectors import Force, Motion


@components
@dataclass(frozen=True, slots=True)
class MotionTransform:
    """A 6x6 matrix [[A, 0], [C, A]] that maps a Motion to a Motion.

    Ad, ad, dexp, its inverse and all their products have this form. They are dual matrices A + e C,
    e^2 = 0, acting on dual vectors (angular) + e (linear).
    """

    diagonal: Matrix
    corner: Matrix

    @staticmethod
    def of_inverse(t: Transform) -> MotionTransform:
        """Ad_t^-1: from the outer to the inner frame of t."""
        r = t.rotation.transpose()
        return MotionTransform(r, -(r @ Matrix.skew(t.translation)))

    @staticmethod
    def dexp(m: Motion) -> MotionTransform:
        """The right-trivialised differential of exp at m, as `se3.dexp`."""
        corner = se3.dexp_corner_components(m.angular, m.linear)
        return MotionTransform(so3.dexp_components(m.angular), corner)

    @staticmethod
    def dexp_inv(m: Motion) -> MotionTransform:
        """The inverse of `dexp`."""
        corner = se3.dexp_inv_corner_components(m.angular, m.linear)
        return MotionTransform(so3.dexp_inv_components(m.angular), corner)

    def __matmul__(self, o: Any) -> Any:
        """The product with a Motion or a MotionTransform."""
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


@components
@dataclass(frozen=True, slots=True)
class MotionToForce(Componentwise):
    """Any 6x6 matrix [[A, H], [L, M]] that maps a Motion to a Force."""

    second: Matrix
    upper: Matrix
    lower: Matrix
    mass: Matrix

    @staticmethod
    def of_rigid(i: Inertia) -> MotionToForce:
        """The inertia of one rigid body, as a 6x6 matrix."""
        first = Matrix.skew(i.first)
        return MotionToForce(i.second.matrix(), first, -first, Matrix.scaled_identity(i.mass))

    def __matmul__(self, o: Any) -> Any:
        """The product with a Motion or a MotionTransform."""
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
        """Ad_t^-T self: the forces expressed in the outer frame of t, for the same motions."""
        r, skew = t.rotation, Matrix.skew(t.translation)
        lower, mass = r @ self.lower, r @ self.mass
        return MotionToForce(
            *(r @ self.second + skew @ lower, r @ self.upper + skew @ mass), *(lower, mass)
        )

"""Screw axes of the degrees of freedom."""

from __future__ import annotations

from dataclasses import dataclass

from ..groups.components import Scalar, Vector, components
from .inertias import ArticulatedInertia
from .vectors import Force, Motion


@components
@dataclass(frozen=True, slots=True)
class Screw:
    """The screw axis of one degree of freedom, always the z axis of its own frame.

    angular: rad per unit of the coordinate (1 revolute, 0 prismatic); linear: m per unit of the
    coordinate (0 revolute, 1 prismatic, the pitch for helical). A component that is a Python float
    is known at trace time: products with its zeros are never formed.
    """

    angular: Scalar
    linear: Scalar

    def times(self, rate: Scalar) -> Screw:
        """self * rate."""
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

"""The Coriolis matrix C(q, v) (Niemeyer and Slotine 1991; Echeandia and Wensing 2021).

    C = sum_i J_i^T (I_i dJ_i/dt + B_i J_i),      C v = bias force - gravity,      dM/dt = C + C^T

For a body whose points r move with dr/dt = V_v + V_w x r, B X is the inertial wrench of rotating
their velocities at the rate X_w:

    B X = integral of (r x (X_w x dr/dt), X_w x dr/dt) dm,      B V = V x* I V,      B + B^T = dI/dt

C v does not determine C. This choice is that of the Christoffel symbols of the bodies.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Array, Float

from ..groups.components import Matrix, Vector, components
from ..spatial import Force, Inertia, Motion
from ..system.kinematic_tree import Tree
from .screws import generalised_matrix, pairs, screws


@components
@dataclass(frozen=True, slots=True)
class Turning:
    """B of bodies, about the origin of a frame fixed in the world.

    spread: the integral of (r . dr/dt) 1 - dr/dt r^T over the mass (kg m^2/s). momentum: the linear
    momentum, the integral of dr/dt (N s).
    """

    spread: Matrix
    momentum: Vector

    @staticmethod
    def of_rigid(i: Inertia, v: Motion) -> Turning:
        half = (i.second.xx + i.second.yy + i.second.zz) * 0.5
        moments = Matrix.scaled_identity(half) - i.second.matrix()  # the integral of r r^T
        radial = Matrix.scaled_identity(v.linear.dot(i.first))
        spread = radial - v.linear.outer(i.first) - Matrix.skew(v.angular) @ moments
        return Turning(spread, (i @ v).force)

    def __matmul__(self, x: Motion) -> Force:
        return Force(self.spread @ x.angular, x.angular.cross(self.momentum))

    def transposed_times(self, x: Motion) -> Vector:
        """The angular part of B^T x; the linear part is zero."""
        return self.spread.transposed_times(x.angular) + self.momentum.cross(x.linear)


def matrix(tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, "nv nv"]:
    """The Coriolis matrix (nv, nv) at (q (nq,), v (nv,))."""
    s = screws(tree, q)
    rates = tree.rates(v)
    twists = s.twists(rates)
    change = s.changes(twists, rates)
    inertia, turning = s.composite((s.inertia, Turning.of_rigid(s.inertia, twists)))
    matrix = pairs(
        s,
        near=((inertia @ s.axes, turning.transposed_times(s.axes)), (change, s.axes.angular)),
        far=inertia @ change + turning @ s.axes,
    )
    return generalised_matrix(tree, matrix)

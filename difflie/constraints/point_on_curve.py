"""A point that moves along a curve."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..groups.components import Scalar, Vector
from ..spatial import Transform
from .constraint import JointConstraint
from .curves import Curve, nearest_parameter


class PointOnCurve(JointConstraint):
    """The origin of the second frame lies on a curve in the first: 2 equations.

    curve: in the coordinates of the first frame. The equations are the components, along two
    normals of the curve, of the vector from its nearest point to the origin. The normals are chosen
    at each point of the curve from the coordinate axis most orthogonal to the tangent: the
    multipliers may jump where this axis changes, the reaction does not.
    """

    curve: Curve

    equations = "offset along a normal of the curve", "offset along its other normal"

    def residual(self, a: Transform, b: Transform) -> list[Scalar]:
        d = a.rotation.transposed_times(b.translation - a.translation)
        point = d.to_array()
        s = nearest_parameter(self.curve, point)
        tangent = self.curve.tangent(s)
        axis = jnp.eye(3, dtype=tangent.dtype)[jnp.argmin(jnp.abs(jax.lax.stop_gradient(tangent)))]
        x = jnp.cross(tangent, axis)
        y = jnp.cross(tangent, x)
        offset = d - Vector.from_array(self.curve.position(s))
        return [offset.dot(Vector.from_array(n / jnp.linalg.norm(n))) for n in (x, y)]

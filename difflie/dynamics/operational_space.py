"""The dynamics of a machine in the coordinates of one of its frames.

With the Jacobian J of the frame's twist V = J v and M a + c + g = tau,

    Lambda dV/dt + mu + p = F,    Lambda = (J M^-1 J^T)^-1,
    mu = Lambda (J M^-1 c - J' v),    p = Lambda J M^-1 g

where F is the wrench at the frame with tau = J^T F (Khatib 1987). The inverse of Lambda takes six
solves with M, each along the tree: O(n), and no inverse of a matrix (n, n).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..system.kinematic_tree import Tree
from .forward import mass_inverse_times
from .jacobians import Place, body_column_rates, body_columns
from .rnea import rnea


class OperationalSpace(NamedTuple):
    """The dynamics of a frame in its own axes, angular part first.

    inertia: Lambda (6, 6) in kg m^2, kg m and kg. bias: mu (6,), of Coriolis and centrifugal
    forces, and gravity: p (6,), both in N m and N. inverse_inertia: Lambda^-1 (6, 6). If the frame
    cannot move in all six directions, as with fewer than six degrees of freedom or at a singular
    pose, Lambda^-1 has no inverse and only Lambda^-1 is meaningful.
    """

    inertia: Float[Array, "6 6"]
    bias: Float[Array, "6"]
    gravity: Float[Array, "6"]
    inverse_inertia: Float[Array, "6 6"]


def of_frame(
    tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"], place: Place
) -> OperationalSpace:
    """The dynamics of a frame on a body."""
    zero = jnp.zeros_like(v)
    J = body_columns(tree, q, place)
    rate = body_column_rates(tree, q, v, place) @ v
    gravity = rnea(tree, q, zero, zero)
    coriolis = rnea(tree, q, v, zero) - gravity
    solved = jax.vmap(lambda force: mass_inverse_times(tree, q, force))(J)
    inverse = J @ solved.T
    inverse = (inverse + inverse.T) / 2
    inertia = jnp.linalg.inv(inverse)
    inertia = (inertia + inertia.T) / 2
    return OperationalSpace(
        inertia, inertia @ (solved @ coriolis - rate), inertia @ (solved @ gravity), inverse
    )

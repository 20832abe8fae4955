"""A planar chain in the coordinates of its centres of mass (Goetz 2024, section 3.4).

q = (x_1, ..., x_n, y_1, ..., y_n) (2n,). With the joints X_i and the arms d_i = x_i - X_i,

    X_{i+1} = X_i + length_i q_i,    q_i = rot(alpha_i) d_i / |com_i|

where rot(alpha_i) turns the direction of the centre of mass to q_i, that of the link. Hence the
arms are linear in q, the mass matrix is constant, and the only constraints are the lengths
c_i = |d_i|^2 - |com_i|^2 = 0.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .chain import PlanarChain
from .energy_stable import ConstrainedProblem


def arms(
    chain: PlanarChain, q: Float[Array, " two_n"]
) -> tuple[Float[Array, "2 n"], Float[Array, "2 n"]]:
    """d (2, n) in m: from each joint to the centre of mass of its link; the attitudes (2, n)."""
    x, y = chain.com.T
    turns = jnp.array([[x, y], [-y, x]]) / (x * x + y * y)
    joint, arms, attitudes = jnp.zeros(2, q.dtype), [], []
    for i, centre in enumerate(q.reshape(2, -1).T):
        arms.append(centre - joint)
        attitudes.append(turns[:, :, i] @ arms[i])
        joint = joint + chain.length[i] * attitudes[i]
    return jnp.stack(arms, axis=1), jnp.stack(attitudes, axis=1)


def angles(chain: PlanarChain, q: Float[Array, " two_n"]) -> Float[Array, " n"]:
    """The joint angles phi (n,) in rad of q (2n,), up to full turns."""
    x, y = arms(chain, q)[1]
    return jnp.diff(jnp.arctan2(y, x), prepend=0)


def mechanics(chain: PlanarChain) -> ConstrainedProblem:
    """The chain as a problem in q (2n,): the constraints c (n,) are in m^2, (3.23)."""
    square = jnp.sum(chain.com**2, axis=1)

    def kinetic_energy(v: jax.Array) -> jax.Array:
        moving = jnp.sum(chain.mass * v.reshape(2, -1) ** 2)
        return (moving + jnp.sum(chain.inertia / square * arms(chain, v)[0] ** 2)) / 2

    def constraint(q: jax.Array) -> jax.Array:
        return jnp.sum(arms(chain, q)[0] ** 2, axis=0) - square

    def potential(q: jax.Array) -> jax.Array:
        return chain.potential_at(q.reshape(2, -1), arms(chain, q)[1])

    return ConstrainedProblem(kinetic_energy, constraint, potential)

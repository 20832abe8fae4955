"""A planar chain in the coordinates of its centres of mass (Goetz 2024, section 3.4).

q = (x_1, ..., x_n, y_1, ..., y_n) (2n,). With the joints X_i and d_i = x_i - X_i,

    X_{i+1} = X_i + A_i d_i,    A_i = (length_i / |com_i|) rot(alpha_i)

where rot(alpha_i) turns the direction of the centre of mass to that of the next joint. Hence
d_i = K_i q with constant K_i, the mass matrix is constant, M = diag(m) + K^T diag(J / |com|^2) K,
and the only constraints are the lengths c_i = |d_i|^2 - |com_i|^2 = 0.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .planar_chain import PlanarChain


def arms_from_centres(
    chain: PlanarChain, q: jax.Array
) -> tuple[Float[Array, "n 2"], Float[Array, "n 2"]]:
    """d (n, 2) in m: from each joint to the centre of mass of its link, and L (n, 2): to the next
    joint.
    """
    square = jnp.sum(chain.com * chain.com, axis=1)
    # A d in the plane: rot(alpha) length / |com| has the columns (u, v) and (-v, u).
    u, v = chain.length * chain.com[:, 0] / square, -chain.length * chain.com[:, 1] / square
    joint_x = joint_y = jnp.zeros((), q.dtype)
    arms, links = [], []
    for i in range(chain.n_links):
        x, y = q[i] - joint_x, q[chain.n_links + i] - joint_y
        link_x, link_y = u[i] * x - v[i] * y, v[i] * x + u[i] * y
        joint_x, joint_y = joint_x + link_x, joint_y + link_y
        arms.append(jnp.stack((x, y)))
        links.append(jnp.stack((link_x, link_y)))
    return jnp.stack(arms), jnp.stack(links)


def centres(chain: PlanarChain, phi: Float[Array, " n"]) -> Float[Array, " two_n"]:
    """q (2n,) in m of the joint angles phi (n,) in rad."""
    x, y = chain.arms(phi)
    return jnp.concatenate((jnp.sum(x, axis=1), jnp.sum(y, axis=1)))


def centre_velocities(
    chain: PlanarChain, phi: Float[Array, " n"], rate: Float[Array, " n"]
) -> Float[Array, " two_n"]:
    """dq/dt (2n,) in m/s of the joint angles phi (n,) and velocities rate (n,)."""
    return jax.jvp(lambda phi: centres(chain, phi), (phi,), (rate,))[1]


def angles(chain: PlanarChain, q: Float[Array, " two_n"]) -> Float[Array, " n"]:
    """The joint angles phi (n,) in rad of q (2n,), each in (-pi, pi]."""
    _, links = arms_from_centres(chain, q)
    x, y = links[:, 0], links[:, 1]
    before_x = jnp.concatenate((jnp.ones_like(x[:1]), x[:-1]))
    before_y = jnp.concatenate((jnp.zeros_like(y[:1]), y[:-1]))
    return jnp.arctan2(before_x * y - before_y * x, before_x * x + before_y * y)


def centre_mass(chain: PlanarChain) -> Float[Array, "two_n two_n"]:
    """M (2n, 2n) in kg, constant."""

    def kinetic_energy(v: jax.Array) -> jax.Array:
        d, _ = arms_from_centres(chain, v)
        spin = chain.inertia / jnp.sum(chain.com * chain.com, axis=1)
        moving = jnp.sum(jnp.concatenate((chain.mass, chain.mass)) * v * v)
        return (moving + jnp.sum(spin[:, None] * d * d)) / 2

    return jax.hessian(kinetic_energy)(jnp.zeros(2 * chain.n_links, chain.length.dtype))


def length_constraint(chain: PlanarChain, q: Float[Array, " two_n"]) -> Float[Array, " n"]:
    """c (n,) in m^2, (3.23)."""
    d, _ = arms_from_centres(chain, q)
    return jnp.sum(d * d, axis=1) - jnp.sum(chain.com * chain.com, axis=1)


def centre_potential(chain: PlanarChain, q: Float[Array, " two_n"]) -> Float[Array, ""]:
    """The energy of gravity and springs, a scalar in J, of q (2n,)."""
    weight = chain.gravity * jnp.sum(chain.mass * q[chain.n_links :])
    if chain.springs is None:
        return weight
    _, links = arms_from_centres(chain, q)
    up = jnp.array([[0.0, 1.0]], q.dtype)
    normals = jnp.stack((-links[:, 1], links[:, 0]), axis=1) / chain.length[:, None]
    reach = chain.springs.fastening[:, None] * jnp.concatenate((up, normals))
    return weight + chain.springs.energy(reach[1:] + links - reach[:-1])

"""A chain of links in the vertical plane, on revolute joints, with springs along it.

Goetz 2024, chapters 2 and 4. Link i turns about joint i, which lies at the origin (i = 1) or in
link i - 1 at (length, 0), by the angle phi_i relative to link i - 1 (link 1: to the x axis). Its
centre of mass is at `com` in its own frame. theta = W phi are the absolute angles, W the lower
triangle of ones. With the arms a_ij = R(theta_j) (length_j, 0), j < i, and a_ii = R(theta_i) com_i,

    x_i = sum_j a_ij,    M(phi) = W^T (sum_i m_i a_ij . a_ik + diag(inertia)) W

because the velocity of x_i is sum_j dtheta_j/dt z x a_ij.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .planar_springs import PlanarSprings


class PlanarChain(eqx.Module):
    """n links; every number is a leaf, in SI units.

    length (n,): from joint to joint. com (n, 2): the centres of mass in the links' frames. mass
    (n,), inertia (n,): about the centre of mass. gravity (): acts along -y. springs: along the
    chain, or None.
    """

    length: jax.Array
    com: jax.Array
    mass: jax.Array
    inertia: jax.Array
    gravity: jax.Array
    springs: PlanarSprings | None = None

    def __check_init__(self) -> None:
        n = np.shape(self.length)
        shapes = {"com": (*n, 2), "mass": n, "inertia": n, "gravity": ()}
        for name, shape in shapes.items():
            given = np.shape(getattr(self, name))
            if given != shape:
                raise ValueError(
                    f"PlanarChain: {name} has the shape {given}; with length {n} it must be {shape}"
                )
        if self.springs is not None and np.shape(self.springs.slack) != n:
            raise ValueError(
                f"PlanarChain: the springs have {np.shape(self.springs.slack)[0]} segments; they "
                f"need one for each of the {n[0]} links"
            )

    @property
    def n_links(self) -> int:
        return self.length.shape[0]

    def absolute(self, phi: Float[Array, " n"]) -> Float[Array, " n"]:
        """theta = W phi (n,) in rad; also angular velocities, rad/s, from joint velocities."""
        return jnp.sum(jnp.tril(jnp.ones((self.n_links, self.n_links), phi.dtype)) * phi, axis=1)

    def arms(self, phi: Float[Array, " n"]) -> tuple[Float[Array, "n n"], Float[Array, "n n"]]:
        """The x and the y of the arms a_ij (n, n) in m, in space; zero for j > i."""
        theta = self.absolute(phi)
        cos, sin = jnp.cos(theta), jnp.sin(theta)
        n = self.n_links
        own = jnp.eye(n, dtype=bool)
        lower = jnp.tril(jnp.ones((n, n), bool))
        x, y = self.com[:, 0], self.com[:, 1]
        along = jnp.where(own, x * cos - y * sin, jnp.where(lower, self.length * cos, 0))
        across = jnp.where(own, x * sin + y * cos, jnp.where(lower, self.length * sin, 0))
        return along, across

    def mass_matrix(self, phi: Float[Array, " n"]) -> Float[Array, "n n"]:
        """M(phi) (n, n) in kg m^2, for joint velocities."""
        x, y = self.arms(phi)
        n = self.n_links
        products = x[:, :, None] * x[:, None, :] + y[:, :, None] * y[:, None, :]
        absolute = jnp.sum(self.mass[:, None, None] * products, axis=0)
        absolute = absolute + jnp.where(jnp.eye(n, dtype=bool), self.inertia, 0)
        # W^T A W: sums over all links from j, and from k, on.
        upper = jnp.triu(jnp.ones((n, n), phi.dtype))
        rows = jnp.sum(upper[:, :, None] * absolute[None], axis=1)
        return jnp.sum(rows[:, None, :] * upper[None], axis=2)

    def kinetic_energy(self, phi: Float[Array, " n"], rate: Float[Array, " n"]) -> Float[Array, ""]:
        """sum_i m_i |dx_i/dt|^2 / 2 + J_i (dtheta_i/dt)^2 / 2, a scalar in J."""
        x, y = self.arms(phi)
        omega = self.absolute(rate)
        square = jnp.sum(x * omega, axis=1) ** 2 + jnp.sum(y * omega, axis=1) ** 2
        return jnp.sum(self.mass * square + self.inertia * omega**2) / 2

    def potential(self, phi: Float[Array, " n"]) -> Float[Array, ""]:
        """The energy of gravity and springs, a scalar in J."""
        _, y = self.arms(phi)
        weight = self.gravity * jnp.sum(self.mass * jnp.sum(y, axis=1))
        if self.springs is None:
            return weight
        cos, sin = jnp.cos(phi), jnp.sin(phi)
        before, after = self.springs.fastening[:-1], self.springs.fastening[1:]
        # In the frame of the link before: -r_i y + L_i q_i + r_{i+1} z x q_i.
        x = self.length * cos - after * sin
        y = self.length * sin + after * cos - before
        return weight + self.springs.energy(jnp.stack((x, y), axis=1))

    def energy(self, phi: Float[Array, " n"], rate: Float[Array, " n"]) -> Float[Array, ""]:
        """Kinetic and potential energy, a scalar in J."""
        return self.kinetic_energy(phi, rate) + self.potential(phi)

    def lagrangian(self, phi: Float[Array, " n"], rate: Float[Array, " n"]) -> Float[Array, ""]:
        """Kinetic less potential energy, a scalar in J."""
        return self.kinetic_energy(phi, rate) - self.potential(phi)

    def momentum(self, phi: Float[Array, " n"], rate: Float[Array, " n"]) -> Float[Array, " n"]:
        """p = M(phi) dphi/dt (n,) in N m s."""
        return jnp.sum(self.mass_matrix(phi) * rate, axis=1)

    def rate(self, phi: Float[Array, " n"], momentum: Float[Array, " n"]) -> Float[Array, " n"]:
        """dphi/dt = M(phi)^-1 p (n,) in rad/s."""
        return _solve(self.mass_matrix(phi), momentum)

    def acceleration(self, phi: Float[Array, " n"], rate: Float[Array, " n"]) -> Float[Array, " n"]:
        """d^2 phi/dt^2 (n,) in rad/s^2: M a = dL/dphi - dM/dt dphi/dt."""
        _, turning = jax.jvp(lambda phi: self.momentum(phi, rate), (phi,), (rate,))
        force = jax.grad(self.lagrangian)(phi, rate)
        return _solve(self.mass_matrix(phi), force - turning)


def _solve(matrix: Float[Array, "n n"], b: Float[Array, " n"]) -> Float[Array, " n"]:
    """matrix^-1 b (n,) for a positive definite matrix (n, n): elimination without pivots.

    In plain arithmetic, which a native program can hold.
    """
    w = jnp.concatenate((matrix, b[:, None]), axis=1)
    rows = jnp.arange(len(b))[:, None]
    for k in range(len(b)):
        row = w[k] / w[k, k]
        w = jnp.where(rows == k, row, w - w[:, k : k + 1] * row)
    return w[:, -1]

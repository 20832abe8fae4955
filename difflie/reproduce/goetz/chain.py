"""A chain of links in the vertical plane, on revolute joints, with springs along it.

Goetz 2024, chapters 2 and 4. Link i turns about joint i, which lies at the origin (i = 1) or in
link i - 1 at (length, 0), by the angle phi_i relative to link i - 1 (link 1: to the x axis), by
theta_i = phi_1 + ... + phi_i absolutely. Its centre of mass x_i is at `com` in its own frame.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...solvers.elimination import inverse
from .springs import PlanarSprings, normal


class PlanarChain(eqx.Module):
    """n links; every number is a leaf, in SI units.

    length (n,): from joint to joint. com (n, 2): the centres of mass in the links' frames. mass
    (n,), inertia (n,): about the centre of mass. gravity (): acts along -y. springs: along the
    chain.
    """

    length: Float[Array, " n"]
    com: Float[Array, "n 2"]
    mass: Float[Array, " n"]
    inertia: Float[Array, " n"]
    gravity: Float[Array, ""]
    springs: PlanarSprings

    def attitudes(self, phi: Float[Array, " n"]) -> Float[Array, "2 n"]:
        """q_i = (cos theta_i, sin theta_i), the directions of the links in space."""
        theta = jnp.cumsum(phi)
        return jnp.stack((jnp.cos(theta), jnp.sin(theta)))

    def centres(self, phi: Float[Array, " n"]) -> Float[Array, "2 n"]:
        """x_i in m, the centres of mass in space."""
        q = self.attitudes(phi)
        links = self.length * q
        joints = jnp.cumsum(links, axis=1) - links
        return joints + self.com[:, 0] * q + self.com[:, 1] * normal(q)

    def kinetic_energy(self, phi: Float[Array, " n"], rate: Float[Array, " n"]) -> Float[Array, ""]:
        """T = sum_i m_i |dx_i/dt|^2 / 2 + inertia_i (dtheta_i/dt)^2 / 2, a scalar in J."""
        _, velocities = jax.jvp(self.centres, (phi,), (rate,))
        turning = jnp.sum(self.inertia * jnp.cumsum(rate) ** 2)
        return (jnp.sum(self.mass * velocities**2) + turning) / 2

    def mass_matrix(self, phi: Float[Array, " n"]) -> Float[Array, "n n"]:
        """M(phi) (n, n) in kg m^2, with T = dphi/dt . M dphi/dt / 2."""
        return jax.hessian(self.kinetic_energy, 1)(phi, jnp.zeros_like(phi))

    def potential(self, phi: Float[Array, " n"]) -> Float[Array, ""]:
        """The energy of gravity and springs, a scalar in J."""
        return self.potential_at(self.centres(phi), self.attitudes(phi))

    def potential_at(
        self, centres: Float[Array, "2 n"], attitudes: Float[Array, "2 n"]
    ) -> Float[Array, ""]:
        """The same, a scalar in J, of the centres of mass in m and the attitudes of the links."""
        weight = self.gravity * jnp.sum(self.mass * centres[1])
        return weight + self.springs.energy(self.springs.segments(attitudes, self.length))

    def lagrangian(self, phi: Float[Array, " n"], rate: Float[Array, " n"]) -> Float[Array, ""]:
        """Kinetic less potential energy, a scalar in J."""
        return self.kinetic_energy(phi, rate) - self.potential(phi)

    def rate(self, phi: Float[Array, " n"], momentum: Float[Array, " n"]) -> Float[Array, " n"]:
        """dphi/dt = M(phi)^-1 p (n,) in rad/s."""
        return inverse(self.mass_matrix(phi), len(phi)) @ momentum

    def acceleration(self, phi: Float[Array, " n"], rate: Float[Array, " n"]) -> Float[Array, " n"]:
        """a = d^2 phi/dt^2 (n,) in rad/s^2, of M a + dp/dphi dphi/dt = dL/dphi, p = dL/drate."""
        momentum = jax.grad(self.lagrangian, 1)
        _, change = jax.jvp(lambda phi: momentum(phi, rate), (phi,), (rate,))
        return self.rate(phi, jax.grad(self.lagrangian)(phi, rate) - change)

    def field(self, t: Array, y: Float[Array, " two_n"]) -> Float[Array, " two_n"]:
        """dy/dt of y = (phi, dphi/dt) (2n,): velocities and accelerations."""
        phi, rate = jnp.split(y, 2)
        return jnp.concatenate((rate, self.acceleration(phi, rate)))

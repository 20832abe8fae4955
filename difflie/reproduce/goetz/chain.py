"""A chain of links in the vertical plane, on revolute joints, with springs along it.

Goetz 2024, chapters 2 and 4. Link i turns about joint i, which lies at the origin (i = 1) or in
link i - 1 at (length, 0), by the angle phi_i relative to link i - 1 (link 1: to the x axis), by
theta_i = phi_1 + ... + phi_i absolutely. Its centre of mass x_i is at `com` in its own frame.

Mono- and multi-articular springs along a planar chain (Goetz 2024, section 2.2).

Each link has a fastening at its end, on its normal, at the distance r_{i+1} from joint i + 1; that
of the base, r_1, is on the y axis above joint 1. Segment i leads from the fastening before link i
to the one at its end: with the attitudes q_i of the links and q_0 along the x axis (2.6),

    s_i = L_i q_i + r_{i+1} z x q_i - r_i z x q_{i-1}

A spring runs along one segment (mono-articular, (2.3)) or over several (multi-articular, (2.4)),
and pulls with its stiffness times what it is longer than its slack length:

    S = sum over springs of k/2 (sum over its segments of (|s_i| - s0_i))^2

A spring that is shorter is slack and does not push.

A planar chain in the coordinates of its centres of mass (Goetz 2024, section 3.4).

q = (x_1, ..., x_n, y_1, ..., y_n) (2n,). With the joints X_i and the arms d_i = x_i - X_i,

    X_{i+1} = X_i + length_i q_i,    q_i = rot(alpha_i) d_i / |com_i|

where rot(alpha_i) turns the direction of the centre of mass to q_i, that of the link. Hence the
arms are linear in q, the mass matrix is constant, and the only constraints are the lengths c_i =
|d_i|^2 - |com_i|^2 = 0.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...forces.path import root
from ...solvers.linear import inverse
from .energy_stable import ConstrainedProblem


class PlanarSprings(eqx.Module):
    """Springs along a chain of n links, in SI units.

    slack (n,): the slack length s0 of each segment. fastening (n + 1,): the distances r. stiffness
    (p,): one for each spring, along the segments (from 0) that `routes` names for it.
    """

    slack: Float[Array, " n"]
    fastening: Float[Array, " n+1"]
    stiffness: Float[Array, " p"]
    routes: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    def segments(
        self, attitudes: Float[Array, "2 n"], length: Float[Array, " n"]
    ) -> Float[Array, "2 n"]:
        """s (2, n) in m, in space, of links with these attitudes q and lengths L in m."""
        base = jnp.array([[1.0], [0.0]], attitudes.dtype)
        reach = self.fastening * normal(jnp.concatenate((base, attitudes), axis=1))
        return length * attitudes + reach[:, 1:] - reach[:, :-1]

    def energy(self, segments: Float[Array, "2 n"]) -> Float[Array, ""]:
        """S, a scalar in J, of the segments s (2, n) in m, in any frames."""
        square = jnp.sum(segments * segments, axis=0)
        length = root(square)
        # The squares of single lengths as they are: smooth also where a segment has no length.
        products = jnp.where(jnp.eye(len(square), dtype=bool), square, jnp.outer(length, length))
        energy = jnp.zeros((), square.dtype)
        for stiffness, route in zip(self.stiffness, self.routes, strict=True):
            on = np.array(route)
            slack, total = jnp.sum(self.slack[on]), jnp.sum(length[on])
            stretch = jnp.sum(products[on][:, on]) - 2 * slack * total + slack**2
            taut = jax.lax.stop_gradient(total >= slack)
            energy += stiffness * jnp.where(taut, stretch, 0) / 2
        return energy


def normal(q: Float[Array, "2 n"]) -> Float[Array, "2 n"]:
    """z x q_i of each vector q_i (2,) in the plane."""
    return jnp.stack((-q[1], q[0]))


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

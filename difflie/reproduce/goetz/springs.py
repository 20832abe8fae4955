"""Mono- and multi-articular springs along a planar chain (Goetz 2024, section 2.2).

Each link has a fastening at its end, on its normal, at the distance r_{i+1} from joint i + 1; that
of the base, r_1, is on the y axis above joint 1. Segment i leads from the fastening before link i
to the one at its end: with the attitudes q_i of the links and q_0 along the x axis (2.6),

    s_i = L_i q_i + r_{i+1} z x q_i - r_i z x q_{i-1}

A spring runs along one segment (mono-articular, (2.3)) or over several (multi-articular, (2.4)),
and pulls with its stiffness times what it is longer than its slack length:

    S = sum over springs of k/2 (sum over its segments of (|s_i| - s0_i))^2

A spring that is shorter is slack and does not push.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...forces.path import root


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

"""Mono- and multi-articular springs along a planar chain (Goetz 2024, section 2.2).

Each link has a fastening at its end, on its normal, at the distance r_{i+1} from joint i + 1; that
of the base, r_1, is on the y axis above joint 1. Segment i leads from the fastening before link i
to the one at its end. A spring runs along one segment (mono-articular) or over several
(multi-articular), and pulls with its stiffness times what it is longer than its slack length:

    S = sum over springs of k/2 (sum over its segments of (|s_i| - s0_i))^2

A spring that is shorter is slack and does not push.
"""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class PlanarSprings(eqx.Module):
    """Springs along a chain of n links, in SI units.

    fastening (n + 1,): the distances r. slack (n,): the slack length of each segment. stiffness
    (p,): one for each spring, along the segments (from 0) that `routes` names for it.
    """

    fastening: jax.Array
    slack: jax.Array
    stiffness: jax.Array
    routes: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    def __check_init__(self) -> None:
        n = np.shape(self.slack)[0]
        if np.shape(self.fastening) != (n + 1,):
            raise ValueError(
                f"PlanarSprings: fastening has the shape {np.shape(self.fastening)}; {n} segments "
                f"have {n + 1} ends"
            )
        if np.shape(self.stiffness) != (len(self.routes),):
            raise ValueError(
                f"PlanarSprings: stiffness has the shape {np.shape(self.stiffness)} for "
                f"{len(self.routes)} routes; give one number for each"
            )
        for k, route in enumerate(self.routes):
            if not route or len(set(route)) < len(route) or not set(route) <= set(range(n)):
                raise ValueError(
                    f"PlanarSprings: route {k} is {route}; it must name different segments among "
                    f"0 .. {n - 1}"
                )

    def energy(self, segments: Float[Array, "n 2"]) -> Float[Array, ""]:
        """The energy of the springs, a scalar in J, of the segments (n, 2) in m, in any frames."""
        square = jnp.sum(segments * segments, axis=1)
        length = _root(square)
        terms = []
        for k, route in enumerate(self.routes):
            on = list(route)
            slack = sum(self.slack[i] for i in on)
            # (sum of lengths)^2 with the squares of the single ones as they are: these are smooth
            # also where a segment has no length.
            product = sum(length[i] * length[j] for n, i in enumerate(on) for j in on[:n])
            total = sum(length[i] for i in on)
            stretch = sum(square[i] for i in on) + 2 * product - 2 * slack * total + slack**2
            taut = jax.lax.stop_gradient(total >= slack)
            terms.append(self.stiffness[k] * jnp.where(taut, stretch, 0) / 2)
        return sum(terms[1:], terms[0])


def mono_articular(fastening: jax.Array, slack: jax.Array, stiffness: jax.Array) -> PlanarSprings:
    """One spring along each of n segments, (2.3): fastening (n + 1,), slack and stiffness (n,)."""
    routes = tuple((i,) for i in range(np.shape(slack)[0]))
    return PlanarSprings(fastening, slack, stiffness, routes)


def multi_articular(
    fastening: jax.Array, slack: jax.Array, stiffness: jax.Array, route: Sequence[int] | None = None
) -> PlanarSprings:
    """One spring over all segments, or those of the route, (2.4): stiffness ()."""
    all_segments = range(np.shape(slack)[0])
    whole = tuple(all_segments if route is None else route)
    return PlanarSprings(fastening, slack, jnp.reshape(stiffness, (1,)), (whole,))


def _root(square: jax.Array) -> jax.Array:
    """The square root; at zero with a derivative, zero."""
    zero = square == 0
    return jnp.where(zero, square, jnp.sqrt(jnp.where(zero, 1, square)))

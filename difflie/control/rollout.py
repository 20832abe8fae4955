"""The motion of the machine under the feedback of a sweep."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import native
from .discretization import Discretization, Motion, Point
from .linear_quadratic import Sweep


def rollout(
    knots: Discretization,
    about: Motion,
    gap: Float[Array, "N nx"],
    sweep: Sweep,
    alpha: Float[Array, ""],
) -> Motion:
    """The motion with u = u_k + alpha k + K dx, clipped to the box, whose gaps are (1 - alpha) gap.

    about: the motion of which the sweep is, with these gaps (Mastalli et al. 2020).
    """
    k = jnp.arange(knots.steps, dtype=about.u.dtype)

    def turn(x: Point, row: Any) -> tuple[Point, Any]:
        k, ref, end, u, gap, feed, K = row
        u = u + alpha * feed + K @ knots.difference(ref, x)
        u = jnp.clip(u, knots.u_lower, knots.u_upper)
        moved = knots.difference(end, knots.step(x, u, k)) + (alpha - 1) * gap
        return knots.retract(end, moved), (x, u)

    ref, end = jax.tree.map(lambda a: a[:-1], about.x), jax.tree.map(lambda a: a[1:], about.x)
    start = jax.tree.map(lambda a: a[0], about.x)
    z = jnp.clip(start.z + alpha * sweep.dz, knots.z_lower, knots.z_upper)
    rows = k, ref, end, about.u, gap, sweep.k, sweep.K
    loop = native.scan if knots.tree.topology.unrolled else jax.lax.scan
    last, (x, u) = loop(turn, start._replace(z=z), rows, knots.steps)
    return Motion(jax.tree.map(lambda a, b: jnp.concatenate((a, b[None])), x, last), u)

"""What is left of the conditions of an optimum (Karush, Kuhn, Tucker)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .discretization import Discretization, Motion
from .linear_quadratic import LinearQuadratic, costates, with_bounds
from .model import Model
from .penalty import Bounds, Penalty, violation
from .result import KKT, largest


def conditions(
    knots: Discretization, model: Model, motion: Motion, penalty: Penalty
) -> tuple[LinearQuadratic, jax.Array, KKT]:
    """The linear-quadratic problem, the costates, and what is left of the conditions."""
    after = penalty.after(model)
    active = [jnp.where(y != 0, penalty.weight, 0.0).astype(y.dtype) for y in after]
    along, end = zip(after, active, strict=True)
    lq = with_bounds(model, knots.nz, along, end)
    lam, slope = costates(lq)
    u = motion.u
    left = jnp.where((u <= knots.u_lower[None]) & (slope > 0), 0.0, slope)
    left = jnp.where((u >= knots.u_upper[None]) & (slope < 0), 0.0, left)
    z, pull = motion.x.z[0], lam[0, knots.nx - knots.nz :]
    pull = jnp.where((z <= knots.z_lower) & (pull > 0), 0.0, pull)
    pull = jnp.where((z >= knots.z_upper) & (pull < 0), 0.0, pull)
    broken, _ = violation(penalty.bounds, model)
    multiplied = jnp.where(broken == 0, 0.0, after[0] * broken)
    return lq, lam, kkt_of(lq, model, penalty.bounds, left, pull, multiplied)


def kkt_of(
    lq: LinearQuadratic,
    model: Model,
    bounds: Bounds,
    left: Float[Array, "N nu"],
    pull: Float[Array, " nz"],
    multiplied: Array,
) -> KKT:
    """The largest of what is left, and where it is.

    left, pull: of the derivatives by the controls, and by z at the start. multiplied: multipliers
    times distances.
    """
    scale = 1 + jnp.max(jnp.abs(lq.g[:, lq.nx :]))
    first = jnp.max(jnp.abs(pull), initial=jnp.abs(left[0, 0]))
    stationarity, where = largest(left.at[0, 0].set(first) / scale)
    gap, gap_knot = largest(model.gap)
    broken, at_end = violation(bounds, model)
    most, knot = largest(broken)
    last, _ = largest(at_end[None])
    knot = jnp.where(last > most, lq.steps, knot).astype(jnp.int32)
    multiplied, _ = largest(multiplied)
    most = jnp.maximum(most, last)
    return KKT(stationarity, gap, most, multiplied, where, gap_knot, knot)

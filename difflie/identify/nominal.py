"""A prior for parameters that are not identifiable: bodies near those of a nominal machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float

from ..parameters import (
    divergence_terms,
    from_log_cholesky,
    log_cholesky,
    nearest_consistent,
    pseudo_inertia,
)
from ..system.system import System
from .consistency import Distance
from .problem import Problem


class NominalPrior(Problem):
    """The distance d of bodies from nominal ones (see `consistency`), as ten residuals for each.

    Their squares sum to weight d. nominal (k, 10): the `log_cholesky` parameters of the k nominal
    bodies; weight () in inverse variances. is_scaled: whether the variance is no more than a lower
    bound, see `Problem`.
    """

    nominal: jax.Array
    weight: jax.Array
    bodies: tuple[int, ...] = eqx.field(static=True)
    distance: Distance = eqx.field(static=True, default="entropic")
    is_scaled: bool = eqx.field(static=True, default=False)

    @staticmethod
    def of(
        system: System,
        weight: float = 1.0,
        *,
        distance: Distance = "entropic",
        bodies: Sequence[int] | None = None,
        is_scaled: bool = False,
    ) -> NominalPrior:
        """The prior that keeps bodies near those of a machine, by default all that have a mass.

        bodies: the indices of some. Those with an inertia that no rigid body has are near the
        `nearest_consistent`. Raises ValueError for a weight that is not positive.
        """
        if not 0 < weight < np.inf:
            raise ValueError(f"the weight is {weight}; it must be positive and finite")
        masses, inertia = np.asarray(system.bodies.mass), np.array(system.bodies.inertia)
        for b in np.flatnonzero(masses > 0):
            inertia[b] = nearest_consistent(masses[b], inertia[b])
        nominal = _theta(system.replace(inertia=jnp.asarray(inertia)), range(len(masses)))
        kept = np.flatnonzero(np.isfinite(np.asarray(nominal)).all(axis=1))
        kept = kept if bodies is None else np.intersect1d(kept, np.asarray(bodies, int))
        scale = jnp.asarray(weight, system.dtype)
        return NominalPrior(nominal[kept], scale, tuple(kept.tolist()), distance, is_scaled)

    def residual(self, system: System, own: jax.Array) -> Float[Array, " k"]:
        if self.distance == "entropic":
            terms = jax.vmap(divergence_terms)(_theta(system, self.bodies), self.nominal)
        else:
            b, at = system.bodies, np.array(self.bodies, int)
            found = pseudo_inertia(b.mass[at], b.com[at], b.inertia[at])
            factor = jnp.linalg.cholesky(pseudo_inertia(*from_log_cholesky(self.nominal)))
            half = solve_triangular(factor, found, lower=True)
            off = solve_triangular(factor, jnp.swapaxes(half, -1, -2), lower=True) - jnp.eye(4)
            row, column = np.triu_indices(4)
            terms = off[:, row, column] * np.where(row == column, np.sqrt(0.5), 1.0)
        return (jnp.sqrt(self.weight) * terms).ravel()

    @property
    def measured(self) -> Bool[Array, " k"]:
        return jnp.ones(self.nominal.size, bool)

    @property
    def is_prior(self) -> bool:
        return True


def _theta(system: System, bodies: Sequence[int]) -> Any:
    b, at = system.bodies, np.array(bodies, int)
    return log_cholesky(b.mass[at], b.com[at], b.inertia[at])

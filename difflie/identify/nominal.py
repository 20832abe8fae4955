"""A prior for parameters that are not identifiable: bodies near those of a nominal machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..parameters import divergence_terms, log_cholesky, nearest_consistent
from ..system.system import System
from .problem import Problem


class Nearness(Problem):
    """The entropic divergence d of bodies from nominal ones, as ten residuals for each body.

    Their squares sum to weight d. nominal (k, 10): the `log_cholesky` parameters of the k nominal
    bodies; weight () in inverse variances.
    """

    nominal: jax.Array
    weight: jax.Array
    bodies: tuple[int, ...] = eqx.field(static=True)

    @staticmethod
    def of(system: System, weight: float = 1.0) -> Nearness:
        """The prior that keeps bodies near those of a machine.

        Bodies without mass are left out; those with an inertia that no rigid body has are near the
        `nearest_consistent`. Raises ValueError for a weight that is not positive.
        """
        if not 0 < weight < np.inf:
            raise ValueError(f"the weight is {weight}; it must be positive and finite")
        masses, inertia = np.asarray(system.bodies.mass), np.array(system.bodies.inertia)
        for b in np.flatnonzero(masses > 0):
            inertia[b] = nearest_consistent(masses[b], inertia[b])
        nominal = _theta(system.replace(inertia=jnp.asarray(inertia)), range(len(masses)))
        kept = np.flatnonzero(np.isfinite(np.asarray(nominal)).all(axis=1))
        return Nearness(nominal[kept], jnp.asarray(weight, system.dtype), tuple(kept.tolist()))

    def residual(self, system: System, own: jax.Array) -> Float[Array, " k"]:
        terms = jax.vmap(divergence_terms)(_theta(system, self.bodies), self.nominal)
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

"""Redundant constraints, the mobility of a mechanism, and its singular configurations.

At a singular configuration constraints become dependent that are independent elsewhere. There a
machine has more independent velocities than elsewhere, such as a parallelogram whose bars are
collinear: the constraints do not determine how the motion continues, and multipliers may grow
without bound on the way there.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..dynamics.crba import crba
from ..solvers.linear import SMALL, factor_from_tips
from ..solvers.singular_values import bidiagonal, singular_value, values_above
from ..system.arguments import checked
from ..system.frozen import unfreeze
from ..system.kinematic_tree import Tree
from ..system.system import System
from .equations import compiled_jacobian, equations, holonomic, labels
from .unilateral import bilateral


def redundant_equations(system: System, q: Any) -> list[str]:
    """The names of the redundant constraint equations at q (nq,); not for use in a trace.

    q must satisfy the constraints and not be singular. Of dependent equations the first are kept.
    """
    system = bilateral(system)
    (q,) = checked(system, q=(q, (system.nq,)))
    A = np.asarray(compiled_jacobian(Tree.of(system), q))
    names, kept, basis = labels(system.constraints), [], np.zeros((0, system.nv))
    for k, row in enumerate(A):
        # Orthogonalising twice is enough (Kahan).
        remainder = row - basis.T @ (basis @ row)
        remainder = remainder - basis.T @ (basis @ remainder)
        size = np.linalg.norm(remainder)
        if size > max(1e-8 * np.linalg.norm(row), 1e-12 * np.linalg.norm(A)):
            kept.append(k)
            basis = np.vstack((basis, remainder / size))
    return [name for k, name in enumerate(names) if k not in kept]


def mobility(system: System, q: Any) -> int:
    """The number of independent velocities at a configuration q (nq,) on the constraints.

    nv less the number of independent equations. Not for use in a trace.
    """
    equations_kept = labels(bilateral(system).constraints)
    return system.nv - len(equations_kept) + len(redundant_equations(system, q))


def inconsistent_parameters(system: System, q: Any) -> System:
    """Which numbers of a machine with redundant constraints must not change by themselves.

    q (nq,): a configuration on the constraints that is not singular. Returns a system of booleans,
    True for every entry of a leaf whose change alone makes the constraints inconsistent.
    Derivatives with respect to these entries have a meaning only along joint changes that keep the
    constraints consistent, such as of the machine's scale. Not for use in a trace.
    """
    system = bilateral(system)
    (q,) = checked(system, q=(q, (system.nq,)))
    A = np.asarray(compiled_jacobian(Tree.of(system), q))
    A = A[holonomic(system.constraints)]
    left, sizes, _ = np.linalg.svd(A)
    rank = int(np.sum(sizes > 1e-8 * max(sizes, default=0.0)))
    _, pullback = jax.vjp(lambda s: equations(Tree.of(s), q).residual(), unfreeze(system))
    directions = jnp.asarray(left[:, rank:].T, system.dtype)
    changes = jax.vmap(pullback)(directions)[0]
    return jax.tree.map(lambda a: np.any(np.abs(a) > 1e-8, axis=0), changes)


def independence(tree: Tree, q: Float[Array, " nq"]) -> Float[Array, " k"]:
    """The band (2 min(m, nv) - 1,) of A M^-1/2, from which its singular values follow.

    A (m, nv), M (nv, nv) at the configuration q (nq,). The values do not depend on the choice of
    the velocities. Not differentiated. See `solvers.singular_values`.
    """
    A = equations(bilateral(tree), q).jacobian()
    scaled = jax.scipy.linalg.solve_triangular(factor_from_tips(crba(tree, q)), A.T)
    if min(scaled.shape) > SMALL:
        values = jnp.linalg.svd(jax.lax.stop_gradient(scaled), compute_uv=False)
        return jnp.stack((values, 0 * values), 1).ravel()[:-1]
    return bidiagonal(scaled)


class Margin(eqx.Module):
    """How far a motion is from losing the rank that its constraints have at the start.

    rank (): that at the start; value (): the singular value of `independence` that would be lost,
    to 10 bits; lost (): whether it is zero, or would be within another such step.
    """

    rank: jax.Array
    value: jax.Array
    lost: jax.Array

    @staticmethod
    def start(tree: Tree, q: Float[Array, " nq"]) -> Margin | None:
        """The margin at the configuration q (nq,); None for a system without constraints."""
        if not bilateral(tree.system).constraints:
            return None
        band = independence(tree, q)
        rank = values_above(band, _rounding(band))
        return Margin(rank, _last(band, rank), jnp.asarray(False))

    def at(self, tree: Tree, q: Float[Array, " nq"]) -> Margin:
        """The margin at the configuration q (nq,) one step later."""
        band = independence(tree, q)
        value = _last(band, self.rank)
        lost = (value <= self.value - value) | (value <= _rounding(band))
        return Margin(self.rank, value, lost)


def _last(band: jax.Array, rank: jax.Array) -> jax.Array:
    return singular_value(band, jnp.maximum(rank, 1) - 1, 10)


def _rounding(band: jax.Array) -> jax.Array:
    return 1e3 * jnp.finfo(band.dtype).eps * jnp.sqrt(jnp.sum(band * band))

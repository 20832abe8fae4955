"""Redundant constraints, and the mobility of a mechanism."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..system.arguments import checked
from ..system.frozen import unfreeze
from ..system.kinematic_tree import Tree
from ..system.system import System
from .equations import equations, holonomic, labels
from .unilateral import bilateral

_jacobian = jax.jit(lambda tree, q: equations(tree, q).jacobian())


def redundant_equations(system: System, q: Any) -> list[str]:
    """The names of the redundant constraint equations at q (nq,); not for use in a trace.

    q must satisfy the constraints and not be singular. Of dependent equations the first are kept.
    """
    system = bilateral(system)
    (q,) = checked(system, q=(q, (system.nq,)))
    A = np.asarray(_jacobian(Tree.of(system), q))
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
    A = np.asarray(_jacobian(Tree.of(system), q))
    A = A[holonomic(system.constraints)]
    left, sizes, _ = np.linalg.svd(A)
    rank = int(np.sum(sizes > 1e-8 * max(sizes, default=0.0)))
    _, pullback = jax.vjp(lambda s: equations(Tree.of(s), q).residual(), unfreeze(system))
    directions = jnp.asarray(left[:, rank:].T, system.dtype)
    changes = jax.vmap(pullback)(directions)[0]
    return jax.tree.map(lambda a: np.any(np.abs(a) > 1e-8, axis=0), changes)

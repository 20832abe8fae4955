"""Which equations of constraints say the same twice, and what motion all of them leave."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..system.arguments import checked
from ..system.frozen import thawed
from ..system.kinematic_tree import Tree
from ..system.system import System
from .equations import equations, holonomic, labels
from .unilateral import bilateral

_jacobian = jax.jit(lambda tree, q: equations(tree, q).jacobian())


def redundant_equations(system: System, q: Any) -> list[str]:
    """Which equations say what others say already, in words; not for use in a trace.

    q (nq,): a configuration that keeps the constraints, where nothing is singular. Of equations
    that depend on each other those that come first are kept.
    """
    system = bilateral(system)
    (q,) = checked(system, q=(q, (system.nq,)))
    A = np.asarray(_jacobian(Tree.of(system), q))
    names, kept, basis = labels(system.constraints), [], np.zeros((0, system.nv))
    for k, row in enumerate(A):
        # Twice is enough (Kahan).
        rest = row - basis.T @ (basis @ row)
        rest = rest - basis.T @ (basis @ rest)
        size = np.linalg.norm(rest)
        if size > max(1e-8 * np.linalg.norm(row), 1e-12 * np.linalg.norm(A)):
            kept.append(k)
            basis = np.vstack((basis, rest / size))
    return [name for k, name in enumerate(names) if k not in kept]


def mobility(system: System, q: Any) -> int:
    """The number of independent velocities at a configuration q (nq,) that keeps the constraints.

    nv less the number of independent equations. Not for use in a trace.
    """
    equations_kept = labels(bilateral(system).constraints)
    return system.nv - len(equations_kept) + len(redundant_equations(system, q))


def breaking_leaves(system: System, q: Any) -> System:
    """Which numbers of a machine with redundant equations must not change by themselves.

    q (nq,): a configuration that keeps the constraints, where nothing is singular. A system of
    booleans, True for every entry of a leaf whose change alone leaves no configuration that keeps
    the constraints; derivatives with respect to these have no meaning by themselves, only along
    changes of several that keep the machine together, such as of its scale. Not for use in a trace.
    """
    system = bilateral(system)
    (q,) = checked(system, q=(q, (system.nq,)))
    A = np.asarray(_jacobian(Tree.of(system), q))
    A = A[holonomic(system.constraints)]
    left, sizes, _ = np.linalg.svd(A)
    rank = int(np.sum(sizes > 1e-8 * max(sizes, default=0.0)))
    _, pullback = jax.vjp(lambda s: equations(Tree.of(s), q).residual(), thawed(system))
    directions = jnp.asarray(left[:, rank:].T, system.dtype)
    changes = jax.vmap(pullback)(directions)[0]
    return jax.tree.map(lambda a: np.any(np.abs(a) > 1e-8, axis=0), changes)

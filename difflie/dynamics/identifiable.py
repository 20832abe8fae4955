"""The base parameters: the inertial parameters that motion and torque determine.

The columns of the inverse-dynamics regressor W over many states are linearly dependent, in the same
way for all states: some parameters act only in combination, some not at all (Gautier and Khalil
1990; Gautier 1991). From the world outwards, every column independent of those before is kept, and

    W = W[:, columns] K,      Y pi = Y[:, columns] (K pi)

The base parameters K pi are those of the kept columns, each combined with the parameters that have
the same effect.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..system.kinematic_tree import Tree
from .regressor import effort_columns


class BaseParameters(NamedTuple):
    """The base (minimal) parameters of a system.

    matrix (rank, 10 nb): maps the inertial parameters to the base parameters, in kg, kg m, kg m^2.
    columns (rank,): the inertial parameters that stand for the base parameters, in increasing
    order; these columns of a regressor form the reduced regressor.
    """

    matrix: np.ndarray
    columns: np.ndarray

    @property
    def rank(self) -> int:
        """The number of base parameters."""
        return len(self.columns)


def independent_columns(w: np.ndarray) -> BaseParameters:
    """The first columns of w (m, n) on which all others depend, and the dependence.

    A column counts as dependent if its part independent of those before is smaller than the square
    root of the rounding unit.
    """
    r = np.linalg.qr(w).R  # the same dependences, with at most n rows
    scale = np.linalg.norm(r, axis=0)
    tolerance = np.sqrt(np.finfo(w.dtype).eps)
    scale = np.where(scale > tolerance * scale.max(initial=0), scale, np.inf)
    scaled = r / scale
    basis = np.zeros((len(r), 0), w.dtype)
    kept = []
    for j, column in enumerate(scaled.T):
        for _ in range(2):  # twice, to remove the rounding errors of the first time
            column = column - basis @ (basis.T @ column)
        remainder = np.linalg.norm(column)
        if remainder > tolerance:
            basis = np.column_stack((basis, column / remainder))
            kept.append(j)
    columns = np.array(kept, dtype=int)
    combined = np.linalg.lstsq(scaled[:, columns], r, rcond=None)[0] / scale[columns, None]
    combined[:, columns] = np.eye(len(columns))
    combined[np.abs(combined) < tolerance * np.abs(combined).max(initial=0)] = 0
    return BaseParameters(combined, columns)


def sampled_regressor(tree: Tree) -> np.ndarray:
    """The regressors of random states, (rows, 10 nb): more rows than parameters."""
    t = tree.topology
    count = 2 + 20 * len(t.bodies) // max(t.nv, 1)
    dtype = tree.dtype
    rng = np.random.default_rng(0)
    moves = rng.uniform(-np.pi, np.pi, (count, t.nv)).astype(dtype)
    q = _moved(tree, moves)
    v, a = rng.normal(size=(2, count, t.nv)).astype(dtype)
    return np.asarray(_regressors(tree, q, v, a)).reshape(-1, 10 * len(t.bodies))


@jax.jit
def _regressors(tree, q, v, a):
    return jax.vmap(lambda *state: effort_columns(tree, *state))(q, v, a)


@jax.jit
def _moved(tree, moves):
    """The configurations (count, nq) at moves (count, nv) from the neutral one."""
    space = tree.topology.manifold
    return jax.vmap(lambda xi: space.retract(jnp.asarray(space.identity(), xi.dtype), xi))(moves)

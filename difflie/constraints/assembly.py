"""Assembly: states near a guess that satisfy the constraints.

Configurations q (nq,) are in rad and m, velocities v (nv,) in rad/s and m/s.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ..dynamics.crba import crba
from ..solvers.linear import minimum_norm, product
from ..system.arguments import checked
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.validation import ModelError
from .constraint import FrameConstraint
from .equations import equations, holonomic, largest, position_labels
from .motion import consistent_velocity
from .position import consistent_position
from .unilateral import bilateral


def assemble(
    system: System, q: Any, v: Any = None
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """A configuration (nq,) near q (nq,), and a velocity (nv,) near v (nv,), on the constraints.

    v is zero if not given. The search is Gauss-Newton's in the metric of M, with steps of at most
    half a radian or half a metre. Derivatives with respect to the system's leaves are those of the
    constrained configuration nearest to the result, whatever the guess: finite differences agree
    with them if the guess satisfies the constraints. There is no derivative with respect to the
    guess. A change that leaves no configuration on the constraints gives NaN in forward mode;
    reverse mode holds for consistent changes only, see `inconsistent_parameters`.

    Raises `ModelError`, naming the equations, if no solution is found or a constraint is assembled
    in the wrong branch; for traced systems the result is NaN.
    """
    (q,) = checked(system, q=(q, (system.nq,)))
    (v,) = checked(system, v=(jnp.zeros_like(q, shape=system.nv) if v is None else v, (system.nv,)))
    system = bilateral(system)
    if not system.constraints:
        return q, v
    q1, v1, g, found, wrong = _assembled(Tree.of(system), q, v)
    if isinstance(found, Tracer):
        return q1, v1
    if not found:
        left = largest(np.asarray(g), position_labels(system.constraints))
        raise ModelError(
            f"{system.name}: from this guess no configuration keeps all constraints; left are "
            f"{left}. Start nearer, or see whether lengths and frames contradict each other"
        )
    for constraint, reversed_ in zip(system.constraints, wrong, strict=True):
        if reversed_:
            raise ModelError(
                f"{system.name}: {constraint} is met the wrong way round, its frames half a "
                "revolution apart; start nearer, or turn one of them"
            )
    return q1, v1


@jax.jit
def _assembled(tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> tuple:
    near = jax.lax.stop_gradient(_approached(*jax.lax.stop_gradient((tree, q))))
    q1, found = consistent_position(tree, near)
    here = equations(tree, q1)
    left = here.residual()
    eps = float(jnp.finfo(q.dtype).eps)
    found = found & (jnp.max(jnp.abs(left), initial=0) < 1e4 * eps)
    v1 = consistent_velocity(tree, q1, v)
    wrong = []
    for c, frames, _ in here.each():
        wrong_assembly = c.misassembled(*frames) if isinstance(c, FrameConstraint) else None
        wrong.append(jnp.asarray(False) if wrong_assembly is None else wrong_assembly)
    q1, v1 = (jnp.where(found, a, jnp.nan) for a in (q1, v1))
    return q1, v1, left, found, wrong


def _approached(tree: Tree, q: Float[Array, " nq"]) -> Float[Array, " nq"]:
    """A configuration (nq,) that nearly satisfies the constraints."""
    rows = np.flatnonzero(holonomic(tree.system.constraints))
    eps = float(jnp.finfo(q.dtype).eps)

    def nearer(state: tuple) -> tuple:
        q, _, count = state
        here = equations(tree, q)
        A, g = here.jacobian()[rows], here.residual()
        Y = jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(crba(tree, q)), A.T)
        gram = product(A, Y)
        step = product(Y, minimum_norm(gram)(g))
        largest = jnp.max(jnp.abs(step), initial=0)
        step = step * jnp.minimum(1, 0.5 / jnp.maximum(largest, eps))
        nearer = tree.topology.manifold.retract(q, -step)
        return nearer, jnp.max(jnp.abs(g), initial=0), count + 1

    def unfinished(state: tuple) -> jax.Array:
        _, error, count = state
        return (count < 100) & (error > eps**0.5)

    start = q, jnp.asarray(jnp.inf, q.dtype), jnp.asarray(0)
    return jax.lax.while_loop(unfinished, nearer, start)[0]

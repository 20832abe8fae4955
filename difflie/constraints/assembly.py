"""Assembly: states near a guess that satisfy the constraints, and whether a start does.

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
from ..solvers.linear import factor_from_tips, minimum_norm, product
from ..system.arguments import QUATERNION_ROUNDING, checked
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.traverse import tree_algorithm
from ..system.validation import ModelError
from .constraint import FrameConstraint
from .equations import equations, holonomic, labels, largest, position_labels
from .motion import consistent_velocity
from .position import consistent_position
from .unilateral import bilateral, unilateral


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

    >>> ball = dl.chain([dl.Body(name="ball", joint=dl.Translation(), mass=1.0)])
    >>> rod = dl.constraints.Distance(dl.Frame(), dl.Frame("ball"), length=2.0)
    >>> q, v = dl.assemble(dl.constrain(ball, rod), [1.0, 1.0, -1.0])
    >>> print(q.round(3))
    [ 1.155  1.155 -1.155]
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
@tree_algorithm
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
        U = factor_from_tips(crba(tree, q))
        half = jax.scipy.linalg.solve_triangular(U, A.T)
        x = product(half, minimum_norm(product(half.T, half), half)(g))
        step = jax.scipy.linalg.solve_triangular(U, x, trans=1)
        largest = jnp.max(jnp.abs(step), initial=0)
        step = step * jnp.minimum(1, 0.5 / jnp.maximum(largest, eps))
        nearer = tree.topology.manifold.retract(q, -step)
        return nearer, jnp.max(jnp.abs(g), initial=0), count + 1

    def unfinished(state: tuple) -> jax.Array:
        _, error, count = state
        return (count < 100) & (error > eps**0.5)

    start = q, jnp.asarray(jnp.inf, q.dtype), jnp.asarray(0)
    return jax.lax.while_loop(unfinished, nearer, start)[0]


# m or rad; measured states overlap by their noise.
_OVERLAP = 1e-3


def start_error(system: System, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, ""]:
    """The error () of a start q (nq,), v (nv,), in units of the tolerance: above 1 is invalid.

    A start satisfies the constraints, overlaps contacts and stops by 1e-3 m or rad at most, as the
    end of another motion may, and has quaternions of unit
    length. Concrete states are checked at once: raises `ModelError` for one that violates the
    constraints, and where these leave no degree of freedom; otherwise the error is 0. Traced states
    are not raised for.
    """
    if any(isinstance(a, Tracer) for a in jax.tree.leaves((system, q, v))):
        return _start_error(Tree.of(system), q, v)
    _check_apart(unilateral(system), q)
    _check_kept(bilateral(system), q, v)
    return jnp.zeros((), q.dtype)


@jax.jit
@tree_algorithm
def _start_error(tree: Tree, q: jax.Array, v: jax.Array) -> jax.Array:
    tree, q, v = jax.lax.stop_gradient((tree, q, v))
    errors = [tree.topology.manifold.defect(q) / QUATERNION_ROUNDING]
    kept, apart = bilateral(tree), unilateral(tree)
    if kept.constraints:
        here = equations(kept, q)
        broken = jnp.concatenate((here.residual(), here.rate(v)))
        speed = jnp.max(jnp.abs(v), initial=0)
        errors.append(jnp.max(jnp.abs(broken)) / (_tolerance(q) * (1 + speed)))
    if apart.constraints:
        gaps = equations(apart, q).residual()
        errors.append(-jnp.min(gaps) / _OVERLAP)
    return jnp.max(jnp.stack(errors))


def _tolerance(q: jax.Array) -> float:
    """By how much a start may violate constraints.

    As much as projection corrects in the first step, or as a motion without it may have gathered.
    """
    return float(jnp.finfo(q.dtype).eps) ** 0.375


def _check_kept(system: System, q: jax.Array, v: jax.Array) -> None:
    """Raises `ModelError` for a state q (nq,), v (nv,) that violates the constraints."""
    if not system.constraints:
        return
    g, rate, A = (np.asarray(a) for a in _state(Tree.of(system), q, v))
    names, positions = labels(system.constraints), position_labels(system.constraints)
    for values, kind, of in ((g, "position", positions), (rate, "velocity", names)):
        if values.size and np.max(np.abs(values)) > _tolerance(q) * (1 + np.max(np.abs(v))):
            raise ModelError(
                f"{system.name}: the {kind} breaks {largest(values, of)}; "
                "difflie.assemble finds a state that keeps the constraints"
            )
    smallest = max(1e-9, 100 * float(jnp.finfo(q.dtype).eps)) * np.linalg.norm(A, 2)
    if np.linalg.matrix_rank(A, tol=smallest) == system.nv:
        raise ModelError(
            f"{system.name}: its {len(names)} equations of constraints leave no degree of freedom; "
            "take one of the constraints off"
        )


def _check_apart(system: System, q: Float[Array, " nq"]) -> None:
    """Raises `ModelError` for a contact or a stop that overlaps at q (nq,)."""
    if not system.constraints:
        return
    gaps = _gaps(Tree.of(system), q)
    for gap, contact in zip(np.asarray(gaps), system.constraints, strict=True):
        if gap < -_OVERLAP:
            raise ModelError(
                f"{system.name}: at the start {contact} is overlapped by {-gap:.3g}; "
                "start where nothing overlaps"
            )


@jax.jit
@tree_algorithm
def _state(tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> tuple:
    here = equations(tree, q)
    return here.residual(), here.rate(v), here.jacobian()


@jax.jit
@tree_algorithm
def _gaps(tree: Tree, q: Float[Array, " nq"]) -> Float[Array, " n"]:
    return equations(tree, q).residual()

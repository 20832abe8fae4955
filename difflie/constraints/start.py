"""Whether a state is consistent with the constraints, as a start."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ..system.arguments import QUATERNION_ROUNDING
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.validation import ModelError
from .equations import equations, labels, largest, position_labels
from .unilateral import bilateral, unilateral


def start_error(system: System, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, ""]:
    """The error () of a start q (nq,), v (nv,), in units of the tolerance: above 1 is invalid.

    A start satisfies the constraints, overlaps no contact or stop, and has quaternions of unit
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
        errors.append(-jnp.min(gaps) / _overlap(q))
    return jnp.max(jnp.stack(errors))


def _tolerance(q: jax.Array) -> float:
    """By how much a start may violate constraints.

    As much as projection corrects in the first step, or as a motion without it may have gathered.
    """
    return float(jnp.finfo(q.dtype).eps) ** 0.375


def _overlap(q: jax.Array) -> float:
    """How far contacts and stops may overlap at a start."""
    return float(jnp.finfo(q.dtype).eps) ** 0.5


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
        if gap < -_overlap(q):
            raise ModelError(
                f"{system.name}: at the start {contact} is overlapped by {-gap:.3g}; "
                "start where nothing overlaps"
            )


@jax.jit
def _state(tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> tuple:
    here = equations(tree, q)
    return here.residual(), here.rate(v), here.jacobian()


@jax.jit
def _gaps(tree: Tree, q: Float[Array, " nq"]) -> Float[Array, " n"]:
    return equations(tree, q).residual()

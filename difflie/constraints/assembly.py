"""States that keep the constraints, found from guesses; and which equations say the same twice.

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
from ..system.frozen import thawed
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.validation import QUATERNION_TOLERANCE, ModelError, checked
from .constraint import FrameConstraint
from .equations import equations, holonomic, labels
from .motion import consistent_velocity
from .position import consistent_position
from .unilateral import bilateral, unilateral


def assemble(
    system: System, q: Any, v: Any = None
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """A configuration (nq,) near q (nq,) and a velocity (nv,) near v that keep the constraints.

    v (nv,) is zero if not given. The way there is that of Gauss-Newton in the metric of M, in
    steps of half a radian or half a metre at most. Derivatives with respect to the system's leaves
    are those of the configuration nearest to the one found, whatever guess led there: differences
    agree with them from a guess that keeps the constraints already. The one with respect to the
    guess is left out. Of changes that leave no configuration near it they are not numbers in
    forward mode; reverse mode is right for other changes only, see `breaking_leaves`.

    Raises `ModelError` where nothing is found, or a constraint is met the wrong way round, and
    names the equations; for traced systems the result is not a number then.
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
        raise ModelError(
            f"{system.name}: from this guess no configuration keeps all constraints; left are "
            f"{_largest(system, np.asarray(g))}. Start nearer, or see whether lengths and "
            "frames contradict each other"
        )
    for constraint, reversed_ in zip(system.constraints, wrong, strict=True):
        if reversed_:
            raise ModelError(
                f"{system.name}: {constraint} is met the wrong way round, its frames half a "
                "revolution apart; start nearer, or turn one of them"
            )
    return q1, v1


def start_error(system: System, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, ""]:
    """By how much a traced state q (nq,), v (nv,) is no start, in units of what is allowed: ().

    A start keeps the constraints, overlaps no contact or stop, and has quaternions of unit length.
    Raises `ModelError` for a concrete state that breaks the constraints, and where these leave no
    degree of freedom; a concrete one that is allowed has the error 0.
    """
    if any(isinstance(a, Tracer) for a in jax.tree.leaves((system, q, v))):
        return _start_error(Tree.of(system), q, v)
    _check_apart(unilateral(system), q)
    _check_kept(bilateral(system), q, v)
    return jnp.zeros((), q.dtype)


@jax.jit
def _start_error(tree: Tree, q: jax.Array, v: jax.Array) -> jax.Array:
    tree, q, v = jax.lax.stop_gradient((tree, q, v))
    errors = [tree.topology.manifold.defect(q) / QUATERNION_TOLERANCE]
    kept, apart = bilateral(tree), unilateral(tree)
    if kept.constraints:
        here = equations(kept, q)
        broken = jnp.concatenate((here.residual(), here.rate(v)))
        largest = jnp.max(jnp.abs(v), initial=0)
        errors.append(jnp.max(jnp.abs(broken)) / (_tolerance(q) * (1 + largest)))
    if apart.constraints:
        gaps = equations(apart, q).residual()
        errors.append(-jnp.min(gaps) / _overlap(q))
    return jnp.max(jnp.stack(errors))


def _tolerance(q: jax.Array) -> float:
    """How far a start may break constraints.

    What projection corrects in the first step, and what a motion without it may have gathered.
    """
    return float(jnp.finfo(q.dtype).eps) ** 0.375


def _overlap(q: jax.Array) -> float:
    """How far contacts and stops may overlap at a start."""
    return float(jnp.finfo(q.dtype).eps) ** 0.5


def _check_kept(system: System, q: jax.Array, v: jax.Array) -> None:
    """Raises `ModelError` for a state q (nq,), v (nv,) that breaks the constraints."""
    if not system.constraints:
        return
    g, rate, A = (np.asarray(a) for a in _state(Tree.of(system), q, v))
    names = labels(system.constraints)
    positions = [n for n, h in zip(names, holonomic(system.constraints), strict=True) if h]
    for values, kind, of in ((g, "position", positions), (rate, "velocity", names)):
        if values.size and np.max(np.abs(values)) > _tolerance(q) * (1 + np.max(np.abs(v))):
            raise ModelError(
                f"{system.name}: the {kind} breaks {_largest_of(values, of)}; "
                "difflie.assemble finds a state that keeps the constraints"
            )
    smallest = max(1e-9, 100 * float(jnp.finfo(q.dtype).eps)) * np.linalg.norm(A, 2)
    if np.linalg.matrix_rank(A, tol=smallest) == system.nv:
        raise ModelError(
            f"{system.name}: its {len(names)} equations of constraints leave no degree of freedom; "
            "take one of the constraints off"
        )


def _check_apart(system: System, q: Float[Array, " nq"]) -> None:
    """Raises `ModelError` for a contact or a stop that is overlapped at q (nq,)."""
    if not system.constraints:
        return
    gaps = _gaps(Tree.of(system), q)
    for gap, contact in zip(np.asarray(gaps), system.constraints, strict=True):
        if gap < -_overlap(q):
            raise ModelError(
                f"{system.name}: at the start {contact} is overlapped by {-gap:.3g}; "
                "start where nothing overlaps"
            )


def redundant_equations(system: System, q: Any) -> list[str]:
    """Which equations say what others say already, in words; not for use in a trace.

    q (nq,): a configuration that keeps the constraints, where nothing is singular. Of equations
    that depend on each other those that come first are kept.
    """
    system = bilateral(system)
    (q,) = checked(system, q=(q, (system.nq,)))
    A = np.asarray(_state(Tree.of(system), q, jnp.zeros_like(q, shape=system.nv))[2])
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
    return (
        system.nv - len(labels(bilateral(system).constraints)) + len(redundant_equations(system, q))
    )


def breaking_leaves(system: System, q: Any) -> System:
    """Which numbers of a machine with redundant equations must not change by themselves.

    q (nq,): a configuration that keeps the constraints, where nothing is singular. A system of
    booleans, True for every entry of a leaf whose change alone leaves no configuration that keeps
    the constraints; derivatives with respect to these have no meaning by themselves, only along
    changes of several that keep the machine together, such as of its scale. Not for use in a trace.
    """
    system = bilateral(system)
    (q,) = checked(system, q=(q, (system.nq,)))
    A = np.asarray(_state(Tree.of(system), q, jnp.zeros_like(q, shape=system.nv))[2])
    A = A[holonomic(system.constraints)]
    left, sizes, _ = np.linalg.svd(A)
    rank = int(np.sum(sizes > 1e-8 * max(sizes, default=0.0)))
    _, pullback = jax.vjp(lambda s: equations(Tree.of(s), q).residual(), thawed(system))
    directions = jnp.asarray(left[:, rank:].T, system.dtype)
    changes = jax.vmap(pullback)(directions)[0]
    return jax.tree.map(lambda a: np.any(np.abs(a) > 1e-8, axis=0), changes)


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
    """A configuration (nq,) that nearly keeps the constraints."""
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


@jax.jit
def _state(tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> tuple:
    here = equations(tree, q)
    return here.residual(), here.rate(v), here.jacobian()


@jax.jit
def _gaps(tree: Tree, q: Float[Array, " nq"]) -> Float[Array, " n"]:
    return equations(tree, q).residual()


def _largest(system: System, g: np.ndarray) -> str:
    names = labels(system.constraints)
    return _largest_of(
        g, [n for n, h in zip(names, holonomic(system.constraints), strict=True) if h]
    )


def _largest_of(values: np.ndarray, names: list[str]) -> str:
    worst = np.argsort(-np.abs(values))[:3]
    return ", ".join(f"{names[k]} ({values[k]:.3g})" for k in worst if values[k])

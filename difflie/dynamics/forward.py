"""The acceleration of a system and its derivatives.

Forward dynamics is differentiated through inverse dynamics: from tau = ID(q, v, a) follows

    da = M^-1 (dtau - dID(q, v, a)),     dID taken at fixed a.

This is exact, needs only (q, v, a) to be kept, and compiles several times faster than
differentiating the articulated-body recursion. The linear solve with M is forward dynamics at zero
velocity and gravity; it is symmetric, so that the same solve serves forward and reverse mode.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..system.kinematic_tree import Tree
from .aba import aba
from .crba import crba
from .rnea import rnea


def acceleration(
    tree: Tree,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    wrench: Float[Array, "nb 6"] | None = None,
) -> Float[Array, " nv"]:
    """The acceleration (nv,) under the generalised force tau (nv,) and body wrenches (nb, 6)."""
    return _acceleration(_read(tree, wrench is not None), q, v, tau, wrench)


def mass_times(tree: Tree, q: Float[Array, " nq"], a: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """M(q) a (nv,), by inverse dynamics without velocity and gravity."""
    return rnea(tree.weightless(), q, jnp.zeros_like(a), a)


def mass_inverse_times(
    tree: Tree, q: Float[Array, " nq"], x: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """M(q)^-1 x (nv,), by forward dynamics without velocity and gravity."""
    return acceleration(tree.weightless(), q, jnp.zeros_like(x), x)


def mass_inverse(tree: Tree, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
    """M(q)^-1 (nv, nv), one unit force for each dof; symmetric up to rounding.

    The articulated inertias do not depend on the force and are computed only once.
    """
    unit = jnp.eye(tree.topology.nv, dtype=q.dtype)
    return jax.vmap(lambda e: mass_inverse_times(tree, q, e))(unit)


def _solve(tree, q, v, tau, wrench):
    if tree.independent:
        return aba(tree, q, v, tau, wrench)
    # A mimic joint or an inerter couples branches, so that M no longer factors along the tree.
    bias = rnea(tree, q, v, jnp.zeros_like(v), wrench)
    factor = jax.scipy.linalg.cho_factor(crba(tree, q))
    return jax.scipy.linalg.cho_solve(factor, tau - bias)


def _read(tree: Tree, wrench: bool) -> Tree:
    """The tree with only the leaves that the recursion reads; the others are None.

    wrench: whether there is one. A function with a custom derivative keeps all its arguments, read
    or not. So does every native call that contains it.
    """
    joints = tree.system.joints
    read = tree.placement, tree.pitch, tree.inertia, tree.multiplier, tree.shift
    read = *read, tree.system.gravity, joints.armature, joints.numbers
    read = (*read, tree.offset) if wrench or tree.inerters else read
    read = *read, *tree.inerters
    kept = {id(a) for a in jax.tree.leaves(read)}
    return jax.tree.map(lambda a: a if id(a) in kept else None, tree)


@jax.custom_jvp
def _acceleration(tree, q, v, tau, wrench):
    return _solve(tree, q, v, tau, wrench)


def _acceleration_jvp(primals, tangents):
    tree, q, v, _, wrench = primals
    a = _acceleration(*primals)
    leaves, structure = jax.tree.flatten((tree, q, v, wrench))
    changes = jax.tree.leaves((tangents[0], tangents[1], tangents[2], tangents[4]), is_leaf=_zero)
    varied = [i for i, change in enumerate(changes) if not _zero(change)]

    def effort(*values):
        changed = list(leaves)
        for i, value in zip(varied, values, strict=True):
            changed[i] = value
        tree, q, v, wrench = jax.tree.unflatten(structure, changed)
        return rnea(tree, q, v, a, wrench)

    residual = jnp.zeros_like(a) if _zero(tangents[3]) else tangents[3]
    if varied:
        _, change = jax.jvp(effort, [leaves[i] for i in varied], [changes[i] for i in varied])
        residual = residual - change
    free, still = tree.weightless(), jnp.zeros_like(v)
    da = jax.lax.custom_linear_solve(
        lambda x: rnea(free, q, still, x),
        residual,
        lambda _, b: _solve(free, q, still, b, None),
        symmetric=True,
    )
    return a, da


def _zero(tangent) -> bool:
    return isinstance(tangent, jax.custom_derivatives.SymbolicZero)


_acceleration.defjvp(_acceleration_jvp, symbolic_zeros=True)

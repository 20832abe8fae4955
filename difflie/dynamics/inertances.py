"""Inertia along lengths l(q), b (dl/dt)^2 / 2 each, beside that of bodies and rotors.

With the moment arms J = dl/dq it adds b J^T J to the mass matrix, and the force

    b J^T (J a + (dJ/dt) v)

to inverse dynamics. It couples the branches of the tree, so that M does not factor along it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..system.kinematic_tree import Tree
from ..system.protocols import InertiaElement


def inertance_force(
    tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """The generalised force (nv,) that accelerates them by a (nv,) at q (nq,), v (nv,)."""
    space, total = tree.topology.manifold, jnp.zeros_like(a)
    for part in tree.inerters:
        arm = part.arm(tree, q)
        faster = jnp.sum(arm * a)
        if part.turns:

            def rate(xi: jax.Array, part: InertiaElement = part) -> jax.Array:
                return jnp.sum(part.arm(tree, space.retract(q, xi)) * v)

            faster = faster + jax.jvp(rate, (jnp.zeros_like(v),), (v,))[1]
        total = total + arm * (part.inertance * faster)
    return total


def inertance_matrix(tree: Tree, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
    """The sum of b J^T J (nv, nv) at q (nq,)."""
    arms = [(part.arm(tree, q), part.inertance) for part in tree.inerters]
    return sum(b * J[:, None] * J for J, b in arms)  # pyright: ignore[reportReturnType]


def inertance_energy(
    tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Float[Array, ""]:
    """Their kinetic energy () in J at q (nq,) and v (nv,)."""
    rates = [(jnp.sum(part.arm(tree, q) * v), part.inertance) for part in tree.inerters]
    return sum((b * rate * rate / 2 for rate, b in rates), jnp.zeros((), v.dtype))

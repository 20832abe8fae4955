"""Constrained motion with derivatives by matrices, for many directions at once.

The equations of motion of index 1, differentiated at their solution a, lambda, are linear equations
with the same matrices, with ID the inverse dynamics without constraints:

    M da - A^T dlambda = dtau - d(ID(q, v, a) - A^T lambda),    A da = -d(A a + c)

where a and lambda are held on the right. They have no derivatives by the numbers of the machine and
by wrenches, which count as constants.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..dynamics.derivatives import of_inverse_dynamics
from ..solvers.linear import minimum_norm, product
from ..solvers.root import refined
from ..system.kinematic_tree import Tree
from .equations import equations, holonomic
from .motion import Balance, consistent_velocity, constrained_acceleration
from .position import consistent_position, correction, reached, ways_back


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def acceleration_by_matrices(
    form: type[Balance],
    tree: Tree,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    wrench: Float[Array, "nb 6"] | None = None,
) -> Float[Array, " nv"]:
    """The acceleration (nv,), as `constrained_acceleration`, without drift and friction."""
    return constrained_acceleration(tree, q, v, tau, wrench, form=form)[0]


@acceleration_by_matrices.defjvp
def _(form: type[Balance], primals: tuple, tangents: tuple) -> tuple[jax.Array, jax.Array]:
    tree, q, v, tau, wrench = primals
    _, dq, dv, dtau, _ = tangents
    space, still = tree.topology.manifold, jnp.zeros_like(v)
    a, multipliers = constrained_acceleration(tree, q, v, tau, wrench, form=form)
    by_q, by_v, M = of_inverse_dynamics(tree, q, v, a, wrench)
    here = equations(tree, q)

    def held(xi: jax.Array) -> tuple[jax.Array, jax.Array]:
        there = equations(tree, space.retract(q, xi))
        return product(there.jacobian().T, multipliers), there.rate(a) + there.bias(v)

    reaction, drift = jax.jacfwd(held)(still)
    forces = jnp.concatenate((reaction - by_q, -by_v, jnp.eye(len(v), dtype=v.dtype)), axis=1)
    bias = jax.jacfwd(here.bias)(v)
    needed = jnp.concatenate((-drift, -bias, jnp.zeros_like(bias)), axis=1)
    balance = form(M, here.jacobian())
    changes, _ = jax.vmap(balance.solve, 1, 1)(forces, needed)
    by_q, by_v, by_tau = jnp.split(changes, 3, axis=1)
    xi = _tangent(tree, q, dq)
    return a, product(by_q, xi) + product(by_v, dv) + product(by_tau, dtau)


def position_by_matrices(
    tree: Tree, q: Float[Array, " nq"]
) -> tuple[Float[Array, " nq"], Bool[Array, ""]]:
    """`consistent_position`."""
    if not holonomic(tree.system.constraints).any():
        return q, jnp.asarray(True)
    q, converged = _position(tree, q)
    return q, converged > 0


@jax.custom_jvp
def _position(tree: Tree, q: jax.Array) -> tuple[jax.Array, jax.Array]:
    q, converged = consistent_position(tree, q)
    # As a float, so that its tangent is zero.
    return q, converged.astype(q.dtype)


@_position.defjvp
def _(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    """g(xi, x) = 0 is differentiated for all xi (nv,) at once: dx = -(dg/dx)^-1 dg/dxi."""
    (tree, q), (_, dq) = primals, tangents
    space = tree.topology.manifold
    ways, half, _ = ways_back(tree, q)
    x, _ = correction(tree, q, ways, half)
    inverse = jax.vmap(minimum_norm(product(half.T, half), half), 1, 1)

    def corrected(xi: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        there = space.retract(q, xi)
        near = reached(tree, there, ways_back(tree, there)[0], x)
        return near, equations(tree, near).residual()

    zero = jnp.zeros(tree.topology.nv, q.dtype)
    (near_by_xi, near_by_x), (by_xi, by_x) = jax.jacfwd(corrected, (0, 1))(zero, x)
    # The derivative by x is about -A Y.
    x_by_xi = refined(lambda dx: product(by_x, dx), lambda b: -inverse(b), -by_xi)
    value, converged = _position(tree, q)
    change = product(near_by_xi + product(near_by_x, x_by_xi), _tangent(tree, q, dq))
    return (value, converged), (change, jnp.zeros_like(converged))


@jax.custom_jvp
def velocity_by_matrices(
    tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """`consistent_velocity`."""
    return consistent_velocity(tree, q, v)


@velocity_by_matrices.defjvp
def _(primals: tuple, tangents: tuple) -> tuple[jax.Array, jax.Array]:
    (tree, q, v), (_, dq, dv) = primals, tangents
    space = tree.topology.manifold

    def consistent(xi: jax.Array, v: jax.Array) -> jax.Array:
        return consistent_velocity(tree, space.retract(q, xi), v)

    by_q, by_v = jax.jacfwd(consistent, (0, 1))(jnp.zeros_like(v), v)
    value = consistent_velocity(tree, q, v)
    return value, product(by_q, _tangent(tree, q, dq)) + product(by_v, dv)


def _tangent(tree: Tree, q: jax.Array, dq: jax.Array) -> jax.Array:
    """The tangent (nv,) at q (nq,) of a change dq (nq,) of the coordinates."""
    space = tree.topology.manifold
    return jax.jvp(lambda y: space.difference(q, y), (q,), (dq,))[1]

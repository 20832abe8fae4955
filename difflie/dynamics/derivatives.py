"""Derivatives of inverse and forward dynamics (Carpentier, Mansard 2018; Singh, Russell, Wensing
2022).

A change of the configuration along dof k moves all bodies beyond it along S_k. Besides this rigid
displacement, the bodies gain the velocity dS_k and the acceleration ddS_k - V x dS_k, with

    dS_k = V_p x S_k,      ddS_k = A_p x S_k + V_p x dS_k,      A_world = (0, -g)

where V_p, A_p are the twist and acceleration of the parent of joint k. Let Ic, Bc, F be the sums of
the inertias, of B (see `coriolis`) and of the wrenches beyond a dof, and S' = dS/dt. If dof k moves
dof j,

    dtau_j/dq_k = S_j . (Ic_j ddS_k + 2 Bc_j dS_k)
    dtau_j/dv_k = S_j . (Ic_j (dS_k + S_k') + 2 Bc_j S_k)
    dtau_k/dq_j = S_k . (Ic_j ddS_j + 2 Bc_j dS_j + S_j x* F_j)
    dtau_k/dv_j = S_k . (Ic_j (dS_j + S_j') + 2 Bc_j S_j)

The dofs of a joint on a Lie group move each other. If a motion subspace depends on the coordinates,
inverse dynamics is differentiated in forward mode instead. The derivatives of forward dynamics
follow from M da = dtau - dID(q, v, a).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..spatial import Force, Motion
from ..system.kinematic_tree import Tree
from .coriolis import Turning
from .forward import acceleration
from .inertances import inertance_force, inertance_matrix
from .rnea import rnea
from .screws import Screws, generalised_matrix, masks, pairs, screws, total

Triple = tuple[Float[Array, "nv nv"], Float[Array, "nv nv"], Float[Array, "nv nv"]]


def of_inverse_dynamics(
    tree: Tree,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    wrench: Float[Array, "nb 6"] | None,
) -> Triple:
    """dtau/dq, dtau/dv and dtau/da = M, each (nv, nv)."""
    s = screws(tree, q)
    by_q, by_v = _state_derivatives(tree, s, q, v, a, wrench)
    return by_q, by_v, _mass(tree, s, q)


def of_forward_dynamics(
    tree: Tree,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    wrench: Float[Array, "nb 6"] | None,
) -> Triple:
    """da/dq, da/dv and da/dtau = M^-1, each (nv, nv)."""
    return _forward(tree, q, v, tau, wrench)[1]


@jax.custom_jvp
def acceleration_by_matrices(
    tree: Tree,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    wrench: Float[Array, "nb 6"] | None = None,
) -> Float[Array, " nv"]:
    """As `acceleration`, with a derivative by these matrices, for many directions at once.

    It has none by the numbers of the tree and by the wrench, which count as constants.
    """
    return acceleration(tree, q, v, tau, wrench)


@acceleration_by_matrices.defjvp
def _by_matrices(primals: tuple, tangents: tuple) -> tuple:
    tree, q, v, tau, wrench = primals
    _, dq, dv, dtau, _ = tangents
    a, (by_q, by_v, by_tau) = _forward(tree, q, v, tau, wrench)
    space = tree.topology.manifold
    _, xi = jax.jvp(lambda y: space.difference(q, y), (q,), (dq,))
    return a, by_q @ xi + by_v @ dv + by_tau @ dtau


def _forward(
    tree: Tree,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    wrench: Float[Array, "nb 6"] | None,
) -> tuple[Float[Array, " nv"], Triple]:
    """The acceleration (nv,), and its derivatives."""
    s = screws(tree, q)
    # From the tips to the root there is no fill-in (Featherstone 2005): the zeros of the tree stay.
    factor = jax.scipy.linalg.cho_factor(_mass(tree, s, q)[::-1, ::-1])

    def solve(x: jax.Array) -> jax.Array:
        return jax.scipy.linalg.cho_solve(factor, x[::-1])[::-1]

    forces = _wrenches(tree, s, *s.motion(tree.rates(v), tree.rates(0 * v)), wrench)
    bias = tree.generalised(s.axes.dot(s.composite(forces)))
    if tree.inerters:
        bias = bias + inertance_force(tree, q, v, jnp.zeros_like(v))
    a = solve(tau - bias)
    by_q, by_v = _state_derivatives(tree, s, q, v, a, wrench)
    unit = jnp.eye(v.shape[0], dtype=v.dtype)
    solved = solve(jnp.concatenate((-by_q, -by_v, unit), axis=1))
    by_q, by_v, by_tau = jnp.split(solved, 3, axis=1)
    return a, (by_q, by_v, by_tau)


def _mass(tree: Tree, s: Screws, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
    """The mass matrix (nv, nv): S_j . Ic_j S_k for dof j not before k.

    As `crba`, but from the screws already at hand, without two more passes along the tree.
    """
    momentum = s.composite(s.inertia) @ s.axes
    matrix = pairs(s, near=(momentum, s.axes), far=momentum)
    M = generalised_matrix(tree, matrix + jnp.diag(tree.armature))
    return M + inertance_matrix(tree, q) if tree.inerters else M


def _wrenches(
    tree: Tree, s: Screws, twists: Motion, gains: Motion, wrench: Float[Array, "nb 6"] | None
) -> Force:
    """The wrenches that accelerate the bodies of each dof, less the external wrenches on them."""
    accelerations = total(masks(s.topology).ancestor_mask, gains) + tree.base_acceleration
    needed = s.inertia @ accelerations + twists.cross_force(s.inertia @ twists)
    return needed if wrench is None else needed - s.poses.force(tree.dof_forces(wrench))


def _state_derivatives(
    tree: Tree,
    s: Screws,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    wrench: Float[Array, "nb 6"] | None,
) -> tuple[Float[Array, "nv nv"], Float[Array, "nv nv"]]:
    """dtau/dq and dtau/dv, each (nv, nv)."""
    if s.gradients is not None or any(part.turns for part in tree.inerters):
        return _differentiated(tree, q, v, a, wrench)
    twists, gains = s.motion(tree.rates(v), tree.rates(a))
    wrenches = _wrenches(tree, s, twists, gains, wrench)
    after = masks(s.topology).after
    before = total(after, s.axes * tree.rates(v))
    moved = before.cross(s.axes)
    accelerated = (total(after, gains) + tree.base_acceleration).cross(s.axes) + before.cross(moved)
    with_rate = moved + s.changes(twists, tree.rates(v))
    inertia, turning, force = s.composite(
        (s.inertia, Turning.of_rigid(s.inertia, twists), wrenches)
    )
    seen = inertia @ s.axes, turning.transposed_times(s.axes) * 2
    by_q = pairs(
        s,
        near=(seen, (accelerated, moved.angular)),
        far=inertia @ accelerated + (turning @ moved) * 2 + s.axes.cross_force(force),
    )
    by_v = pairs(
        s,
        near=(seen, (with_rate, s.axes.angular)),
        far=inertia @ with_rate + (turning @ s.axes) * 2,
    )
    return generalised_matrix(tree, by_q), generalised_matrix(tree, by_v)


def _differentiated(
    tree: Tree,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    wrench: Float[Array, "nb 6"] | None,
) -> tuple[Float[Array, "nv nv"], Float[Array, "nv nv"]]:
    """dtau/dq and dtau/dv by forward mode, along every degree of freedom."""

    def effort(xi: jax.Array, v: jax.Array) -> jax.Array:
        return rnea(tree, tree.topology.manifold.retract(q, xi), v, a, wrench)

    by_q, by_v = jax.jacfwd(effort, (0, 1))(jnp.zeros_like(v), v)
    return by_q, by_v

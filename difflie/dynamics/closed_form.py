"""The coordinate-invariant closed form of the equations of motion (Ploen, Park 1999).

With the links' screws, inertias and transforms collected in matrices,

    V = G S v,   tau = M a + C + phi - J_t^T F_ext
    M = S^T G^T J G S + R
    C = S^T G^T (J G (D_S Gamma V + K) + D_V J V),    phi = S^T G^T J G P_0 A_0,    J_t = P_t G S
    M = (I + S^T G^T Pi) Omega (I + S^T G^T Pi)^T
    M^-1 = (I - S^T Y Pi)^T Omega^-1 (I - S^T Y Pi)

and the O(n) algorithms are these products, evaluated from right to left. This file extends the
paper to trees, with parents in place of predecessors, to rotor inertias R, and to joints of several
degrees of freedom. Each of these is a link; only the last one of a joint has mass. K is the joint
bias acceleration, which the sum over such links does not contain. In other link frames Q the
matrices transform as S -> Q S, G -> Q G Q^-1, J -> Q^-T J Q^-1. M, C, phi, J_t, Omega and the
factors do not change.

For study and verification: the matrices are dense, O(n^3) operations. Twists and wrenches have
their angular part first and are body-fixed.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..groups import se3
from ..spatial import Motion
from ..system.kinematic_tree import Tree
from ..system.topology import WORLD, Topology
from ..system.traverse import backward_pass, forward_pass


class ClosedForm(eqx.Module):
    """The matrices of the equations of motion at one state; n = nv links in the order of v.

    S (6n, n), the screws, block diagonal; J (6n, 6n), the inertias, block diagonal; Gamma (6n, 6n)
    with Ad_{f_i}^-1 from the parent to link i; G (6n, 6n) = (I - Gamma)^-1; P_0 (6n, 6), from the
    world to the first links; P_t (6nb, 6n), from the links to the body frames; R (n, n), the rotor
    inertias, diagonal; D_S = diag(-ad_{S_i v_i}) and D_V = diag(-ad_{V_i}^T) (6n, 6n); V (6n,), the
    twists; K (6n,), the bias accelerations of the joints; A_0 (6,) = (0, -g) in the world.

    M (n, n), the mass matrix; C, phi (n,), the forces of Coriolis and centrifugal terms and of
    gravity; J_t (6nb, n), the Jacobians of all bodies.

    articulated (6n, 6n), the articulated inertias, block diagonal; Omega (n, n), diagonal;
    Phi (n, 6n); Pi (6n, n); X = (I - S Phi) Gamma and Y = (I - X^T)^-1 (6n, 6n); factor (n, n) =
    I + S^T G^T Pi, unit upper triangular; inverse_factor (n, n) = I - S^T Y Pi, its inverse;
    M_inverse (n, n). v (n,): the velocity; topology: the tree of the system. Units are SI.
    """

    S: jax.Array
    J: jax.Array
    Gamma: jax.Array
    G: jax.Array
    P_0: jax.Array
    P_t: jax.Array
    R: jax.Array
    D_S: jax.Array
    D_V: jax.Array
    V: jax.Array
    K: jax.Array
    A_0: jax.Array
    M: jax.Array
    C: jax.Array
    phi: jax.Array
    J_t: jax.Array
    articulated: jax.Array
    Omega: jax.Array
    Phi: jax.Array
    Pi: jax.Array
    X: jax.Array
    Y: jax.Array
    factor: jax.Array
    inverse_factor: jax.Array
    M_inverse: jax.Array
    v: jax.Array
    topology: Topology = eqx.field(static=True)

    def forward_dynamics(
        self, tau: Float[Array, " nv"], wrench: Float[Array, "nb 6"] | None = None
    ) -> Float[Array, " nv"]:
        """The acceleration (nv,) under tau (nv,) by the paper's O(n) algorithm (50)-(68).

        wrench (nb, 6): external wrenches (moment N m, force N) on the bodies, in body frames.
        """
        t = self.topology
        external = jnp.zeros_like(self.V) if wrench is None else self.P_t.T @ wrench.ravel()

        def links(a):  # (6n,) link by link
            return a.reshape(t.n_dofs, -1)

        Ad = _transforms(self.Gamma, self.P_0, t)
        A, D = _diagonal(self.S, t.n_dofs)[:, :, 0], _diagonal(self.J, t.n_dofs)
        Jh, Omega = _diagonal(self.articulated, t.n_dofs), jnp.diag(self.Omega)
        K, F = links(self.K), links(external)

        def velocity_and_force(parent, link):  # (50)-(57)
            V, alpha = parent
            Ad, A, D, rate, K, F = link
            V = Ad @ V + A * rate
            alpha = Ad @ alpha - se3.ad(A * rate) @ V + K
            return (V, alpha), D @ alpha - se3.ad(V).T @ D @ V - F

        start = jnp.zeros_like(self.A_0), self.A_0
        forces = forward_pass(t, velocity_and_force, start, (Ad, A, D, self.v, K, F))

        def effort(children, link):  # (58)-(61)
            Ad, A, force, tau = link
            P = children + force
            return Ad.T @ P, tau - A @ P

        remaining = backward_pass(t, effort, jnp.zeros_like(self.A_0), (Ad, A, forces, tau))

        def eliminate(z, link):  # (62)-(65); Y and Pi act on the way to the parent
            Ad, A, Jh, Omega, tau = link
            c = (tau - A @ z) / Omega
            return Ad.T @ (z + Jh @ A * c), c

        c = backward_pass(t, eliminate, jnp.zeros_like(self.A_0), (Ad, A, Jh, Omega, remaining))

        def accelerate(parent, link):  # (66)-(68)
            Ad, A, Jh, Omega, c = link
            seen = Ad @ parent
            a = c - A @ Jh @ seen / Omega
            return seen + A * a, a

        return forward_pass(t, accelerate, jnp.zeros_like(self.A_0), (Ad, A, Jh, Omega, c))


def closed(
    tree: Tree,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    frames: Float[Array, "nv 4 4"] | None = None,
) -> ClosedForm:
    """The closed form at (q (nq,), v (nv,)) in the link frames Q (nv, 4, 4), without mimic joints.

    Q_i takes coordinates of link i's own frame to those of the new frame.
    """
    with jax.default_matmul_precision("highest"):
        return _closed(tree, q, v, frames)


def _closed(tree, q, v, frames):
    t, n = tree.topology, tree.topology.n_dofs
    rates = tree.rates(v)
    bias = tree.bias(q, rates)
    poses = tree.poses(q).inverse().to_array()
    screws = _screws(tree, q)
    inertias = _inertias(tree)
    K = jnp.zeros((n, 6), q.dtype) if bias is None else bias.to_array()
    if frames is None:
        frames = jnp.broadcast_to(jnp.eye(4, dtype=q.dtype), (n, 4, 4))
    Q, Q_inverse = jax.vmap(se3.Ad)(frames), jax.vmap(lambda f: se3.Ad(se3.inverse(f)))(frames)

    parent = t.dof_parent
    above = jnp.concatenate((Q_inverse, jnp.eye(6, dtype=q.dtype)[None]))[parent]
    transforms = Q @ jax.vmap(se3.Ad)(poses) @ above
    screws = jnp.einsum("nij,nj->ni", Q, screws)
    J = jnp.swapaxes(Q_inverse, 1, 2) @ inertias @ Q_inverse
    K = jnp.einsum("nij,nj->ni", Q, K)

    S = _block_diagonal(screws[:, :, None])
    J = _block_diagonal(J)
    child = jnp.asarray(parent[:, None] == np.arange(n), q.dtype)
    Gamma = _blocks(child[:, :, None, None] * transforms[:, None])
    P_0 = _blocks(jnp.asarray(parent == WORLD, q.dtype)[:, None, None, None] * transforms[:, None])
    P_t = _body_frames(tree, Q_inverse)
    R = jnp.diag(tree.armature)
    depth = int(t.depth.max(initial=0)) + 1
    G = _inverse_of_one_minus(Gamma, depth)
    A_0 = tree.base_acceleration.to_array()

    V = G @ S @ v
    D_S = _block_diagonal(jax.vmap(lambda s: -se3.ad(s))(screws * v[:, None]))
    D_V = _block_diagonal(jax.vmap(lambda twist: -se3.ad(twist).T)(V.reshape(n, 6)))
    K = K.ravel()
    M = S.T @ G.T @ J @ G @ S + R
    C = S.T @ G.T @ (J @ G @ (D_S @ Gamma @ V + K) + D_V @ J @ V)
    phi = S.T @ G.T @ J @ G @ P_0 @ A_0

    Jh = _articulated(t, transforms, screws, J, R)
    Omega = S.T @ Jh @ S + R
    Phi = S.T @ Jh / jnp.diag(Omega)[:, None]
    Pi = Gamma.T @ Phi.T
    X = (jnp.eye(6 * n, dtype=q.dtype) - S @ Phi) @ Gamma
    Y = _inverse_of_one_minus(X.T, depth)
    one = jnp.eye(n, dtype=q.dtype)
    factor, inverse_factor = one + S.T @ G.T @ Pi, one - S.T @ Y @ Pi
    M_inverse = inverse_factor.T @ (inverse_factor / jnp.diag(Omega)[:, None])
    return ClosedForm(
        *(S, J, Gamma, G, P_0, P_t, R, D_S, D_V, V, K, A_0, M, C, phi, P_t @ G @ S),
        *(Jh, Omega, Phi, Pi, X, Y, factor, inverse_factor, M_inverse, v, t),
    )


def _articulated(t, transforms, screws, J, R):
    """J_i + the sum over children of X^T (Jh - Jh S Omega^-1 S^T Jh) X, block diagonal."""

    def articulate(children, link):
        Ad, A, J, R = link
        Jh = J + children
        column = Jh @ A
        return Ad.T @ (Jh - jnp.outer(column, column) / (A @ column + R)) @ Ad, Jh

    data = (transforms, screws, _diagonal(J, t.n_dofs), jnp.diag(R))
    return _block_diagonal(backward_pass(t, articulate, jnp.zeros((6, 6), J.dtype), data))


def _screws(tree: Tree, q: Float[Array, " nq"]) -> Float[Array, "n 6"]:
    """(n, 6) the screws of the dofs, each in its own frame."""
    return tree.screws(q).add_to(Motion.zero(jnp.zeros_like(tree.armature))).to_array()


def _inertias(tree: Tree) -> Float[Array, "n 6 6"]:
    """(n, 6, 6) the inertias of the dofs, each about its own frame."""

    def momentum(twist):
        return (tree.inertia @ Motion.from_array(twist)).to_array()

    return jnp.stack([momentum(e) for e in jnp.eye(6, dtype=tree.armature.dtype)], axis=-1)


def _body_frames(tree: Tree, Q_inverse: jax.Array) -> jax.Array:
    """(6nb, 6n) from the frame of the link that carries each body to the body's; zero if none."""
    t = tree.topology
    offset = tree.body_frames.inverse().to_array()
    moves = jnp.asarray(t.last_dof[:, None] == np.arange(t.n_dofs), Q_inverse.dtype)
    world = jnp.eye(6, dtype=Q_inverse.dtype)[None]
    seen = jax.vmap(se3.Ad)(offset) @ jnp.concatenate((Q_inverse, world))[t.last_dof]
    return _blocks(moves[:, :, None, None] * seen[:, None])


def _transforms(Gamma: jax.Array, P_0: jax.Array, t: Topology) -> Float[Array, "n 6 6"]:
    """(n, 6, 6) Ad_{f_i}^-1 of all links, from the matrices that hold them."""
    n = t.n_dofs
    rows = jnp.concatenate((Gamma, P_0), axis=1).reshape(n, 6, n + 1, 6)
    return rows[np.arange(n), :, t.dof_parent]


def _inverse_of_one_minus(N: Float[Array, "m m"], length: int) -> Float[Array, "m m"]:
    """I + N + N^2 + ... of a nilpotent N with N^length = 0, by doubling."""
    total = jnp.eye(N.shape[0], dtype=N.dtype) + N
    for _ in range(1, (length - 1).bit_length()):
        N = N @ N
        total = total + N @ total
    return total


def _blocks(a: Float[Array, "n m r c"]) -> Float[Array, "rows columns"]:
    """The matrix (n r, m c) of blocks (n, m, r, c)."""
    n, m, r, c = a.shape
    return jnp.swapaxes(a, 1, 2).reshape(n * r, m * c)


def _block_diagonal(a: Float[Array, "n r c"]) -> Float[Array, "rows columns"]:
    """The matrix (n r, n c) with the blocks (n, r, c) on its diagonal."""
    return _blocks(jnp.eye(len(a), dtype=a.dtype)[:, :, None, None] * a[:, None])


def _diagonal(a: Float[Array, "rows columns"], n: int) -> Float[Array, "n r c"]:
    """The blocks (n, r, c) on the diagonal of a matrix (n r, n c)."""
    blocks = a.reshape(n, a.shape[0] // n, n, a.shape[1] // n)
    return blocks[np.arange(n), :, np.arange(n)]

"""The screws of all dofs in one frame, and sums along the tree as products with masks.

Every tree of a system gets a frame with the world's axes, fixed in the world at the current origin
of the tree's first dof, so that no digits are lost far from the world origin. In it

    V_i = sum_j A_ij S_j v_j,      dS_j/dt = V_c(j) x S_j,      A_ij = 1 if dof j moves dof i

where c(j) is the dof with which screw j moves: j itself, or the last dof of a joint that moves as a
whole. If the subspace of such a joint varies, its own derivative is added to dS_j/dt. The only
recursion is that over the poses: matrices over all pairs of dofs are a few dense products, which
compile and run fast.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..groups.components import Vector
from ..solvers.linear import product
from ..spatial import Force, Inertia, Motion, Transform
from ..system.kinematic_tree import Tree
from ..system.topology import WORLD, Topology
from .kinematics import chained


class Screws(eqx.Module):
    """The dofs of a tree at a configuration; shapes are (n_dofs,), frames those of the trees.

    poses: of the frames of the dofs. origin: of the tree's frame in the world. axes: the screws.
    inertia: of the bodies that each dof carries. gradients (n_dofs, n_dofs): the derivative of the
    screw of dof i in its body along dof j; None if all are zero.
    """

    poses: Transform
    origin: Vector
    axes: Motion
    inertia: Inertia
    gradients: Motion | None
    topology: Topology = eqx.field(static=True)

    def twists(self, rates: Float[Array, " n_dofs"]) -> Motion:
        """The twist of every dof for the rates of the dofs (n_dofs,)."""
        return total(masks(self.topology).ancestor_mask, self.axes * rates)

    def changes(self, twists: Motion, rates: Float[Array, " n_dofs"]) -> Motion:
        """The time derivatives of the screws (n_dofs,), for twists and rates (n_dofs,)."""
        frame = masks(self.topology).fixed_in
        rigid = jax.tree.map(lambda a: a[frame], twists).cross(self.axes)
        if self.gradients is None:
            return rigid
        return rigid + jax.tree.map(lambda a: jnp.sum(a * rates, axis=1), self.gradients)

    def motion(
        self, rates: Float[Array, " n_dofs"], accelerations: Float[Array, " n_dofs"]
    ) -> tuple[Motion, Motion]:
        """The twist of every dof, and its joint's contribution to the spatial acceleration."""
        twists = self.twists(rates)
        return twists, self.axes * accelerations + self.changes(twists, rates) * rates

    def composite(self, values: Any) -> Any:
        """The sums over each dof and all dofs beyond it, of components (n_dofs,)."""
        return total(masks(self.topology).ancestor_mask.T, values)


class Masks(NamedTuple):
    """Which dof affects which, as booleans (n_dofs, n_dofs).

    ancestor_mask[i, j]: dof j moves dof i. turned_by[j, k]: dof k moves the screw of dof j.
    after[k, j]: the joint of dof j comes before that of dof k on the path from the world. fixed_in
    (n_dofs,): the dof in whose frame the screw is fixed. root (n_dofs,): the first dof of the tree.
    """

    ancestor_mask: np.ndarray
    turned_by: np.ndarray
    after: np.ndarray
    fixed_in: np.ndarray
    root: np.ndarray


@lru_cache
def masks(t: Topology) -> Masks:
    """The masks (n_dofs, n_dofs) of a topology, cached."""
    ancestor_mask = t.ancestor_mask
    root = np.arange(t.n_dofs)
    for i, above in enumerate(t.dof_parent):
        if above != WORLD:
            root[i] = root[above]
    turned_by = ancestor_mask[t.motion_end]
    return Masks(ancestor_mask, turned_by, ancestor_mask & ~turned_by.T, t.motion_end, root)


def screws(tree: Tree, q: Float[Array, " nq"]) -> Screws:
    """The screws at the configuration q (nq,)."""
    t = tree.topology
    poses, root = tree.poses(q), masks(t).root
    first = root == np.arange(t.n_dofs)
    inside = jax.tree.map(lambda a: jnp.where(first, jnp.zeros_like(a), a), poses.translation)
    frames = chained(tree, Transform(poses.rotation, inside))
    unit = tree.screws(q).add_to(Motion.zero(jnp.zeros_like(frames.translation.x)))
    gradients = tree.subspace_gradients(q)
    if gradients is not None:
        gradients = jax.tree.map(lambda a: a[:, None], frames).motion(gradients)
    return Screws(
        poses=frames,
        origin=jax.tree.map(lambda a: a[root], poses.translation),
        axes=frames.motion(unit),
        inertia=tree.inertia.change_frame(frames),
        gradients=gradients,
        topology=t,
    )


def total(mask: np.ndarray, values: Any) -> Any:
    """The product of a mask with every component (n_dofs,) of a pytree."""
    leaves, structure = jax.tree.flatten(values)
    return jax.tree.unflatten(structure, list(product(mask, jnp.stack(leaves, axis=1)).T))


def pairs(s: Screws, near: tuple[Any, Any], far: Any) -> Float[Array, "n_dofs n_dofs"]:
    """The matrix (n_dofs, n_dofs) of products of two dofs, taken at the outer one of the two.

    Entry (j, k) is near[0]_j . near[1]_k if dof k moves the screw j, S_j . far_k (a Force) if dof j
    comes before k, and zero if neither moves the other.
    """
    m = masks(s.topology)
    left, right = (_table(x) for x in near)
    inner = product(left, right.T) * jnp.asarray(m.turned_by, left.dtype)
    outer = product(_table(s.axes), _table(far).T) * jnp.asarray(m.after.T, left.dtype)
    return inner + outer


def _table(values: Any) -> Float[Array, "n_dofs n_components"]:
    """The components (n_dofs,) of a pytree side by side."""
    return jnp.stack(jax.tree.leaves(values), axis=1)


def generalised_columns(tree: Tree, columns: Motion | Force) -> Float[Array, "6 nv"]:
    """Columns for the dofs (n_dofs,) as a matrix (6, nv) for the velocities."""
    return jax.vmap(tree.generalised, in_axes=1)(columns.to_array())


def generalised_matrix(tree: Tree, matrix: Float[Array, "n_dofs n_dofs"]) -> Float[Array, "nv nv"]:
    """A matrix (n_dofs, n_dofs) over pairs of dofs as one (nv, nv) for the velocities."""
    columns = jax.vmap(tree.generalised)(matrix)
    return jax.vmap(tree.generalised, in_axes=1, out_axes=1)(columns)

"""The contact points of shapes as rows: how fast they close and slip, by the velocity v."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..collision.distances.witness import Witness
from ..dynamics.screws import Screws, screws
from ..groups.components import across
from ..spatial import Motion
from ..system.kinematic_tree import Tree
from .points import point_frames
from .shape_contact import ShapeContact


class ContactRows(NamedTuple):
    """The k contact points of the pairs of a `ShapeContact`, in the order of its `meetings`.

    pairs (k,): the number of the pair of each. points (k,): in the world, gaps without margins.
    rows (k, 6, nv): of the second shape against the first, there, the velocities along the normal
    and two tangents in m/s, then the angular velocities about the same, in rad/s.
    """

    pairs: np.ndarray
    points: Witness
    rows: Float[Array, "k 6 nv"]


def contact_rows(tree: Tree, contact: ShapeContact, q: Float[Array, " nq"]) -> ContactRows:
    """The contact points at the configuration q (nq,)."""
    (frames,) = point_frames(tree, [contact.path], q)
    t, s = tree.topology, screws(tree, q)
    number: dict[str | None, int] = {name: b for b, name in enumerate((*t.bodies, None))}
    bodies = [number[body] for body in contact.path.bodies]
    dofs = np.append(t.body_dof, t.n_dofs)[bodies]
    moves = np.concatenate((t.ancestor_mask, np.zeros((1, t.n_dofs), bool)))[dofs].astype(int)
    numbers, witnesses, rows = [], [], []
    for met in contact.meetings(frames):
        points = met.points
        count = points.gap.shape[1]
        relative = (moves[met.second] - moves[met.first])[:, None, :]
        rows.append(_rows(tree, s, points, relative).reshape(-1, 6, t.nv))
        witnesses.append(jax.tree.map(lambda a: a.reshape(-1), points))
        numbers.append(np.repeat(met.index, count))
    points = jax.tree.map(lambda *a: jnp.concatenate(a), *witnesses)
    return ContactRows(np.concatenate(numbers), points, jnp.concatenate(rows))


def _rows(tree: Tree, s: Screws, points: Witness, relative: np.ndarray) -> jax.Array:
    """The rows (m, k, 6, nv) of points (m, k); relative (m, 1, n_dofs): 1, 0 or -1, which moves."""
    place = (points.first + points.second) * 0.5
    at, normal = jax.tree.map(lambda a: a[..., None], (place, points.normal))
    axes = s.axes
    linear = axes.linear + axes.angular.cross(at - s.origin)
    motion = Motion(axes.angular, linear)
    motion = jax.tree.map(lambda a: jnp.where(relative != 0, relative * a, 0), motion)
    directions = (normal, *across(normal))
    rows = [d.dot(w) for w in (motion.linear, motion.angular) for d in directions]
    columns = jnp.stack(rows, axis=2)
    return jax.vmap(jax.vmap(jax.vmap(tree.generalised)))(columns)

"""The contact points of compliant contacts as rows: how they close, slip and turn by v."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..dynamics.screws import Screws, screws
from ..groups.components import Vector, across
from ..spatial import Motion, Transform
from ..system.kinematic_tree import Tree
from .contacts import Contact
from .points import carriers, point_frames
from .shape_contact import OF_PAIRS, ShapeContact


class ContactRows(NamedTuple):
    """The k contact points of a `Contact`, or of a `ShapeContact` in the order of its `meetings`.

    pairs (k,): of which of its pairs. gaps (k,) in m, less margins; exists (k,): whether there is
    such a point; numbers (k,): those of the law by name. rows (k, 6, nv): of the second body
    against the first, there, the velocities along the normal and two tangents in m/s, then the
    angular velocities about the same, in rad/s.
    """

    pairs: np.ndarray
    gaps: jax.Array
    exists: jax.Array
    numbers: dict[str, jax.Array]
    rows: Float[Array, "k 6 nv"]


class _Met(NamedTuple):
    """Points (m, k) of m pairs; index, first, second (m,): the pair, and its points on the path."""

    index: np.ndarray
    first: np.ndarray
    second: np.ndarray
    gap: jax.Array
    normal: Vector
    place: Vector
    exists: jax.Array


def contact_rows(
    tree: Tree, contact: Contact | ShapeContact, q: Float[Array, " nq"]
) -> ContactRows:
    """The contact points at the configuration q (nq,)."""
    (frames,) = point_frames(tree, [contact.path], q)
    t, s = tree.topology, screws(tree, q)
    _, dofs = carriers(tree, [contact.path])
    moves = np.concatenate((t.ancestor_mask, np.zeros((1, t.n_dofs), bool)))[dofs].astype(int)
    found = list(
        _shapes(contact, frames) if isinstance(contact, ShapeContact) else _bodies(contact, frames)
    )
    pairs = np.concatenate([np.repeat(met.index, met.gap.shape[1]) for met in found])
    rows = [_rows(tree, s, met, moves[met.second] - moves[met.first]) for met in found]
    gaps, exists = (
        jnp.concatenate([a.ravel() for a in each])
        for each in zip(*((met.gap, met.exists) for met in found), strict=True)
    )
    numbers = {
        name: jnp.broadcast_to(getattr(contact, name, 0.0), len(contact.path.bodies))[pairs]
        if isinstance(contact, Contact)
        else getattr(contact, name)[pairs]
        for name in OF_PAIRS
    }
    return ContactRows(pairs, gaps - numbers["margin"], exists, numbers, jnp.concatenate(rows))


def _shapes(contact: ShapeContact, frames: Transform) -> Iterator[_Met]:
    for met in contact.meetings(frames):
        points = met.points
        at = met.index, met.first, met.second
        yield _Met(*at, points.gap, points.normal, points.middle, points.valid)


def _bodies(contact: Contact, frames: Transform) -> Iterator[_Met]:
    met, others = contact.meeting(frames), np.arange(1, len(contact.path.bodies))
    at = met.gap, met.normal, contact.place(met)
    gap, normal, place = jax.tree.map(lambda a: a[:, None], at)
    # Concentric spheres have no normal, and no contact.
    yield _Met(others - 1, 0 * others, others, gap, normal, place, normal.square() > 0)


def _rows(tree: Tree, s: Screws, met: _Met, relative: np.ndarray) -> jax.Array:
    """The rows (m k, 6, nv) of points (m, k); relative (m, n_dofs): 1, 0 or -1, which dof moves."""
    at, normal = jax.tree.map(lambda a: a[..., None], (met.place, met.normal))
    signs, axes = relative[:, None, :], s.axes
    motion = Motion(axes.angular, axes.linear + axes.angular.cross(at - s.origin))
    motion = jax.tree.map(lambda a: jnp.where(signs != 0, signs * a, 0), motion)
    directions = (normal, *across(normal))
    rows = [d.dot(w) for w in (motion.linear, motion.angular) for d in directions]
    columns = jnp.stack(rows, axis=2).reshape(-1, 6, tree.topology.n_dofs)
    return jax.vmap(jax.vmap(tree.generalised))(columns)

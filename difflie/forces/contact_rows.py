"""The contact points of compliant contacts, and their rows: how they close, slip and turn by v."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..dynamics.screws import screws
from ..groups.components import Vector, across
from ..solvers.rows import Rows
from ..spatial import Motion, Transform
from ..system.kinematic_tree import Tree
from .contacts import Contact
from .points import carriers, point_frames
from .shape_contact import OF_PAIRS, ShapeContact


class ContactPoints(NamedTuple):
    """k contact points, of a `ShapeContact` in the order of its `meetings`.

    gaps (k,) in m, less margins; exists (k,): whether there is such a point; numbers (k,): those of
    the law by name. normal (k,), place (k,): in the world. moves (k, w): 1 for the dofs that move
    the second body and not the first, -1 for the others way round, else 0; dofs (k, w): which dofs
    these are, None for all. bodies (k, 2): the names of the first and the second one, "" for the
    world.
    """

    gaps: jax.Array
    exists: jax.Array
    numbers: dict[str, jax.Array]
    normal: Vector
    place: Vector
    moves: jax.Array | np.ndarray
    dofs: jax.Array | np.ndarray | None = None
    bodies: np.ndarray | None = None

    def those(self, index: jax.Array | np.ndarray) -> ContactPoints:
        """The points of these numbers (p,), without the names of their bodies."""
        return jax.tree.map(lambda a: jnp.asarray(a)[index], self._replace(bodies=None))

    def with_few_dofs(self) -> ContactPoints:
        """The points with no more dofs than the one that most move."""
        still = np.asarray(self.moves) == 0
        dofs = np.argsort(still, axis=1, kind="stable")[:, : max(np.sum(~still, axis=1))]
        return self._replace(moves=np.take_along_axis(self.moves, dofs, 1), dofs=dofs)


class _Met(NamedTuple):
    """Points (m, k) of m pairs; index, first, second (m,): the pair, and its points on the path."""

    index: np.ndarray
    first: np.ndarray
    second: np.ndarray
    gap: jax.Array
    normal: Vector
    place: Vector
    exists: jax.Array


def contact_points(
    tree: Tree, contacts: Sequence[Contact | ShapeContact], q: Float[Array, " nq"]
) -> ContactPoints:
    """The points of contacts, one or more, at the configuration q (nq,)."""
    each = [_points_of(tree, contact, q) for contact in contacts]
    return jax.tree.map(_joined, *each) if len(each) > 1 else each[0]


def _points_of(tree: Tree, contact: Contact | ShapeContact, q: jax.Array) -> ContactPoints:
    (frames,) = point_frames(tree, [contact.path], q)
    t = tree.topology
    _, dofs = carriers(tree, [contact.path])
    moves = np.concatenate((t.ancestor_mask, np.zeros((1, t.n_dofs), bool)))[dofs].astype(int)
    found = list(
        _shapes(contact, frames) if isinstance(contact, ShapeContact) else _bodies(contact, frames)
    )
    counts = [met.gap.shape[1] for met in found]
    pairs = np.concatenate([np.repeat(m.index, k) for m, k in zip(found, counts, strict=True)])
    signs = [
        np.repeat(moves[m.second] - moves[m.first], k, axis=0)
        for m, k in zip(found, counts, strict=True)
    ]
    gaps, normal, place, exists = jax.tree.map(
        lambda *a: jnp.concatenate([x.ravel() for x in a]),
        *((met.gap, met.normal, met.place, met.exists) for met in found),
    )
    numbers = {
        name: jnp.broadcast_to(getattr(contact, name, 0.0), len(contact.path.bodies))[pairs]
        if isinstance(contact, Contact)
        else getattr(contact, name)[pairs]
        for name in OF_PAIRS
    }
    gaps = gaps - numbers["margin"]
    names = np.array([name or "" for name in contact.path.bodies])
    bodies = np.concatenate(
        [
            np.repeat(np.stack((names[m.first], names[m.second]), axis=1), k, axis=0)
            for m, k in zip(found, counts, strict=True)
        ]
    )
    signs = np.concatenate(signs)
    return ContactPoints(gaps, exists, numbers, normal, place, signs, bodies=bodies)


def _joined(*parts: Any) -> Any:
    """Arrays one after the other; what is known stays known."""
    known = all(isinstance(x, np.ndarray) for x in parts)
    return np.concatenate(parts) if known else jnp.concatenate(parts)


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


def contact_rows(tree: Tree, q: Float[Array, " nq"], points: ContactPoints) -> Rows:
    """How k points close, slip and turn by v (nv,), at q (nq,): rows (k, 6).

    Of the second body against the first, there, the velocities along the normal and two tangents in
    m/s, then the angular velocities about the same, in rad/s.
    """
    at, normal = jax.tree.map(lambda a: a[..., None], (points.place, points.normal))
    s, t, few, signs = screws(tree, q), tree.topology, points.dofs, points.moves
    axes, origin = s.axes, s.origin
    if few is not None:
        axes, origin = jax.tree.map(lambda a: a[few], (axes, origin))
    motion = Motion(axes.angular, axes.linear + axes.angular.cross(at - origin))
    motion = jax.tree.map(lambda a: jnp.where(signs != 0, signs * a, 0), motion)
    directions = (normal, *across(normal))
    rows = [d.dot(w) for w in (motion.linear, motion.angular) for d in directions]
    entries = jnp.stack(rows, axis=1)
    if few is None:
        return Rows(jax.vmap(jax.vmap(tree.generalised))(entries))
    each = tree.rates(jnp.ones(t.nv, q.dtype))
    return Rows(entries * each[few][:, None], jnp.asarray(t.dof_velocity)[few])

"""What the contacts of shapes do at a moment of a motion: for each pair gap, force and slip."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..collision.pairs import Pair
from ..groups.components import Vector, across
from ..spatial import Force, Motion, Transform
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.validation import ModelError
from .contacts import Contact
from .coupling import Coupling
from .path import Path, root
from .points import point_frames, point_motions
from .shape_contact import ShapeContact


class ContactReport(NamedTuple):
    """What m pairs of shapes do, along a motion with a leading axis.

    pairs: their names. gap (m,) in m, the least, negative in contact. pressure (m,): the sum of the
    normal forces in N; force (m, 3) in N: on the second shape, with friction; place (m, 3) in m:
    the mean of the contact points by their normal forces, the first point where there is none;
    slip (m,) in m/s: there, across the normal. In world coordinates. Of a method with impulses,
    the forces are the means over the step before.
    """

    pairs: tuple[Pair, ...]
    gap: Float[Array, "*t m"]
    pressure: Float[Array, "*t m"]
    force: Float[Array, "*t m 3"]
    place: Float[Array, "*t m 3"]
    slip: Float[Array, "*t m"]


class IdleContact(Coupling):
    """A contact whose forces a method finds itself: here it has none."""

    contact: Contact | ShapeContact

    @property
    def path(self) -> Path:
        return self.contact.path

    def wrenches(self, frames: Transform, twists: Motion) -> Force:
        return jax.tree.map(jnp.zeros_like, Force(frames.translation, frames.translation))


def contact_of(system: System) -> ShapeContact:
    """The contacts of the shapes of a system; raises `ModelError` where nothing touches."""
    for coupling in system.couplings:
        if isinstance(coupling, ShapeContact):
            return coupling
    raise ModelError(
        f"{system.name}: no shapes are in contact; say which with dl.touching, or read the file "
        "with contacts=True"
    )


def touching_couplings(system: System) -> list[Contact | ShapeContact]:
    """The compliant contacts of a system: those of bodies, each in its order, then of shapes."""
    couplings = [c.contact if isinstance(c, IdleContact) else c for c in system.couplings]
    found = [c for c in couplings if isinstance(c, Contact | ShapeContact)]
    return sorted(found, key=lambda c: isinstance(c, ShapeContact))


def contact_numbers(
    tree: Tree,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    forces: Float[Array, "p 3"] | None = None,
) -> tuple[jax.Array, ...]:
    """The numbers of the `ContactReport` of a state q (nq,), v (nv,); raises as `contact_of`.

    forces (p, 3) in N: at the points of the `touching_couplings`, along the normals and two
    tangents; None for those of the compliant law.
    """
    contact = contact_of(tree.system)
    start = _points_of_bodies(tree.system)
    ((frames, twists),) = point_motions(tree, [contact.path], q, v)
    rows, numbers = [], []
    for index, touch in contact.touches(frames, twists):
        gap, pressure, push = touch.points.gap, touch.pressure, touch.force
        if forces is not None:
            each = forces[start : start + gap.size].reshape(*gap.shape, 3)
            start += gap.size
            pressure, push = each[..., 0], _world(touch.points.normal, each)
        total = jnp.sum(pressure, axis=1)
        first = jnp.arange(pressure.shape[1]) == 0
        touches = (total > 0)[:, None]
        share = jnp.where(touches, pressure / jnp.where(touches, total[:, None], 1), first)

        force = jnp.sum(push.to_array(), axis=1)
        slip = root(touch.slip.square())
        slips = jnp.sum(slip * share, axis=1)
        rows.append(
            (
                jnp.min(gap, axis=1),
                total,
                force,
                jnp.sum(touch.place.to_array() * share[:, :, None], axis=1),
                slips,
            )
        )
        numbers.append(index)
    order = np.argsort(np.concatenate(numbers))
    return tuple(jnp.concatenate(each)[order] for each in zip(*rows, strict=True))


def pushes(
    tree: Tree, contact: Contact, q: Float[Array, " nq"], forces: Float[Array, "p 3"]
) -> tuple[Float[Array, "m 3"], Float[Array, "m 3"]]:
    """The points of a contact of bodies, and the forces there on its other bodies.

    q (nq,), forces (p, 3): as of `contact_numbers`.
    """
    (frames,) = point_frames(tree, [contact.path], q)
    before = touching_couplings(tree.system)
    start = sum(len(c.path.bodies) - 1 for c in before[: before.index(contact)])
    meeting = contact.meeting(frames)
    here = forces[start : start + len(meeting.gap)]
    return contact.place(meeting).to_array(), _world(meeting.normal, here).to_array()


def _points_of_bodies(system: System) -> int:
    """How many contact points are no points of shapes."""
    found = touching_couplings(system)
    return sum(len(c.path.bodies) - 1 for c in found if isinstance(c, Contact))


def _world(normal: Vector, forces: jax.Array) -> Vector:
    """Forces (..., 3) along normals (...,) and two tangents, in world coordinates."""
    x, y = across(normal)
    return normal * forces[..., 0] + x * forces[..., 1] + y * forces[..., 2]

"""What the contacts of shapes do at a moment of a motion: for each pair gap, force and slip."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..collision.pairs import Pair
from ..groups.components import Vector
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.validation import ModelError
from .path import root
from .points import point_motions
from .shape_contact import ShapeContact


class ContactReport(NamedTuple):
    """What m pairs of shapes do, along a motion with a leading axis.

    pairs: their names. gap (m,) in m, the least, negative in contact. pressure (m,): the sum of the
    normal forces in N; force (m, 3) in N: on the second shape, with friction; place (m, 3) in m:
    the mean of the contact points by their normal forces, the first point where there is none;
    slip (m,) in m/s: there, across the normal. In world coordinates.
    """

    pairs: tuple[Pair, ...]
    gap: Float[Array, "*t m"]
    pressure: Float[Array, "*t m"]
    force: Float[Array, "*t m 3"]
    place: Float[Array, "*t m 3"]
    slip: Float[Array, "*t m"]


def contact_of(system: System) -> ShapeContact:
    """The contacts of the shapes of a system; raises `ModelError` where nothing touches."""
    for coupling in system.couplings:
        if isinstance(coupling, ShapeContact):
            return coupling
    raise ModelError(
        f"{system.name}: no shapes are in contact; say which with dl.touching, or read the file "
        "with contacts=True"
    )


def contact_numbers(
    tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> tuple[jax.Array, ...]:
    """The numbers of the `ContactReport` of a state q (nq,), v (nv,); raises as `contact_of`."""
    contact = contact_of(tree.system)
    ((frames, twists),) = point_motions(tree, [contact.path], q, v)
    rows, numbers = [], []
    for index, touch in contact.touches(frames, twists):
        gap, pressure = touch.points.gap, touch.pressure
        total = jnp.sum(pressure, axis=1)
        first = jnp.arange(pressure.shape[1]) == 0
        touches = (total > 0)[:, None]
        share = jnp.where(touches, pressure / jnp.where(touches, total[:, None], 1), first)

        def mean(v: Vector, share: jax.Array = share) -> jax.Array:
            return jnp.sum(v.to_array() * share[:, :, None], axis=1)

        force = jnp.sum(touch.force.to_array(), axis=1)
        slip = root(touch.slip.square())
        slips = jnp.sum(slip * share, axis=1)
        rows.append((jnp.min(gap, axis=1), total, force, mean(touch.place), slips))
        numbers.append(index)
    order = np.argsort(np.concatenate(numbers))
    return tuple(jnp.concatenate(each)[order] for each in zip(*rows, strict=True))

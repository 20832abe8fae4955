"""Between shapes: their clearances, and the forces of contacts."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..collision.clearance import pair_distances
from ..collision.pairs import matching_pairs
from ..forces.contacts import Contact
from ..forces.points import point_motions
from ..forces.shape_contact import ShapeContact
from ..system.fields import number
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.user_functions import called
from ..system.validation import ModelError, format_value, nearest
from .quantity import Labels, Quantity, xyz


class Clearance(Quantity):
    """The signed distances (m,) in m of pairs of shapes, negative where they overlap.

    first, second: patterns for names of `System.shapes`; the pairs are those of
    `difflie.matching_pairs`. smoothing r () in m: the radius by which edges and faces are rounded
    outwards, as of `difflie.distance`, so that gradients are continuous; None for none. Raises
    ValueError for a pattern without a shape.
    """

    first: str = eqx.field(static=True, default="*")
    second: str = eqx.field(static=True, default="*")
    smoothing: jax.Array | None = eqx.field(
        converter=number(unit="m", positive=True, optional=True), default=None, kw_only=True
    )

    @property
    def name(self) -> str:
        return f"clearance of {self.first} and {self.second}"

    def labels(self, system: System) -> Labels:
        pairs = matching_pairs(system, self.first, self.second)
        return tuple((f"clearance of {a} and {b}", "m") for a, b in pairs)

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: jax.Array,
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, " m"]:
        pairs = matching_pairs(system, self.first, self.second)
        smoothing = None if self.smoothing is None else self.smoothing.astype(q.dtype)
        return pair_distances(Tree.of(system), q, pairs, smoothing).gap


class ContactForce(Quantity):
    """The force (3,) in N of all compliant contacts on a body, with friction, in the world.

    By the smooth law, at a state. Of motions by `ConvexContact`, whose friction sticks, take the
    forces of `Trajectory.contacts`.

    body: its name. Raises `ModelError` for an unknown body, with the nearest name.
    """

    body: str = eqx.field(static=True)

    @property
    def name(self) -> str:
        return f"contact force on {self.body}"

    def labels(self, system: System) -> Labels:
        return xyz("N")

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, "3"]:
        if self.body not in system.body_names:
            raise ModelError(
                f"{system.name}: no body is named {format_value(self.body)}"
                f"{nearest(self.body, system.body_names)}"
            )
        acting = [c for c in system.couplings if isinstance(c, Contact | ShapeContact)]
        total = jnp.zeros(3, q.dtype)
        motions = point_motions(Tree.of(system), [c.path for c in acting], q, v) if acting else []
        for contact, motion in zip(acting, motions, strict=True):
            on = np.array([body == self.body for body in contact.path.bodies])
            forces = called(contact.wrenches, *motion).force.to_array()
            total = total + jnp.sum(jnp.where(on[:, None], forces, 0), axis=0)
        return total

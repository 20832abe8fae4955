"""Between shapes: their clearances, and the forces of contacts."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..collision.clearance import pair_distances
from ..collision.pairs import matching_pairs
from ..constraints.equations import equations
from ..constraints.unilateral import HardContact, bilateral, unilateral
from ..forces.contact_report import contact_numbers, pushes, touching_couplings
from ..forces.contacts import Contact
from ..forces.points import point_motions
from ..forces.shape_contact import ShapeContact
from ..groups.components import across
from ..solvers.linear import product
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
    """The force (3,) in N of all contacts on a body, with friction, in the world.

    At a state of compliant contacts, by their smooth law. Along a run whose method finds impulses
    (`difflie.quantities.along`), such as `ConvexContact`, it is what these are, divided by the
    step, those of hard contacts included.

    body: its name. Raises `ModelError` for an unknown body, with the nearest name, and for one with
    hard contacts at a state that is not of such a run.
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
        self._check(system)
        if any(self._on(c) for c in system.constraints if isinstance(c, HardContact)):
            raise ModelError(
                f"{system.name}: hard contacts of {format_value(self.body)} have no force by its "
                "state alone; take a run with ConvexContact or Moreau and difflie.quantities.along"
            )
        acting = [c for c in system.couplings if isinstance(c, Contact | ShapeContact)]
        total = jnp.zeros(3, q.dtype)
        motions = point_motions(Tree.of(system), [c.path for c in acting], q, v) if acting else []
        for contact, motion in zip(acting, motions, strict=True):
            on = np.array([body == self.body for body in contact.path.bodies])
            forces = called(contact.wrenches, *motion).force.to_array()
            total = total + jnp.sum(jnp.where(on[:, None], forces, 0), axis=0)
        return total

    def _check(self, system: System) -> None:
        if self.body not in system.body_names:
            raise ModelError(
                f"{system.name}: no body is named {format_value(self.body)}"
                f"{nearest(self.body, system.body_names)}"
            )

    def _on(self, contact: HardContact) -> bool:
        return self.body in (contact.first.body, contact.second.body)


class ContactImpulse(ContactForce):
    """`ContactForce` by the forces that a method has found.

    points (p, 3), in N, None for those of the smooth law, and hard (k, 3): as of `ConvexMotion`.
    """

    points: jax.Array | None
    hard: jax.Array

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, "3"]:
        self._check(system)
        tree, found = Tree.of(system), jnp.zeros(3, q.dtype)
        if self.points is None:
            found = found + ContactForce(self.body)(bilateral(system), q, v, u, t)
        else:
            for contact in touching_couplings(system):
                if isinstance(contact, ShapeContact):
                    _, _, forces, *_ = contact_numbers(tree, q, v, self.points)
                    owners = [
                        [contact.shapes[name].frame.body for name in pair] for pair in contact.pairs
                    ]
                else:
                    _, forces = pushes(tree, contact, q, self.points)
                    first, *others = contact.path.bodies
                    owners = [[first, other] for other in others]
                found = found + product(self._signs(owners, q.dtype), forces)
        only = unilateral(tree)
        for k, (contact, about, _) in enumerate(equations(only, q).each()):
            if isinstance(contact, HardContact) and self._on(contact):
                normal = contact.meeting(*about).normal
                axes = jnp.stack([axis.to_array() for axis in (normal, *across(normal))])
                owners = [[contact.second.body, contact.first.body]]
                found = found + self._signs(owners, q.dtype)[0] * product(axes.T, self.hard[k])
        return found

    def _signs(self, owners: list, dtype: jnp.dtype) -> jax.Array:
        """1 (m,) where the second of two bodies is this one, -1 where the first is, else 0."""
        rows = [(two == self.body) - (one == self.body) for one, two in owners]
        return jnp.asarray(np.array(rows, float), dtype)

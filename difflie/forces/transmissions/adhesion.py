"""Adhesion: a force that pulls a body to what it touches, shared by its contact points."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...system.fields import number
from ...system.kinematic_tree import Tree
from ...system.system import System
from ...system.validation import format_value, nearest
from ..contact_report import touching_couplings
from ..contact_rows import contact_points, contact_rows
from .transmission import CoordinateTransmission


class Adhesion(CoordinateTransmission):
    """What pulls a body to all that it touches, along the normals of its contact points.

    body: its name. Of a force f each contact point of the body has f / n, with n the number of its
    points whose gap is less than the `reach` in m; without any there is no force. The length is 0,
    and its rate is the mean rate at which these gaps close, in m/s. Contacts are the compliant ones
    of shapes and bodies.

    This is the transmission `body` of MuJoCo, of its actuator `adhesion`.

    >>> ball = dl.chain([dl.Body(name="ball", joint=dl.Prismatic(axis=(0, 0, 1)), mass=2.0)])
    >>> ball = ball.with_shapes({"ball": dl.Sphere("ball", 0.1), "top": dl.Box(None, [1, 1, 1])})
    >>> pull = dl.Drive(transmission=dl.Adhesion("ball"))
    >>> system = dl.attach(dl.touching(ball, "ball", "top"), pull)
    >>> print(dl.step(system, [-1.1], [0], 0.01, control=[9.62], method="SemiImplicitEuler").v)
    [-0.05]
    """

    body: str = eqx.field(static=True)
    reach: jax.Array = eqx.field(
        converter=number(unit="m", nonnegative=True), default=1e-4, kw_only=True
    )

    follows_bodies: ClassVar[bool] = True

    @property
    def label(self) -> str:
        return self.body

    def incompatibilities(self, system: System) -> list[str]:
        if self.body in system.body_names:
            return []
        near = nearest(str(self.body), system.body_names)
        return [f"no body is named {format_value(self.body)}{near}"]

    def lever(
        self, tree: Tree, q: Float[Array, " nq"]
    ) -> tuple[Float[Array, ""], Float[Array, " n_dofs"]]:
        t, zero = tree.topology, jnp.zeros((), q.dtype)
        arm, contacts = jnp.zeros(t.n_dofs, q.dtype), touching_couplings(tree.system)
        if not contacts:
            return zero, arm
        points = contact_points(tree, contacts, q)
        own = np.flatnonzero(np.any(np.asarray(points.bodies) == self.body, axis=1))
        if not own.size:
            return zero, arm
        points = points.those(own)
        near = (points.exists & (points.gaps < self.reach)).astype(q.dtype)
        share = near / jnp.maximum(jnp.sum(near), 1)
        pull = contact_rows(tree, q, points)[:, :1].times(-share[:, None], t.nv)
        moved = np.setdiff1d(np.arange(t.n_dofs), t.mimic_dofs)
        return zero, arm.at[moved].set(pull[t.dof_velocity[moved]])

    def __str__(self) -> str:
        return f"Adhesion ({self.body!r})"

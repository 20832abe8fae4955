"""Mass, momentum and centre of mass of a body with all bodies beyond it."""

from __future__ import annotations

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..dynamics.kinematics import body_twist_components, body_world_poses
from ..groups.components import Vector
from ..spatial import Inertia, Symmetric
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.validation import ModelError, format_value, nearest
from .quantity import Labels, Quantity, xyz
from .sensors import beyond


class _OfSubtree(Quantity):
    """A quantity of a body with all bodies beyond it; body None: of all bodies."""

    body: str | None = eqx.field(default=None, static=True)

    @abc.abstractmethod
    def of(
        self, mass: jax.Array, center: jax.Array, angular: jax.Array, linear: jax.Array
    ) -> Float[Array, "3"]:
        """From the mass () in kg, the centre of mass (3,) in m, the momenta (3,) about it."""

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, "3"]:
        tree, bodies = Tree.of(system), system.bodies
        inertia = Inertia.about_com(
            bodies.mass, Vector.from_array(bodies.com), Symmetric.from_array(bodies.inertia)
        )
        poses = body_world_poses(tree, q)
        momenta = poses.force(inertia @ body_twist_components(tree, q, v))
        counted = self._bodies(system)
        centers = (poses.rotation @ Vector.from_array(bodies.com) + poses.translation).to_array()
        mass = jnp.sum(bodies.mass[counted])
        center = jnp.sum((bodies.mass[:, None] * centers)[counted], axis=0) / mass
        linear = jnp.sum(momenta.force.to_array()[counted], axis=0)
        about_origin = jnp.sum(momenta.moment.to_array()[counted], axis=0)
        return self.of(mass, center, about_origin - jnp.cross(center, linear), linear)

    def _bodies(self, system: System) -> np.ndarray:
        if self.body is None:
            return np.arange(len(system.body_names))
        if self.body not in system.body_names:
            near = nearest(str(self.body), system.body_names)
            raise ModelError(f"{system.name}: no body is named {format_value(self.body)}{near}")
        return np.flatnonzero(beyond(system, system.body_names.index(self.body))[:-1])


class SubtreeCenter(_OfSubtree):
    """The centre of mass (3,) in m, world, of a body and all bodies beyond it.

    body: its name; None for all bodies, also those fixed to the world. Not finite where they have
    no mass.
    """

    @property
    def name(self) -> str:
        return f"centre of mass beyond {self.body}"

    def labels(self, system: System) -> Labels:
        return xyz("m")

    def of(
        self, mass: jax.Array, center: jax.Array, angular: jax.Array, linear: jax.Array
    ) -> Float[Array, "3"]:
        return center


class SubtreeVelocity(_OfSubtree):
    """The velocity (3,) of the centre of mass of a body and all beyond it, in m/s, world.

    body: as of `SubtreeCenter`.
    """

    @property
    def name(self) -> str:
        return f"velocity of the centre of mass beyond {self.body}"

    def labels(self, system: System) -> Labels:
        return xyz("m/s")

    def of(
        self, mass: jax.Array, center: jax.Array, angular: jax.Array, linear: jax.Array
    ) -> Float[Array, "3"]:
        return linear / mass


class SubtreeAngularMomentum(_OfSubtree):
    """The angular momentum (3,) of a body and all beyond it about their centre of mass, in N m s.

    In world axes; armature has no part in it. body: as of `SubtreeCenter`.
    """

    @property
    def name(self) -> str:
        return f"angular momentum beyond {self.body}"

    def labels(self, system: System) -> Labels:
        return xyz("N m s")

    def of(
        self, mass: jax.Array, center: jax.Array, angular: jax.Array, linear: jax.Array
    ) -> Float[Array, "3"]:
        return angular

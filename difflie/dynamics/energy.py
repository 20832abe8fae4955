"""Energy and momentum of a system."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..groups.components import Vector
from ..system.linkage import Linkage
from .kinematics import row_twists, row_world_poses


def kinetic_energy(
    linkage: Linkage, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Float[Array, ""]:
    """sum V . I V / 2 + sum armature v^2 / 2 in J, a scalar."""
    twists, rates = row_twists(linkage, q, v), linkage.rates(v)
    bodies = twists.dot(linkage.inertia @ twists)
    return jnp.sum(bodies + linkage.armature * rates * rates) / 2


def potential_energy(linkage: Linkage, q: Float[Array, " nq"]) -> Float[Array, ""]:
    """-sum m g . c in J, a scalar, c in the world; bodies fixed to the world are left out."""
    poses = row_world_poses(linkage, q)
    moment = poses.rotation @ linkage.inertia.first + poses.translation * linkage.inertia.mass
    return -jnp.sum(linkage.gravity.dot(moment))


def total_momentum(
    linkage: Linkage, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Float[Array, "6"]:
    """(6,) sum Ad_T^-T I V: angular momentum about the world origin (N m s), linear (N s)."""
    momentum = row_world_poses(linkage, q).force(linkage.inertia @ row_twists(linkage, q, v))

    def total(part: Vector) -> jax.Array:
        return jnp.sum(part.to_array(), axis=0)

    return jnp.concatenate((total(momentum.moment), total(momentum.force)))

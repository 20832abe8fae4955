"""Energy and momentum of a system, and the momentum of a body."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..groups.components import Vector
from ..spatial import Inertia, Symmetric
from ..system.kinematic_tree import Tree
from ..system.traverse import tree_algorithm
from .inertances import inertance_energy
from .kinematics import body_twist_components, body_world_poses, dof_poses, dof_twists


@tree_algorithm
def kinetic_energy(tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, ""]:
    """sum V . I V / 2 + sum armature v^2 / 2 in J, a scalar, with that of inertances."""
    twists, rates = dof_twists(tree, q, v), tree.rates(v)
    bodies = twists.dot(tree.inertia @ twists)
    energy = jnp.sum(bodies + tree.armature * rates * rates) / 2
    return energy + inertance_energy(tree, q, v) if tree.inerters else energy


@tree_algorithm
def potential_energy(tree: Tree, q: Float[Array, " nq"]) -> Float[Array, ""]:
    """-sum m g . c in J, a scalar, c in the world; bodies fixed to the world are left out."""
    poses = dof_poses(tree, q)
    moment = poses.rotation @ tree.inertia.first + poses.translation * tree.inertia.mass
    return -jnp.sum(tree.gravity.dot(moment))


@tree_algorithm
def total_momentum(tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, "6"]:
    """(6,) sum Ad_T^-T I V: angular momentum about the world origin (N m s), linear (N s)."""
    momentum = dof_poses(tree, q).force(tree.inertia @ dof_twists(tree, q, v))

    def total(part: Vector) -> jax.Array:
        return jnp.sum(part.to_array(), axis=0)

    return jnp.concatenate((total(momentum.moment), total(momentum.force)))


def body_momentum(
    tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"], body: Any
) -> Float[Array, "6"]:
    """(6,) Ad_T^-T I V of one body, as `total_momentum`; body: its index ()."""
    bodies = tree.system.bodies
    inertia = Inertia.about_com(
        bodies.mass, Vector.from_array(bodies.com), Symmetric.from_array(bodies.inertia)
    )
    momenta = inertia @ body_twist_components(tree, q, v)
    return body_world_poses(tree, q).force(momenta).to_array()[body]

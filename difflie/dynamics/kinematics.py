"""Positions, velocities and accelerations of all bodies, by one forward pass each."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..groups.components import Matrix, Vector
from ..spatial import Motion, Transform
from ..system.kinematic_tree import Tree
from ..system.shared import shared
from ..system.traverse import forward_pass

Index = jax.Array | int


class Place(NamedTuple):
    """A frame on a body: the index () of the body, and the frame's pose in that of the body.

    The pose has components (); None is the body's own frame.
    """

    body: Index
    inner: Transform | None = None


def dof_poses(tree: Tree, q: Float[Array, " nq"]) -> Transform:
    """The pose of every dof's frame in the world (n_dofs,), at q (nq,)."""
    return chained(tree, tree.poses(q))


def chained(tree: Tree, poses: Transform) -> Transform:
    """The products of relative poses (n_dofs,) from the world to every dof."""

    def place(parent: Transform, pose: Transform):
        in_world = parent @ pose
        return in_world, in_world

    return forward_pass(tree.topology, place, world_frame(poses.translation.x.dtype), poses)


def dof_twists(tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Motion:
    """The twist of every dof's frame (n_dofs,), in that frame, at q (nq,), v (nv,)."""

    def move(parent: Motion, dof):
        pose, screw, rate = dof
        velocity = screw.times(rate).add_to(pose.inverse_motion(parent))
        return velocity, velocity

    data = (tree.poses(q), tree.screws(q), tree.rates(v))
    return forward_pass(tree.topology, move, tree.zero_twist, data)


def dof_motions(
    tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"]
) -> tuple[Motion, Motion]:
    """The twist of every dof's frame (n_dofs,) and its derivative, both in that frame.

    At q (nq,), v (nv,), a (nv,). In the derivative the world accelerates by -g, as in `rnea`.
    """
    rates, accelerations = tree.rates(v), tree.rates(a)

    def move(parent: tuple[Motion, Motion], dof):
        velocity, acceleration = parent
        pose, screw, rate, accelerated, bias = dof
        joint = screw.times(rate)
        velocity = joint.add_to(pose.inverse_motion(velocity))
        acceleration = screw.times(accelerated).add_to(pose.inverse_motion(acceleration))
        acceleration = acceleration + joint.bracket(velocity)
        if bias is not None:
            acceleration = acceleration + bias
        return (velocity, acceleration), (velocity, acceleration)

    data = (tree.poses(q), tree.screws(q), rates, accelerations, tree.bias(q, rates))
    return forward_pass(tree.topology, move, (tree.zero_twist, tree.base_acceleration), data)


@shared
def body_world_poses(tree: Tree, q: Float[Array, " nq"]) -> Transform:
    """The pose of every body in the world (nb,), at q (nq,)."""
    return tree.body_values(dof_poses(tree, q), world_frame(q.dtype)) @ tree.body_frames


def frame_world_pose(tree: Tree, q: Float[Array, " nq"], place: Place) -> Transform:
    """The pose of a frame on a body in the world, components (), at q (nq,)."""
    pose = jax.tree.map(lambda a: a[place.body], body_world_poses(tree, q))
    return pose if place.inner is None else pose @ place.inner


@shared
def body_twist_components(tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Motion:
    """The body-fixed twist of every body (nb,), at q (nq,), v (nv,)."""
    twists = tree.body_values(dof_twists(tree, q, v), tree.zero_twist)
    return tree.body_frames.inverse_motion(twists)


def world_frame(dtype: np.dtype) -> Transform:
    """The identity pose, its components ()."""
    entries = jnp.eye(3, dtype=dtype).ravel()
    zero = jnp.zeros((), dtype)
    return Transform(Matrix(*entries), Vector(zero, zero, zero))


@shared
def body_motions(
    tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"]
) -> tuple[Motion, Motion]:
    """The body-fixed twist of every body (nb,) and its derivative less gravity.

    At q (nq,), v (nv,), a (nv,), in rad/s, m/s and the same per s.
    """
    twists, changes = dof_motions(tree, q, v, a)
    worlds = tree.zero_twist, tree.base_acceleration
    twists, changes = (
        tree.body_frames.inverse_motion(tree.body_values(of, world))
        for of, world in zip((twists, changes), worlds, strict=True)
    )
    return twists, changes

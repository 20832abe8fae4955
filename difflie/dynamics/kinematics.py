"""Positions and velocities of all bodies, by one outward pass each."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..groups.components import Matrix, Vector
from ..spatial import Motion, Transform
from ..system.linkage import Linkage
from ..system.traverse import outward


def row_world_poses(linkage: Linkage, q: Float[Array, " nq"]) -> Transform:
    """The frame of every row in the world (n_rows,)."""
    return chained(linkage, linkage.poses(q))


def chained(linkage: Linkage, poses: Transform) -> Transform:
    """The products of relative poses (n_rows,) from the world to every row."""

    def place(parent: Transform, pose: Transform):
        here = parent @ pose
        return here, here

    return outward(linkage.topology, place, world_frame(poses.translation.x.dtype), poses)


def row_twists(linkage: Linkage, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Motion:
    """The twist of every row's frame (n_rows,), seen from itself."""

    def move(parent: Motion, row):
        pose, screw, rate = row
        velocity = screw.times(rate).add_to(pose.inverse_motion(parent))
        return velocity, velocity

    data = (linkage.poses(q), linkage.screws(q), linkage.rates(v))
    return outward(linkage.topology, move, linkage.rest, data)


def body_world_poses(linkage: Linkage, q: Float[Array, " nq"]) -> Transform:
    """The frame of every body in the world (nb,)."""
    offset = jax.tree.map(lambda a: a[:-1], linkage.offset)
    return linkage.body_values(row_world_poses(linkage, q), world_frame(q.dtype)) @ offset


def body_twist_components(
    linkage: Linkage, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Motion:
    """The body-fixed twist of every body (nb,)."""
    offset = jax.tree.map(lambda a: a[:-1], linkage.offset)
    return offset.inverse_motion(linkage.body_values(row_twists(linkage, q, v), linkage.rest))


def world_frame(dtype: np.dtype) -> Transform:
    """The identity, its components ()."""
    entries = jnp.eye(3, dtype=dtype).ravel()
    zero = jnp.zeros((), dtype)
    return Transform(Matrix(*entries), Vector(zero, zero, zero))

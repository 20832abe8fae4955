"""Positions and velocities of all bodies, by one outward pass each."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..groups.components import Matrix, Vector
from ..spatial import Motion, Transform
from ..system.linkage import Linkage
from ..system.traverse import outward


def row_world_poses(linkage: Linkage, q: jax.Array) -> Transform:
    """The frame of every row in the world (n_rows,)."""

    def place(parent: Transform, pose: Transform):
        here = parent @ pose
        return here, here

    return outward(linkage.topology, place, world_frame(q.dtype), linkage.poses(q))


def row_twists(linkage: Linkage, q: jax.Array, v: jax.Array) -> Motion:
    """The twist of every row's frame (n_rows,), seen from itself."""

    def move(parent: Motion, row):
        pose, screw, rate = row
        velocity = screw.times(rate).add_to(pose.inverse_motion(parent))
        return velocity, velocity

    data = (linkage.poses(q), linkage.screw, linkage.rows(v))
    return outward(linkage.topology, move, linkage.rest, data)


def body_world_poses(linkage: Linkage, q: jax.Array) -> Transform:
    """The frame of every body in the world (nb,)."""
    offset = jax.tree.map(lambda a: a[:-1], linkage.offset)
    return linkage.body_values(row_world_poses(linkage, q), world_frame(q.dtype)) @ offset


def body_twist_components(linkage: Linkage, q: jax.Array, v: jax.Array) -> Motion:
    """The body-fixed twist of every body (nb,)."""
    offset = jax.tree.map(lambda a: a[:-1], linkage.offset)
    return offset.inverse_motion(linkage.body_values(row_twists(linkage, q, v), linkage.rest))


def body_jacobian_components(linkage: Linkage, q: jax.Array, body: int) -> jax.Array:
    """(6, nv): column j is Ad of row j's screw, for the rows between the world and the body."""
    t = linkage.topology
    pose = jax.tree.map(lambda a: a[body], body_world_poses(linkage, q))
    relative = pose.inverse() @ row_world_poses(linkage, q)
    screw = linkage.screw
    zero = jnp.zeros(t.n_rows, q.dtype)
    unit = Motion(
        Vector(zero, zero, zero + jnp.asarray(screw.angular, q.dtype)),
        Vector(zero, zero, zero + jnp.asarray(screw.linear, q.dtype)),
    )
    columns = relative.motion(unit).to_array() * t.supports(body)[:, None].astype(q.dtype)
    return jax.vmap(linkage.generalised, in_axes=1)(columns)


def world_frame(dtype: np.dtype) -> Transform:
    """The identity transform."""
    entries = jnp.eye(3, dtype=dtype).ravel()
    zero = jnp.zeros((), dtype)
    return Transform(Matrix(*entries), Vector(zero, zero, zero))

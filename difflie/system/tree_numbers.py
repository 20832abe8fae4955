"""The numbers of a `Tree`, from those of bodies and joints: frames of the dofs, merged inertias."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..groups import so3
from ..groups.components import Matrix, Vector
from ..solvers.linear import product
from ..spatial import Inertia, Symmetric, Transform
from .system import Bodies, Joints
from .topology import Topology
from .traverse import for_each, in_one
from .whole_joints import dof_frames


@functools.partial(jax.jit, static_argnums=2)
def tree_numbers(bodies: Bodies, joints: Joints, t: Topology) -> tuple:
    """The fields of a `Tree` after its system, in their order and with the shapes stated there.

    Compiled separately, and so only once for all algorithms. Operations that are the same for all
    bodies or dofs are a batch of one kernel, which is shared by all machines.
    """
    joint = for_each(_rotation)(joints.rotation), joints.position
    aligned = for_each(least_rotation)(_safe(joints.axis, t))
    offset, factors = in_one(t, functools.partial(_factors, t))(joint, aligned)
    frames = for_each(_dof_frame)(*factors)
    moved = for_each(_inertia_in_frame)
    inertias = moved((offset[0][:-1], offset[1][:-1]), bodies.mass, bodies.com, bodies.inertia)
    return in_one(t, functools.partial(_fields, t))(joints, offset, frames, inertias)


_Pose = tuple[jax.Array, jax.Array]


def _rotation(vector: Float[Array, " 3"]) -> Float[Array, "3 3"]:
    return so3.exp_components(Vector.from_array(vector)).to_array()


def _factors(
    t: Topology, joint: _Pose, aligned: Float[Array, "n_dofs 3 3"]
) -> tuple[_Pose, tuple[_Pose, _Pose, jax.Array]]:
    """The pose of each body in the frame of its carrying dof, and the factors for `_dof_frame`.

    joint: the poses (nb,) of the joint frames in the parents' body frames. aligned: the rotations
    of the dofs in their joint frames, for joints in series.
    """
    whole = t.whole_dofs[:, None, None]
    aligned = jnp.where(whole, dof_frames(t).astype(aligned.dtype), aligned)
    identity = jnp.eye(3, dtype=aligned.dtype)

    # The last entry is the world's. Bodies on fixed joints follow, one level after the other.
    n_bodies, moving = len(t.bodies), np.array([bool(kinds) for kinds in t.kinds])
    offset = (
        jnp.broadcast_to(identity, (n_bodies + 1, 3, 3)),
        jnp.zeros((n_bodies + 1, 3), aligned.dtype),
    )
    ends = aligned[t.dof_start[1:][moving] - 1]
    offset = offset[0].at[np.flatnonzero(moving)].set(jnp.swapaxes(ends, 1, 2)), offset[1]
    parents = np.array(t.parents)
    for level in _fixed_levels(t):
        above, own = ((a[0][i], a[1][i]) for a, i in ((offset, parents[level]), (joint, level)))
        poses = jax.vmap(_composed)(above, own)
        offset = offset[0].at[level].set(poses[0]), offset[1].at[level].set(poses[1])

    # The first dof of a joint starts at the frame of the parent. In a joint that moves as a whole
    # it keeps the joint frame, as the transform of the joint comes in between.
    body, dof = t.dof_body, np.arange(t.n_dofs)
    first = (dof == t.dof_start[body])[:, None]
    before = jnp.swapaxes(aligned[np.maximum(dof - 1, 0)], 1, 2)
    above = parents[body]
    base = (
        jnp.where(first[..., None], offset[0][above], before),
        jnp.where(first, offset[1][above], 0.0),
    )
    frame = (
        jnp.where(first[..., None], joint[0][body], identity),
        jnp.where(first, joint[1][body], 0.0),
    )
    return offset, (base, frame, jnp.where(first[..., None] & whole, identity, aligned))


def _fixed_levels(t: Topology) -> list[np.ndarray]:
    """The bodies on fixed joints, by the number of fixed joints between them and a dof."""
    depth = np.zeros(len(t.bodies), dtype=int)
    for b, parent in enumerate(t.parents):
        if not t.kinds[b]:
            depth[b] = 1 + (depth[parent] if parent >= 0 else 0)
    return [np.flatnonzero(depth == d) for d in range(1, depth.max(initial=0) + 1)]


def _composed(a: _Pose, b: _Pose) -> _Pose:
    """The pose (3, 3), (3,) a b: from b's inner frame to a's outer frame."""
    return product(a[0], b[0]), product(a[0], b[1]) + a[1]


def _dof_frame(base: _Pose, joint: _Pose, aligned: Float[Array, "3 3"]) -> _Pose:
    """The pose of a dof's frame in that of the dof before it."""
    rotation, translation = _composed(base, joint)
    return product(rotation, aligned), translation


def _inertia_in_frame(
    pose: _Pose, mass: jax.Array, com: jax.Array, inertia: jax.Array
) -> Float[Array, " 13"]:
    """Mass, first moment and inertia of a body about another frame (parallel-axis theorem)."""
    rotation, position = pose
    com = product(rotation, com) + position
    central = product(product(rotation, (inertia + inertia.T) / 2), rotation.T)
    steiner = jnp.sum(com * com) * jnp.eye(3, dtype=com.dtype) - jnp.outer(com, com)
    second = central + mass * steiner
    return jnp.concatenate((mass[None], mass * com, second.ravel()))


def _fields(
    t: Topology, joints: Joints, offset: _Pose, frames: _Pose, inertias: Float[Array, "nb 13"]
) -> tuple:
    dtype = joints.position.dtype
    pitch = multiplier = shift = None
    helical = np.array([k == "helical" for kinds in t.kinds for k in kinds], dtype=bool)
    if (helical & ~t.whole_dofs).any():
        pitch = jnp.where(helical & ~t.whole_dofs, joints.pitch, jnp.zeros_like(joints.pitch))
    if t.mimic_dofs.size:
        multiplier = jnp.ones(t.n_dofs, dtype).at[t.mimic_dofs].set(joints.multiplier)
        shift = jnp.zeros(t.n_dofs, dtype).at[t.mimic_dofs].set(joints.offset)
    summed = merged(inertias, t)
    return (
        Transform(Matrix.from_array(frames[0]), Vector.from_array(frames[1])),
        pitch,
        Inertia(
            summed[:, 0],
            Vector.from_array(summed[:, 1:4]),
            Symmetric.from_array(summed[:, 4:].reshape(-1, 3, 3)),
        ),
        Transform(Matrix.from_array(offset[0]), Vector.from_array(offset[1])),
        multiplier,
        shift,
    )


def _safe(axis: Float[Array, "n_dofs 3"], t: Topology) -> Float[Array, "n_dofs 3"]:
    """The axes of dofs in series; z for joints that move as a whole, whose axes are not used."""
    return jnp.where(t.whole_dofs[:, None], jnp.asarray([0.0, 0.0, 1.0], axis.dtype), axis)


def least_rotation(axis: Float[Array, " 3"]) -> Float[Array, "3 3"]:
    """The smallest rotation (3, 3) that takes z to the direction of an axis (3,).

    If the axis points below the horizontal it starts from -z, which keeps both formulas regular.
    """
    a = Vector.from_array(axis)
    a = a * (1 / jnp.sqrt(a.square()))
    sign = jnp.where(a.z < 0, -jnp.ones_like(a.z), jnp.ones_like(a.z))
    k = 1 / (1 + sign * a.z)
    return Matrix(
        *(1 - a.x * a.x * k, -sign * a.x * a.y * k, a.x),
        *(-a.x * a.y * k, sign * (1 - a.y * a.y * k), a.y),
        *(-sign * a.x, -a.y, a.z),
    ).to_array()


def merged(values, t: Topology):
    """Sums (n_dofs, ...) of values (nb, ...) over the bodies of each dof, the world's left out."""

    def summed(a: jax.Array) -> jax.Array:
        return jnp.zeros((t.n_dofs + 1, *a.shape[1:]), a.dtype).at[t.body_dof].add(a)[:-1]

    return jax.tree.map(summed, values)

"""Points of bodies: their poses, velocities, and the generalised force of forces at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..dynamics.kinematics import chained, dof_poses, dof_twists, world_frame
from ..dynamics.statics import backpropagated
from ..groups.components import Vector
from ..spatial import Force, Motion, Transform
from ..system.kinematic_tree import Tree
from ..system.traverse import tree_algorithm
from ..system.user_functions import called
from .coupling import Coupling
from .path import Path


def coupling_force(
    tree: Tree, couplings: Sequence[Any], q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """The generalised force (nv,) of the couplings at points, the sum of J^T F, in O(n)."""
    acting = [c for c in couplings if isinstance(c, Coupling)]
    return _coupling_force(tree, acting, q, v) if acting else jnp.zeros_like(v)


@tree_algorithm
def _coupling_force(
    tree: Tree, couplings: Sequence[Coupling], q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    paths = [coupling.path for coupling in couplings]
    body, dof = carriers(tree, paths)
    poses = tree.poses(q)
    world = world_frame(q.dtype), tree.zero_twist
    dofs = _entries((chained(tree, poses), dof_twists(tree, q, v)), world, dof)
    wrenches = _wrenches(couplings, _offsets(tree, body), *dofs)
    on_dofs = Force.from_array(jax.ops.segment_sum(wrenches, dof, tree.topology.n_dofs))
    return tree.generalised(backpropagated(tree, poses, tree.screws(q), on_dofs))


def world_wrenches(
    tree: Tree, couplings: Sequence[Any], q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> tuple[np.ndarray, Force]:
    """The wrenches (n,) in N m and N of the couplings at points, in the world, about its origin.

    With them the bodies (n,) on which they act, nb for the world.
    """
    acting = [c for c in couplings if isinstance(c, Coupling)]
    if not acting:
        return np.zeros(0, int), Force.from_array(jnp.zeros((0, 6), q.dtype))
    body, dof = carriers(tree, [coupling.path for coupling in acting])
    world = world_frame(q.dtype), tree.zero_twist
    dofs, twists = _entries((dof_poses(tree, q), dof_twists(tree, q, v)), world, dof)
    wrenches = _wrenches(acting, _offsets(tree, body), dofs, twists)
    return body, dofs.force(Force.from_array(wrenches))


def _wrenches(
    couplings: Sequence[Coupling], offsets: Transform, dofs: Transform, twists: Motion
) -> Float[Array, "n 6"]:
    """The wrenches (n, 6) at the points on the dofs that carry them, in the dofs' frames.

    offsets (n,): of the points' bodies in the dofs; dofs, twists (n,): of these in the world.
    """
    paths = [coupling.path for coupling in couplings]
    inner = offsets @ _points(paths)
    frames, moving = _moving(inner, dofs, twists)
    turn, motions = frames.rotation, _divided((frames, moving), paths)
    laws = [coupling.wrenches for coupling in couplings]
    wrenches = [called(law, *at) for law, at in zip(laws, motions, strict=True)]
    world = jax.tree.map(lambda *a: jnp.concatenate(a).astype(turn.xx.dtype), *wrenches)
    on_points = Force(turn.transposed_times(world.moment), turn.transposed_times(world.force))
    return inner.force(on_points).to_array()


def _moving(inner: Transform, dofs: Transform, twists: Motion) -> tuple[Transform, Motion]:
    """Points as frames (n,) in the world, and their twists (n,), in the axes of the world.

    inner (n,): in the dofs that carry them; dofs, twists (n,): of these in the world.
    """
    frames, seen = dofs @ inner, inner.inverse_motion(twists)
    return frames, Motion(frames.rotation @ seen.angular, frames.rotation @ seen.linear)


@tree_algorithm
def point_motions(
    tree: Tree, paths: Sequence[Path], q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> list[tuple[Transform, Motion]]:
    """The points of each path as frames (n,) in the world and their twists (n,).

    As `Coupling.wrenches` gets them.
    """
    body, dof = carriers(tree, paths)
    world = world_frame(q.dtype), tree.zero_twist
    dofs = _entries((chained(tree, tree.poses(q)), dof_twists(tree, q, v)), world, dof)
    return _divided(_moving(_offsets(tree, body) @ _points(paths), *dofs), paths)


def point_frames(tree: Tree, paths: Sequence[Path], q: Float[Array, " nq"]) -> list[Transform]:
    """The points of each path as frames (n,) in the world, at the configuration q (nq,).

    Each has the orientation of its body.
    """
    body, dof = carriers(tree, paths)
    dofs = _entries(chained(tree, tree.poses(q)), world_frame(q.dtype), dof)
    return _divided(dofs @ _offsets(tree, body) @ _points(paths), paths)


@tree_algorithm
def rates_along(
    tree: Tree,
    paths: Sequence[Path],
    directions: Float[Array, "n 3"],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
) -> Float[Array, " n"]:
    """The velocities (n,) in m/s of the points of the paths along directions fixed on their bodies.

    directions (n, 3): of length one, each in the frame of its body.
    """
    body, dof = carriers(tree, paths)
    twists = _entries(dof_twists(tree, q, v), tree.zero_twist, dof)
    seen = (_offsets(tree, body) @ _points(paths)).inverse_motion(twists)
    return jnp.sum(directions * seen.linear.to_array(), axis=1)


def carriers(tree: Tree, paths: Sequence[Path]) -> tuple[np.ndarray, np.ndarray]:
    """The body of every point (n,), nb for the world, and its dof, n_dofs for it."""
    t = tree.topology
    number: dict[str | None, int] = {name: b for b, name in enumerate((*t.bodies, None))}
    body = np.array([number[name] for path in paths for name in path.bodies], dtype=int)
    return body, np.append(t.body_dof, t.n_dofs)[body]


def _offsets(tree: Tree, body: np.ndarray) -> Transform:
    """The frames of bodies (n,) in those of their dofs."""
    inner, world = (jax.tree.map(lambda a, w=w: a[w], tree.offset) for w in (np.s_[:-1], -1))
    return _entries(inner, world, body)


def _points(paths: Sequence[Path]) -> Transform:
    """The points (n,) of the paths in their bodies, with the attitudes of these."""
    points = jnp.concatenate([path.points for path in paths])
    return Transform(world_frame(points.dtype).rotation, Vector.from_array(points))


def _entries(values: Any, world: Any, index: np.ndarray) -> Any:
    """Entries of all components (n_dofs,), with that of the world appended."""
    leaves, structure = jax.tree.flatten(values)
    table = jnp.stack(leaves, axis=1)
    last = jnp.stack([jnp.asarray(w, table.dtype) for w in jax.tree.leaves(world)])
    chosen = jnp.concatenate((table, last[None]))[index]
    return jax.tree.unflatten(structure, [chosen[:, i] for i in range(len(leaves))])


def _divided(values: Any, paths: Sequence[Path]) -> list[Any]:
    """Values at the points of all paths (n, ...), split path by path."""
    ends = np.cumsum([len(path.bodies) for path in paths]).tolist()
    cuts = [slice(end - len(p.bodies), end) for end, p in zip(ends, paths, strict=True)]
    return [jax.tree.map(lambda a, cut=cut: a[cut], values) for cut in cuts]

"""Points of bodies: where they are, how they move, and what forces at them do to the joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..dynamics.kinematics import chained, row_twists, world_frame
from ..dynamics.statics import transmitted
from ..groups.components import Vector
from ..spatial import Force, Transform
from ..system.linkage import Linkage, carriers
from ..system.rows import take, totals
from .path import Path


@dataclass(frozen=True)
class Points:
    """The n points of some paths, one after the other, at one configuration.

    row (n,): the place of the row that carries each, n_rows for the world. inner, frames (n,): the
    points, with the attitudes of their bodies, in the frames of these rows and in the world.
    poses (n_rows,): of the rows relative to each other.
    """

    linkage: Linkage
    row: np.ndarray
    poses: Transform
    inner: Transform
    frames: Transform

    def velocities(self, q: jax.Array, v: jax.Array) -> Vector:
        """The velocities (n,) in the world, at the rates v (nv,)."""
        link = self.linkage
        twists = _entries(_with(row_twists(link, q, v), link.rest), self.row)
        return self.frames.rotation @ self.inner.inverse_motion(twists).linear

    def generalised(self, forces: Vector) -> jax.Array:
        """The generalised force (nv,) of forces (n,) in world coordinates: sum J^T f."""
        zero = jax.tree.map(jnp.zeros_like, forces)
        local = self.frames.rotation.transposed_times(forces)
        on_rows = self.inner.force(Force(zero, local)).to_array()
        wrenches = Force.from_array(totals(on_rows, self.row, self.linkage.topology.n_rows))
        return self.linkage.generalised(transmitted(self.linkage, self.poses, wrenches))


def points_of(paths: Sequence[Path], linkage: Linkage, q: jax.Array) -> Points:
    """The points of the paths at the configuration q (nq,)."""
    t = linkage.topology
    number: dict[str | None, int] = {name: b for b, name in enumerate((*t.bodies, None))}
    body = np.array([number[name] for path in paths for name in path.bodies], dtype=int)
    row = np.append(carriers(t), t.n_rows)[body]
    poses, world = linkage.poses(q), world_frame(q.dtype)
    positions = Vector.from_array(jnp.concatenate([path.points for path in paths]))
    inner = _entries(linkage.offset, body) @ Transform(world.rotation, positions)
    frames = _entries(_with(chained(linkage, poses), world), row) @ inner
    return Points(linkage, row, poses, inner, frames)


def divided(values: Any, paths: Sequence[Path]) -> list[Any]:
    """What belongs to the points of all paths (n, ...), path by path."""
    ends = np.cumsum([len(path.bodies) for path in paths])
    cuts = [slice(end - len(p.bodies), end) for end, p in zip(ends.tolist(), paths, strict=True)]
    return [jax.tree.map(lambda a, cut=cut: a[cut], values) for cut in cuts]


def _with(values: Any, world: Any) -> Any:
    """Values of the rows (n_rows,), and behind them that of the world."""
    return jax.tree.map(lambda a, w: jnp.append(a, jnp.asarray(w, a.dtype)), values, world)


def _entries(values: Any, index: np.ndarray) -> Any:
    """Some entries of all components."""
    leaves, structure = jax.tree.flatten(values)
    chosen = take(jnp.stack(leaves, axis=1), index)
    return jax.tree.unflatten(structure, [chosen[:, i] for i in range(len(leaves))])

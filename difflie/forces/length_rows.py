"""Lengths of tendons and other transmissions as rows: how fast they grow by v."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..dynamics.screws import screws
from ..solvers.linear import product
from ..spatial import Force, Transform
from ..system.kinematic_tree import Tree
from ..system.user_functions import called
from .path import Path
from .points import carriers, point_frames
from .transmissions import CoordinateTransmission


class Lever(Protocol):
    """A length () in m or rad, or an angle, between bodies: a `PointTransmission`, or alike."""

    @property
    def path(self) -> Path: ...

    def lever(self, frames: Transform) -> tuple[Float[Array, ""], Force]: ...


def length_rows(
    tree: Tree, levers: Sequence[CoordinateTransmission | Lever], q: Float[Array, " nq"]
) -> tuple[Float[Array, " n"], Float[Array, "n nv"]]:
    """The lengths (n,) at the configuration q (nq,), and the rows (n, nv) J of their rates J v.

    J^T is the generalised force for one N, or N m, along each that makes it longer.
    """
    levers = jax.tree.map(lambda a: jnp.asarray(a, q.dtype), tuple(levers))
    between = [each for each in levers if not isinstance(each, CoordinateTransmission)]
    there = iter(_between(tree, between, q) if between else ())
    found = [
        called(each.lever, tree, q) if isinstance(each, CoordinateTransmission) else next(there)
        for each in levers
    ]
    if not found:
        return jnp.zeros(0, q.dtype), jnp.zeros((0, tree.topology.nv), q.dtype)
    lengths, arms = (jnp.stack(each) for each in zip(*found, strict=True))
    return lengths, jax.vmap(tree.generalised)(arms)


def _between(
    tree: Tree, levers: Sequence[Lever], q: jax.Array
) -> list[tuple[jax.Array, jax.Array]]:
    """The length () and the arm (n_dofs,) along all dofs of each lever between bodies."""
    paths = [each.path for each in levers]
    frames, s, t = point_frames(tree, paths, q), screws(tree, q), tree.topology
    _, dofs = carriers(tree, paths)
    moves = np.concatenate((t.ancestor_mask, np.zeros((1, t.n_dofs), bool)))[dofs]
    found = [called(each.lever, at) for each, at in zip(levers, frames, strict=True)]
    joined = jax.tree.map(
        lambda *a: jnp.concatenate(a)[:, None],
        *((wrenches, at.translation) for (_, wrenches), at in zip(found, frames, strict=True)),
    )
    wrenches, places = joined
    velocity = s.axes.linear + s.axes.angular.cross(places - s.origin)
    powers = wrenches.force.dot(velocity) + wrenches.moment.dot(s.axes.angular)
    counts = [len(path.bodies) for path in paths]
    own = np.repeat(np.eye(len(levers)), counts, axis=1)
    arms = product(jnp.asarray(own, q.dtype), jnp.where(moves, powers, 0))
    return [(length, arm) for (length, _), arm in zip(found, arms, strict=True)]

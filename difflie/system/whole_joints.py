"""Joints that move as a whole, evaluated for all joints of a type at once.

A joint in series is one screw after the other, each with a frame that its own coordinate turns. Any
other joint has one transform T(q), and its dofs share the body's frame: the first dof's pose is
placement T(q), those of the following dofs do not move. Dof i then has column i of the motion
subspace as its screw. Where the type says that this is constant, the frame of the dof is turned so
that its z axis is the axis of the screw.

The frames of a joint with dofs 1, 2, 3, from the parent's frame P to the body's frame B:

    in series    P -- placement_1 R(x_1) -> 1 -- placement_2 R(x_2) -> 2 -- placement_3 R(x_3) -> 3
    as a whole   P -- placement_1 T(q) F_1 -> 1 -- F_1^T F_2 -> 2 -- F_2^T F_3 -> 3

R turns about z, or moves along it. F_i, `frames`, is the frame of dof i in that of the body: B is
the last frame turned by F_3^T, or back by what aligns z with the last axis (`Tree.offset`). What
`Tree` rests on:

- Only the first dof of a joint that moves as a whole has a pose that depends on q.
- The twist of the last dof, less that of P, is the sum of screw_i v_i, each in the frame of dof i:
  the derivative of the poses along v.
- Only the last dof carries an inertia, and the columns of `columns` are the screws before F turns
  them: F_i takes z, the axis of screw i, to column i.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .joints import Joint
from .topology import Topology

Numbers = Mapping[str, Mapping[str, jax.Array]]


class JointsOfType(NamedTuple):
    """The n joints of one type, with k dofs each.

    dofs (n, k): their indices. coordinates (n, nq of one joint): the indices of their entries in q.
    number (n,): the indices of their own numbers. frames (k, 3, 3): the rotations of the dof frames
    in the body frame. columns (6, k): the motion subspace if it is constant, otherwise None.
    """

    joint: Joint
    dofs: np.ndarray
    coordinates: np.ndarray
    number: np.ndarray
    frames: np.ndarray
    columns: np.ndarray | None

    def evaluate(
        self, f: Callable[..., jax.Array], numbers: Numbers, *args: jax.Array
    ) -> jax.Array:
        """f(joint, ...) for every joint, with arguments (n, ...), in the precision of these."""
        own = numbers.get(self.joint.type_name(), {})
        mine = {name: values[self.number] for name, values in own.items()}

        def of_one(mine: Mapping[str, jax.Array], *args: jax.Array) -> jax.Array:
            return f(self.joint.with_numbers(mine), *args)

        return jax.vmap(of_one)(mine, *args).astype(args[0].dtype)

    def points(self, q: jax.Array, x: jax.Array) -> jax.Array:
        """The coordinates (n, nq) of every joint, from q or from those of the dofs x (n_dofs,)."""
        index = self.dofs if self.joint.manifold.plain else self.coordinates
        return (x if self.joint.manifold.plain else q)[index]


@lru_cache
def joints_by_type(t: Topology) -> tuple[JointsOfType, ...]:
    """The joints of a topology that move as a whole, grouped by type."""
    of_type: dict[Joint, list[int]] = {}
    for b, joint in enumerate(t.types):
        if not joint.in_series and t.kinds[b]:
            of_type.setdefault(joint, []).append(b)
    groups = []
    for joint, bodies in of_type.items():
        dofs, at = joint.dofs(), np.array(bodies)
        constant = all(dof.axial for dof in dofs)
        frames = [aligned(dof.axis) if constant else np.eye(3) for dof in dofs]
        groups.append(
            JointsOfType(
                joint=joint,
                dofs=t.dof_start[at][:, None] + np.arange(len(dofs)),
                coordinates=t.coordinate_start[at][:, None] + np.arange(joint.manifold.point_size),
                number=t.place_in_type[at],
                frames=np.stack(frames),
                columns=np.stack([d.screw for d in dofs], axis=1) if constant else None,
            )
        )
    return tuple(groups)


@lru_cache
def dof_frames(t: Topology) -> np.ndarray:
    """(n_dofs, 3, 3) the frame of each dof in its body's frame; the identity in a series."""
    frames = np.broadcast_to(np.eye(3), (t.n_dofs, 3, 3)).copy()
    for whole in joints_by_type(t):
        frames[whole.dofs] = whole.frames
    return frames


def screw_patterns(t: Topology) -> tuple[np.ndarray, np.ndarray]:
    """The angular and linear components (n_dofs,) of the screws, as far as joint types fix them."""
    kinds = np.array([k for kinds in t.kinds for k in kinds])
    angular, linear = (kinds != "prismatic").astype(float), (kinds == "prismatic").astype(float)
    for whole in joints_by_type(t):
        linear[whole.dofs] += [dof.pitch for dof in whole.joint.dofs()]
    return angular, linear


def varying(t: Topology) -> bool:
    """Whether the motion subspace of some joint depends on its coordinates."""
    return any(whole.columns is None for whole in joints_by_type(t))


def check_constant(t: Topology, method: str) -> None:
    """Raises ValueError, naming joint and method, if a motion subspace is not constant."""
    for joint, name in zip(t.types, t.joints, strict=True):
        if not joint.in_series and not all(dof.axial for dof in joint.dofs()):
            raise ValueError(
                f"{method} needs joints on groups, whose motion subspace is constant, but that of "
                f"the {joint.type_name()} joint {name!r} is not; use another method, such as RKMK4"
            )


def aligned(axis: object) -> np.ndarray:
    """A rotation (3, 3) that takes z to the axis (3,); a permutation if the axis is x, y or z."""
    a = np.asarray(axis, float) / np.linalg.norm(np.asarray(axis, float))
    if a.max() == 1:
        i = int(a.argmax())
        return np.eye(3)[:, [(i + 1) % 3, (i + 2) % 3, i]]
    # Any two directions normal to the axis will do.
    x = np.cross(a, np.eye(3)[np.abs(a).argmin()])
    x = x / np.linalg.norm(x)
    return np.stack((x, np.cross(a, x), a), axis=1)


def brackets(columns: np.ndarray) -> list[tuple[int, int, int, float]]:
    """(c, i, j, s) with entry c of the sum over i < j of ad(S_j v_j) S_i v_i the sum of s v_i v_j.

    columns (6, k): a constant subspace S.
    """
    terms = []
    for j in range(columns.shape[1]):
        for i in range(j):
            (w, u), (a, b) = np.split(columns[:, j], 2), np.split(columns[:, i], 2)
            product = np.concatenate((np.cross(w, a), np.cross(w, b) + np.cross(u, a)))
            terms += [(int(c), i, j, float(product[c])) for c in np.flatnonzero(product)]
    return terms


def between_dofs(S: jax.Array, rates: jax.Array) -> jax.Array:
    """The sum over i < j of ad(S_j v_j) S_i v_i (6, n), of subspaces (6, n, k), rates (n, k)."""
    before, total = jnp.zeros_like(S[..., 0]), jnp.zeros_like(S[..., 0])
    for j in range(rates.shape[1]):
        own = S[..., j] * rates[:, j]
        w, u, a, b = own[:3], own[3:], before[:3], before[3:]
        turned = jnp.cross(w, a, axis=0), jnp.cross(w, b, axis=0) + jnp.cross(u, a, axis=0)
        total, before = total + jnp.concatenate(turned), before + own
    return total

"""How the bodies of a system are connected: everything about a system that is not a number."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..groups import Euclidean, FlatManifold, FlatProduct
from .joints import UNITS, Joint

WORLD = -1

# Up to this many dofs, enough for a humanoid, all passes are unrolled into one program.
_SMALL = 64


class NotTouching(NamedTuple):
    """Contacts of the shapes of a file, which it did not get.

    what: as they are called. shapes: the names of the shapes; called: those in messages, or none.
    """

    what: str
    shapes: tuple[str, ...]
    called: tuple[str, ...] = ()


@dataclass(frozen=True)
class Topology:
    """Names, parents and joint types, body by body; a static, hashable part of a `System`.

    Body b is connected to body parents[b] (-1: the world) by joint b. types[b] is its joint without
    numbers, kinds[b] the kinds of its degrees of freedom. Parents come before their children.
    mimics[b] is None or the joint whose coordinate joint b follows. A "dof" is one degree of
    freedom, mimic joints included; dofs are numbered in the order of the bodies. unread: other
    content of the file, kept for writing it again. not_modelled: what of the file would change the
    motion and is not in the system; not_touching: of this, the contacts of its shapes. These do not
    count in comparisons.
    """

    name: str
    bodies: tuple[str, ...]
    parents: tuple[int, ...]
    joints: tuple[str, ...]
    types: tuple[Joint, ...]
    kinds: tuple[tuple[str, ...], ...]
    mimics: tuple[int | None, ...]
    unread: tuple[str, ...] = field(default=(), compare=False, repr=False)
    not_modelled: tuple[str, ...] = field(default=(), compare=False, repr=False)
    not_touching: NotTouching | None = field(default=None, compare=False, repr=False)

    @cached_property
    def manifolds(self) -> tuple[FlatManifold, ...]:
        """The manifold of each joint's coordinates."""
        return tuple(
            Euclidean(len(kinds)) if joint.in_series else joint.manifold
            for joint, kinds in zip(self.types, self.kinds, strict=True)
        )

    @cached_property
    def place_in_type(self) -> np.ndarray:
        """(nb,) the index of each joint among those of its type, which orders their numbers."""
        count: dict[str, int] = {}
        places = []
        for joint in self.types:
            places.append(count.get(joint.type_name(), 0))
            count[joint.type_name()] = places[-1] + 1
        return np.array(places)

    @cached_property
    def dof_start(self) -> np.ndarray:
        """(nb + 1,) the first dof of each joint."""
        return np.cumsum([0] + [len(k) for k in self.kinds])

    @property
    def n_dofs(self) -> int:
        return int(self.dof_start[-1])

    @cached_property
    def coordinate_start(self) -> np.ndarray:
        """(nb + 1,) where each joint's coordinates begin in q."""
        sizes = [
            0 if m is not None else space.point_size
            for m, space in zip(self.mimics, self.manifolds, strict=True)
        ]
        return np.cumsum([0, *sizes])

    @cached_property
    def velocity_start(self) -> np.ndarray:
        """(nb + 1,) where each joint's velocities begin in v."""
        sizes = [
            0 if m is not None else len(k) for m, k in zip(self.mimics, self.kinds, strict=True)
        ]
        return np.cumsum([0, *sizes])

    @property
    def nq(self) -> int:
        return int(self.coordinate_start[-1])

    @property
    def nv(self) -> int:
        return int(self.velocity_start[-1])

    @cached_property
    def dof_body(self) -> np.ndarray:
        """(n_dofs,) the body that each dof moves."""
        return np.repeat(np.arange(len(self.bodies)), np.diff(self.dof_start))

    @cached_property
    def dof_velocity(self) -> np.ndarray:
        """(n_dofs,) the entry of v that each dof moves with; for a mimic joint its source's."""
        entries = []
        for b, kinds in enumerate(self.kinds):
            source = self.mimics[b] if self.mimics[b] is not None else b
            entries += [int(self.velocity_start[source]) + i for i in range(len(kinds))]
        return np.array(entries, dtype=int)

    @cached_property
    def dof_coordinate(self) -> np.ndarray:
        """(n_dofs,) the entry of q of each dof; -1 if its coordinate is no plain number."""
        entries = []
        for b, kinds in enumerate(self.kinds):
            source = self.mimics[b] if self.mimics[b] is not None else b
            start = int(self.coordinate_start[source])
            plain = self.manifolds[b].plain
            entries += [start + i if plain else -1 for i in range(len(kinds))]
        return np.array(entries, dtype=int)

    @cached_property
    def mimic_dofs(self) -> np.ndarray:
        """(n_mimic,) the dofs of mimic joints."""
        return np.array(
            [self.dof_start[b] for b, m in enumerate(self.mimics) if m is not None], dtype=int
        )

    @cached_property
    def velocity_labels(self) -> tuple[tuple[str, str], ...]:
        """For each entry of v its joint's name, numbered if the joint has several, and its unit."""
        labels = []
        for b in self.coordinate_joints:
            for i, kind in enumerate(self.kinds[b]):
                number = f"[{i}]" if len(self.kinds[b]) > 1 else ""
                labels.append((self.joints[b] + number, UNITS[kind] + "/s"))
        return tuple(labels)

    @cached_property
    def coordinate_labels(self) -> tuple[tuple[str, str], ...]:
        """The same for each entry of q, with the names of its manifold if that has any."""
        labels = []
        for b in self.coordinate_joints:
            space, kinds = self.manifolds[b], self.kinds[b]
            units = [UNITS[k] for k in kinds] if space.plain else ["1"] * space.point_size
            numbers = [f"[{i}]" for i in range(len(units))] if len(units) > 1 else [""]
            named = [(f".{letter}", unit) for letter, unit in space.labels]
            named = named or list(zip(numbers, units, strict=True))
            labels += [(self.joints[b] + end, unit) for end, unit in named]
        return tuple(labels)

    @cached_property
    def manifold(self) -> FlatProduct:
        """The configuration manifold; neighbouring Euclidean joints share one factor."""
        factors: list[FlatManifold] = []
        for b in self.coordinate_joints:
            space, before = self.manifolds[b], factors[-1] if factors else None
            if isinstance(space, Euclidean) and isinstance(before, Euclidean):
                factors[-1] = Euclidean(before.size + space.size)
            else:
                factors.append(space)
        return FlatProduct(tuple(factors))

    @cached_property
    def coordinate_joints(self) -> tuple[int, ...]:
        """The bodies whose joints have entries in q, in the order of q."""
        return tuple(b for b, k in enumerate(self.kinds) if k and self.mimics[b] is None)

    @cached_property
    def last_dof(self) -> np.ndarray:
        """(nb,) the dof that carries each body: its joint's last, or its parent's; -1 the world."""
        dofs = np.full(len(self.bodies), WORLD)
        for b, parent in enumerate(self.parents):
            if self.kinds[b]:
                dofs[b] = self.dof_start[b + 1] - 1
            elif parent != WORLD:
                dofs[b] = dofs[parent]
        return dofs

    @cached_property
    def body_dof(self) -> np.ndarray:
        """(nb,) `last_dof`, with n_dofs in place of -1 for bodies fixed to the world."""
        return np.where(self.last_dof == WORLD, self.n_dofs, self.last_dof)

    @cached_property
    def dof_parent(self) -> np.ndarray:
        """(n_dofs,) the parent of each dof, of a smaller index; -1 the world."""
        parent = np.arange(self.n_dofs) - 1
        for b, start in enumerate(self.dof_start[:-1]):
            if self.kinds[b]:
                above = self.parents[b]
                parent[start] = WORLD if above == WORLD else self.last_dof[above]
        return parent

    @cached_property
    def dof_root(self) -> np.ndarray:
        """(n_dofs,) the dof next to the world from which each dof is reached."""
        root = np.arange(self.n_dofs)
        for i, above in enumerate(self.dof_parent):
            root[i] = i if above == WORLD else root[above]
        return root

    @cached_property
    def depth(self) -> np.ndarray:
        """(n_dofs,) the number of dofs between each dof and the world."""
        depth = np.zeros(self.n_dofs, dtype=int)
        for i, above in enumerate(self.dof_parent):
            depth[i] = 0 if above == WORLD else depth[above] + 1
        return depth

    @cached_property
    def ancestor_mask(self) -> np.ndarray:
        """(n_dofs, n_dofs) entry (i, j): whether dof j moves dof i, itself included."""
        moved = np.eye(self.n_dofs, dtype=bool)
        for i, above in enumerate(self.dof_parent):
            if above != WORLD:
                moved[i] |= moved[above]
        return moved

    @cached_property
    def support_mask(self) -> np.ndarray:
        """(nb, n_dofs) entry (b, j): whether dof j moves body b."""
        world = np.zeros((1, self.n_dofs), dtype=bool)
        return np.concatenate((self.ancestor_mask, world))[self.last_dof]

    @cached_property
    def whole_dofs(self) -> np.ndarray:
        """(n_dofs,) whether the dof's joint moves as a whole, by one transform T(q).

        The dofs of a joint in series move one after the other instead.
        """
        series = np.array([joint.in_series for joint in self.types], dtype=bool)
        return ~series[self.dof_body]

    @cached_property
    def motion_start(self) -> np.ndarray:
        """(n_dofs,) the first dof of a joint that moves as a whole; in a series each dof itself."""
        first = self.dof_start[self.dof_body]
        return np.where(self.whole_dofs, first, np.arange(self.n_dofs))

    @cached_property
    def motion_end(self) -> np.ndarray:
        """(n_dofs,) the last dof of a joint that moves as a whole; in a series each dof itself."""
        last = self.dof_start[self.dof_body + 1] - 1
        return np.where(self.whole_dofs, last, np.arange(self.n_dofs))

    @property
    def unbranched(self) -> bool:
        """Whether the dofs form one chain."""
        return bool(np.all(self.dof_parent == np.arange(self.n_dofs) - 1))

    @property
    def unrolled(self) -> bool:
        """Whether passes along the tree are unrolled, dof by dof, into one program."""
        return self.n_dofs <= _SMALL

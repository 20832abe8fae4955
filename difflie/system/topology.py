"""How the bodies of a system are connected: everything about a system that is not a number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..groups import Euclidean, FlatProduct, Pose, UnitQuaternion
from .joints import TYPES

WORLD = -1

# Up to as many rows, among them the 18 of a quadruped, the fast traversal compiles in about twice
# the time of the other, and runs in half of it or less; of 36 rows it takes seven times as long.
_SMALL = 20


@dataclass(frozen=True)
class Topology:
    """Names, parents and joint types, body by body; a static, hashable part of a `System`.

    Body b hangs on body parents[b] (-1: the world) by joint b, whose degrees of freedom are of the
    kinds kinds[b]. Parents come before their children. mimics[b] is None or the joint whose
    coordinate joint b follows. A "row" is one degree of freedom, mimic joints included; rows are
    numbered in the order of the bodies. traversal: see `System.with_traversal`.
    """

    name: str
    bodies: tuple[str, ...]
    parents: tuple[int, ...]
    joints: tuple[str, ...]
    types: tuple[str, ...]
    kinds: tuple[tuple[str, ...], ...]
    mimics: tuple[int | None, ...]
    traversal: str = "auto"

    @cached_property
    def group(self) -> tuple[UnitQuaternion | Pose | None, ...]:
        """The group on which each joint moves; None for screws in series."""
        return tuple(TYPES[t].group for t in self.types)

    @cached_property
    def row_start(self) -> np.ndarray:
        """(nb + 1,) the first row of each joint."""
        return np.cumsum([0] + [len(k) for k in self.kinds])

    @property
    def n_rows(self) -> int:
        return int(self.row_start[-1])

    @cached_property
    def coordinate_start(self) -> np.ndarray:
        """(nb + 1,) where each joint's coordinates begin in q."""
        sizes = [
            0 if m is not None else (g.point_size if g else len(k))
            for m, g, k in zip(self.mimics, self.group, self.kinds, strict=True)
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
    def row_body(self) -> np.ndarray:
        """(n_rows,) the body each row moves."""
        return np.repeat(np.arange(len(self.bodies)), np.diff(self.row_start))

    @cached_property
    def row_velocity(self) -> np.ndarray:
        """(n_rows,) the entry of v each row moves with; for a mimic joint its source's."""
        entries = []
        for b, kinds in enumerate(self.kinds):
            source = self.mimics[b] if self.mimics[b] is not None else b
            entries += [int(self.velocity_start[source]) + i for i in range(len(kinds))]
        return np.array(entries, dtype=int)

    @cached_property
    def row_coordinate(self) -> np.ndarray:
        """(n_rows,) the entry of q each row is read from; -1 for rows of group joints."""
        entries = []
        for b, kinds in enumerate(self.kinds):
            source = self.mimics[b] if self.mimics[b] is not None else b
            start = int(self.coordinate_start[source])
            entries += [-1 if self.group[b] else start + i for i in range(len(kinds))]
        return np.array(entries, dtype=int)

    @cached_property
    def mimic_rows(self) -> np.ndarray:
        """(n_mimic,) the rows of mimic joints."""
        return np.array(
            [self.row_start[b] for b, m in enumerate(self.mimics) if m is not None], dtype=int
        )

    @cached_property
    def manifold(self) -> FlatProduct:
        """The configuration manifold; neighbouring Euclidean joints share one factor."""
        factors: list[Euclidean | UnitQuaternion | Pose] = []
        for b, g in enumerate(self.group):
            size = int(self.velocity_start[b + 1] - self.velocity_start[b])
            if g is not None:
                factors.append(g)
            elif size and factors and isinstance(factors[-1], Euclidean):
                factors[-1] = Euclidean(factors[-1].size + size)
            elif size:
                factors.append(Euclidean(size))
        return FlatProduct(tuple(factors))

    @cached_property
    def coordinate_joints(self) -> tuple[int, ...]:
        """The bodies whose joints have entries in q, in their order."""
        return tuple(b for b, k in enumerate(self.kinds) if k and self.mimics[b] is None)

    # How the tree is walked: rows are visited generation by generation (the rows at one distance
    # from the world), those with one parent next to each other.

    @cached_property
    def last_row(self) -> np.ndarray:
        """(nb,) the row that carries each body: its joint's last, or its parent's; -1 the world."""
        carrier = np.full(len(self.bodies), WORLD)
        for b, parent in enumerate(self.parents):
            if self.kinds[b]:
                carrier[b] = self.row_start[b + 1] - 1
            elif parent != WORLD:
                carrier[b] = carrier[parent]
        return carrier

    @cached_property
    def row_parent(self) -> np.ndarray:
        """(n_rows,) the row before each, its parent in the order of the bodies; -1 the world."""
        parent = np.arange(self.n_rows) - 1
        for b, start in enumerate(self.row_start[:-1]):
            if self.kinds[b]:
                above = self.parents[b]
                parent[start] = WORLD if above == WORLD else self.last_row[above]
        return parent

    @cached_property
    def _generations(self) -> list[list[int]]:
        """The rows at each distance from the world, in the order of their parents."""
        children: dict[int, list[int]] = {}
        for row, parent in enumerate(self.row_parent):
            children.setdefault(int(parent), []).append(row)
        generations, here = [], children.get(WORLD, [])
        while here:
            generations.append(here)
            here = [row for parent in here for row in children.get(parent, [])]
        return generations

    @cached_property
    def order(self) -> np.ndarray:
        """(n_rows,) the rows, generation by generation."""
        return np.array([row for rows in self._generations for row in rows], dtype=int)

    @cached_property
    def place(self) -> np.ndarray:
        """(n_rows,) where each row stands in `order`."""
        place = np.empty(self.n_rows, dtype=int)
        place[self.order] = np.arange(self.n_rows)
        return place

    @cached_property
    def parent_place(self) -> np.ndarray:
        """(n_rows,) in that order: the place of the row before each; -1 the world."""
        above = self.row_parent[self.order]
        return np.where(above == WORLD, WORLD, self.place[above])

    @cached_property
    def depth(self) -> np.ndarray:
        """(n_rows,) in the order of visits: the number of rows between each row and the world."""
        depth = np.zeros(self.n_rows, dtype=int)
        for i, above in enumerate(self.parent_place):
            depth[i] = 0 if above == WORLD else depth[above] + 1
        return depth

    @cached_property
    def moved_by(self) -> np.ndarray:
        """(n_rows, n_rows) in the order of visits: whether row j moves row i; itself included."""
        moved = np.eye(self.n_rows, dtype=bool)
        for i, above in enumerate(self.parent_place):
            if above != WORLD:
                moved[i] |= moved[above]
        return moved

    @cached_property
    def supports(self) -> np.ndarray:
        """(nb, n_rows) rows in the order of visits: whether row j moves body b."""
        world = np.zeros((1, self.n_rows), dtype=bool)
        return np.concatenate((self.moved_by, world))[np.append(self.place, WORLD)[self.last_row]]

    @property
    def unbranched(self) -> bool:
        """Whether the rows form one chain."""
        return bool(np.all(self.parent_place == np.arange(self.n_rows) - 1))

    @property
    def walk(self) -> str:
        """How the tree is walked, "loop" or "fast"; see `System.with_traversal`."""
        if self.traversal == "auto":
            return "fast" if self.n_rows <= _SMALL else "loop"
        return self.traversal

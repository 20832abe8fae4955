"""What a body looks like: surfaces of triangles, fixed to the body."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Shape:
    """A surface of triangles, fixed to a body.

    vertices (n, 3) in m, in the frame of the body; faces (m, 3): the indices of the corners of each
    triangle, counter-clockwise seen from outside. colour (4,): red, green, blue and opacity, from 0
    to 1; None where it has none. name: of its file or element.
    """

    vertices: NDArray
    faces: NDArray
    colour: tuple[float, float, float, float] | None = None
    name: str = ""

    def placed(self, pose: NDArray) -> Shape:
        """The shape moved by a pose (4, 4)."""
        return replace(self, vertices=self.vertices @ pose[:3, :3].T + pose[:3, 3])

    def coarser(self, cell: float) -> Shape:
        """The shape with less detail: the vertices in a cube of this size in m become one.

        It is their mean; triangles that lose their area are left out.
        """
        at = np.floor((self.vertices - self.vertices.min(axis=0)) / cell).astype(int)
        _, group, count = np.unique(at, axis=0, return_inverse=True, return_counts=True)
        group = group.ravel()
        sums = [np.bincount(group, column, len(count)) for column in self.vertices.T]
        faces = group[self.faces]
        distinct = (np.diff(faces[:, [0, 1, 2, 0]], axis=1) != 0).all(axis=1)
        faces = faces[distinct]
        # Two triangles on the same corners are one.
        _, first = np.unique(np.sort(faces, axis=1), axis=0, return_index=True)
        faces = faces[np.sort(first)]
        return replace(self, vertices=np.stack(sums, axis=1) / count[:, None], faces=faces)


# By the name of the body; None for the world.
Appearance = dict[str | None, tuple[Shape, ...]]


def box(size: NDArray) -> tuple[NDArray, NDArray]:
    """The vertices (8, 3) and faces (12, 3) of a box about the origin with edges (3,) in m."""
    corners = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]) / 2
    quads = np.array(
        [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    )
    return corners * size, np.concatenate((quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]))


def ellipsoid(radii: NDArray, around: int = 20, along: int = 10) -> tuple[NDArray, NDArray]:
    """The vertices (n, 3) and faces (m, 3) of an ellipsoid about the origin, radii (3,) in m."""
    polar = np.pi * np.arange(along + 1) / along
    return _turned(np.sin(polar), np.cos(polar), around, np.asarray(radii, float))


def cylinder(radius: float, length: float, around: int = 24) -> tuple[NDArray, NDArray]:
    """The vertices (n, 3) and faces (m, 3) of a cylinder along z about the origin, in m."""
    # Triangles that are not too long are painted in the right order.
    parts = int(np.clip(np.ceil(length / max(radius, 1e-12)), 1, 12))
    rise = np.concatenate(([0.5] * 2, np.linspace(0.5, -0.5, parts + 1), [-0.5] * 2))
    ring = np.concatenate(([0.0, 0.55], np.ones(parts + 1), [0.55, 0.0]))
    return _turned(ring, rise, around, np.array([radius, radius, length]))


def capsule(radius: float, length: float, around: int = 20) -> tuple[NDArray, NDArray]:
    """A cylinder along z of this length in m with half balls on its ends, about the origin."""
    polar = np.pi * np.arange(6) / 10
    rise = np.concatenate((np.cos(polar) * radius + length / 2, -(np.cos(polar[::-1]) * radius)))
    rise[6:] -= length / 2
    ring = np.concatenate((np.sin(polar), np.sin(polar[::-1])))
    return _turned(ring, rise, around, np.array([radius, radius, 1.0]))


def _turned(ring: NDArray, rise: NDArray, around: int, scale: NDArray) -> tuple[NDArray, NDArray]:
    """A curve (ring (k,), rise (k,)), from top to bottom, turned about z; its ends are on z."""
    angle = 2 * np.pi * np.arange(around) / around
    inner = np.stack(
        [
            np.outer(ring[1:-1], np.cos(angle)),
            np.outer(ring[1:-1], np.sin(angle)),
            np.outer(rise[1:-1], np.ones(around)),
        ],
        axis=-1,
    )
    vertices = np.concatenate(([[0.0, 0.0, rise[0]]], inner.reshape(-1, 3), [[0.0, 0.0, rise[-1]]]))
    here = np.arange(around)
    there = (here + 1) % around
    last = len(vertices) - 1
    bottom = 1 + (len(ring) - 3) * around
    faces = [np.stack((np.zeros_like(here), 1 + here, 1 + there), axis=1)]
    for k in range(len(ring) - 3):
        a, b = 1 + k * around, 1 + (k + 1) * around
        faces.append(np.stack((a + here, b + here, b + there), axis=1))
        faces.append(np.stack((a + here, b + there, a + there), axis=1))
    faces.append(np.stack((bottom + here, np.full_like(here, last), bottom + there), axis=1))
    return vertices * scale, np.concatenate(faces)

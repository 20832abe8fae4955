"""The outlines of surfaces: the edges between what is seen and what is turned away."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..io.appearance.shape import Shape

# Edges sharper than this, in rad, are drawn wherever they are seen.
_CREASE = 0.7


@dataclass(frozen=True)
class Outline:
    """A surface with its edges.

    vertices (n, 3) and faces (m, 3) as of a `Shape`; edges (k, 2): indices of vertices; beside (k,
    2): the faces on both sides, twice the same at a border; sharp (k,).
    """

    vertices: NDArray
    faces: NDArray
    edges: NDArray
    beside: NDArray
    sharp: NDArray

    @classmethod
    def of(cls, shape: Shape) -> Outline:
        """The edges of a shape; vertices at one place count as one."""
        size = float(np.ptp(shape.vertices, axis=0).max(initial=0)) or 1.0
        _, first, same = np.unique(
            np.round(shape.vertices / (1e-6 * size)).astype(np.int64),
            axis=0,
            return_index=True,
            return_inverse=True,
        )
        vertices, faces = shape.vertices[first], same.ravel()[shape.faces]
        ends = np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
        edges, which = np.unique(ends, axis=0, return_inverse=True)
        owner = np.repeat(np.arange(len(faces)), 3)
        order = np.argsort(which.ravel(), kind="stable")
        starts = np.searchsorted(which.ravel()[order], np.arange(len(edges)))
        stops = np.append(starts[1:], len(order)) - 1
        beside = np.stack((owner[order[starts]], owner[order[stops]]), axis=1)
        normals = _normals(vertices, faces)
        cosine = np.sum(normals[beside[:, 0]] * normals[beside[:, 1]], axis=1)
        sharp = (cosine < np.cos(_CREASE)) | (starts == stops)
        return cls(vertices, faces, edges, beside, sharp)

    def visible_edges(self, vertices: NDArray, eye: NDArray) -> tuple[NDArray, NDArray]:
        """The starts and ends (k, 3) of the outline's edges with its vertices (n, 3) moved there.

        They are the edges between a face that is seen from the eye (3,) and one that is turned
        away, and sharp edges of faces that are seen.
        """
        normals = _normals(vertices, self.faces)
        front = np.sum(normals * (eye - vertices[self.faces[:, 0]]), axis=1) > 0
        a, b = front[self.beside].T
        drawn = self.edges[(a != b) | (self.sharp & (a | b))]
        return vertices[drawn[:, 0]], vertices[drawn[:, 1]]


def encloses(vertices: NDArray, faces: NDArray, point: NDArray) -> bool:
    """Whether a closed surface encloses a point (3,): whether it fills more than half of its view.

    The solid angle of the triangles is 4 pi from inside and 0 from outside (van Oosterom and
    Strackee 1983).
    """
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    if ((point < low) | (point > high)).any():
        return False
    a, b, c = np.moveaxis(vertices[faces] - point, 1, 0)
    la, lb, lc = (np.linalg.norm(x, axis=1) for x in (a, b, c))
    volume = np.sum(a * np.cross(b, c), axis=1)
    below = (
        la * lb * lc
        + np.sum(a * b, axis=1) * lc
        + np.sum(b * c, axis=1) * la
        + np.sum(c * a, axis=1) * lb
    )
    return bool(abs(2 * np.arctan2(volume, below).sum()) > 2 * np.pi)


def box_corners(vertices: NDArray) -> NDArray:
    """The corners (8, 3) of the box about points (n, 3)."""
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    return np.array([np.where(bits, high, low) for bits in np.ndindex(2, 2, 2)])


def belongs(corners: NDArray, machine: NDArray) -> bool:
    """Whether a shape of the world (8, 3) belongs into the picture of a machine (n, 3).

    A room does, which holds it; a floor or a wall that is much larger would make it small.
    """
    if not len(machine):
        return True
    size, own = np.ptp(corners, axis=0).max(), np.ptp(machine, axis=0).max()
    below = corners.min(axis=0) <= machine.min(axis=0)
    return bool(size <= 3 * own or (below & (machine.max(axis=0) <= corners.max(axis=0))).all())


def _normals(vertices: NDArray, faces: NDArray) -> NDArray:
    normals = np.cross(*np.moveaxis(np.diff(vertices[faces], axis=1), 1, 0))
    size = np.linalg.norm(normals, axis=1, keepdims=True)
    return normals / np.where(size > 0, size, 1)

"""The shapes of a system as surfaces of triangles, to be drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull as Triangles

from ..collision import Box, Capsule, ConvexHull, Cylinder, Ellipsoid, HeightField, Shape, Sphere
from ..groups import so3
from ..io.appearance.shape import Appearance, box, capsule, cylinder, ellipsoid
from ..io.appearance.shape import Shape as Surface
from ..system.system import System


def own_shapes(system: System, kinds: type = Shape) -> Appearance:
    """The surfaces of `System.shapes` by the names of their bodies, None for the world.

    kinds: of which shapes. Planes have none, as the ground is drawn as a grid.
    """
    found: Appearance = {}
    for name, shape in system.shapes.items():
        surface = _surface(shape) if isinstance(shape, kinds) else None
        if surface is not None:
            frame: Any = shape.frame
            pose = np.eye(4)
            pose[:3, :3], pose[:3, 3] = so3.exp(frame.rotation), frame.position
            made = Surface(*surface, name=name).placed(pose)
            found[frame.body] = (*found.get(frame.body, ()), made)
    return found


def _surface(shape: Any) -> tuple[NDArray, NDArray] | None:
    """The vertices (n, 3) and faces (m, 3) of a shape in its frame."""
    if isinstance(shape, Sphere):
        return ellipsoid(np.full(3, shape.radius))
    if isinstance(shape, Ellipsoid):
        return ellipsoid(np.asarray(shape.radii))
    if isinstance(shape, Box):
        return box(2 * np.asarray(shape.half_sizes))
    if isinstance(shape, Capsule):
        return capsule(float(shape.radius), 2 * float(shape.half_length))
    if isinstance(shape, Cylinder):
        return cylinder(float(shape.radius), 2 * float(shape.half_length))
    if isinstance(shape, HeightField):
        return _relief(np.asarray(shape.half_sizes), np.asarray(shape.heights))
    if isinstance(shape, ConvexHull):
        vertices = np.asarray(shape.vertices)
        hull = Triangles(vertices)
        inward = np.einsum("ij,ij->i", hull.equations[:, :3], _normals(vertices, hull)) < 0
        return vertices, np.where(inward[:, None], hull.simplices[:, ::-1], hull.simplices)
    return None


def _relief(half_sizes: NDArray, heights: NDArray) -> tuple[NDArray, NDArray]:
    """The vertices and faces of a height field, as `HeightField` divides it."""
    rows, columns = heights.shape
    x, y = (np.linspace(-h, h, n) for h, n in zip(half_sizes, (columns, rows), strict=True))
    vertices = np.stack([*np.meshgrid(x, y), heights], 2).reshape(-1, 3)
    at = np.arange(rows * columns).reshape(rows, columns)
    a, b, c, d = (z.ravel() for z in (at[:-1, :-1], at[:-1, 1:], at[1:, 1:], at[1:, :-1]))
    return vertices, np.concatenate([np.stack([a, c, d], 1), np.stack([a, b, c], 1)])


def _normals(vertices: NDArray, hull: Triangles) -> NDArray:
    """The normals (m, 3) of triangles by the order of their corners."""
    a, b, c = (vertices[hull.simplices[:, k]] for k in range(3))
    return np.cross(b - a, c - a)

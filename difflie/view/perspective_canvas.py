"""A sheet on which triangles and lines are drawn in perspective, the nearer over the others.

All that is drawn passes through `Camera.frustum`, is clipped in homogeneous coordinates, divided,
and painted from the far to the near (the painter's algorithm: triangles that cut each other may
come out in the wrong order).
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from numpy.typing import NDArray

from .camera import Camera
from .projective import clip_polygon, clip_segments, inside

_transformation = eqx.filter_jit(lambda camera: camera.clip_coordinates(jnp.eye(4)).T)

Colour = tuple[float, float, float, float]

# From the left, above and behind the camera; in its frame, in which y points down.
_LIGHT = np.array([-0.4, -0.7, -0.6])
# Lines on surfaces are drawn over them.
_NEARER = 0.998


class Sheet:
    """What a camera sees, collected; `paint` puts it on axes."""

    def __init__(self, camera: Camera) -> None:
        self.camera = camera
        self._from_world = np.asarray(_transformation(camera), float)
        self._rotation = np.asarray(camera.pose, float)[:3, :3]
        self._light = _LIGHT / np.linalg.norm(_LIGHT)
        self._polygons: list[NDArray] = []
        self._depths: list[NDArray] = []
        self._faces: list[NDArray] = []
        self._edges: list[NDArray] = []
        self._widths: list[NDArray] = []

    @property
    def empty(self) -> bool:
        """Whether nothing that was drawn is seen."""
        return not self._polygons

    def triangles(
        self,
        vertices: NDArray,
        faces: NDArray,
        colour: Colour,
        opacity: float = 1.0,
        deeper: NDArray | float = 0.0,
    ) -> None:
        """Lit triangles: vertices (n, 3) in m, world, and the corners (m, 3) of each.

        deeper (m,) or (): in m, added to the depths by which they are painted.
        """
        added = np.broadcast_to(deeper, len(faces))
        at = np.concatenate((vertices, np.ones((len(vertices), 1))), axis=1) @ self._from_world.T
        sides = inside(at) >= 0
        corners = sides[faces]
        whole = corners.all(axis=2).all(axis=1)
        hidden = (~corners).all(axis=1).any(axis=-1)
        normals = np.cross(*np.moveaxis(np.diff(vertices[faces], axis=1), 1, 0))
        size = np.linalg.norm(normals, axis=1)
        lit = np.abs(normals @ (self._rotation @ self._light)) / np.where(size > 0, size, 1)
        shade = (0.5 + 0.5 * lit)[:, None]
        colours = np.concatenate(
            (np.clip(shade * np.array(colour[:3]), 0, 1), np.full((len(faces), 1), opacity)), axis=1
        )
        # The seams between opaque triangles are covered by their edges.
        seam = 0.4 if opacity * colour[3] >= 1 else 0.0
        colours[:, 3] *= colour[3]
        clipped = at[faces[whole]]
        self._add(
            list(_divided(clipped)),
            clipped[..., 3].mean(axis=1) + added[whole],
            colours[whole],
            seam,
        )
        for k in np.flatnonzero(~whole & ~hidden):
            part = clip_polygon(at[faces[k]])
            if len(part) > 2:
                self._add(
                    [_divided(part)],
                    part[:, 3].mean(keepdims=True) + added[k],
                    colours[k][None],
                    seam,
                )

    def lines(
        self,
        starts: NDArray,
        ends: NDArray,
        colours: Any,
        width: float = 1.0,
        deeper: float = 0.0,
    ) -> None:
        """Segments between homogeneous points (n, 4), world; ends with s = 0 are at infinity.

        colours (4,) or (n, 4); width in points. deeper: as of triangles.
        """
        if not len(starts):
            return
        first, last, seen = clip_segments(starts @ self._from_world.T, ends @ self._from_world.T)
        pieces = np.stack((first, last), axis=1)[seen]
        # An end at infinity is infinitely deep.
        depth = pieces[..., 3].mean(axis=1) * _NEARER + deeper
        shown = np.broadcast_to(np.asarray(colours, float), (len(starts), 4))[seen]
        self._add(list(_divided(pieces)), depth, shown, width, filled=False)

    def paint(self, axes: Axes) -> None:
        """Puts all on axes, which get the size of the camera's picture, without ticks."""
        wide = float(self.camera.half_width) / float(self.camera.half_height)
        axes.set_xlim(-wide, wide)
        axes.set_ylim(1, -1)
        axes.set_aspect("equal")
        axes.set_axis_off()
        if self.empty:
            return
        depths = np.concatenate(self._depths)
        order = np.argsort(-depths, kind="stable")
        polygons = [self._polygons[k] * (wide, 1) for k in order]
        faces, edges, widths = (
            np.concatenate(a)[order] for a in (self._faces, self._edges, self._widths)
        )
        axes.add_collection(
            PolyCollection(
                polygons,
                closed=False,
                facecolors=faces,
                edgecolors=edges,
                linewidths=widths,
                capstyle="round",
                joinstyle="round",
            ),
            autolim=False,
        )

    def _add(
        self, polygons: list, depths: NDArray, colours: NDArray, width: float, filled: bool = True
    ) -> None:
        if not polygons:
            return
        self._polygons += polygons
        self._depths.append(depths)
        self._faces.append(colours if filled else colours * (1, 1, 1, 0))
        self._edges.append(colours)
        self._widths.append(np.full(len(polygons), width))


def _divided(X: NDArray) -> NDArray:
    """The perspective division: places (..., 2) in the picture of points (..., 4)."""
    return X[..., :2] / X[..., 3:]

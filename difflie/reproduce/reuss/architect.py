"""Figure 1 of Reuss 2002: the eye, the screen, an object and its image, drawn in perspective."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from ...view.camera import Camera
from ...view.figures import new_figure
from ...view.projective import points
from ...view.sheet import Sheet
from .perspective import CORNERS, EDGES, EYE, box

Array = np.ndarray

_RAY, _EDGE, _IMAGE = (0.55, 0.55, 0.6, 0.9), (0.1, 0.2, 0.4, 1), (0.8, 0.25, 0.15, 1)
_DEPTH = 1.0  # of the screen, m


def architects_perspective() -> Figure:
    """The box, the screen at z = 1 m in the frame of the eye, and the rays between."""
    camera = Camera.looking_at(
        (-0.85, -0.4, 0.72), (-2.0, -5.6, 2.4), half_width=0.42, half_height=0.2
    )
    corners, pose = box(), np.asarray(EYE.pose)
    images = on_screen(np.asarray(EYE.architect(points(corners)))[:, :2])
    w, h = float(EYE.half_width), float(EYE.half_height)
    frame = on_screen(np.array([(-w, -h), (w, -h), (w, h), (-w, h)]))
    eye = np.broadcast_to(pose[:3, 3], corners.shape)
    sheet = Sheet(camera)
    for axis in range(3):
        for side in (0, 1):
            face = corners[CORNERS[:, axis] == side]
            sheet.triangles(*_tiles(face[[0, 1, 3, 2]]), (0.62, 0.72, 0.85, 1.0))
    sheet.triangles(*_tiles(frame), (0.9, 0.88, 0.75, 1.0), 0.55)
    sheet.lines(_h(frame), _h(np.roll(frame, -1, axis=0)), (0.4, 0.35, 0.1, 1), 1.3)
    sheet.lines(*_pieces(corners[EDGES[:, 0]], corners[EDGES[:, 1]]), _EDGE, 1.2)
    sheet.lines(*_pieces(eye, corners), _RAY, 0.6)
    sheet.lines(*_pieces(images[EDGES[:, 0]], images[EDGES[:, 1]]), _IMAGE, 1.6)
    axes = pose[:3, 3] + 0.45 * pose[:3, :3].T
    sheet.lines(_h(np.tile(pose[:3, 3], (3, 1))), _h(axes), (0, 0, 0, 1), 1.6)
    canvas = new_figure((9.0, 4.6))
    picture = canvas.subplots()
    sheet.paint(picture)
    wide = float(camera.half_width / camera.half_height)
    texts = {
        "the eye, origin $O_0$": pose[:3, 3] + (0, 0, 0.12),
        "screen": frame[0],
        "image": images.mean(axis=0) - (0, 0, 0.3),
        "object": corners.mean(axis=0) + np.array([-0.2, 0, 0.5]),
        **dict(zip(("x", "y", "z"), axes, strict=True)),
    }
    for text, place in texts.items():
        x, y = np.asarray(camera.project(place)) * (wide, 1)
        picture.annotate(text, (x, y), (4, 4), textcoords="offset points", fontsize="medium")
    title = "Figure 1: the architect's perspective, PX = x/z, PY = y/z"
    picture.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    return canvas


def on_screen(images: Array) -> Array:
    """Where (PX, PY) (m, 2) are on the screen (m, 3), in m, world."""
    pose = np.asarray(EYE.pose)
    seen = _DEPTH * np.column_stack((images, np.ones(len(images))))
    return pose[:3, 3] + seen @ pose[:3, :3].T


def _tiles(corners: Array, n: int = 16) -> tuple[Array, Array]:
    """Vertices and triangles of a quadrilateral (4, 3), small enough to be sorted by depth."""
    u, v = np.meshgrid(np.linspace(0, 1, n + 1), np.linspace(0, 1, n + 1), indexing="ij")
    weights = np.stack(((1 - u) * (1 - v), u * (1 - v), u * v, (1 - u) * v), axis=-1)
    k = np.arange(n * (n + 1)).reshape(n, n + 1)[:, :-1].ravel()
    triangles = np.concatenate(
        (np.stack((k, k + 1, k + n + 2), axis=1), np.stack((k, k + n + 2, k + n + 1), axis=1))
    )
    return weights.reshape(-1, 4) @ corners, triangles


def _pieces(starts: Array, ends: Array, n: int = 40) -> tuple[Array, Array]:
    """Segments (m, 3) in n pieces, their starts and ends, so that surfaces hide parts of them."""
    ways = np.linspace(starts, ends, n + 1)
    return _h(ways[:-1].reshape(-1, 3)), _h(ways[1:].reshape(-1, 3))


def _h(x: Array) -> Array:
    return np.asarray(points(x))

"""Section 3 of Reuss 2002: a box, its image on the screen, and its vanishing points.

In numbers, and drawn: figure 1 of Reuss 2002: the eye, the screen, an object and its image, drawn
in perspective.

The painter's perspective of Reuss 2002, 3.3: pictures by vanishing points and the horizon.

Everything here is drawn from homogeneous points of the picture, (x, y, t): a line through a point
of the picture goes on to the vanishing point of its direction, wherever that is.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.random import Generator

from ...view.camera import Camera, along_line
from ...view.figures import new_figure
from ...view.perspective_canvas import Sheet
from ...view.projective import directions, inside, join, meet, points, reflection, scaling, shear
from .check import Check, residual
from .rigid_body import displacement

Array = np.ndarray

SIZE = np.array([1.4, 1.0, 0.8])
"""Of the box, m. It stands on the floor z = 0, with one corner at the origin."""
CORNERS = np.array(list(np.ndindex(2, 2, 2)))
"""Which corners of the box (8, 3) are at its far ends."""
EDGES = np.array(
    [(a, b) for a in range(8) for b in range(a, 8) if np.abs(CORNERS[a] - CORNERS[b]).sum() == 1]
)
"""The pairs of corners (12, 2) that an edge joins."""
EYE = Camera.looking_at((0.7, 0.5, 0.45), (-2.7, -1.5, 1.35), half_width=0.55, half_height=0.42)
"""The eye that looks at the box."""


def box() -> Array:
    """The corners (8, 3) in m."""
    return CORNERS * SIZE


def checks(rng: Generator) -> list[Check]:
    """Section 3: each statement by numbers worked by hand, or by the other perspective."""
    return [
        Check("3.1", "composition from the right", _composition(rng)),
        Check("3.1", "frustum: pyramid to cube", _clipping(rng)),
        Check("(16)", "corners of a cube, by hand", _by_hand()),
        Check("3.3", "vanishing points from s = 0", _far_away()),
        Check("3.3", "parallel edges meet there", _meeting()),
        Check("3.3", "they lie on the horizon", _horizon()),
        Check("3.3", "corners by vanishing points", _constructed()),
    ]


def _composition(rng: Generator) -> float:
    """X_0 = T_1 T_2 T_3 T_4 X_4, one product after another and at once."""
    n, d = rng.normal(size=(2, 3))
    T = [displacement(rng), reflection(n), scaling(1 + d * d), shear(d, n)]
    T = [np.asarray(a, float) for a in T]
    X = last = rng.normal(size=(4, 20))
    for a in T[::-1]:
        X = a @ X
    return residual(X, np.linalg.multi_dot(T) @ last)


def _clipping(rng: Generator) -> float:
    """The share of points whose seats inside and outside of the pyramid are mistaken."""
    camera = Camera(np.eye(4), 2.0, 1.0, near=1.0, far=9.0)
    x = rng.uniform((-20, -10, -2), (20, 10, 11), size=(2000, 3))
    far = np.abs(x[:, :2]) <= x[:, 2:] * (2.0, 1.0)
    seen = far.all(axis=1) & (x[:, 2] >= 1) & (x[:, 2] <= 9)
    clipped = (np.asarray(inside(camera.clip_coordinates(points(x)))) >= 0).all(axis=1)
    return float(np.mean(seen != clipped))


def _by_hand() -> float:
    """The cube |x|, |y| <= 2, 4 <= z <= 8, seen from the origin."""
    camera = Camera(np.eye(4))
    cube = (CORNERS - (0.5, 0.5, -1)) * 4.0
    near = (cube[:, 2] == 4)[:, None]
    scale = np.where(near, 0.25, 0.125)
    return residual(camera.architect(points(cube)), np.hstack((cube[:, :2] * scale, scale)))


def _far_away() -> float:
    """The images of points 1e12 m away along the edges, and the vanishing points."""
    far = EYE.architect(points(1e12 * np.eye(3)))
    x, y, t = np.asarray(EYE.vanishing_point(np.eye(3))).T
    at_infinity = np.asarray(EYE.architect(directions(np.eye(3))))
    ends = np.column_stack((x / t, y / t, 0 * t))
    return max(residual(far, ends), residual(at_infinity, ends))


def _meeting() -> float:
    """The sine of the angle between the point of meeting and the vanishing point."""
    images = np.asarray(EYE.painter(points(box())))
    worst = 0.0
    for axis, end in enumerate(np.asarray(EYE.vanishing_point(np.eye(3)))):
        along = EDGES[CORNERS[EDGES[:, 1], axis] > CORNERS[EDGES[:, 0], axis]]
        lines = np.asarray(join(images[along[:, 0]], images[along[:, 1]]))
        point = np.asarray(meet(lines[0], lines[3]))
        away = np.cross(point / np.linalg.norm(point), end / np.linalg.norm(end))
        worst = max(worst, float(np.linalg.norm(away)))
    return worst


def _horizon() -> float:
    """l^T v of the floor's horizon and the vanishing points of 24 directions in it."""
    turn = np.linspace(0, 2 * np.pi, 24)
    ways = np.column_stack((np.cos(turn), np.sin(turn), 0 * turn))
    line = np.asarray(EYE.horizon(np.eye(3)[2]))
    return residual(np.asarray(EYE.vanishing_point(ways)) @ line, 0 * turn)


def _constructed() -> float:
    """The corners found along the edges from one of them, and by the perspective division."""
    found = constructed_corners()
    divided = np.asarray(EYE.architect(points(box())))
    return residual(found[:, :2] / found[:, 2:], divided[:, :2])


def constructed_corners() -> Array:
    """The images (x, y, t) (8, 3) of the corners by the painter's construction."""
    ends = np.asarray(EYE.vanishing_point(np.eye(3)))
    found = []
    for corner in CORNERS:
        image = EYE.painter(points(np.zeros(3)))
        for far, end, length in zip(corner, ends, SIZE, strict=True):
            image = along_line(image, end, np.asarray(far * length))
        found.append(np.asarray(image))
    return np.array(found)


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


_HORIZON, _FLOOR, _WAY, _LINE = "#0b5394", "#9aa0a6", "#cc4125", "#222222"


def painters_perspective() -> Figure:
    """The box of figure 1 as the eye sees it, constructed from its vanishing points."""
    canvas = new_figure((10.0, 4.2))
    axes = canvas.subplots()
    images = _divided(constructed_corners())
    ends = _divided(np.asarray(EYE.vanishing_point(np.eye(3))))
    # The edges of the corner that is the farthest from the eye are hidden.
    hidden = int(np.argmax(np.asarray(EYE.painter(points(box())))[:, 2]))
    for a, b in EDGES:
        axis = int(np.argmax(CORNERS[b] - CORNERS[a]))
        width, style = (0.9, ":") if hidden in (a, b) else (1.9, "-")
        axes.plot(*images[[a, b]].T, color=_LINE, zorder=3, linewidth=width, linestyle=style)
        axes.plot(*np.array([images[a], ends[axis]]).T, color=_WAY, linewidth=0.5, zorder=1)
    for name, end in zip("xy", ends, strict=False):
        axes.plot(*end, "o", color=_WAY, markersize=5, zorder=4)
        axes.annotate(f"{name} at infinity", end, (-20, 8), textcoords="offset points")
    w, h = float(EYE.half_width), float(EYE.half_height)
    bottom = 1.25 * h
    axes.annotate(f"to z at infinity, PY = {ends[2, 1]:.2f}", (0.1, bottom - 0.03))
    across = np.array([ends[:, 0].min() - 0.3, ends[:, 0].max() + 0.3])
    axes.plot(across, _horizon_at(EYE, across), color=_HORIZON, linewidth=1.2, linestyle="--")
    middle = (0.0, float(_horizon_at(EYE, np.zeros(1))[0]))
    axes.annotate("horizon", middle, (-20, 5), textcoords="offset points")
    axes.plot([-w, w, w, -w, -w], [-h, -h, h, h, -h], color="#aaaaaa", linewidth=0.9)
    axes.set_xlim(*across)
    axes.set_ylim(bottom, ends[:2, 1].min() - 0.15)
    axes.set_aspect("equal")
    axes.set_xlabel("PX")
    axes.set_ylabel("PY, down")
    title = "The painter's perspective: edges end in the images of s = 0"
    axes.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    return canvas


def look(axes: Axes, camera: Camera) -> None:
    """Axes with the window of a camera, and its horizon."""
    w, h = float(camera.half_width), float(camera.half_height)
    across = np.array([-1.3 * w, 1.3 * w])
    horizon = _horizon_at(camera, across)
    axes.set_xlim(*across)
    axes.set_ylim(h, min(-h, horizon.min()) - 0.05)
    axes.set_aspect("equal")
    axes.grid(visible=False)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[["top", "right"]].set_visible(True)
    axes.plot(across, horizon, color=_HORIZON, linewidth=1.2, linestyle="--")


def floor(axes: Axes, camera: Camera, size: float, seen: Array) -> None:
    """Lines of the floor z = 0 along x and y below the points seen (n, 3), to their ends."""
    middle, step = seen.mean(axis=0) * (1, 1, 0), size / 4
    for axis in (0, 1):
        for k in range(-12, 13):
            place = middle + k * step * np.eye(3)[1 - axis]
            way = _to_vanishing_point(camera, place, np.eye(3)[axis], back=3 * size)
            axes.plot(*way.T, color=_FLOOR, linewidth=0.6, zorder=0)


def polyline(axes: Axes, camera: Camera, places: Array, opacity: float) -> None:
    """A line through places (m, 3) in m, world, with dots."""
    images = _divided(np.asarray(camera.painter(points(places))))
    axes.plot(*images.T, "o-", color=_LINE, alpha=opacity, linewidth=2.2, markersize=3.5)


def ray(axes: Axes, camera: Camera, start: Array, direction: Array) -> None:
    """The line from a place (3,) in m, world, on to the vanishing point of a direction (3,)."""
    way = _to_vanishing_point(camera, start, direction)
    axes.plot(*way.T, color=_WAY, linewidth=0.7, zorder=1)
    axes.plot(*way[1], "o", color=_WAY, markersize=4)


def _to_vanishing_point(camera: Camera, place: Array, direction: Array, back: float = 0.0) -> Array:
    """The image (2, 2) of a line through a place (3,), from there or before to its end.

    direction (3,), of either sign. back: how far before the place it starts, in units of it.
    """
    end = np.asarray(camera.vanishing_point(direction))
    # A line that goes away from the eye; in the picture its other half continues it.
    end = end if end[2] > 0 else -end
    image = np.asarray(camera.painter(points(place)))
    nearest = (float(camera.near) - image[2]) / end[2]
    start = np.asarray(along_line(image, end, np.asarray(max(-back, nearest))))
    return _divided(np.array([start, end]))


def _horizon_at(camera: Camera, x: Array) -> Array:
    """The heights (m,) of the horizon at x (m,) of the picture."""
    a, b, c = np.asarray(camera.horizon(np.eye(3)[2]), float)
    return -(a * x + c) / b


def _divided(images: Array) -> Array:
    return images[:, :2] / images[:, 2:]

"""The painter's perspective of Reuss 2002, 3.3: pictures by vanishing points and the horizon.

Everything here is drawn from homogeneous points of the picture, (x, y, t): a line through a point
of the picture goes on to the vanishing point of its direction, wherever that is.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...view.camera import Camera, along_line
from ...view.figures import new_figure
from ...view.projective import points
from .perspective import CORNERS, EDGES, EYE, box, constructed_corners

Array = np.ndarray

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
    axes.plot(across, _horizon(EYE, across), color=_HORIZON, linewidth=1.2, linestyle="--")
    middle = (0.0, float(_horizon(EYE, np.zeros(1))[0]))
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
    horizon = _horizon(camera, across)
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


def _horizon(camera: Camera, x: Array) -> Array:
    """The heights (m,) of the horizon at x (m,) of the picture."""
    a, b, c = np.asarray(camera.horizon(np.eye(3)[2]), float)
    return -(a * x + c) / b


def _divided(images: Array) -> Array:
    return images[:, :2] / images[:, 2:]

"""Pictures of machines in perspective, with the outlines of surfaces, drawn without a display."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_rgba
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..io.appearance.shape import Shape
from . import report
from .camera import Camera
from .figures import colours, new_figure
from .perspective_canvas import Sheet
from .scenes import Scene

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


# Of all bodies together, so that a picture takes less than a second.
_MOST_FACES = 12000
_FROM = np.array([-1.0, 1.4, -0.75])  # the direction of view where none is given
_GROUND, _TRACE, _FORCE, _COM = (to_rgba(c) for c in ("#8a8f98", "#cc6677", "#117733", "#222222"))
_LINES = 24
_WIDE = 85  # letters in a line of a title
# In m, added to depths: such faces are painted before the machine, in their own order.
_BEHIND = 1e9
# From and to so many sizes of the machine, and the opacity of the ground's lines there.
_FADING = ((0.0, 1.5, 0.55), (1.5, 3.0, 0.35), (3.0, 6.0, 0.18), (6.0, np.inf, 0.08))


@dataclass(frozen=True)
class DrawOptions:
    """What of a scene is drawn beside its bodies and springs.

    traces: the names of bodies whose origins leave a trace. frames: axes x, y and z of every body,
    red, green and blue. forces: of contacts. ground: a grid through the world's origin, or below
    the machine. center: the centre of mass.
    """

    traces: Sequence[str] = ()
    frames: bool = False
    forces: bool = True
    ground: bool = True
    center: bool = False


def draw(
    scene: Scene,
    camera: Camera | None = None,
    moments: Sequence[int] | int = -1,
    shown: DrawOptions | None = None,
    title: str | None = None,
) -> Figure:
    """A picture of a scene at some of its moments, all but the last of them pale.

    moments: indices of `scene.t`. camera: by default one that sees all of it. shown: what is drawn
    beside the bodies, as of `DrawOptions`. title: by default the name of the scene. Springs are
    coloured by their tension. Raises ValueError for a camera inside of a body, for one that sees
    nothing of the machine, and for unknown moments and bodies.
    """
    chosen = [moments] if isinstance(moments, int | np.integer) else list(moments)
    if not chosen or any(not -len(scene.t) <= k < len(scene.t) for k in chosen):
        raise ValueError(
            f"{scene.name}: the moments {chosen} are not all there; it has {len(scene.t)}, from 0"
        )
    picture = Picture(scene, camera, shown or DrawOptions(), chosen)
    canvas, axes = picture.blank(title)
    picture.paint(axes, [k % len(scene.t) for k in chosen])
    return canvas


class Picture:
    """A scene with all that is the same at each moment, ready to be painted at any of them."""

    def __init__(
        self,
        scene: Scene,
        camera: Camera | None,
        shown: DrawOptions,
        moments: Sequence[int] | None = None,
    ) -> None:
        self.scene, self.shown = scene, shown
        unknown = [name for name in shown.traces if name not in scene.bodies]
        if unknown:
            raise ValueError(f"{scene.name} has no body {unknown[0]!r} to leave a trace")
        if camera is not None and np.ndim(camera.half_width):
            raise ValueError(
                f"{scene.name}: these are {np.shape(camera.half_width)} cameras, and a picture is "
                "of one; take one, such as jax.tree.map(lambda a: a[0], camera)"
            )
        self.outlines = _outlines(scene)
        every = np.unique(np.linspace(0, len(scene.t) - 1, 40).astype(int))
        at = every if moments is None else np.unique(np.asarray(moments) % len(scene.t))
        machine, around = self._extent(at)
        self.points = np.concatenate((machine, *(c for c in around if belongs(c, machine))))
        self.machine = box_corners(machine if len(machine) else self.points)
        if not self.outlines and np.ptp(self.points, axis=0).max(initial=0) == 0:
            raise ValueError(
                f"{scene.name} has nothing to draw: its bodies have no shapes and no mass"
            )
        self.size = float(np.ptp(self.points, axis=0).max(initial=0)) or 1.0
        self.camera = camera_for(self.points) if camera is None else camera
        walls = [outline for body, outline, _ in self.outlines if body is None]
        eye = np.asarray(self.camera.pose, float)[:3, 3]
        if camera is None and any(encloses(w.vertices, w.faces, eye) for w in walls):
            self.camera = camera_for(np.concatenate((self.points, *around)))
        tensions = [s.tension for s in scene.springs if np.isfinite(s.tension).any()]
        most = max((float(np.nanmax(np.abs(t))) for t in tensions), default=0.0)
        self.tension = Normalize(-most, most) if most > 0 else None
        self.greatest: dict[str, float] = {}
        for arrows in scene.contacts:
            most = float(np.linalg.norm(arrows.forces, axis=-1).max(initial=0))
            self.greatest[arrows.unit] = max(most, self.greatest.get(arrows.unit, 0.0))

    def blank(self, title: str | None = None) -> tuple[Figure, Axes]:
        """A figure with axes of the camera's shape, a bar of tensions and a line of remarks."""
        ratio = float(self.camera.half_width) / float(self.camera.half_height)
        wide = 8.0 if self.tension is None else 9.2
        canvas = new_figure((wide, 8.0 / ratio + 0.3))
        axes = canvas.subplots()
        if self.tension is not None:
            bar = ScalarMappable(self.tension, "coolwarm")
            canvas.colorbar(bar, ax=axes, shrink=0.6, pad=0.01, fraction=0.1, label="tension [N]")
        notes = list(self.scene.remarks)
        if self.shown.forces and any(self.greatest.values()):
            longest = [f"{most:.3g} {unit}" for unit, most in self.greatest.items() if most > 0]
            notes.append(f"longest arrow: {' and '.join(longest)}")
        said = title if title is not None else self.scene.name
        said = "; ".join([said, *notes]) if notes else said
        # A title that is wider than the picture would make the picture small.
        said = "\n".join(textwrap.wrap(said, _WIDE))
        axes.set_title(said.replace("$", r"\$"), loc="left", fontsize="medium", fontweight="bold")
        return canvas, axes

    def paint(self, axes: Axes, moments: Sequence[int]) -> None:
        """Paints the scene at these moments, all but the last of them pale."""
        sheet = Sheet(self.camera)
        for k in moments:
            self._bodies(sheet, k, opacity=1.0 if k == moments[-1] else 0.18)
        if sheet.empty:
            raise ValueError(_unseen(self.scene, self.camera, self.points))
        last = moments[-1]
        for strand in self.scene.springs:
            self._spring(sheet, strand.points[last], float(strand.tension[last]))
        for name in self.shown.traces:
            trace = self.scene.poses[: last + 1, self.scene.bodies.index(name), :3, 3]
            _polyline(sheet, trace, _TRACE, 1.2)
        if self.shown.forces:
            for arrows in self.scene.contacts:
                scale = max(self.greatest[arrows.unit], 1e-300)
                self._arrows(sheet, arrows.points[last], arrows.forces[last] / scale)
        if self.shown.center:
            self._cross(sheet, self.scene.com[last])
        if self.shown.ground and self.scene.up is not None:
            self._ground(sheet, self.scene.up)
        sheet.paint(axes)

    def _bodies(self, sheet: Sheet, k: int, opacity: float) -> None:
        eye = np.asarray(self.camera.pose, float)[:3, 3]
        poses = dict(zip(self.scene.bodies, self.scene.poses[k], strict=True))
        for body, outline, colour in self.outlines:
            pose = np.eye(4) if body is None else poses[body]
            vertices = outline.vertices @ pose[:3, :3].T + pose[:3, 3]
            if encloses(vertices, outline.faces, eye):
                raise ValueError(
                    f"{self.scene.name}: the camera at {np.round(eye, 3).tolist()} m is inside of "
                    f"{'a shape of the world' if body is None else body}; move it away"
                )
            clear = opacity if self.scene.solid else 0.5 * opacity
            deeper = np.zeros(len(outline.faces))
            if body is None:
                deeper = _BEHIND * self._behind(vertices, outline.faces, eye)
            sheet.triangles(vertices, outline.faces, colour, clear, deeper)
            if opacity == 1.0:
                starts, ends = outline.visible_edges(vertices, eye)
                dark = (*(0.45 * c for c in colour[:3]), 1.0)
                sheet.lines(_h(starts), _h(ends), dark, 0.7, float(deeper.min(initial=np.inf)))
        if not self.scene.solid:
            self._links(sheet, k, opacity)
        if self.shown.frames and opacity == 1.0:
            for pose in self.scene.poses[k]:
                for axis, colour in zip(range(3), "rgb", strict=True):
                    tip = pose[:3, 3] + 0.08 * self.size * pose[:3, axis]
                    sheet.lines(_h(pose[None, :3, 3]), _h(tip[None]), to_rgba(colour), 1.5)

    def _behind(self, vertices: NDArray, faces: NDArray, eye: NDArray) -> NDArray:
        """Which of the faces (m, 3) have the eye and the machine on the same side: they hide none.

        Large ones, such as a floor's, have no single depth by which to paint them.
        """
        corner, *others = np.moveaxis(vertices[faces], 1, 0)
        normals = np.cross(*(other - corner for other in others))
        heights = normals @ self.machine.T - np.sum(normals * corner, axis=1, keepdims=True)
        above = np.sum(normals * (eye - corner), axis=1) > 0
        slack = 0.02 * self.size * np.linalg.norm(normals, axis=1)
        return np.where(above, heights.min(axis=1) > -slack, heights.max(axis=1) < slack)

    def _links(self, sheet: Sheet, k: int, opacity: float) -> None:
        """Lines from the origins of the bodies to those of their children."""
        places = self.scene.poses[k, :, :3, 3]
        pairs = [(p, b) for b, p in enumerate(self.scene.parents) if p >= 0]
        if pairs:
            above, below = np.array(pairs).T
            sheet.lines(_h(places[above]), _h(places[below]), (0.2, 0.2, 0.25, opacity), 3.0)

    def _spring(self, sheet: Sheet, points: NDArray, tension: float) -> None:
        colour: Any = (0.35, 0.35, 0.35, 1.0)
        if self.tension is not None and np.isfinite(tension):
            colour = ScalarMappable(self.tension, "coolwarm").to_rgba(np.array([tension]))[0]
        _polyline(sheet, points, (0.15, 0.15, 0.15, 1.0), 3.4)
        _polyline(sheet, points, colour, 2.2)

    def _arrows(self, sheet: Sheet, points: NDArray, forces: NDArray) -> None:
        across = np.asarray(self.camera.pose, float)[:3, 2]
        for point, force in zip(points, forces, strict=True):
            step = 0.3 * self.size * force
            if np.linalg.norm(step) > 0.01 * self.size:
                side = np.cross(step, across) * 0.15
                tip = point + step
                ends = np.stack((tip, tip - 0.2 * step + side, tip - 0.2 * step - side))
                sheet.lines(_h(np.stack((point, tip, tip))), _h(ends), _FORCE, 1.8)

    def _cross(self, sheet: Sheet, at: NDArray) -> None:
        arms = 0.03 * self.size * np.eye(3)
        sheet.lines(_h(at - arms), _h(at + arms), _COM, 1.6)

    def _ground(self, sheet: Sheet, up: NDArray) -> None:
        """A grid of lines, each of them two rays that end at the points at infinity."""
        x = np.cross(up, np.eye(3)[np.argmin(np.abs(up))])
        x /= np.linalg.norm(x)
        y = np.cross(up, x)
        lowest = float((self.points @ up).min())
        height = min(0.0, lowest) if lowest < -0.02 * self.size else 0.0
        step = _round_number(self.size / 4)
        middle = self.points.mean(axis=0)
        above = float((np.asarray(self.camera.pose, float)[:3, 3] @ up) - height) > 0
        for along, beside in ((x, y), (y, x)):
            places = step * (np.round(middle @ beside / step) + np.arange(-_LINES, _LINES + 1))
            feet = np.outer(places, beside) + (middle @ along) * along + height * up
            for sign in (1.0, -1.0):
                # Towards the horizon the lines come together, and are paler.
                for near, far, opacity in _FADING:
                    starts = _h(feet + sign * near * self.size * along)
                    ends = np.broadcast_to((*(sign * along), 0.0), (len(feet), 4))
                    if np.isfinite(far):
                        ends = _h(feet + sign * far * self.size * along)
                    sheet.lines(
                        starts, ends, (*_GROUND[:3], opacity), 0.6, np.inf if above else 0.0
                    )

    def _extent(self, moments: NDArray) -> tuple[NDArray, list[NDArray]]:
        """Points (n, 3) that bound the machine, and those (8, 3) of each shape of the world."""
        found = [s.points[moments].reshape(-1, 3) for s in self.scene.springs]
        around = []
        bodies = {name: i for i, name in enumerate(self.scene.bodies)}
        for body, outline, _ in self.outlines:
            corners = box_corners(outline.vertices)
            if body is None:
                around.append(corners)
                continue
            poses = self.scene.poses[moments, bodies[body]]
            at = np.einsum("mij,nj->mni", poses[:, :3, :3], corners) + poses[:, None, :3, 3]
            found.append(at.reshape(-1, 3))
        if not self.scene.solid or not self.outlines:
            found.append(self.scene.poses[moments, :, :3, 3].reshape(-1, 3))
        return np.concatenate((np.zeros((0, 3)), *found)), around


def camera_for(points: NDArray, direction: NDArray = _FROM, fill: float = 0.9) -> Camera:
    """A camera that looks in a direction (3,) and just sees all points (n, 3), in m, world.

    fill: the part of the picture that they take.
    """
    camera = Camera.looking_at(direction, (0.0, 0.0, 0.0))
    rotation = np.asarray(camera.pose, float)[:3, :3]
    a, b = fill * float(camera.half_width), fill * float(camera.half_height)
    seen = points @ rotation
    middle = (seen.max(axis=0) + seen.min(axis=0)) / 2
    x, y, z = (seen - middle).T
    distance = max(float((np.abs(x) / a - z).max()), float((np.abs(y) / b - z).max()), 1e-3)
    eye = rotation @ (middle - (0.0, 0.0, distance))
    near = 0.02 * distance
    return Camera.looking_at(eye + rotation[:, 2], eye, near=near)


def _outlines(scene: Scene) -> list[tuple[str | None, Outline, Any]]:
    """The shapes with their bodies and colours, coarser where they have too many triangles."""
    known = set(scene.bodies)
    there = {b: shapes for b, shapes in scene.shapes.items() if b in known or b is None}
    every = [(body, shape) for body, shapes in there.items() for shape in shapes]
    every = _simplified(every)
    palette = [to_rgba(c) for c in colours(max(1, len(scene.bodies)))]
    number = {name: i for i, name in enumerate(scene.bodies)}

    def prepared(body: str | None, shape: Shape) -> tuple[str | None, Outline, Any]:
        grey = (0.75, 0.75, 0.75, 1.0)
        light = grey if body is None else (*_lighter(palette[number[body]][:3]), 1.0)
        return body, Outline.of(shape), shape.colour or light

    return [prepared(*each) for each in every if len(each[1].faces)]


def _simplified(every: Sequence[tuple[str | None, Shape]]) -> list[tuple[str | None, Shape]]:
    """The shapes with as much detail as keeps them together below a number of triangles."""
    sizes = [float(np.ptp(shape.vertices, axis=0).max(initial=0)) for _, shape in every]
    coarse, cell = list(every), max(sizes, default=0.0) / 100
    while cell > 0 and sum(len(shape.faces) for _, shape in coarse) > _MOST_FACES:
        # What is smaller than some cells would vanish.
        coarse = [
            (body, shape.coarser(min(cell, size / 3)) if len(shape.faces) > 12 else shape)
            for (body, shape), size in zip(every, sizes, strict=True)
        ]
        if cell > max(sizes):
            break
        cell *= 1.3
    return coarse


def _unseen(scene: Scene, camera: Camera, points: NDArray) -> str:
    eye, ahead = np.asarray(camera.eye, float), np.asarray(camera.pose, float)[:3, 2]
    depth = (points - eye) @ ahead
    where = "it is all beside the camera's view"
    if depth.max() <= float(camera.near):
        where = "it is all behind the camera"
    elif depth.min() >= float(camera.far):
        where = f"it is all beyond far = {float(camera.far):g} m"
    target = np.round(points.mean(axis=0), 3).tolist()
    return f"{scene.name}: nothing is in view: {where}; look at {target} m, or leave out the camera"


def _polyline(sheet: Sheet, points: NDArray, colour: Any, width: float) -> None:
    sheet.lines(_h(points[:-1]), _h(points[1:]), colour, width)


def _h(points: NDArray) -> NDArray:
    return np.concatenate((points, np.ones((len(points), 1))), axis=1)


def _lighter(colour: Sequence[float]) -> list[float]:
    return [1 - 0.75 * (1 - c) for c in colour]


def _round_number(x: float) -> float:
    power = 10.0 ** np.floor(np.log10(x))
    return float(power * max(m for m in (1.0, 2.0, 5.0) if m * power <= x * 1.0001))


_MOMENTS = 4


def machine_section(scene: Scene, look: str = "") -> report.Section:
    """The machine of a scene, pale at some moments and solid at the last, as part of a report.

    look: as of `Section`.
    """
    moments = np.unique(np.linspace(0, len(scene.t) - 1, _MOMENTS).round().astype(int)).tolist()
    times = ", ".join(f"{scene.t[k]:.4g}" for k in moments)
    said = [f"At t = {times} s, the last of them solid."] if len(moments) > 1 else []
    picture = report.Figure(partial(draw, scene, None, moments), "machine.png", words=False)
    return report.Section("Machine", [*report.notes(*said), picture], look, brief=False)

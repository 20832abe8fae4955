"""One machine in the viewer: its shapes, springs, forces and traces at one of its times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_rgb
from numpy.typing import NDArray

from ...io.appearance.shape import Shape
from ..figures import colours
from ..scenes import Scene

LAYERS = {
    "shapes": True,
    "skeleton": False,
    "springs": True,
    "contact forces": True,
    "centre of mass": False,
    "momentum": False,
    "frames": False,
    "traces": False,
}
"""What can be shown, and whether it is at first; the skeleton is where ellipsoids are drawn."""

# Colours that stay apart for the colour-blind: linear and angular momentum, contact forces.
_LINEAR, _ANGULAR, _FORCE = (0, 114, 178), (230, 159, 0), (213, 94, 0)
_TENSIONS = colormaps["coolwarm"]
_MOST_TRACED = 600
_PIXELS = 2.5
_BONES = (60, 60, 60)

# Lines or arrows, their ends (n, 2, 3), and their colours (3,) or one for each, from 0 to 255.
Parts = tuple[str, NDArray, NDArray]
_NOTHING: Parts = ("lines", np.zeros((0, 2, 3)), np.zeros(3))


class Drawn:
    """A machine that is drawn in the scene of a viser server.

    server: a `viser.ViserServer`. tint (3,): a colour in 0..1 that is mixed into all shapes, with
    which motions side by side are told apart; None leaves the colours as they are. size: the
    machine's extent in m, from which lengths of arrows and axes follow.
    """

    def __init__(
        self, server: Any, path: str, scene: Scene, size: float, tint: NDArray | None = None
    ) -> None:
        self._server, self._path, self._scene, self._size = server, path, scene, size
        self._shown = layers_of(scene)
        self._up = np.array([0.0, 0.0, 1.0]) if scene.up is None else scene.up
        self._largest = _largest(scene)
        self._moving: dict[str, Any] = {}
        self._root = server.scene.add_frame(path, show_axes=False)
        self._bodies = [
            server.scene.add_frame(f"{path}/bodies/{k}", show_axes=False)
            for k in range(len(scene.bodies))
        ]
        self._axes = [
            server.scene.add_frame(
                f"{path}/bodies/{k}/axes",
                axes_length=0.12 * size,
                axes_radius=0.004 * size,
                visible=LAYERS["frames"],
            )
            for k in range(len(scene.bodies))
        ]
        self.meshes: list[tuple[str, Any]] = []
        self._add_shapes(scene, tint)
        self._label = server.scene.add_label(f"{path}/name", scene.name, visible=False)
        self._colour = np.array([0.0, 0.62, 0.45]) if tint is None else tint
        self._com = server.scene.add_icosphere(
            f"{path}/com",
            radius=0.025 * size,
            color=_bytes(self._colour),
            visible=LAYERS["centre of mass"],
        )
        self._traces = self._made("traces", "lines", traces(scene), np.array(_bytes(self._colour)))
        self._traces.visible = LAYERS["traces"]
        self.show(scene, 0)

    def _add_shapes(self, scene: Scene, tint: NDArray | None) -> None:
        index: dict[str | None, int] = {name: k for k, name in enumerate(scene.bodies)}
        plain = [0.4 * np.array(to_rgb(c)) + 0.6 for c in colours(max(1, len(scene.bodies)))]
        for body, shapes in scene.shapes.items():
            at = f"{self._path}/world" if body is None else f"{self._path}/bodies/{index[body]}"
            for j, shape in enumerate(shapes):
                colour = (*plain[index.get(body, 0)], 1.0) if shape.colour is None else shape.colour
                mesh = self._add_mesh(f"{at}/shape{j}", shape, colour, tint)
                self.meshes += [] if body is None else [(body, mesh)]

    def _add_mesh(
        self, path: str, shape: Shape, colour: Sequence[float], tint: NDArray | None
    ) -> Any:
        *plain, alpha = colour
        mixed = np.asarray(plain) if tint is None else 0.3 * np.asarray(plain) + 0.7 * tint
        return self._server.scene.add_mesh_simple(
            path,
            shape.vertices,
            shape.faces,
            color=_bytes(mixed),
            opacity=float(alpha) if alpha < 1 else None,
            # Files do not always wind their faces the same way.
            side="double",
        )

    def place(self, offset: NDArray, visible: bool, named: bool) -> None:
        """Moves the whole machine by an offset (3,) in m, shows or hides it and its name."""
        self._root.position, self._root.visible = offset, visible
        self._label.visible = named

    def choose(self, shown: Mapping[str, bool], row: int) -> None:
        """Shows some of the `LAYERS`, at a row of the scene."""
        self._shown = {**self._shown, **shown}
        for mesh in (mesh for _, mesh in self.meshes):
            mesh.visible = self._shown["shapes"]
        for axes in self._axes:
            axes.visible = self._shown["frames"]
        self._com.visible = self._shown["centre of mass"]
        self._traces.visible = self._shown["traces"]
        self.show(self._scene, row)

    def show(self, scene: Scene, row: int) -> None:
        """Draws the state at a row of a scene of this machine."""
        self._scene = scene
        poses = scene.poses[row]
        for handle, position, turn in zip(
            self._bodies, poses[:, :3, 3], quaternions(poses[:, :3, :3]), strict=True
        ):
            handle.position, handle.wxyz = position, turn
        com = scene.com[row]
        self._com.position = com
        self._label.position = com + 0.5 * self._size * self._up
        wanted = {
            "skeleton": self._bones,
            "springs": self._springs,
            "contact forces": self._contacts,
            "momentum": self._momentum,
        }
        for name, drawn in wanted.items():
            kind, points, colours = (self._shown[name] and drawn(scene, row)) or _NOTHING
            self._draw(name, kind, points, colours)

    def show_pull(self, point: NDArray | None, target: NDArray | None) -> None:
        """Draws the force by which a body is dragged, from a point to its target (3,), or none."""
        if point is None or target is None:
            self._draw("pull", *_NOTHING)
        else:
            self._draw("pull", "arrows", np.stack((point, target))[None], np.array([_FORCE]))

    def _bones(self, scene: Scene, row: int) -> Parts:
        """Lines from the origin of each body's parent to its own."""
        origins, parents = scene.poses[row, :, :3, 3], np.array(scene.parents)
        # What stands on the world or is free has no bone to its origin.
        some = parents >= 0
        return "lines", np.stack((origins[parents], origins), axis=1)[some], np.array(_BONES)

    def _springs(self, scene: Scene, row: int) -> Parts | None:
        """Springs, red where they pull and blue where they push."""
        if not scene.springs:
            return None
        ways = [strand.points[row] for strand in scene.springs]
        points = np.concatenate([np.stack((p[:-1], p[1:]), axis=1) for p in ways])
        each = zip(scene.springs, ways, strict=True)
        tension = np.concatenate([np.full(len(p) - 1, s.tension[row]) for s, p in each])
        # A law without a tension, such as a damper's, is drawn like a slack spring.
        tension = np.nan_to_num(tension)
        share = tension / self._scale("springs", np.abs(tension).max())
        colours = np.repeat(_TENSIONS(0.5 + 0.5 * share)[:, None, :3], 2, axis=1)
        return "lines", points, np.round(255 * colours)

    def _contacts(self, scene: Scene, row: int) -> Parts | None:
        if not scene.contacts:
            return None
        # Forces and impulses each have a scale of their own, by their unit.
        made = [self._arrows(a.unit, a.points[row], a.forces[row], _FORCE) for a in scene.contacts]
        _, points, colours = zip(*made, strict=True)
        return "arrows", np.concatenate(points), np.concatenate(colours)

    def _momentum(self, scene: Scene, row: int) -> Parts:
        """Linear and angular momentum, the latter about the centre of mass, where both begin."""
        com, (linear, angular) = scene.com[row], _momenta(scene, row)
        kind, a, ca = self._arrows("linear", com[None], linear[None], _LINEAR)
        _, b, cb = self._arrows("angular", com[None], angular[None], _ANGULAR)
        return kind, np.concatenate((a, b)), np.concatenate((ca, cb))

    def _arrows(
        self, name: str, start: NDArray, vectors: NDArray, colour: tuple[int, int, int]
    ) -> Parts:
        """Arrows (n, 2, 3) of vectors (n, 3) at points (n, 3), without those that are nearly 0."""
        length = np.linalg.norm(vectors, axis=1)
        largest = self._scale(name, length.max(initial=0.0))
        ends = start + 0.5 * self._size * vectors / largest
        there = length > 1e-3 * largest
        arrows = np.stack((start, ends), axis=1)[there]
        return "arrows", arrows, np.tile(colour, (len(arrows), 1))

    def _scale(self, name: str, value: float) -> float:
        """The largest value of the motion, and of what was shown of it live."""
        self._largest[name] = max(self._largest[name], float(value), 1e-12)
        return self._largest[name]

    def _draw(self, name: str, kind: str, points: NDArray, colours: NDArray) -> None:
        """Lines or arrows (n, 2, 3), of one colour (3,) or one for each; none where n is 0."""
        handle = self._moving.get(name)
        if len(points) == 0:
            if handle is not None:
                handle.visible = False
            return
        colours = colours.astype(np.uint8)
        if handle is None or len(handle.points) != len(points):
            self._moving[name] = self._made(name, kind, points, colours)
            return
        handle.points, handle.colors = points.astype(np.float32), colours
        handle.visible = True

    def _made(self, name: str, kind: str, points: NDArray, colours: NDArray) -> Any:
        path, size, scene = f"{self._path}/{name}", self._size, self._server.scene
        if kind == "lines":
            if name == "springs":
                return scene.add_line_segments(path, points, colours, thickness=0.012 * size)
            return scene.add_line_segments(
                path, points, colours, thickness=_PIXELS, thickness_units="screen"
            )
        return scene.add_arrows(
            path,
            points,
            colours,
            shaft_radius=0.008 * size,
            head_radius=0.02 * size,
            head_length=0.05 * size,
        )


def layers_of(scene: Scene) -> dict[str, bool]:
    """Which `LAYERS` of a scene are shown at first."""
    return {**LAYERS, "skeleton": not scene.solid}


def quaternions(rotations: NDArray) -> NDArray:
    """Unit quaternions (..., 4), w first, of rotation matrices (..., 3, 3)."""
    from viser import transforms

    return transforms.SO3.from_matrix(np.asarray(rotations, float)).wxyz


def _momenta(scene: Scene, rows: Any) -> tuple[NDArray, NDArray]:
    """Linear (..., 3) and angular momentum (..., 3) about the centre of mass, at some rows."""
    com, momentum = scene.com[rows], scene.momentum[rows]
    linear = momentum[..., 3:]
    return linear, momentum[..., :3] - np.cross(com, linear)


def _largest(scene: Scene) -> dict[str, float]:
    """The largest tension, contact force and momenta of a motion: the units of their pictures."""
    linear, angular = _momenta(scene, slice(None))
    tensions = [s.tension for s in scene.springs]
    largest = {
        "springs": max((float(np.abs(np.nan_to_num(t)).max()) for t in tensions), default=0.0),
        "linear": float(np.linalg.norm(linear, axis=-1).max()),
        "angular": float(np.linalg.norm(angular, axis=-1).max()),
    }
    for arrows in scene.contacts:
        force = float(np.linalg.norm(arrows.forces, axis=-1).max(initial=0.0))
        largest[arrows.unit] = max(largest.get(arrows.unit, 0.0), force)
    return largest


def traces(scene: Scene) -> NDArray:
    """The ways (n, 2, 3) of the origins of the bodies that move most, three of them at most."""
    rows = np.unique(np.linspace(0, len(scene.t) - 1, _MOST_TRACED).astype(int))
    ways = scene.poses[rows][:, :, :3, 3]
    lengths = np.ptp(ways, axis=0).max(axis=1)
    order = np.argsort(-lengths, kind="stable")[:3]
    ways = ways[:, order[lengths[order] > 0]]
    return np.stack((ways[:-1], ways[1:]), axis=2).reshape(-1, 2, 3)


def _bytes(colour: Any) -> tuple[int, int, int]:
    r, g, b = (round(255 * float(c)) for c in np.clip(colour, 0, 1))
    return r, g, b

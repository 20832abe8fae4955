"""The scene in the browser: machines beside each other on a floor, and how they are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...system.joints import plane
from ..figures import colours
from ..scenes import Scene
from .drawn import Drawn, quaternions

# Vertical, in rad.
FIELD = 0.8
# Beside what is seen, as a part of the distance.
_MARGIN = 1.1


class View(NamedTuple):
    """A camera: its position (3,) and the point (3,) that it looks at, in m in the world."""

    position: NDArray
    target: NDArray

    def near(self, position: NDArray, target: NDArray) -> bool:
        """Whether a camera is this one, but for rounding in a browser."""
        tolerance = 1e-3 * float(np.linalg.norm(self.position - self.target))
        return bool(
            np.abs(position - self.position).max() < tolerance
            and np.abs(target - self.target).max() < tolerance
        )


def fitted(points: NDArray, away: NDArray, up: NDArray, aspect: float = 1.0) -> View:
    """The nearest camera in the direction `away` (3,) that sees all points (n, 3), with a margin.

    up (3,): what is drawn upwards, not along `away`; aspect: the width of the picture over its
    height. Pictures that are wider than high are looked at as square ones.
    """
    away = away / np.linalg.norm(away)
    across = np.cross(up, away)
    across /= np.linalg.norm(across)
    axes = np.stack((across, np.cross(away, across), away))
    places = points @ axes.T
    middle = (places.min(axis=0) + places.max(axis=0)) / 2
    sizes = np.tan(FIELD / 2) * np.array([min(aspect, 1.0), 1.0])
    x, y, z = (places - middle).T
    distance = float((np.maximum(np.abs(x) / sizes[0], np.abs(y) / sizes[1]) + z).max())
    # A single point is looked at from somewhere.
    distance = _MARGIN * max(distance, 1e-3)
    target = middle @ axes
    return View(target + distance * axes[2], target)


class Framing:
    """Keeps all points in the cameras of the browsers that have not been moved by hand.

    server: a `viser.ViserServer`. away, up (3,): as in `fitted`.
    """

    def __init__(self, server: Any, points: NDArray, away: NDArray, up: NDArray) -> None:
        self._server, self._points, self._away, self._up = server, points, away, up
        self._given: dict[int, View] = {}
        first = fitted(points, away, up)
        camera = server.initial_camera
        camera.look_at, camera.position, camera.fov = first.target, first.position, FIELD
        self._first = first
        server.on_client_connect(self._welcome)
        server.on_client_disconnect(lambda client: self._given.pop(client.client_id, None))

    def hold(self, points: NDArray) -> None:
        """Other points (n, 3) are to be seen."""
        self._points = points
        for client in self._server.get_clients().values():
            self._look(client)

    def _welcome(self, client: Any) -> None:
        # The first camera comes a little later, and a window may change its shape.
        client.camera.on_update(lambda _: self._look(client))
        self._look(client)

    def _look(self, client: Any) -> None:
        given = self._given.get(client.client_id, self._first)
        camera = client.camera
        # Who has turned or enlarged the picture sees what they have chosen.
        if not given.near(np.asarray(camera.position), np.asarray(camera.look_at)):
            return
        view = fitted(self._points, self._away, self._up, float(camera.aspect))
        if view.near(*given):
            return
        self._given[client.client_id] = view
        with client.atomic():
            camera.position, camera.look_at = view.position, view.target


PLACES = "same place", "side by side"
_LOOKED_AT = 20


class Stage:
    """A floor, a view, and the machines that are drawn.

    server: a `viser.ViserServer`. scenes (n,): motions, which are told apart by colours and names
    where there are several. posed: a machine that is drawn by itself, None for none.
    """

    def __init__(self, server: Any, scenes: Sequence[Scene], posed: Scene | None = None) -> None:
        self._server = server
        everything = [*scenes, *([] if posed is None else [posed])]
        self.size = max(map(extent, everything))
        tints: Sequence[Any] = tinted(len(scenes))
        self.motions = [
            Drawn(server, f"/motion{k}", scene, self.size, tint)
            for k, (scene, tint) in enumerate(zip(scenes, tints, strict=True))
        ]
        self.posed = None if posed is None else Drawn(server, "/machine", posed, self.size)
        self._place, self._playing = PLACES[0], self.posed is None
        self._furnish(everything)
        self.arrange(self._place)

    def _furnish(self, scenes: Sequence[Scene]) -> None:
        scene, size = self._server.scene, self.size
        up = _up(scenes[0])
        scene.set_up_direction(up)
        # Those of motions are beside each other where they are drawn so.
        self._boxes = [_box(*bounds(each)) for each in scenes]
        corners = np.concatenate(self._boxes)
        floor = min(0.0, float((corners @ up).min()))
        scene.add_grid(
            "/floor",
            width=20 * size,
            height=20 * size,
            cell_size=_round(size / 5),
            section_size=5 * _round(size / 5),
            fade_distance=20 * size,
            position=floor * up,
            wxyz=quaternions(_upright(up)),
        )
        camera = self._server.initial_camera
        camera.near, camera.far = 0.002 * size, 200 * size
        away = _upright(up) @ np.array([0.56, -0.75, 0.34])
        self._framing = Framing(self._server, corners, away, up)

    def arrange(self, place: str) -> None:
        """Draws motions at the same place or side by side, one of `PLACES`."""
        self._place = place
        count = len(self.motions)
        for k, drawn in enumerate(self.motions):
            offset = self._offset(k)
            drawn.place(offset, self._playing, named=place == PLACES[1] and count > 1)
        if self.posed is not None:
            self.posed.place(np.zeros(3), not self._playing, named=False)
        self.frame()

    def _offset(self, k: int) -> NDArray:
        """How far motion k is drawn from its place."""
        apart = (k - (len(self.motions) - 1) / 2) * 1.2 * self.size
        return np.array([apart * (self._place == PLACES[1]), 0.0, 0.0])

    def frame(self, posed: Scene | None = None) -> None:
        """Sees to it that all is in view that is drawn, also of the posed machine where it is now.

        A camera that was moved by hand stays.
        """
        boxes = [
            box + self._offset(k) if k < len(self.motions) else box
            for k, box in enumerate(self._boxes)
        ]
        now = [] if posed is None else [_box(*bounds(posed))]
        self._framing.hold(np.concatenate([*boxes, *now]))

    def play(self, playing: bool) -> None:
        """Shows the motions, or the machine that is posed."""
        if playing != self._playing:
            self._playing = playing
            self.arrange(self._place)

    def choose(self, shown: dict[str, bool], rows: Sequence[int]) -> None:
        """Shows some of `LAYERS` of all machines; rows (n,): the times at which motions are."""
        for drawn, row in zip(self.motions, rows, strict=True):
            drawn.choose(shown, row)
        if self.posed is not None:
            self.posed.choose(shown, 0)


def tinted(count: int) -> list[NDArray | None]:
    """The colours (3,) of motions, in 0..1; none for a single one."""
    from matplotlib.colors import to_rgb

    return [None] if count == 1 else [np.array(to_rgb(colour)) for colour in colours(count)]


def bounds(scene: Scene) -> tuple[NDArray, NDArray]:
    """The lowest and the highest coordinates (3,) in m that a machine reaches in its motion."""
    rows = np.unique(np.linspace(0, len(scene.t) - 1, min(len(scene.t), _LOOKED_AT)).astype(int))
    reached = [_corners(scene, row) for row in rows]
    return np.min([r.min(axis=0) for r in reached], axis=0), np.max(
        [r.max(axis=0) for r in reached], axis=0
    )


def _box(low: NDArray, high: NDArray) -> NDArray:
    """The corners (8, 3) of a box."""
    return np.stack(np.meshgrid(*np.stack((low, high), axis=1)), axis=-1).reshape(-1, 3)


def extent(scene: Scene) -> float:
    """The size of a machine in m: the largest distance along an axis at the start."""
    corners = _corners(scene, 0)
    return max(float(np.ptp(corners, axis=0).max()), 1e-3)


def _corners(scene: Scene, row: int) -> NDArray:
    """Points (n, 3) that bound a machine: of its bodies, the boxes about its shapes, its springs.

    Without the shapes of the world, as a floor would make the machine small.
    """
    place = dict(zip(scene.bodies, scene.poses[row], strict=True))
    corners = [scene.poses[row, :, :3, 3], *(strand.points[row] for strand in scene.springs)]
    for body, shapes in scene.shapes.items():
        if body is not None:
            pose, ends = place[body], [s.vertices for s in shapes]
            box = np.stack([(v.min(axis=0), v.max(axis=0)) for v in ends])
            grid = [np.stack(np.meshgrid(*b.T), axis=-1).reshape(-1, 3) for b in box]
            corners.append(np.concatenate(grid) @ pose[:3, :3].T + pose[:3, 3])
    return np.concatenate(corners)


def _round(length: float) -> float:
    """1, 2 or 5 times a power of ten, near a length."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(power * min((1, 2, 5, 10), key=lambda n: abs(n - length / power)))


def _up(scene: Scene) -> NDArray:
    """The direction (3,) that is drawn upwards; z without gravity."""
    return np.array([0.0, 0.0, 1.0]) if scene.up is None else scene.up


def _upright(up: NDArray) -> NDArray:
    """A rotation matrix (3, 3) that takes z to a unit vector (3,), near the identity if it can."""
    x, y = plane(up)
    return np.stack((x, y, up), axis=1)

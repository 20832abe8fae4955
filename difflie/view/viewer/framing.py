"""How machines are looked at: from where all of them is seen, also after they have moved."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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

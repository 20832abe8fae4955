"""The viewer sees all of a machine, in pictures of any shape, also after it has moved."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from difflie.view.viewer.stage import FIELD, Framing, fitted

AWAY, UP = np.array([0.56, -0.75, 0.34]), np.array([0.0, 0.0, 1.0])


def seen(points, position, target, aspect):
    """The largest place of the points in a picture, 1 at its edge, across and upwards."""
    ahead = (target - position) / np.linalg.norm(target - position)
    across = np.cross(ahead, UP)
    across /= np.linalg.norm(across)
    x, y, z = ((points - position) @ axis for axis in (across, np.cross(across, ahead), ahead))
    assert (z > 0).all()
    size = np.tan(FIELD / 2)
    return np.abs(x / (z * size * aspect)).max(), np.abs(y / (z * size)).max()


@pytest.mark.parametrize("aspect", [0.4, 1.0, 2.2])
@pytest.mark.parametrize("size", [(1, 1, 1), (9, 0.1, 0.1), (0.1, 0.1, 9), (3, 8, 0.01)])
def test_all_is_seen(size, aspect):
    """And fills most of the picture one way or the other, unless that is wider than high."""
    points = np.random.default_rng(0).uniform(-1, 1, (50, 3)) * size + [3, 2, 1]
    places = seen(points, *fitted(points, AWAY, UP, aspect), aspect)
    assert max(places) < 1
    assert aspect > 1 or max(places) > 0.6


class Client:
    """A browser that reports the camera that it was given."""

    client_id = 1

    def __init__(self, position, look_at, aspect):
        self.camera = SimpleNamespace(
            position=position, look_at=look_at, aspect=aspect, on_update=self._noted
        )

    def _noted(self, callback):
        self.update = callback

    def atomic(self):
        return nullcontext()


def test_cameras_follow_unless_they_are_moved_by_hand():
    """A narrow window, a machine that moves away and comes back, and a turned picture."""
    near = np.random.default_rng(0).uniform(-1, 1, (20, 3))
    far = np.concatenate((near, 5 * near))
    clients, welcomed = {}, []
    server = SimpleNamespace(
        initial_camera=SimpleNamespace(),
        get_clients=lambda: clients,
        on_client_connect=welcomed.append,
        on_client_disconnect=lambda callback: None,
    )
    framing = Framing(server, near, AWAY, UP)
    first = server.initial_camera
    client = clients[1] = Client(np.ones(3), np.zeros(3), 0.5)
    welcomed[0](client)
    np.testing.assert_array_equal(client.camera.position, 1)  # not yet at the first one
    client.camera.position, client.camera.look_at = first.position, first.look_at
    client.update(None)
    camera = client.camera
    start = camera.position
    assert max(seen(near, start, camera.look_at, 0.5)) < 1
    framing.hold(far)
    assert max(seen(far, camera.position, camera.look_at, 0.5)) < 1
    framing.hold(near)
    np.testing.assert_allclose(camera.position, start)
    camera.position = start + 0.3
    framing.hold(far)
    np.testing.assert_allclose(camera.position, start + 0.3)

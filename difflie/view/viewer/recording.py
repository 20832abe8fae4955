"""Motions as one HTML file, which plays in a browser without a server and a network."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ...io.files import written
from ..scenes import Scene
from .clock import Clock, row_at
from .server import started, stop
from .stage import PLACES, Stage

_RATE = 30.0
_MOST = 3000


def record(
    scenes: Scene | Sequence[Scene],
    path: str | os.PathLike[str],
    *,
    place: str = PLACES[1],
    shown: Mapping[str, bool] | None = None,
) -> Path:
    """Writes motions as an HTML file that plays by itself, in real time; returns its path.

    scenes: one or several, drawn at one of `PLACES`. shown: which of `LAYERS` are shown, beside
    those that are at first. There are 30 pictures in a second, and fewer in motions beyond 100 s.
    Raises ImportError without viser and OutputError for a file that cannot be written.
    """
    scenes = [scenes] if isinstance(scenes, Scene) else list(scenes)
    server = started("localhost", 0)
    try:
        stage = Stage(server, scenes)
        stage.arrange(place)
        stage.choose(dict(shown or {}), [0] * len(scenes))
        clock = Clock.of(scenes)
        length = clock.end - clock.start
        times = np.linspace(clock.start, clock.end, int(np.clip(length * _RATE, 1, _MOST)) + 1)
        serializer = server.get_scene_serializer()
        for before, after in itertools.pairwise(times):
            serializer.insert_sleep(float(after - before))
            for drawn, scene in zip(stage.motions, scenes, strict=True):
                drawn.show(scene, row_at(scene.t, after))
        html = serializer.as_html()
    finally:
        stop(server)
    with written(path) as file:
        file.write(html.encode())
    return Path(path)

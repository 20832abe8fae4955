"""The time of a playback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..scenes import Scene


@dataclass
class Clock:
    """A time from start to end, all in s, that goes on while it is playing.

    speed: seconds of the motion in a second. loop: whether it begins again at the end.
    """

    start: float
    end: float
    speed: float = 1.0
    loop: bool = True
    playing: bool = False
    time: float = 0.0

    def __post_init__(self) -> None:
        self.time = self.start

    @classmethod
    def of(cls, scenes: Sequence[Scene]) -> Clock:
        """The time of motions, from the first start to the last end."""
        return cls(min(float(scene.t[0]) for scene in scenes), max(float(s.t[-1]) for s in scenes))

    def advance(self, seconds: float) -> None:
        """Lets time pass, in seconds of the clock on the wall."""
        if not self.playing:
            return
        self.time += self.speed * seconds
        if self.time < self.end:
            return
        length = self.end - self.start
        if self.loop and length > 0:
            self.time = self.start + (self.time - self.start) % length
        else:
            self.time, self.playing = self.end, False

    def play(self, playing: bool) -> None:
        """Plays or pauses; from the end it plays from the start."""
        if playing and self.time >= self.end:
            self.time = self.start
        self.playing = playing


def row_at(t: NDArray, time: float) -> int:
    """The index of the time in t (m,), which rises, that is nearest to a time."""
    after = int(np.clip(np.searchsorted(t, time), 1, max(len(t) - 1, 1)))
    if len(t) == 1:
        return 0
    return after if t[after] - time < time - t[after - 1] else after - 1

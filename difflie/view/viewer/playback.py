"""The controls of a playback: play, time, speed, and the energy beside it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from matplotlib.colors import to_hex

from ..figures import colours
from ..scenes import Scene
from .clock import Clock, row_at
from .energy_plot import EnergyPlot
from .server import in_order
from .stage import PLACES, Stage

SPEEDS = {"0.1 x": 0.1, "0.25 x": 0.25, "0.5 x": 0.5, "1 x": 1.0, "2 x": 2.0, "5 x": 5.0}


class Playback:
    """One or more motions that are played together.

    gui: of a viser server; the controls go to its present folder. Callbacks only note what was
    chosen; `tick` draws it.
    """

    def __init__(self, gui: Any, stage: Stage, scenes: Sequence[Scene]) -> None:
        self._stage, self._scenes = stage, scenes
        self.clock = Clock.of(scenes)
        self._drawn: list[int] = []
        self._button = gui.add_button("Play", icon=_icon("PLAYER_PLAY"))
        self._slider = gui.add_slider(
            "time [s]",
            min=self.clock.start,
            max=self.clock.end,
            step=max((self.clock.end - self.clock.start) / 1000, 1e-9),
            initial_value=self.clock.start,
        )
        speed = gui.add_dropdown("speed", tuple(SPEEDS), initial_value="1 x")
        loop = gui.add_checkbox("loop", self.clock.loop)
        self._place = gui.add_dropdown(
            "motions", PLACES, initial_value=PLACES[0], visible=len(scenes) > 1
        )
        self._energy = EnergyPlot.of(gui, scenes)
        if len(scenes) > 1:
            gui.add_html(_legend([scene.name for scene in scenes]))
        self._button.on_click(in_order(lambda _: self.play(not self.clock.playing)))
        self._slider.on_update(in_order(self._sought))
        speed.on_update(in_order(lambda _: setattr(self.clock, "speed", SPEEDS[speed.value])))
        loop.on_update(in_order(lambda _: setattr(self.clock, "loop", loop.value)))
        self._place.on_update(in_order(lambda _: stage.arrange(self._place.value)))

    @property
    def rows(self) -> list[int]:
        """The row of each motion (n,) at the present time."""
        return [row_at(scene.t, self.clock.time) for scene in self._scenes]

    def play(self, playing: bool) -> None:
        """Plays or pauses the motions."""
        self.clock.play(playing)
        self._stage.play(True)

    def _sought(self, event: Any) -> None:
        # The slider also reports where the playback itself has moved it.
        if event.client is not None:
            self.clock.playing = False
            self.clock.time = float(self._slider.value)
            self._stage.play(True)

    def tick(self, seconds: float) -> None:
        """Lets seconds pass and draws what has changed."""
        self.clock.advance(seconds)
        name, icon = ("Pause", "PLAYER_PAUSE") if self.clock.playing else ("Play", "PLAYER_PLAY")
        if self._button.label != name:
            self._button.label, self._button.icon = name, _icon(icon)
        rows = self.rows
        if rows == self._drawn:
            return
        self._drawn = rows
        for drawn, scene, row in zip(self._stage.motions, self._scenes, rows, strict=True):
            drawn.show(scene, row)
        if self.clock.playing:
            self._slider.value = self.clock.time
        if self._energy is not None:
            self._energy.show(self.clock.time)


def _legend(names: Sequence[str]) -> str:
    """The names of motions in their colours, as HTML."""
    each = zip(names, colours(len(names)), strict=True)
    marks = (f'<span style="color:{to_hex(c)}">&#9632;</span> {escape(name)}' for name, c in each)
    return f'<div style="margin:0 1em;font-size:small">{"<br>".join(marks)}</div>'


def _icon(name: str) -> Any:
    from viser import Icon

    return getattr(Icon, name)

"""The controls of a playback: play, time, speed, and the energy beside it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from matplotlib.colors import to_hex
from numpy.typing import NDArray

from ..figures import colours
from ..scenes import Scene
from .clock import Clock, row_at
from .server import in_order
from .stage import PLACES, Stage

_MOST = 300
_HEIGHT = 220


class EnergyPlot:
    """Total energies (n, k) in J at times t (k,) in s, one line each, with a dot at the time shown.

    gui: of a viser server. names (n,).
    """

    def __init__(self, gui: Any, names: Sequence[str], t: NDArray, energies: NDArray) -> None:
        shown, label = readable(energies)
        self._t, self._energies = t, shown
        self._row = -1
        lines = list(map(to_hex, colours(len(names))))
        dots = {"show": True, "size": 9}
        series = [
            *({"stroke": colour, "width": 1.5} for colour in lines),
            *({"stroke": colour, "points": {**dots, "fill": colour}} for colour in lines),
        ]
        low, high = np.nanmin(shown), np.nanmax(shown)
        margin = 0.05 * max(high - low, 1e-6 * max(abs(low), abs(high)), 1e-12)
        self._plot = gui.add_uplot(
            self._data(0),
            ({}, *series),
            # Given, as the gaps are not numbers, of which no range can be found.
            scales={
                "x": {"time": False, "range": (float(t[0]), float(t[-1]))},
                "y": {"range": (float(low - margin), float(high + margin))},
            },
            axes=({"label": "t [s]"}, {"label": label, "size": 60}),
            legend={"show": False},
            height=_HEIGHT,
        )

    @classmethod
    def of(cls, gui: Any, scenes: Sequence[Scene]) -> EnergyPlot | None:
        """The energies of motions that have one; None where none has."""
        having = [scene for scene in scenes if scene.energy is not None and len(scene.t) > 1]
        if not having:
            return None
        t, energies = together(having)
        # Velocities may be finite where their squares are not.
        energies = np.where(np.isfinite(energies), energies, np.nan)
        if np.isnan(energies).all():
            return None
        return cls(gui, [scene.name for scene in having], t, energies)

    def show(self, time: float) -> None:
        """Moves the dots to a time in s."""
        row = int(np.argmin(np.abs(self._t - time)))
        if row != self._row:
            self._row = row
            self._plot.data = self._data(row)

    def _data(self, row: int) -> tuple[NDArray, ...]:
        dots = np.full_like(self._energies, np.nan)
        dots[:, row] = self._energies[:, row]
        return (self._t, *self._energies, *dots)


def readable(energies: NDArray) -> tuple[NDArray, str]:
    """The energies (n, k) as their marks on the axis can show them, with three decimals; a label.

    What nearly stays the same is drawn as the difference from its beginning, in a power of ten.
    """
    finite = energies[np.isfinite(energies)]
    size, width = float(np.abs(finite).max()), float(np.ptp(finite))
    away, label = energies, "energy"
    if size > 0 and width <= 0.01 * size:
        away, label = energies - finite[0], "E - E(0)"
    elif width == 0 or 0.1 <= width < 1e4:
        return energies, "energy [J]"
    largest = float(np.nanmax(np.abs(away)))
    power = int(np.floor(np.log10(largest))) if largest > 0 else 0
    return away / 10.0**power, f"{label} [{f'1e{power} J' if power else 'J'}]"


def together(scenes: Sequence[Scene]) -> tuple[NDArray, NDArray]:
    """Times (k,) in s of several motions, and their total energies (n, k) in J there.

    NaN where a motion has ended or not begun.
    """
    start, end = min(s.t[0] for s in scenes), max(s.t[-1] for s in scenes)
    longest = max(len(scene.t) for scene in scenes)
    t = np.linspace(start, end, min(longest, _MOST))
    curves = [scene.energy for scene in scenes if scene.energy is not None]
    rows = [np.interp(t, c.t, c.values[:, -1], left=np.nan, right=np.nan) for c in curves]
    return t, np.stack(rows)


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

"""The viewer: a server with machines, their controls, and the loop that draws them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from typing import Any

from ..scenes import Scene
from .drawn import layers_of
from .live import FRAME, LiveMachine
from .machine import Machine
from .panel import JointPanel, LivePanel, as_html
from .playback import Playback
from .server import address, opened, started, stop
from .stage import Stage

# Sliders and texts follow a motion a few times in a second.
_SLOW = 6


class Viewer:
    """A running viewer; use it in a `with` statement, or close it.

    server: the `viser.ViserServer`, to which more can be added. address: where a browser finds it.
    playback and live: the motions, and the machine that is posed and simulated; None without.
    """

    def __init__(
        self, server: Any, scenes: Sequence[Scene] = (), machine: Machine | None = None
    ) -> None:
        self.server, self.address = server, address(server)
        self.live = None if machine is None else LiveMachine(machine)
        posed = None if self.live is None else self.live.scene
        self._stage = Stage(server, scenes, posed)
        self._panels: list[Any] = []
        self.playback: Playback | None = None
        self._furnish(scenes)
        self._ending = threading.Event()
        self._frames = 0
        self._thread = threading.Thread(target=self._draw, name="viewer", daemon=True)
        self._thread.start()

    def _furnish(self, scenes: Sequence[Scene]) -> None:
        gui, live = self.server.gui, self.live
        gui.configure_theme(show_logo=False, show_share_button=False)
        # Beside the picture: over it, it would hide the machine.
        gui.main_panel.dock_right()
        names = [scene.name for scene in scenes] or [live.machine.system.name if live else ""]
        gui.set_panel_label(", ".join(dict.fromkeys(names)))
        if remarks := [f"{s.name}: {remark}" for s in scenes for remark in s.remarks]:
            gui.add_html(as_html(remarks))
        tabs = gui.add_tab_group()
        if scenes:
            with tabs.add_tab("Motion"):
                self.playback = Playback(gui, self._stage, scenes)
        if live is not None:
            with tabs.add_tab("Joints"):
                self._joints = JointPanel(self.server, self._stage, live)
            self._panels.append(self._joints)
            if live.settings is not None:
                with tabs.add_tab("Live"):
                    self._panels.append(LivePanel(gui, self._stage, live))
        first = scenes[0] if live is None else live.scene
        layers = layers_of(first)
        with tabs.add_tab("Show"):
            boxes = {name: gui.add_checkbox(name, shown) for name, shown in layers.items()}
            for box in boxes.values():
                box.on_update(lambda _: self._choose({n: b.value for n, b in boxes.items()}))

    def _choose(self, shown: dict[str, bool]) -> None:
        self._stage.choose(shown, self.playback.rows if self.playback else [])

    def _draw(self) -> None:
        last = time.perf_counter()
        while not self._ending.wait(max(0.0, last + FRAME - time.perf_counter())):
            now = time.perf_counter()
            with self.server.atomic():
                self.tick(now - last)
            last = now

    def tick(self, seconds: float) -> None:
        """Lets seconds pass and draws what has changed."""
        self._frames += 1
        if self.playback is not None:
            self.playback.tick(seconds)
        if self.live is None:
            return
        changed = self.live.tick(seconds)
        if self._ending.is_set():  # while it was compiling
            return
        if changed and self._stage.posed is not None:
            self._stage.posed.show(self.live.scene, 0)
            self._stage.posed.show_pull(*self.live.pulled)
            if not self.live.running:
                self._stage.frame(self.live.scene)
        if (changed and not self.live.running) or self._frames % _SLOW == 0:
            for panel in self._panels:
                panel.follow()

    def wait(self) -> None:
        """Waits until the program is interrupted or the viewer closed."""
        with contextlib.suppress(KeyboardInterrupt):
            self._ending.wait()
        self.close()

    def close(self) -> None:
        """Ends the viewer and its server."""
        self._ending.set()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=10)
        stop(self.server)

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def show(
    scenes: Scene | Sequence[Scene] = (),
    machine: Machine | None = None,
    *,
    host: str = "localhost",
    port: int | None = None,
    browser: bool = True,
) -> Viewer:
    """Shows motions, and a machine that can be posed and simulated, in a browser.

    scenes: one or several, as `difflie.view.scene` makes them; several are told apart by
    colours. port: of the server; None takes the first free one from 8080 on. browser: whether one
    is opened; `Viewer.address` says where to look in any case. Raises ImportError without viser,
    and ValueError without anything to show and for a port that is in use.
    """
    scenes = [scenes] if isinstance(scenes, Scene) else list(scenes)
    if not scenes and machine is None:
        raise ValueError("there is nothing to show; give a scene, or a machine")
    viewer = Viewer(started(host, port), scenes, machine)
    if browser:
        opened(viewer.address)
    return viewer

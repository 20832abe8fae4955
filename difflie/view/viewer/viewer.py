"""The viewer: a server with machines, the controls of joints and live simulations, and its loop."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..scenes import Scene
from .drawn import Drawn, layers_of, quaternions
from .live import FRAME, LiveMachine
from .machine import Machine, Pull
from .playback import Playback
from .posing import Gizmo, Slider, gizmos, moved, sliders, unset
from .server import address, in_order, opened, started, stop
from .stage import Stage

# Of the coordinates that are shown.
_DIGITS = 4


class JointPanel:
    """Sliders and gizmos that pose a machine; they follow it where others move it.

    server: a `viser.ViserServer`; the sliders go to its present folder.
    """

    def __init__(self, server: Any, stage: Stage, live: LiveMachine) -> None:
        self._stage, self._live = stage, live
        system = live.machine.system
        self._sliders = [(s, self._slider(server.gui, s)) for s in sliders(system)]
        self._gizmos = [(g, self._gizmo(server, g)) for g in gizmos(system)]
        if names := unset(system):
            server.gui.add_html(as_html([f"Without a slider: {', '.join(names)}"]))
        if self._gizmos:
            show = server.gui.add_checkbox("gizmos", True)
            show.on_update(in_order(lambda _: self._show_gizmos(show.value)))
        reset = server.gui.add_button("Reset", color="gray")
        reset.on_click(in_order(lambda _: (stage.play(False), live.reset())))

    def _slider(self, gui: Any, slider: Slider) -> Any:
        value = round(float(self._live.q[slider.entry]), _DIGITS)
        digits = int(-np.floor(np.log10(max(slider.upper - slider.lower, 1e-9) / 1000)))
        # Within the limits, but for rounding; a state beyond them is shown as it is.
        low = min(float(np.ceil(slider.lower * 10.0**digits - 1e-6)) / 10.0**digits, value)
        high = max(float(np.floor(slider.upper * 10.0**digits + 1e-6)) / 10.0**digits, value)
        handle = gui.add_slider(
            f"{slider.name} [{slider.unit}]",
            min=low,
            max=high,
            step=10.0**-digits,
            initial_value=value,
        )

        def slid(event: Any) -> None:
            if event.client is not None:
                q = np.array(self._live.q)
                q[slider.entry] = handle.value
                self._pose(q)

        handle.on_update(in_order(slid))
        return handle

    def _gizmo(self, server: Any, gizmo: Gizmo) -> Any:
        pose = self._live.scene.poses[0, gizmo.body]
        handle = server.scene.add_transform_controls(
            # Below the machine, so that it is hidden with it while motions play.
            f"/machine/gizmos/{gizmo.body}",
            scale=0.35 * self._stage.size,
            disable_axes=gizmo.turns,
            disable_sliders=gizmo.turns,
            position=pose[:3, 3],
            wxyz=quaternions(pose[:3, :3]),
        )

        def dragged(event: Any) -> None:
            if event.phase == "update":
                live = self._live
                pose = posed(handle.position, handle.wxyz)
                self._pose(moved(live.machine.system, gizmo, live.q, live.scene.poses[0], pose))

        handle.on_update(in_order(dragged))
        return handle

    def _pose(self, q: NDArray) -> None:
        self._stage.play(False)
        self._live.pose(q)

    def _show_gizmos(self, visible: bool) -> None:
        for _, handle in self._gizmos:
            handle.visible = visible

    def follow(self) -> None:
        """Moves sliders and gizmos to the present state, as far as sliders reach."""
        live = self._live
        for slider, handle in self._sliders:
            value = round(float(live.q[slider.entry]), _DIGITS)
            handle.value = min(max(value, handle.min), handle.max)
        for gizmo, handle in self._gizmos:
            pose = live.scene.poses[0, gizmo.body]
            handle.position, handle.wxyz = pose[:3, 3], quaternions(pose[:3, :3])


class LivePanel:
    """Start, step, gravity, method and time step of a live simulation, and forces by dragging."""

    def __init__(self, gui: Any, stage: Stage, live: LiveMachine) -> None:
        self._stage, self._live = stage, live
        simulator, settings = live.machine.simulator, live.settings
        assert simulator is not None
        assert settings is not None
        self._start = gui.add_button("Start")
        step, reset = (gui.add_button(name, color="gray") for name in ("Step", "Reset"))
        method = gui.add_dropdown("method", simulator.methods, initial_value=settings.method)
        dt = gui.add_number("time step [s]", settings.dt, min=1e-6, max=0.1, step=1e-6)
        gravity = gui.add_vector3("gravity [m/s²]", settings.gravity, step=0.01)
        self._state = gui.add_html("")
        self._start.on_click(in_order(lambda _: self._do(lambda: live.run(not live.running))))
        step.on_click(in_order(lambda _: self._do(live.step)))
        reset.on_click(in_order(lambda _: self._do(live.reset)))
        method.on_update(in_order(lambda _: live.change(method=method.value)))
        dt.on_update(in_order(lambda _: live.change(dt=float(dt.value))))
        gravity.on_update(in_order(lambda _: live.change(gravity=tuple(map(float, gravity.value)))))
        if stage.posed is not None:
            self._listen(stage.posed)

    def _do(self, action: Any) -> None:
        self._stage.play(False)
        action()

    def _listen(self, drawn: Drawn) -> None:
        """Drags bodies by their shapes."""
        for body, mesh in drawn.meshes:
            k = self._live.scene.bodies.index(body)

            def dragged(event: Any, body: str = body, k: int = k) -> None:
                if event.phase == "end":
                    self._live.drag(None)
                    return
                pull = self._live.settings and self._live.settings.pull
                if event.phase == "start" or pull is None:
                    pose = self._live.scene.poses[0, k]
                    place = pose[:3, :3].T @ (np.array(event.start_position) - pose[:3, 3])
                    pull = Pull(body, tuple(place.tolist()), event.end_position)
                self._live.drag(pull._replace(target=event.end_position))

            mesh.on_drag("left", modifier="shift")(in_order(dragged))

    def follow(self) -> None:
        """Shows the simulated time, how fast it passes, and what went wrong."""
        live = self._live
        name = "Pause" if live.running else "Start"
        if self._start.label != name:
            self._start.label = name
        pace = live.pace if live.running else None
        text = f"t = {live.t:.2f} s" + ("" if pace is None else f", {pace:.2g} x real time")
        hint = live.message or "Drag a body with Shift held to pull at it."
        content = as_html([text, hint])
        if self._state.content != content:
            self._state.content = content


def as_html(lines: Sequence[str]) -> str:
    """Lines of text, whatever characters are in them, as HTML."""
    text = "".join(f"<div>{escape(line)}</div>" for line in lines)
    return f'<div style="margin:0.3em 1em;font-size:small">{text}</div>'


def posed(position: NDArray, wxyz: NDArray) -> NDArray:
    """The pose (4, 4) at a position (3,) in m with the attitude of a unit quaternion (4,)."""
    from viser import transforms

    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = transforms.SO3(np.asarray(wxyz)).as_matrix(), position
    return pose


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

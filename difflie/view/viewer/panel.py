"""The controls of a machine: its joints, and its live simulation."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .drawn import Drawn, quaternions
from .live import LiveMachine
from .machine import Pull
from .posing import Gizmo, Slider, gizmos, moved, sliders, unset
from .server import in_order
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

"""A machine that moves in the browser: posed by sliders and gizmos, and simulated live."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..scenes import Scene
from .machine import Machine, Pull, Settings
from .posing import closed_at

FRAME = 1 / 30
"""Seconds between two pictures."""

# A machine that is too slow for real time lags behind, instead of ever more.
_MOST_DEBT = 3 * FRAME


class LiveMachine:
    """The present state of a machine, and what was asked of it since the last `tick`.

    Others may call its methods from any thread; they only note what is wanted. `tick` does it.
    t in s, q (nq,), v (nv,): the state; scene: what is drawn of it; message: what to tell.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.t, self.q, self.v = 0.0, np.array(machine.q), np.array(machine.v)
        self.scene: Scene = machine.scene(self.t, self.q, self.v)
        self.settings = None if machine.simulator is None else machine.simulator.start
        self.running, self.message = False, ""
        self._lock = threading.Lock()
        self._asked: tuple[str, Any] | None = None
        self._debt = 0.0
        self._compiled: set[tuple] = set()
        self._pace: deque[tuple[float, float]] = deque(maxlen=30)

    def pose(self, q: NDArray) -> None:
        """Asks for a configuration (nq,), at rest; the simulation pauses."""
        with self._lock:
            self._asked, self.running = ("pose", np.array(q)), False

    def reset(self) -> None:
        """Asks for the state of the beginning; the simulation pauses."""
        with self._lock:
            self._asked, self.running = ("reset", None), False

    def step(self) -> None:
        """Asks for one time step; the simulation pauses."""
        with self._lock:
            self._asked, self.running = ("step", None), False

    def run(self, running: bool) -> None:
        """Starts or pauses the simulation."""
        with self._lock:
            self.running, self._debt = running, 0.0
            self._pace.clear()

    def change(self, **settings: Any) -> None:
        """Changes `Settings` by name."""
        with self._lock:
            if self.settings is not None:
                self.settings = replace(self.settings, **settings)

    def drag(self, pull: Pull | None) -> None:
        """Pulls at a body, or lets go."""
        self.change(pull=pull)

    @property
    def pulled(self) -> tuple[NDArray | None, NDArray | None]:
        """The point (3,) that is dragged and where to, in m in the world; None without."""
        pull = None if self.settings is None else self.settings.pull
        if pull is None:
            return None, None
        pose = self.scene.poses[0, self.scene.bodies.index(pull.body)]
        return pose[:3, :3] @ np.array(pull.point) + pose[:3, 3], np.array(pull.target)

    @property
    def pace(self) -> float | None:
        """Simulated seconds in a second of late; None before there are some."""
        if len(self._pace) < 2:
            return None
        (before, t0), (now, t1) = self._pace[0], self._pace[-1]
        return (t1 - t0) / max(now - before, 1e-9)

    def tick(self, seconds: float) -> bool:
        """Does what was asked for, or lets seconds pass; returns whether the state is another."""
        with self._lock:
            asked, self._asked = self._asked, None
            running, settings = self.running, self.settings
        if asked is not None:
            return self._answer(*asked, settings)
        if not running or settings is None:
            return False
        steps = max(1, round(FRAME / settings.dt))
        if self._tells_of_compiling(steps, settings):
            return True
        batch = steps * settings.dt
        self._debt = min(self._debt + seconds, max(_MOST_DEBT, batch))
        moved = False
        # Two where pictures are late, so that time keeps up.
        for _ in range(min(2, int(self._debt / batch))):
            self._debt -= batch
            moved = self._advance(steps, settings) or moved
            if not self.running:
                break
        if moved:
            self._pace.append((time.perf_counter(), self.t))
        return moved

    def _answer(self, kind: str, q: Any, settings: Settings | None) -> bool:
        self.message = ""
        if kind == "step" and settings is not None:
            if not self._tells_of_compiling(1, settings):
                return self._advance(1, settings)
            with self._lock:
                self._asked = self._asked or ("step", None)
            return True
        if kind == "reset":
            self.t, self.q, self.v = 0.0, np.array(self.machine.q), np.array(self.machine.v)
        elif kind == "pose":
            try:
                self.q, self.v = closed_at(self.machine.system, q, np.zeros_like(self.v))
            except ValueError as error:
                # The loops do not reach there: the machine stays, and its sliders go back.
                self.message = str(error)
        self._draw()
        return True

    def _tells_of_compiling(self, steps: int, settings: Settings) -> bool:
        """Whether the next steps must be compiled, which is told before, as it takes a while."""
        program = settings.method, steps, settings.pull and settings.pull.body
        if program in self._compiled:
            return False
        self._compiled.add(program)
        self.message = f"compiling {settings.method}"
        return True

    def _advance(self, steps: int, settings: Settings) -> bool:
        simulator = self.machine.simulator
        if simulator is None:
            return False
        try:
            q, v, fault = simulator.advance(self.t, self.q, self.v, steps, settings)
        except (ValueError, TypeError) as error:
            self.running, self.message = False, str(error)
            return False
        if fault:
            self.running, self.message = False, fault
            return False
        self.t, self.q, self.v = self.t + steps * settings.dt, q, v
        self.message = ""
        self._draw()
        return True

    def _draw(self) -> None:
        self.scene = self.machine.scene(self.t, self.q, self.v)

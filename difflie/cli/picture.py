"""The picture of a machine in motion, for the pages of commands."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..io.appearance import read_appearance
from ..io.loading import Described
from ..system import System
from ..view.drawing import draw
from ..view.flat_sections import Section
from ..view.scenes import scene

_MOMENTS = 4


def pictured(config: Described, system: System, run: Any) -> Section:
    """The machine of a configuration at some moments of a run (t (m,), q (m, nq), v (m, nv))."""
    robot = config.system.robot((config.path.parent,))
    view = scene(system, run, read_appearance(robot, system))
    moments = np.unique(np.linspace(0, len(view.t) - 1, _MOMENTS).round().astype(int)).tolist()
    times = ", ".join(f"{view.t[k]:.4g}" for k in moments)
    said = [f"At t = {times} s, the last of them solid."] if len(moments) > 1 else []
    picture = draw(view, None, moments)
    return Section("Machine", text=said, picture=picture, file="machine.png", words=False)

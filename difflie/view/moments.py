"""The picture of a machine at some moments of its motion, as a section of a report."""

from __future__ import annotations

from functools import partial

import numpy as np

from .drawing import draw
from .report import Figure, Section, notes
from .scenes import Scene

_MOMENTS = 4


def machine_section(scene: Scene, look: str = "") -> Section:
    """The machine of a scene, pale at some moments and solid at the last; look: as of `Section`."""
    moments = np.unique(np.linspace(0, len(scene.t) - 1, _MOMENTS).round().astype(int)).tolist()
    times = ", ".join(f"{scene.t[k]:.4g}" for k in moments)
    said = [f"At t = {times} s, the last of them solid."] if len(moments) > 1 else []
    picture = Figure(partial(draw, scene, None, moments), "machine.png", words=False)
    return Section("Machine", [*notes(*said), picture], look, brief=False)

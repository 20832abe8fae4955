"""The pictures of `difflie demo`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from numpy.typing import NDArray

from ..io import read_appearance
from ..simulate import Trajectory
from ..system import System
from ..view.animate import write_picture
from ..view.drawing import DrawOptions
from ..view.figures import draw_drift, draw_lines, figure, label, save
from ..view.scenes import scene

_JOINTS = [1, 3, 5]


def draw_flight(out: Path, system: System, run: Trajectory, robot: Path) -> None:
    """flight.png: some moments of the arm, and the way of its payload."""
    view = scene(system, run, read_appearance(robot, system))
    write_picture(view, out / "flight.png", shown=DrawOptions(traces=["payload"]))


def draw_drifts(
    out: Path, t: NDArray, energy: Mapping[str, NDArray], angular: Mapping[str, NDArray]
) -> None:
    """drift.png: relative drifts (m,) at the times t (m,) in s, by the name of the method."""
    canvas, axes = figure(1, 2, (10.0, 4.0))
    draw_drift(axes[0, 0], t, energy)
    label(axes[0, 0], "t [s]", "relative energy drift", "Energy", legend=False)
    draw_drift(axes[0, 1], t, angular)
    label(axes[0, 1], "t [s]", "relative momentum drift", "Angular momentum")
    save(canvas, out / "drift.png")


def draw_descent(
    out: Path,
    t: NDArray,
    measured: NDArray,
    found: NDArray,
    estimates: NDArray,
    true: Sequence[float],
) -> None:
    """payload.png: angles (m, 7) in rad at t (m,) in s; estimates (n, 2) of true (2,) by iteration.

    Both are the mass in kg and the height in m.
    """
    canvas, axes = figure(1, 3, (13.0, 4.0))
    left, *others = axes[0]
    draw_lines(left, t, found[:, _JOINTS], [f"joint {j + 1}" for j in _JOINTS])
    left.plot(t[::4], measured[::4, _JOINTS], ".", color="#222222", markersize=2)
    label(left, "t [s]", "q [rad]", "Measured (dots) and found (lines)")
    for a, values, one, what in zip(
        others, estimates.T, true, ("mass [kg]", "height [m]"), strict=True
    ):
        a.plot(values, label="estimate")
        a.axhline(one, color="#222222", linewidth=0.8, linestyle=":", label="truth")
        label(a, "iteration", what, "Gradient descent")
    save(canvas, out / "payload.png")

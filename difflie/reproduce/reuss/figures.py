"""The figures of Reuss 2002: both perspectives, the chain, and its motions in both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...view.drawing import DrawOptions, Picture
from ...view.figures import figure, label
from ...view.scenes import Arrows, Scene, scene
from .motion import FOOT, FRICTION, LENGTH, TIP, Compared, machine
from .perspective import architects_perspective, floor, look, painters_perspective, polyline, ray
from .reference import Reference

Array = np.ndarray

_MOMENTS = 5


def draw_all(motions: Mapping[str, Compared]) -> dict[str, Figure]:
    """All figures by file name; motions: by name, those that there are."""
    drawn = {
        "figure_1_architect": architects_perspective(),
        "figure_1_painter": painters_perspective(),
        "figure_2": chain_of_bodies(),
    }
    for name, motion in motions.items():
        drawn |= {f"{name}_motion": in_both(motion), f"{name}_numbers": _NUMBERS[name](motion)}
    return drawn


def chain_of_bodies() -> Figure:
    """Figure 2: the chain, bent, with the frames of its bodies."""
    system = machine().system("A free chain of bodies")
    q = np.array([0.96, 0.15, -0.2, 0.1, 0, 0, 0.25, 0.5, -0.7, 0.6, 0.12])
    q[:4] /= np.linalg.norm(q[:4])
    run = SimpleNamespace(t=np.zeros(1), q=q[None], v=np.zeros((1, 10)))
    still = scene(system, run)
    picture = Picture(still, None, DrawOptions(frames=True), [0])
    canvas, axes = picture.blank("Figure 2: a free chain of 5 bodies, and their frames")
    picture.paint(axes, [0])
    wide = float(picture.camera.half_width / picture.camera.half_height)
    for name, pose in zip(still.bodies, still.poses[0], strict=True):
        x, y = np.asarray(picture.camera.project(pose[:3, 3])) * (wide, 1)
        axes.annotate(name, (x, y), (14, 4), textcoords="offset points", fontsize="medium")
    return canvas


def in_both(motion: Compared) -> Figure:
    """A motion by poses in the architect's perspective, and its chain in the painter's."""
    run = SimpleNamespace(t=motion.t, q=motion.q, v=motion.v)
    seen = _with_forces(motion, scene(motion.system, run, name=_NAMES[motion.name]))
    moments = np.linspace(0, len(motion.t) - 1, _MOMENTS).astype(int).tolist()
    # A chain in free fall has no floor that it could be above.
    seen = replace(seen, up=np.array([0.0, 0, 1]))
    last = seen.bodies[-1]
    picture = Picture(seen, None, DrawOptions(traces=(last,)), moments)
    canvas, axes = figure(1, 2, (14.0, 4.6))
    picture.paint(axes[0, 0], moments)
    times = ", ".join(f"{motion.t[k]:.2f}" for k in moments)
    said = f"{seen.name}, t = {times} s: the architect's perspective"
    axes[0, 0].set_title(said, loc="left", fontsize="medium")
    _paint(axes[0, 1], picture, seen, moments)
    return canvas


def _paint(axes: Axes, picture: Picture, seen: Scene, moments: list[int]) -> None:
    """The chain as lines, with the horizon and, of the last pose, the way to vanishing points."""
    camera = picture.camera
    look(axes, camera)
    floor(axes, camera, picture.size, picture.points)
    for k in moments:
        here = k == moments[-1]
        bodies = [_line(j, pose) for j, pose in enumerate(seen.poses[k])]
        for start, end in bodies:
            polyline(axes, camera, np.array([start, end]), 1.0 if here else 0.35)
            if here:
                ray(axes, camera, start, end - start)
    axes.set_title("The painter's: lines to their vanishing points", loc="left", fontsize="medium")


def _line(j: int, pose: Array) -> tuple[Array, Array]:
    """The ends (3,) of a body: along z of the first and the last one, along x of others."""
    along = TIP if j in (0, machine().n) else np.array([LENGTH, 0, 0])
    return pose[:3, 3], pose[:3, 3] + pose[:3, :3] @ along


def _with_forces(motion: Compared, seen: Scene) -> Scene:
    """The scene with the forces on the held point or the foot."""
    if motion.name == "free":
        return seen
    body, point = (0, FOOT) if motion.name == "sliding" else (motion.machine.n, TIP)
    poses = seen.poses[:, body]
    at = poses[:, :3, 3] + poses[:, :3, :3] @ point
    return replace(seen, contacts=(Arrows("held", at[:, None], motion.forces[:, None]),))


def _free_numbers(motion: Compared) -> Figure:
    canvas, axes = figure(2, 1, (8.0, 5.6))
    q = motion.q[:, 7:]
    for k in range(motion.machine.n):
        unit = "rad" if motion.machine.screws[k] @ np.array([0, 0, 1.0, 0, 0, 0]) else "m"
        axes[0, 0].plot(motion.t, q[:, k], label=f"joint {k + 1} [{unit}]", linewidth=1.3)
    label(axes[0, 0], "t [s]", "joints [rad, m]", "Joints of the free chain")
    away = np.abs(q - motion.reference[:, 7 : 7 + motion.machine.n])
    for k, column in enumerate(away.T):
        a = axes[1, 0]
        a.semilogy(motion.t, np.maximum(column, 1e-17), label=f"joint {k + 1}", linewidth=1.3)
    label(axes[1, 0], "t [s]", "difference [rad, m]", "Difference to the motion by (29) and (30)")
    return canvas


def _held_numbers(motion: Compared) -> Figure:
    canvas, axes = figure(1, 1, (8.0, 4.2))
    for name, column in zip("xyz", motion.forces.T, strict=True):
        axes[0, 0].plot(motion.t, column, label=f"along {name}", linewidth=1.3)
    label(axes[0, 0], "t [s]", "multipliers [N]", "The force (32) that holds the tip")
    return canvas


def _sliding_numbers(motion: Compared) -> Figure:
    model = Reference(motion.machine, 0, FOOT, FRICTION)
    t = np.concatenate([s.t for s in motion.stretches])
    forces = np.concatenate([s.force for s in motion.stretches])
    terms = [model.terms(y) for s in motion.stretches for y in s.y]
    slips = np.array([x.held.Psi[:2] @ x.w for x in terms])
    canvas, axes = figure(3, 1, (8.5, 7.6))
    a, b, c = axes[:, 0]
    a.plot(t, forces[:, 2], label="normal force", linewidth=1.3)
    a.plot(t, np.hypot(*forces[:, :2].T), label="friction", linewidth=1.3)
    a.plot(t, FRICTION * forces[:, 2], "--", label="mu normal force", linewidth=1.3)
    label(a, "t [s]", "forces [N]", "Multipliers (32) of the foot, with Coulomb friction")
    for name, column in zip("xy", forces.T, strict=False):
        b.plot(t, column, label=f"friction along {name}", linewidth=1.3)
    label(b, "t [s]", "friction [N]")
    for name, column in zip("xy", slips.T, strict=True):
        c.plot(t, column, label=f"slip along {name}", linewidth=1.3)
    label(c, "t [s]", "slip [m/s]", "The foot sticks where grey")
    for s in motion.stretches:
        if s.mode == "sticks":
            for each in (a, b, c):
                each.axvspan(s.t[0], s.t[-1], color="#eeeeee", zorder=0)
    return canvas


_NAMES = {"free": "Free in space", "held": "Held at its tip", "sliding": "On a floor"}
_NUMBERS: dict[str, Any] = {
    "free": _free_numbers,
    "held": _held_numbers,
    "sliding": _sliding_numbers,
}

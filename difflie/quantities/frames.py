"""Frames on bodies, where quantities are measured."""

from __future__ import annotations

import jax
from jaxtyping import Array, Float

from ..dynamics.kinematics import body_world_poses
from ..spatial import Transform
from ..system.frame import Frame
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.validation import ModelError, format_value, nearest


def placed(system: System, q: Float[Array, " nq"], *frames: Frame) -> list[Transform]:
    """The poses, components (), of the frames in the world at the configuration q (nq,), in m.

    Raises `ModelError` for a frame on an unknown body, with the nearest name.
    """
    check_frames(system, *frames)
    poses = body_world_poses(Tree.of(system), q)

    def place(frame: Frame) -> Transform:
        inner = jax.tree.map(lambda a: a.astype(q.dtype), frame).pose
        if frame.body is None:
            return inner
        b = system.body_names.index(frame.body)
        return jax.tree.map(lambda a: a[b], poses) @ inner

    return [place(frame) for frame in frames]


def check_frames(system: System, *frames: Frame) -> None:
    """Raises `ModelError` for a frame on an unknown body, with the nearest name."""
    for frame in frames:
        if frame.body is not None and frame.body not in system.body_names:
            near = nearest(str(frame.body), system.body_names)
            raise ModelError(
                f"{system.name}: a frame to measure is on {format_value(frame.body)}, and no body "
                f"has this name{near}"
            )

"""Frames by their names: on which body they are, and where on it."""

from __future__ import annotations

from typing import Any, TypeVar

import equinox as eqx
import jax
import numpy as np

from ..spatial import Transform
from .frame import Frame, FrameLike, as_frame, composed
from .system import System

Module = TypeVar("Module", bound=eqx.Module)


def placement(system: System, frame: FrameLike, dtype: np.dtype) -> tuple[str | None, Transform]:
    """The body of a frame, None for the world, and its pose in that body, components ().

    Raises `ModelError` for an unknown body, with the nearest name.
    """
    given = as_frame(frame)
    inner = _in_precision(given, dtype).pose
    if given.body is None or given.body in system.body_names:
        return given.body, inner
    base = system.frame(given.body)
    return base.body, _in_precision(base, dtype).pose @ inner


def _in_precision(frame: Frame, dtype: np.dtype) -> Frame:
    return jax.tree.map(lambda a: a.astype(dtype), frame)


def on_bodies(system: System, part: Module) -> Module:
    """A part whose fields are frames, with those on named frames of the system put on bodies.

    Raises `ModelError` for a frame on an unknown body, with the nearest name.
    """

    def put(value: Any) -> Any:
        if isinstance(value, Frame) and value.body not in (None, *system.body_names):
            return composed(system.frame(value.body), value)
        return value

    return jax.tree.map(put, part, is_leaf=lambda x: isinstance(x, Frame))

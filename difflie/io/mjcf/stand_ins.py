"""Geoms that stand for those whose shape, in a file, is missing."""

from __future__ import annotations

from typing import Any

# Their radius, in m, and their colour.
_SIZE = 1e-3
_UNSEEN = (0.0, 0.0, 0.0, 0.0)


def stand_in(mujoco: Any, geom: Any) -> None:
    """Makes a geom of a specification a small, transparent sphere that touches nothing."""
    geom.type, geom.meshname, geom.hfieldname = mujoco.mjtGeom.mjGEOM_SPHERE, "", ""
    geom.size, geom.rgba, geom.material = (_SIZE, 0.0, 0.0), _UNSEEN, ""
    geom.mass, geom.contype, geom.conaffinity = 0.0, 0, 0


def stands_in(model: Any, geom: int) -> bool:
    """Whether a geom of a model stands for one whose shape is missing."""
    return tuple(model.geom_rgba[geom]) == _UNSEEN and model.geom_size[geom][0] == _SIZE

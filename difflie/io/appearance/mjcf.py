"""The geoms of an MJCF file, as MuJoCo compiles them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...system import System
from ..mjcf.names import body_names
from ..mjcf.reader import compiled
from ..mjcf.shapes import geom_names
from ..mjcf.stand_ins import stands_in
from .shape import Appearance, Shape, box, capsule, cylinder, ellipsoid


def mjcf_appearance(path: Path, system: System) -> tuple[Appearance, list[str]]:
    """The shapes of the bodies of a file by name, None for the world; and what is not drawn.

    Where geoms of the groups 0 to 2 are there, those of higher groups, which MuJoCo's own viewer
    hides, are left out, body by body.
    """
    mujoco, model, missing = compiled(path)
    names = body_names(model)
    geom_name = geom_names(model, names)
    appearance: Appearance = {}
    faults = [missing] if missing else []
    geoms = mujoco.mjtGeom
    for b in range(model.nbody):
        own = [g for g in range(model.ngeom) if model.geom_bodyid[g] == b]
        seen = [g for g in own if model.geom_group[g] <= 2]
        shapes = []
        lost = [g for g in own if stands_in(model, g)]
        for g in (g for g in seen or own if g not in lost):
            surface = _surface(model, g, geoms)
            kind = geoms(model.geom_type[g]).name.removeprefix("mjGEOM_").lower()
            if surface is None:
                # Grounds are drawn as grids, height fields as shapes of the system.
                if kind != "plane" and not (kind == "hfield" and geom_name[g] in system.shapes):
                    faults.append(f"geoms of the kind {kind}")
                continue
            shape = Shape(*surface, _colour(model, g), kind)
            shapes.append(shape.placed(_pose(mujoco, model.geom_pos[g], model.geom_quat[g])))
        if shapes or lost:
            body = names[b - 1] if b and names[b - 1] in system.body_names else None
            appearance[body] = (*appearance.get(body, ()), *shapes)
    return appearance, faults


def _surface(model: Any, g: int, geoms: Any) -> tuple[NDArray, NDArray] | None:
    size, kind = model.geom_size[g], model.geom_type[g]
    if kind == geoms.mjGEOM_BOX:
        return box(2 * size)
    if kind == geoms.mjGEOM_SPHERE:
        return ellipsoid(np.full(3, size[0]))
    if kind == geoms.mjGEOM_ELLIPSOID:
        return ellipsoid(size)
    if kind == geoms.mjGEOM_CYLINDER:
        return cylinder(size[0], 2 * size[1])
    if kind == geoms.mjGEOM_CAPSULE:
        return capsule(size[0], 2 * size[1])
    if kind == geoms.mjGEOM_MESH:
        m = model.geom_dataid[g]
        vertex, face = model.mesh_vertadr[m], model.mesh_faceadr[m]
        return (
            np.array(model.mesh_vert[vertex : vertex + model.mesh_vertnum[m]], float),
            np.array(model.mesh_face[face : face + model.mesh_facenum[m]], int),
        )
    return None


def _colour(model: Any, g: int) -> tuple[float, float, float, float]:
    material = model.geom_matid[g]
    own = np.array(model.geom_rgba[g], float)
    # MuJoCo's default, grey, stands for the material's colour.
    if material >= 0 and np.allclose(own, (0.5, 0.5, 0.5, 1.0)):
        own = np.array(model.mat_rgba[material], float)
    r, g_, b, a = own.tolist()
    return r, g_, b, a


def _pose(mujoco: Any, position: NDArray, quaternion: NDArray) -> NDArray:
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, quaternion)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation.reshape(3, 3), position
    return pose

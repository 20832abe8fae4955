"""Files that an MJCF file names and that are not there: meshes, height fields and textures."""

from __future__ import annotations

import ntpath
from pathlib import Path
from typing import Any

from ...system.validation import ModelError, shown

_MOST = 5


def without_missing(mujoco: Any, path: Path) -> tuple[Any, str]:
    """MuJoCo's model of a file without the files that are missing, and a remark that names them.

    Raises `ModelError` for a body whose inertia comes from a mesh that is missing.
    """
    spec = mujoco.MjSpec.from_file(str(path))
    folder, compiler = path.absolute().parent, spec.compiler
    shapes = {
        a.name: a for a in (*spec.meshes, *spec.hfields) if _lost(a, folder, compiler.meshdir)
    }
    pictures = {t.name: t for t in spec.textures if _lost(t, folder, compiler.texturedir)}
    for geom in list(spec.geoms):
        name = geom.meshname or geom.hfieldname
        if name in shapes:
            _check_inertia(mujoco, spec, geom, shapes[name], path)
            spec.delete(geom)
    for material in spec.materials:
        material.textures = ["" if name in pictures else name for name in material.textures]
    lost = [*shapes.values(), *pictures.values()]
    files = [_name(each.file) for each in lost]
    for each in lost:
        spec.delete(each)
    more = f" and {len(files) - _MOST} others" if len(files) > _MOST else ""
    return spec.compile(), f"files that are missing, and skipped: {', '.join(files[:_MOST])}{more}"


def _lost(asset: Any, folder: Path, within: str) -> bool:
    """Whether the file of a mesh, height field or texture is not there."""
    if not asset.file:
        return False
    places = Path(asset.file), Path(within) / _name(asset.file), Path(within) / asset.file
    return not any((folder / place).is_file() for place in places)


def _name(file: str) -> str:
    return ntpath.basename(file)


def _check_inertia(mujoco: Any, spec: Any, geom: Any, mesh: Any, path: Path) -> None:
    body, compiler = geom.parent, spec.compiler
    low, high = compiler.inertiagrouprange
    counts = low <= geom.group <= high and geom.mass != 0 and geom.density != 0
    auto = compiler.inertiafromgeom == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_AUTO
    given = compiler.inertiafromgeom == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
    if body.name == "world" or given or (auto and body.explicitinertial) or not counts:
        return
    raise ModelError(
        f"{path}: body {shown(body.name)} takes its inertia from {_name(mesh.file)}, which is "
        "missing; put the file there, or give the body an <inertial>"
    )

"""Files that an MJCF file names and that are not there: meshes, skins, height fields, textures."""

from __future__ import annotations

import ntpath
from pathlib import Path
from typing import Any

from ...system.validation import ModelError, format_value

_MOST = 5
# The radius, in m, and the colour of the geoms that stand for those whose shape is missing.
_SIZE = 1e-3
_UNSEEN = (0.0, 0.0, 0.0, 0.0)


def without_missing(mujoco: Any, path: Path) -> tuple[Any, str]:
    """MuJoCo's model of a file without the files that are missing, and a remark that names them.

    A geom whose shape is missing becomes a small, transparent sphere without mass that touches
    nothing, so that sensors, contact pairs and tendons still find it. Raises `ModelError` for a
    body whose inertia comes from a mesh that is missing.
    """
    spec = mujoco.MjSpec.from_file(str(path))
    folder, compiler = path.absolute().parent, spec.compiler
    shapes = {
        a.name: a for a in (*spec.meshes, *spec.hfields) if _lost(a, folder, compiler.meshdir)
    }
    skins = [skin for skin in spec.skins if _lost(skin, folder, compiler.meshdir)]
    pictures = {t.name: t for t in spec.textures if _gone(t, folder, compiler.texturedir)}
    for geom in list(spec.geoms):
        name = geom.meshname or geom.hfieldname
        if name in shapes:
            _check_inertia(mujoco, spec, geom, shapes[name], path)
            _stand_in(mujoco, geom)
    for material in spec.materials:
        material.textures = ["" if name in pictures else name for name in material.textures]
    files = [_name(each.file) for each in (*shapes.values(), *skins)]
    for texture in pictures.values():
        files += map(_name, _gone(texture, folder, compiler.texturedir))
    for each in (*shapes.values(), *skins, *pictures.values()):
        spec.delete(each)
    files = list(dict.fromkeys(files))
    more = f" and {len(files) - _MOST} more" if len(files) > _MOST else ""
    return spec.compile(), f"files that are missing, and skipped: {', '.join(files[:_MOST])}{more}"


def stands_in(model: Any, geom: int) -> bool:
    """Whether a geom of a model stands for one whose shape is missing."""
    return tuple(model.geom_rgba[geom]) == _UNSEEN and model.geom_size[geom][0] == _SIZE


def _stand_in(mujoco: Any, geom: Any) -> None:
    geom.type, geom.meshname, geom.hfieldname = mujoco.mjtGeom.mjGEOM_SPHERE, "", ""
    geom.size, geom.rgba, geom.material = (_SIZE, 0.0, 0.0), _UNSEEN, ""
    geom.mass, geom.contype, geom.conaffinity = 0.0, 0, 0


def _gone(texture: Any, folder: Path, within: str) -> list[str]:
    """The files of a texture, of a cube those of its sides, that are not there."""
    files = [texture.file, *texture.cubefiles]
    return [file for file in files if file and not _is_there(file, folder, within)]


def _lost(asset: Any, folder: Path, within: str) -> bool:
    """Whether the file of a mesh, height field or skin is not there."""
    return bool(asset.file) and not _is_there(asset.file, folder, within)


def _is_there(file: str, folder: Path, within: str) -> bool:
    places = Path(file), Path(within) / _name(file), Path(within) / file
    return any((folder / place).is_file() for place in places)


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
        f"{path}: body {format_value(body.name)} takes its inertia from {_name(mesh.file)}, which "
        "is missing; put the file there, or give the body an <inertial>"
    )

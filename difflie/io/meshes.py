"""Files of meshes, read by trimesh: STL, OBJ, DAE, PLY, GLB."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..system.installation import extra
from ..system.validation import ModelError

# Larger files are not read: the picture would not be better, and the browser slow.
LARGEST_FILE = 64 * 2**20
MOST_FACES = 500_000
# How archives begin, which trimesh unpacks to whatever size they have: zip, gzip, bzip2, xz.
_ARCHIVES = b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ"


def read_mesh(
    path: Path, scale: NDArray, needed: str = "viewer"
) -> list[tuple[NDArray, NDArray, Any]]:
    """The vertices (n, 3) in m, times scale (3,), faces (m, 3) and colour of each part of a file.

    A colour is (4,) from 0 to 1, None where the file gives none. needed: the extra that reads it,
    for messages. Raises ImportError without trimesh; `ModelError` for a file that is missing, too
    large, or no mesh.
    """
    try:
        trimesh = importlib.import_module("trimesh")
    except ImportError:
        raise ImportError(
            f"meshes are read by trimesh, which is not installed; {extra(needed)}"
        ) from None
    if not path.is_file():
        raise ModelError(f"{path}: the mesh is missing; put the file there")
    size = path.stat().st_size
    if size > LARGEST_FILE:
        raise ModelError(
            f"{path}: the mesh has {size / 2**20:.0f} MiB, at most {LARGEST_FILE // 2**20} are "
            "read; simplify it"
        )
    with path.open("rb") as file:
        if file.read(8).startswith(_ARCHIVES):
            raise ModelError(f"{path}: this is an archive; unpack it, and name the mesh in it")
    try:
        scene = trimesh.load_scene(path)
        parts = [part for part in scene.dump() if len(getattr(part, "faces", ()))]
    except ImportError as error:
        raise ImportError(
            f"files {path.suffix} need {error.name}, which is not installed; {extra(needed)}"
        ) from None
    except Exception as error:  # trimesh's readers raise whatever their parsers raise
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise ModelError(f"{path}: it cannot be read as a mesh: {reason}") from None
    if not parts:
        raise ModelError(f"{path}: it has no triangles; export it as a surface of triangles")
    faces = sum(len(part.faces) for part in parts)
    if faces > MOST_FACES:
        raise ModelError(
            f"{path}: the mesh has {faces} triangles, at most {MOST_FACES} are read; simplify it"
        )
    # Of these formats only COLLADA states a unit; the lengths of the others are in m.
    unit = trimesh.units.unit_conversion(parts[0].units or "m", "m")
    read = []
    for part in parts:
        vertices = np.asarray(part.vertices, float) * (unit * scale)
        if not np.isfinite(vertices).all():
            raise ModelError(f"{path}: a vertex is not finite; export the mesh again")
        corners = np.asarray(part.faces, int)
        # A mirror turns the triangles inside out.
        corners = corners if np.prod(scale) > 0 else corners[:, ::-1]
        read.append((vertices, corners, _mesh_colour(part)))
    return read


def _mesh_colour(part: Any) -> tuple[float, float, float, float] | None:
    visual = part.visual
    if not getattr(visual, "defined", False):
        return None
    material = getattr(visual, "material", None)
    colour = np.asarray(material.main_color if material is not None else visual.main_color)
    r, g, b, a = (float(c) / 255 for c in colour)
    return r, g, b, a

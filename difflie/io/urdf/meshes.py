"""Mesh files that a URDF file names. Motions do not depend on them, so that they may be missing."""

from __future__ import annotations

from pathlib import Path

from ..files import present
from .element import Element

# More names are only counted.
_MOST = 8


def missing_meshes(robot: Element, folder: Path) -> str:
    """A remark with the names of the meshes that are not there, "" if there are none.

    A path is relative to the folder of the file. package://NAME/PATH is sought as NAME/PATH in this
    folder and in those above it, as robots' descriptions are laid out.
    """
    meshes = (e.attributes.get("filename", "") for e in robot.walk() if e.tag == "mesh")
    at = folder.absolute()
    names = [Path(m).name for m in dict.fromkeys(meshes) if m and not present(mesh_file(m, at))]
    if not names:
        return ""
    others = len(names) - _MOST
    more = f" and {others} more" if others > 0 else ""
    return f"meshes that are missing, and skipped: {', '.join(names[:_MOST])}{more}"


def mesh_file(mesh: str, folder: Path) -> Path:
    """The path of a mesh, which need not be there; an absolute path stays as it is."""
    scheme, _, place = mesh.rpartition("://")
    if scheme in ("", "file"):
        return folder / place
    places = [above / place for above in (folder, *folder.parents)]
    return next(filter(present, places), places[0])

"""What the bodies of a file look like: the visuals of URDF, the geoms of MJCF, as triangles.

Motions do not depend on it, so that it is read only where something is drawn.
"""

from __future__ import annotations

import os
from pathlib import Path

from ...system import System
from ...system.validation import warn
from ..root_tag import root_tag
from .mjcf import mjcf_appearance
from .shape import Appearance as Appearance
from .shape import Shape as Shape
from .urdf import urdf_appearance

_MOST = 8


def read_appearance(path: str | os.PathLike[str], system: System) -> Appearance:
    """The shapes of the bodies of a system, by body name, from the file it was read from.

    path: a URDF or MJCF file, as for `difflie.load`. Bodies without visuals have no entry; what the
    file makes wholly transparent is left out. Warns
    once of meshes that are missing, broken or too large, which are then left out, and of the extra
    that reads them where it is not installed. Raises FileNotFoundError and `ModelError` as `load`.
    """
    path = Path(path)
    reader = mjcf_appearance if root_tag(path) == "mujoco" else urdf_appearance
    appearance, faults = reader(path, system)
    appearance = {body: tuple(filter(_opaque, shapes)) for body, shapes in appearance.items()}
    appearance = {body: shapes for body, shapes in appearance.items() if shapes}
    faults = list(dict.fromkeys(faults))
    if faults:
        more = f"; and {len(faults) - _MOST} more" if len(faults) > _MOST else ""
        warn(f"{path}: not drawn: {'; '.join(faults[:_MOST])}{more}")
    return appearance


def _opaque(shape: Shape) -> bool:
    return shape.colour is None or shape.colour[3] > 0

"""What the bodies of a file look like: the visuals of URDF, the geoms of MJCF, as triangles.

Motions do not depend on it, so that it is read only where something is drawn.
"""

from __future__ import annotations

import os
from pathlib import Path

from ...system import System
from ...system.validation import warn
from ..robot_files import root_tag
from .mjcf import mjcf_appearance
from .shape import Appearance as Appearance
from .shape import Shape as Shape
from .urdf import urdf_appearance

_MOST = 8
_ELLIPSOIDS = "ellipsoids of inertia"


def read_appearance(path: str | os.PathLike[str], system: System) -> Appearance:
    """The shapes of the bodies of a system, by body name, from the file it was read from.

    path: a URDF or MJCF file, as for `difflie.load`; of an SDF file no shapes are read. Bodies
    without visuals have no entry, those of whose visuals none can be read an empty one; what the
    file makes wholly transparent is left out. Warns once of what is left out as it cannot be read,
    such as meshes that are missing, broken or too large, and of the extra that reads them where it
    is not installed. Where more bodies lose all their shapes than keep some, the result is empty,
    so that the whole machine is drawn as ellipsoids. Raises FileNotFoundError and `ModelError` as
    `load`.
    """
    path = Path(path)
    if root_tag(path) == "sdf":
        warn(
            f"{path}: not drawn: <visual> of SDF files; bodies are shown as the shapes of their "
            f"<collision>, those without one as {_ELLIPSOIDS}"
        )
        return {}
    reader = mjcf_appearance if root_tag(path) == "mujoco" else urdf_appearance
    appearance, faults = reader(path, system)
    lost = sum(not shapes for shapes in appearance.values())
    instead = lost > len(appearance) - lost
    if instead:
        appearance = {}
    opaque = {body: tuple(filter(_opaque, shapes)) for body, shapes in appearance.items()}
    appearance = {b: shapes for b, shapes in opaque.items() if shapes or not appearance[b]}
    faults = list(dict.fromkeys(faults))
    if faults:
        more = f"; and {len(faults) - _MOST} more" if len(faults) > _MOST else ""
        others = "; the bodies without any shape" if lost else ""
        others = "; the bodies" if instead else others
        ellipsoids = f"{others} are shown as their {_ELLIPSOIDS}" if others else ""
        warn(f"{path}: not drawn: {'; '.join(faults[:_MOST])}{more}{ellipsoids}")
    return appearance


def _opaque(shape: Shape) -> bool:
    return shape.colour is None or shape.colour[3] > 0

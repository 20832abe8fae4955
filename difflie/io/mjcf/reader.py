"""MJCF, MuJoCo's files, read by MuJoCo itself, by the extra `mjcf`.

MuJoCo resolves defaults, frames, includes, units and the inertia of geoms; this reads the model it
compiles. Everything in that model that affects the motion is either used or named in a warning.
MuJoCo's settings of solver, time step and rendering are no part of a `System`.
"""

from __future__ import annotations

import importlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...constraints import constrain
from ...forces import attach
from ...system import ModelError, System, tree
from ...system.installation import extra
from ...system.validation import format_value, warn
from ..files import existing
from .bodies import freed, read_bodies
from .check import check_mjcf
from .equalities import equality_constraints
from .flags import disabled_flags, switch_off
from .joints import free_friction, lasting_efforts
from .missing import without_missing
from .names import body_names, joint_names
from .tendons import tendon_couplings
from .unused import unused


def read_mjcf(
    path: str | os.PathLike[str],
    base: str | None = None,
    gravity: ArrayLike | None = None,
) -> System:
    """The `System` in an MJCF file, with the names and the order of MuJoCo's bodies.

    base: None is as in the file; "free" puts the one root body, which must have no joint, on a free
    joint "root_joint"; "fixed" fixes bodies on free joints where the file has them. gravity (3,) in
    m/s^2, world coordinates; None takes the file's.

    A body with several joints, or with a joint away from its origin, is attached through massless
    bodies "BODY/JOINT", so that its pose is MuJoCo's. Coordinates of hinges and slides are zero at
    the model's initial pose, where MuJoCo's are `ref`; those of a free joint are its pose in the
    world (`MujocoOrdering` converts states). An unnamed joint is called "BODY/hinge" (slide, ball,
    free), an unnamed body "bodyN". Frictionloss is smooth Coulomb friction; limits and frictionloss
    are no constraints. Of a free joint it acts along the axes of the world, by a `PointFriction`,
    and about those of the body. Force and control ranges, times the gear, become max_effort and
    min_effort of hinges and slides with actuators; the actuators' armature and damping are added to
    those of hinges, slides and balls. Stiffness and damping of tendons through sites become
    couplings.
    Equality constraints between bodies, sites and joints become exact constraints; MuJoCo's are
    soft. What an option flag switches off is not there.

    Warns once of all that is not used and of meshes that are missing, which no motion depends on,
    and as `tree` does of implausible masses and inertias.
    Raises ImportError without MuJoCo, `ModelError` with the file and MuJoCo's message for an
    invalid file, and for a body whose inertia comes from a mesh that is missing, FileNotFoundError
    where there is no such file.
    """
    path = Path(path)
    mujoco, model, missing = compiled(path)
    disabled = disabled_flags(mujoco, model)
    switch_off(model, disabled)
    if base not in (None, "fixed", "free"):
        raise ModelError(f"{path}: base is {format_value(base)}; it must be 'fixed' or 'free'")
    bodies = read_bodies(model, path, fixed=base == "fixed")
    if base == "free":
        bodies = freed(bodies, path)
    own_gravity = np.zeros(3) if "gravity" in disabled else model.opt.gravity
    name = model.names.split(b"\0", 1)[0].decode() or path.stem
    vector = own_gravity.tolist() if gravity is None else gravity
    named = body_names(model)
    try:
        system = tree(bodies, name=name, gravity=vector)
        rubbing = () if base == "fixed" else free_friction(model, named)
        system = attach(system, *tendon_couplings(model, named), *rubbing)
        loops = equality_constraints(model, named, joint_names(model), disabled)
        system = constrain(system, *loops)
    except ModelError as error:
        message = str(error).removeprefix(f"{path}: ")
        raise ModelError(f"{path}: {message}") from None
    left = list(unused(model, disabled))
    remarks = [f"not used: {', '.join(left)}"] if left else []
    remarks += [*lasting_efforts(model, joint_names(model)), *filter(None, [missing])]
    if remarks:
        warn(f"{path}: {'; '.join(remarks)}")
    return system


def compiled(path: Path) -> tuple[Any, Any, str]:
    """MuJoCo, its model of a file, and a remark on missing files; raises as `read_mjcf` does."""
    path = existing(path, "MJCF")
    mujoco = _mujoco(path)
    check_mjcf(path)
    return mujoco, *_compiled(mujoco, path)


def _mujoco(path: Path) -> Any:
    try:
        return importlib.import_module("mujoco")
    except ImportError:
        raise ImportError(
            f"{path}: MJCF is read by MuJoCo, which is not installed; {extra('mjcf')}"
        ) from None


def _compiled(mujoco: Any, path: Path) -> tuple[Any, str]:
    """MuJoCo's model of a file, and a remark on files that it names and that are not there.

    In a thread of its own: MuJoCo keeps its warning handler per thread, and some broken files leave
    one that calls itself without end.
    """
    try:
        with ThreadPoolExecutor(1) as reader:
            try:
                return reader.submit(mujoco.MjModel.from_xml_path, str(path)).result(), ""
            except ValueError as error:
                if "opening file" not in str(error):
                    raise
                return reader.submit(without_missing, mujoco, path).result()
    except ModelError:
        raise
    except ValueError as error:
        message = " ".join(str(error).split())
        raise ModelError(f"{path}: MuJoCo does not read it: {message}") from None
    except RuntimeError:
        raise ModelError(
            f"{path}: MuJoCo fails to read it and does not say where; look for an "
            "attribute without a value"
        ) from None

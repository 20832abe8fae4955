"""MJCF, MuJoCo's files, read by MuJoCo itself: `pip install 'difflie[mjcf]'`.

MuJoCo resolves defaults, frames, includes, units and the inertia of geoms; what is read here is the
model it compiles. Everything in that model that moves the machine is either used or named in a
warning. How MuJoCo computes and draws (time step, solver, materials) is no part of a `System`.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..constraints import constrain
from ..forces import attach
from ..system import (
    Body,
    Fixed,
    Free,
    Joint,
    ModelError,
    Prismatic,
    Revolute,
    Spherical,
    System,
    tree,
)
from ..system.validation import shown, warn
from .equalities import equality_constraints, unused_equalities
from .files import existing
from .tendons import tendon_couplings, unused_tendons
from .xml import check_mjcf

# MuJoCo's joint types by number.
_TYPES: tuple[type[Joint], ...] = (Free, Spherical, Prismatic, Revolute)
_WORDS = ("free", "ball", "slide", "hinge")

# What a model may have a number of, and what is then said to be not used.
_COUNTED = {
    "ngeom": "shapes of geoms",
    "npair": "contact pairs",
    "nflex": "flexes",
    "nskin": "skins",
    "nplugin": "plugins",
    "nsite": "sites",
    "nsensor": "sensors",
    "nkey": "keyframes",
    "ncam": "cameras",
    "nlight": "lights",
    "nnumeric": "custom numbers",
    "ntext": "custom texts",
    "ntuple": "custom tuples",
}

# Of MuJoCo 4 only.
_NONLINEAR = {
    "jnt_stiffnesspoly": "nonlinear springs",
    "jnt_springyield": "yield of springs",
    "dof_dampingpoly": "nonlinear damping",
    "actuator_dampingpoly": "nonlinear damping of actuators",
}


def read_mjcf(
    path: str | os.PathLike[str],
    base: str | None = None,
    gravity: ArrayLike | None = None,
) -> System:
    """The `System` an MJCF file describes, with the names and the order of MuJoCo's bodies.

    base: None moves the bodies as the file says; "free" puts the one root body, which must have no
    joint, on a free joint "root_joint", "fixed" allows none in the file. gravity (3,) in m/s^2,
    world coordinates; None takes the file's.

    A body of several joints, or with a joint away from its origin, hangs on massless bodies
    "BODY/JOINT", so that its pose is MuJoCo's. Coordinates of hinges and slides count from the
    model's initial pose, where MuJoCo's are `ref`; those of a free joint are its pose in the world
    (`MujocoOrdering` converts states). An unnamed joint is called "BODY/hinge" (slide, ball, free),
    an unnamed body "bodyN". Frictionloss is smooth Coulomb friction; limits and frictionloss are no
    constraints. Ranges of force and control, times the gear, become max_effort where actuators
    drive a hinge or slide, and the actuators' armature and damping the joint's. Stiffness and
    damping of tendons through sites become couplings. Equality constraints between bodies, sites
    and joints become constraints, kept exactly where MuJoCo's are soft.

    Warns once of all that is not used, and as `tree` does of doubtful masses and inertias. Raises
    ImportError without MuJoCo, `ModelError` with the file and MuJoCo's message for what it cannot
    read, FileNotFoundError where there is no such file.
    """
    path = existing(path, "MJCF")
    mujoco = _mujoco(path)
    check_mjcf(path)
    model = _compiled(mujoco, path)
    disabled = _disabled(mujoco, model)
    if base not in (None, "fixed", "free"):
        raise ModelError(f"{path}: base is {shown(base)}; it must be 'fixed' or 'free'")
    bodies = _bodies(model, path)
    if base == "free":
        bodies = _freed(bodies, path)
    free = [b.joint.name for b in bodies if isinstance(b.joint, Free)]
    if base == "fixed" and free:
        raise ModelError(
            f"{path}: base is 'fixed' and the file has the free joint {shown(free[0])}; leave "
            "out base"
        )
    own_gravity = np.zeros(3) if "gravity" in disabled else model.opt.gravity
    name = model.names.split(b"\0", 1)[0].decode() or path.stem
    given = own_gravity.tolist() if gravity is None else gravity
    named = body_names(model)
    try:
        system = tree(bodies, name=name, gravity=given)
        system = attach(system, *tendon_couplings(model, named))
        loops = equality_constraints(model, named, joint_names(model), disabled)
        system = constrain(system, *loops)
    except ModelError as error:
        message = str(error).removeprefix(f"{path}: ")
        raise ModelError(f"{path}: {message}") from None
    unused = list(_unused(model, disabled))
    if unused:
        warn(f"{path}: not used: {', '.join(unused)}")
    return system


def body_names(model: Any) -> list[str]:
    """The names of a MuJoCo model's bodies but the world, "bodyN" where they have none."""
    numbers = range(1, model.nbody)
    return _named([model.body(b).name for b in numbers], [f"body{b}" for b in numbers])


def joint_names(model: Any) -> list[str]:
    """The names of a MuJoCo model's joints, "BODY/hinge" and the like where they have none."""
    bodies = body_names(model)
    owners = [bodies[model.jnt_bodyid[j] - 1] for j in range(model.njnt)]
    words = [_WORDS[kind] for kind in model.jnt_type]
    given = [model.joint(j).name for j in range(model.njnt)]
    return _named(given, [f"{b}/{word}" for b, word in zip(owners, words, strict=True)])


def _named(given: Sequence[str], defaults: Sequence[str]) -> list[str]:
    """The given names, and for the empty ones the defaults, made distinct by underscores."""
    taken, names = set(given), []
    for name, default in zip(given, defaults, strict=True):
        if not name:
            name = default
            while name in taken:
                name += "_"
            taken.add(name)
        names.append(name)
    return names


def _mujoco(path: Path) -> Any:
    try:
        return importlib.import_module("mujoco")
    except ImportError:
        raise ImportError(
            f"{path}: MJCF is read by MuJoCo, which is not installed: pip install 'difflie[mjcf]'"
        ) from None


def _compiled(mujoco: Any, path: Path) -> Any:
    """MuJoCo's model of a file.

    In a thread of its own: MuJoCo keeps what handles its warnings by thread, and some broken files
    leave that calling itself for ever.
    """
    try:
        with ThreadPoolExecutor(1) as reader:
            return reader.submit(mujoco.MjModel.from_xml_path, str(path)).result()
    except ValueError as error:
        message = " ".join(str(error).split())
        raise ModelError(f"{path}: MuJoCo does not read it: {message}") from None
    except RuntimeError:
        raise ModelError(
            f"{path}: MuJoCo fails to read it and does not say where; look for an "
            "attribute without a value"
        ) from None


def _disabled(mujoco: Any, model: Any) -> set[str]:
    """The names of the option flags that are off, as in "gravity"."""
    flags = mujoco.mjtDisableBit.__members__.items()
    off = [n for n, flag in flags if n[:7] == "mjDSBL_" and model.opt.disableflags & int(flag)]
    return {name.removeprefix("mjDSBL_").lower() for name in off}


def _bodies(model: Any, path: Path) -> list[Body]:
    names, joints = body_names(model), joint_names(model)
    if not names:
        raise ModelError(f"{path}: there is no body in <worldbody>; add one")
    helpers, fixtures = set(names), set(joints)
    bodies = []
    for b, name in enumerate(names, start=1):
        above = model.body_parentid[b]
        parent = names[above - 1] if above else None
        stages = list(_stages(model, b, joints))
        if isinstance(stages[-1][0], Fixed):
            fixture = _named(["", *fixtures], [f"{name}/fixed", *fixtures])[0]
            fixtures.add(fixture)
            stages[-1] = (Fixed(name=fixture), *stages[-1][1:])
        for joint, position, rotation in stages[:-1]:
            helper = _named(["", *helpers], [f"{name}/{joint.name}", *helpers])[0]
            helpers.add(helper)
            bodies.append(
                Body(name=helper, joint=joint, parent=parent, position=position, rotation=rotation)
            )
            parent = helper
        joint, position, rotation = stages[-1]
        principal = _matrix(model.body_iquat[b])
        bodies.append(
            Body(
                name=name,
                joint=joint,
                parent=parent,
                position=position,
                rotation=rotation,
                mass=float(model.body_mass[b]),
                com=model.body_ipos[b].copy(),
                inertia=(principal * model.body_inertia[b]) @ principal.T,
                source=f"{path}: body {shown(name)}",
            )
        )
    return bodies


def _stages(model: Any, b: int, names: list[str]) -> Iterator[tuple[Joint, np.ndarray, np.ndarray]]:
    """The joints from a body's parent to the body itself, each with its frame in the one before.

    The joints of a MuJoCo body act one after the other, each at its own anchor. The last stage
    moves the body's origin, fixed to the last anchor where that is another point.
    """
    position, rotation = model.body_pos[b].copy(), _matrix(model.body_quat[b])
    anchor = np.zeros(3)
    joints = range(model.body_jntadr[b], model.body_jntadr[b] + model.body_jntnum[b])
    for j in joints:
        joint = _joint(model, j, names[j])
        if isinstance(joint, Free):
            yield joint, np.zeros(3), np.eye(3)
            return
        # A slide has no anchor.
        at = anchor if isinstance(joint, Prismatic) else model.jnt_pos[j].copy()
        yield joint, position + rotation @ (at - anchor), rotation
        anchor, position, rotation = at, np.zeros(3), np.eye(3)
    if not joints or np.any(anchor):
        yield Fixed(), position - rotation @ anchor, rotation


def _joint(model: Any, j: int, name: str) -> Joint:
    kind = _TYPES[model.jnt_type[j]]
    dof, ref = model.jnt_dofadr[j], model.qpos0[model.jnt_qposadr[j]]
    dofs = slice(dof, dof + len(kind().dofs()))
    fields: dict[str, Any] = {
        "name": name,
        "damping": model.dof_damping[dofs].copy(),
        "friction": model.dof_frictionloss[dofs].copy(),
    }
    if kind is not Free:
        fields["armature"] = model.dof_armature[dofs].copy()
    if kind in (Prismatic, Revolute):
        fields["axis"] = model.jnt_axis[j].tolist()
        fields["stiffness"] = model.jnt_stiffness[j]
        fields["spring_reference"] = model.qpos_spring[model.jnt_qposadr[j]] - ref
        if model.jnt_limited[j]:
            fields["lower"], fields["upper"] = model.jnt_range[j] - ref
        drives = _drives(model, j)
        fields["max_effort"] = _max_effort(model, j, drives)
        for leaf in ("armature", "damping"):
            # MuJoCo 3 has no such property of actuators.
            own = getattr(model, f"actuator_{leaf}", None)
            if own is not None:
                fields[leaf] += sum(model.actuator_gear[a, 0] ** 2 * own[a] for a in drives)
    return kind(**fields)


def _drives(model: Any, j: int) -> list[int]:
    """The actuators that act on a hinge or slide itself."""
    on_joint = (model.actuator_trntype <= 1) & (model.actuator_trnid[:, 0] == j)
    return np.flatnonzero(on_joint).tolist()


def _max_effort(model: Any, j: int, drives: list[int]) -> float:
    """What the actuators of a joint can exert together, in N m or N; infinite if that is open."""
    limit = np.inf
    if drives:
        limit = sum(abs(model.actuator_gear[a, 0]) * _strongest(model, a) for a in drives)
    if model.jnt_actfrclimited[j]:
        limit = min(limit, np.abs(model.jnt_actfrcrange[j]).max())
    return float(limit)


def _strongest(model: Any, a: int) -> float:
    """The largest force of an actuator, before its gear."""
    strongest = np.inf
    if model.actuator_forcelimited[a]:
        strongest = np.abs(model.actuator_forcerange[a]).max()
    is_motor = not (
        model.actuator_gaintype[a] or model.actuator_biastype[a] or model.actuator_dyntype[a]
    )
    # An actuator of MuJoCo 4 may have several controls; a motor has one.
    control = model.actuator_ctrladr[a] if hasattr(model, "actuator_ctrladr") else a
    if is_motor and model.actuator_ctrllimited[control]:
        largest = np.abs(model.actuator_ctrlrange[control]).max()
        strongest = min(strongest, abs(model.actuator_gainprm[a, 0]) * largest)
    return float(strongest)


def _freed(bodies: list[Body], path: Path) -> list[Body]:
    """The bodies with their root on a free joint."""
    roots = [b for b in bodies if b.parent is None]
    if len(roots) > 1:
        named = ", ".join(repr(b.name) for b in roots)
        raise ModelError(
            f"{path}: base is 'free' and there are {len(roots)} root bodies: {named}; "
            "say in the file which of them have a <freejoint/>"
        )
    (root,) = roots
    if not isinstance(root.joint, Fixed):
        raise ModelError(
            f"{path}: base is 'free' and the root moves on the joint {shown(root.joint.name)} "
            "of the "
            "file already; leave out base"
        )
    taken = [b.joint.name or b.name for b in bodies]
    name = _named(["", *taken], ["root_joint", *taken])[0]
    moved = {"joint": Free(name=name), "position": np.zeros(3), "rotation": np.zeros(3)}
    return [dataclasses.replace(b, **moved) if b is root else b for b in bodies]


def _unused(model: Any, disabled: set[str]) -> Iterator[str]:
    """What the model has and a `System` has not."""

    def some(what: str, having: Any) -> Iterator[str]:
        count = int(np.count_nonzero(having))
        if count:
            yield f"{what} ({count})"

    drives = model.actuator_trntype
    scalar = np.asarray(model.jnt_type) >= _TYPES.index(Prismatic)
    free_dof = np.asarray(model.jnt_type)[model.dof_jntid] == _TYPES.index(Free)
    yield from some("contacts of geoms", model.geom_contype | model.geom_conaffinity)
    counts = [(what, getattr(model, field)) for field, what in _COUNTED.items()]
    others = *unused_tendons(model), *unused_equalities(model, disabled)
    for what, count in (*counts, *others):
        if count:
            yield f"{what} ({count})"
    if len(drives):
        yield f"actuators but for armature, damping and the limits of effort ({len(drives)})"
    yield from some("motion of mocap bodies", model.body_mocapid >= 0)
    yield from some("gravity compensation of bodies", model.body_gravcomp)
    yield from some("springs of ball and free joints", model.jnt_stiffness[~scalar])
    yield from some("limits of ball joints", model.jnt_limited[~scalar])
    yield from some("armature along free joints", model.dof_armature[free_dof])
    for field, what in _NONLINEAR.items():
        if hasattr(model, field):
            yield from some(what, getattr(model, field))
    if model.opt.density or model.opt.viscosity:
        yield "forces of the medium (option density, viscosity)"
    for name in sorted(disabled & {"spring", "damper", "passive", "frictionloss"}):
        yield f"option flag {name}=disable"


def _matrix(quaternion: np.ndarray) -> np.ndarray:
    """The rotation matrix (3, 3) of a unit quaternion (4,)."""
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )

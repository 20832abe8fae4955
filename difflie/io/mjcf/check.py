"""What is checked of an MJCF file, and what of it a `System` does not have.

Before MuJoCo reads it: what it would silently ignore, or read too slowly, and files that the file
names and that are not there. After: the features that are left out, which a warning names.
"""

from __future__ import annotations

import importlib
import ntpath
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from ...system.validation import ModelError, format_value
from ..robot_files import plain, refuse_other_files
from .contacts import unread_contacts
from .equalities import unused_equalities
from .limits import NUMBERS, unread_friction, unread_limits
from .names import listed
from .shapes import touching_geoms, unread_shapes
from .stand_ins import stand_in
from .tendons import unused_tendons

_MOST_COPIES = 3_000

# The feature that `dl.touching` may give later.
CONTACTS = "contacts of geoms"


def check_mjcf(path: Path) -> None:
    """Raises `ModelError` for what MuJoCo would silently ignore, in the files inside, too.

    That is entities, which MuJoCo does not expand, and content after the root element. Also for
    more copies by <replicate> and <attach> than can be made in reasonable time. What is inside are
    the files of <include> and <model>; MuJoCo reports those that are missing.
    """
    _check(path, path.absolute().parent, 1, (path.resolve(),), {})


def _check(
    path: Path, folder: Path, given: int, within: tuple[Path, ...], seen: dict[Path, int]
) -> None:
    """Checks a file, and those inside.

    folder: of the model that it is a part of, from which MuJoCo finds what it includes; given: its
    number of copies; within: the file, and those that it is inside of; seen: the files that were
    checked, with their copies.
    """
    parser = expat.ParserCreate()
    refuse_other_files(parser, path)
    copies = [given]
    included: list[tuple[Path, int]] = []  # with the copies of each
    models: dict[Path, str] = {}
    attached: Counter[str] = Counter()  # the copies of models, by name

    def start(name: str, attributes: dict[str, str]) -> None:
        count = attributes.get("count", "") if name == "replicate" else ""
        copies.append(copies[-1] * (int(count[:9]) if count.isdecimal() else 1))
        if copies[-1] > _MOST_COPIES:
            raise ModelError(
                f"{path}:{parser.CurrentLineNumber}: <replicate> makes {copies[-1]} copies, more "
                f"than {_MOST_COPIES}; take a smaller count"
            )
        file = attributes.get("file", "")
        if name == "include" and file:
            # MuJoCo looks beside the model first, then beside the file that includes.
            places = folder / file, path.absolute().parent / file
            included.append((next(filter(Path.is_file, places), places[0]), copies[-1]))
        elif name == "model" and file:
            models[folder / file] = attributes.get("name", "")
        elif name == "attach":
            attached[attributes.get("model", "")] += copies[-1]
            if attached.total() > _MOST_COPIES:
                raise ModelError(
                    f"{path}:{parser.CurrentLineNumber}: <attach> makes {attached.total()} copies, "
                    f"more than {_MOST_COPIES}; attach fewer"
                )

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: copies.pop()

    def entity(name: str, *others: Any) -> None:
        raise ModelError(
            f"{path}:{parser.CurrentLineNumber}: <!ENTITY {plain(name)}> is not expanded in MJCF; "
            f"replace &{plain(name)}; by what it stands for"
        )

    parser.EntityDeclHandler = entity
    try:
        parser.Parse(path.read_bytes(), True)
    except ModelError:
        raise
    except expat.ExpatError as error:
        # MuJoCo accepts more than XML, and reports what it cannot read.
        if expat.errors.messages[error.code] == expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT:
            raise ModelError(
                f"{path}:{error.lineno}: something follows the root element; take it out, or put "
                "it in"
            ) from None
    except (LookupError, ValueError):
        pass  # An encoding that expat does not know.
    # A model without a name is called as its file says, so that it may be any that is attached.
    parts = [(file, folder, count) for file, count in included]
    for file, name in models.items():
        count = attached[name] if name else attached.total()
        parts.append((file, file.parent, max(count, 1)))
    for file, home, count in parts:
        if file.resolve() in within:
            raise ModelError(f"{path}: it takes in {file}, which it is a part of; take that out")
        # Not once more for each way that leads to a file.
        if file.is_file() and count > seen.get(file, 0):
            seen[file] = count
            _check(file, home, count, (*within, file.resolve()), seen)


_MOST_FILES = 5


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
            stand_in(mujoco, geom)
    for material in spec.materials:
        material.textures = ["" if name in pictures else name for name in material.textures]
    files = [_name(each.file) for each in (*shapes.values(), *skins)]
    for texture in pictures.values():
        files += map(_name, _gone(texture, folder, compiler.texturedir))
    for each in (*shapes.values(), *skins, *pictures.values()):
        spec.delete(each)
    files = list(dict.fromkeys(files))
    more = f" and {len(files) - _MOST_FILES} more" if len(files) > _MOST_FILES else ""
    return (
        spec.compile(),
        f"files that are missing, and skipped: {', '.join(files[:_MOST_FILES])}{more}",
    )


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


# Elements that no motion depends on, or that no `System` has, and their names in the warning.
_ALL = {
    "flex": "flexes",
    "skin": "skins",
    "plugin": "plugins",
    "cam": "cameras",
    "light": "lights",
    "numeric": "custom numbers",
    "text": "custom texts",
    "tuple": "custom tuples",
}


class Acting(NamedTuple):
    """What of a file acts in its system: its contacts, and the limits of joints and tendons."""

    contacts: bool
    limits: bool


def unused(
    model: Any, disabled: set[str], acting: Acting, drives: Iterable[tuple[str, str, list[int]]]
) -> Iterator[str]:
    """The features of the model that a `System` does not have, for a warning.

    Each with the names of the elements that have it. disabled: the option flags that are off.
    acting: what of its contacts and limits the system has; drives: the features of its actuators.
    """
    for what, kind, at in (*features(model, disabled, acting), *drives):
        found = list(map(int, at))
        if found and what != NUMBERS:
            yield f"{what} ({listed(model, kind, found)})"


def _mocap_keys(model: Any) -> NDArray:
    """The keyframes in which mocap bodies are elsewhere than in the file."""
    there = np.flatnonzero(model.body_mocapid >= 0)
    there = there[np.argsort(model.body_mocapid[there])]
    moved = np.zeros(model.nkey, bool)
    for given, usual in ((model.key_mpos, model.body_pos), (model.key_mquat, model.body_quat)):
        moved |= np.any(given != usual[there].ravel(), axis=1)
    return np.flatnonzero(moved)


def _late_sensors(model: Any) -> NDArray:
    """The sensors that MuJoCo 4 reads later, or only at times."""
    late = getattr(model, "sensor_delay", np.zeros(model.nsensor)) != 0
    sampled = np.any(getattr(model, "sensor_interval", np.zeros((model.nsensor, 2))), axis=1)
    return np.flatnonzero(late | sampled)


def _asleep(model: Any) -> NDArray:
    """The bodies that do not move until they are touched, where MuJoCo lets bodies sleep."""
    mujoco = importlib.import_module("mujoco")
    flag = getattr(mujoco.mjtEnableBit, "mjENBL_SLEEP", 0)
    if not model.opt.enableflags & int(flag):
        return np.zeros(0, int)
    policy = np.append(model.tree_sleep_policy, -1)
    asleep = policy[model.body_treeid] == int(mujoco.mjtSleepPolicy.mjSLEEP_INIT)
    # The first body of each tree.
    _, first = np.unique(model.body_treeid, return_index=True)
    return np.intersect1d(first, np.flatnonzero(asleep))


def features(
    model: Any, disabled: set[str], acting: Acting
) -> Iterator[tuple[str, str, Iterable[int]]]:
    """Each feature with the kind and the numbers of the elements that have it."""
    yield CONTACTS, "geom", [] if acting.contacts else touching_geoms(model, disabled)
    yield "shapes of geoms", "geom", unread_shapes(model, disabled)
    for kind, what in _ALL.items():
        yield what, kind, np.arange(getattr(model, f"n{kind}"))
    yield from unused_tendons(model)
    yield from unread_limits(model, disabled, acting.limits)
    yield from unread_friction(model, disabled)
    if acting.contacts:
        yield from unread_contacts(model, disabled)
    yield from unused_equalities(model, disabled)
    yield "motion of mocap bodies", "body", np.flatnonzero(model.body_mocapid >= 0)
    yield "bodies that begin asleep", "body", _asleep(model)
    yield "times of keyframes", "key", np.flatnonzero(model.key_time)
    yield "poses of mocap bodies of keyframes", "key", _mocap_keys(model)
    yield "delays and intervals of sensors", "sensor", _late_sensors(model)

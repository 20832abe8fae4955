"""Files: robots are read from URDF, MJCF and SDF, and written as URDF and MJCF."""

from __future__ import annotations

import os
from pathlib import Path

from numpy.typing import ArrayLike

from ..system import System
from . import examples as examples
from .appearance import read_appearance as read_appearance
from .couplings import closed, read_loops
from .files import OutputError as OutputError
from .mjcf import read_mjcf as read_mjcf
from .mjcf import write_mjcf as write_mjcf
from .orderings import MujocoOrdering as MujocoOrdering
from .orderings import PinocchioOrdering as PinocchioOrdering
from .robot_files import root_tag
from .sdf import read_sdf as read_sdf
from .srdf import read_disabled as read_disabled
from .toml import ConfigError as ConfigError
from .urdf import read_urdf as read_urdf
from .urdf import write_urdf as write_urdf

_SUFFIXES = (".urdf", ".mjcf", ".sdf", ".world", ".xml", ".xacro", "")
_READERS = {"robot": read_urdf, "mujoco": read_mjcf, "sdf": read_sdf}


def load(
    path: str | os.PathLike[str],
    *,
    base: str | None = None,
    gravity: ArrayLike | None = None,
    loops: str | os.PathLike[str] | None = None,
    strict: bool = False,
    actuators: bool = False,
    contacts: bool = False,
    limits: bool = False,
    disabled: str | os.PathLike[str] | None = None,
) -> System:
    """The `System` in a robot file, URDF, MJCF or SDF by its root element.

    path: of the file. base: "fixed" fixes the root body to the world, "free" puts it on a free
    joint; None is as in the file, fixed by default, and free in SDF. gravity (3,) in m/s^2, world
    coordinates; None takes the file's, (0, 0, -9.81) by default. loops: a TOML file of constraints,
    appended to those of the robot file; `difflie/io/couplings.py` describes it. strict: whether
    what of the robot file would change the motion and is not modelled is an error, which lists it
    with its lines; otherwise a warning names it, `System.not_modelled` has it, and the result of a
    run says it.
    actuators: whether to read the actuators of an MJCF file, so that `control` is MuJoCo's `ctrl`,
    or the simple transmissions of a URDF file, so that it is the torques of their actuators;
    without, it is the generalised force. contacts: whether the shapes of the file touch, see
    `touching`: in the pairs of an MJCF file, with its numbers; of a URDF or SDF file all that are
    apart where all coordinates are zero, and are not of two links that a joint connects.
    Without, `System.shapes` has them, and meshes are not opened. disabled: an SRDF file, whose
    <disable_collisions> are pairs of links of a URDF file that do not touch. limits: whether the
    limits of joints and tendons of an MJCF file are compliant stops, with its numbers. Warns and
    raises as `read_urdf`, `read_mjcf`, `read_sdf`, `read_loops` and `read_disabled`, and raises
    ValueError for another kind of file, for limits of one that says no stiffness, and for an SRDF
    file without contacts or beside another file than URDF.

    >>> arm = dl.load(dl.examples.path("arm7"))
    >>> arm.nv, arm.joint_names[0]
    (7, 'joint1')
    """
    path = Path(path)
    if not path.exists() and str(path) in examples.machines():
        raise FileNotFoundError(
            f"there is no file {path}; the machine of this name that comes with difflie is "
            f'dl.load(dl.examples.path("{path}"))'
        )
    if path.suffix.lower() not in _SUFFIXES and not path.is_dir():
        raise ValueError(
            f"{path}: a file {path.suffix} is not supported; supported are URDF, MJCF and SDF, "
            "in a file .urdf, .mjcf, .sdf or .xml with the root element <robot>, <mujoco> or <sdf>"
        )
    others = read_sdf if path.suffix.lower() in (".sdf", ".world") else read_urdf
    read = _READERS.get(root_tag(path) or "", others)
    given = {"strict": strict, "actuators": actuators, "contacts": contacts}
    if limits and read is not read_mjcf:
        raise ValueError(
            f"{path}: limits of this kind of file have no stiffness; leave out limits=True, and "
            "attach dl.JointStop(stiffness)"
        )
    if disabled is not None:
        if not contacts or read is not read_urdf:
            raise ValueError(
                f"{path}: {disabled} says which links of a URDF file do not touch; load one with "
                "contacts=True, or leave out disabled"
            )
        given |= {"disabled": read_disabled(disabled)}
    given |= {"limits": limits} if limits else {}
    system = read(path, base=base, gravity=gravity, **given)
    return system if loops is None else closed(system, read_loops(loops), Path(loops))


def save(
    system: System,
    path: str | os.PathLike[str],
    *,
    original: str | os.PathLike[str] | None = None,
) -> None:
    """Writes a system, of leaves without batch axes such as mass (nb,) in kg, as a robot file.

    path: of the file, URDF with the suffix .urdf, MJCF with .xml or .mjcf. `load(path)` reads it
    back; from URDF equal, from MJCF with the same motion. original: the file of this kind that the
    system was read from; its shapes and other parts that a System does not have are kept. See
    `write_urdf` and `write_mjcf` for the details, warnings and errors. Raises ValueError for
    another kind of file.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind == ".urdf":
        write_urdf(system, path, original)
    elif kind in (".xml", ".mjcf"):
        write_mjcf(system, path, original)
    else:
        raise ValueError(
            f"{path}: systems are saved as URDF or MJCF; call it {path.stem}.urdf or "
            f"{path.stem}.xml"
        )

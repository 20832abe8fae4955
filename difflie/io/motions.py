"""Motions that `difflie run` and `difflie control` have written."""

from __future__ import annotations

import os
from typing import NamedTuple

from numpy.typing import NDArray

from ..system.arguments import on_manifold
from ..system.system import System
from ..system.validation import InputError, format_value
from .files import existing
from .results import BROKEN, TooLargeError, read_arrays


class Motion(NamedTuple):
    """States at times, as in a `Trajectory`: t (m,) in s, q (m, nq), v (m, nv)."""

    t: NDArray
    q: NDArray
    v: NDArray
    u: None = None


def read_motion(path: str | os.PathLike[str], system: System) -> Motion:
    """The motion of a system in a `trajectory.npz`, or in a `plan.npz`.

    Numbers that are not finite are read as they are, quaternions are divided by their lengths, with
    a warning where these are not 1. Raises FileNotFoundError for a missing file,
    and `InputError` for a file that is none or has the motion of another machine.
    """
    path = existing(path, "trajectory.npz")
    try:
        arrays = read_arrays(path, ("t", "q", "v", "joints"))
        joints = tuple(map(str, arrays["joints"]))
        t, q, v = (arrays[name].astype(float, casting="same_kind") for name in "tqv")
    except TooLargeError as error:
        raise InputError(f"{path}: {error}") from None
    except (*BROKEN, TypeError):
        raise InputError(
            f"{path}: this is no motion; give a trajectory.npz that difflie run --out has written, "
            "or a plan.npz of difflie control --out"
        ) from None
    if joints != system.joint_names or q.shape[1:] != (system.nq,) or v.shape[1:] != (system.nv,):
        raise InputError(
            f"{path}: this is the motion of another machine, with {_listed(joints)}, and "
            f"{system.name} has {_listed(system.joint_names)}; give the file of the machine that "
            "was simulated"
        )
    if t.ndim != 1 or not len(t) or not len(t) == len(q) == len(v):
        raise InputError(
            f"{path}: it has {t.size} times, {len(q)} configurations and {len(v)} velocities; "
            "write it again by difflie run --out"
        )
    try:
        q = on_manifold(system, str(path), "q", q)
    except ValueError as error:
        raise InputError(str(error)) from None
    return Motion(t, q, v)


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"the joints {', '.join(map(format_value, names[:4]))}{more}" if names else "no joints"

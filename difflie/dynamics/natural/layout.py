"""Where everything is in natural coordinates: indices, fixed by the topology."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from ...groups import Pose, UnitQuaternion
from ...system.topology import Topology


class Layout(NamedTuple):
    """Indices into natural coordinates, fixed by the topology.

    "Number" below means the position in the order of bodies with a joint of their own, nb for the
    world. For each of these bodies: moving, the index in the system; last, its last dof; parent,
    the number of its parent. merged_into: the number of the body that each body of the system is
    merged into, the world's last. single, double: the numbers of joints with one and with two
    turns; grouped, free: of those that are spherical or free, and free. turning: the number of each
    turning dof, in the order single, first of double, second of double, grouped. velocities: the
    entry in v of these, of the translations of the free joints and of the slides. angles, attitudes
    (n, 4): entries in q. The orders permute values in this order to those of v and q.
    """

    moving: np.ndarray
    last: np.ndarray
    parent: np.ndarray
    merged_into: np.ndarray
    single: np.ndarray
    double: np.ndarray
    grouped: np.ndarray
    free: np.ndarray
    turning: np.ndarray
    velocities: np.ndarray
    velocity_order: np.ndarray
    angles: np.ndarray
    attitudes: np.ndarray
    coordinate_order: np.ndarray


BALL = ("revolute",) * 3
FREE = BALL + ("prismatic",) * 3
_SERIES = {
    ("revolute",),
    ("prismatic",),
    ("revolute", "revolute"),
    ("prismatic", "revolute"),
    ("prismatic", "prismatic"),
    ("prismatic", "prismatic", "revolute"),
}


def check(t: Topology, method: str = "") -> None:
    """Raises ValueError, with a fix, for a joint that natural coordinates do not describe.

    method: the method that needs them, for the message.
    """
    where = f"{method} moves {t.name} in natural coordinates, which" if method else ""
    where = where or f"{t.name}: natural coordinates"
    parts = zip(t.joints, t.kinds, t.mimics, t.types, t.manifolds, strict=True)
    for joint, kinds, mimic, motion, space in parts:
        fix, series = None, motion.in_series
        if mimic is not None:
            fix = "it mimics another joint, which is no equation between scalar products"
        elif "helical" in kinds:
            fix = "the angle of a helical joint is no polynomial of the directors"
        elif not series and (kinds, space) not in ((BALL, UnitQuaternion()), (FREE, Pose())):
            fix = f"there is no equation for a {motion.type_name()} joint"
        elif kinds and series and kinds not in _SERIES:
            fix = f"its degrees of freedom are {', '.join(kinds)}, for which there is no equation"
        if fix is not None:
            raise ValueError(
                f"{where} do not describe the joint {joint!r}: {fix}; use "
                "another method, or another joint"
            )
    if not t.n_dofs:
        raise ValueError(f"{t.name}: natural coordinates need a body that moves")


@functools.cache
def layout(t: Topology) -> Layout:
    """The index arrays of a topology, with the shapes of `Layout`."""
    moving = np.array([b for b, kinds in enumerate(t.kinds) if kinds])
    last = t.dof_start[moving + 1] - 1
    number = np.full(t.n_dofs + 1, len(moving))
    number[last] = np.arange(len(moving))
    merged_into = np.append(number[t.body_dof], len(moving))
    kinds = [t.kinds[b] if t.types[b].in_series else () for b in moving]
    sizes = [0 if t.types[b].in_series else len(t.kinds[b]) for b in moving]
    turns = np.array([k.count("revolute") for k in kinds])
    single, double = np.flatnonzero(turns == 1), np.flatnonzero(turns == 2)
    grouped, free = np.flatnonzero(sizes), np.flatnonzero(np.array(sizes) == 6)
    v_start, q_start = t.velocity_start[moving], t.coordinate_start[moving]
    slides = np.array([len(k) for k in kinds]) - turns

    def entries(start: np.ndarray, skip: int, size: int) -> np.ndarray:
        return (start[:, None] + skip + np.arange(size)).ravel()

    def of_series(start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The entries of turning and of sliding dofs of joints in series."""
        turning = (start[single] + slides[single], start[double], start[double] + 1)
        sliding = [start[j] + np.arange(slides[j]) for j in range(len(moving))]
        return np.concatenate(turning), np.concatenate(sliding).astype(int)

    angles, sliding = of_series(v_start)
    velocities = np.concatenate(
        (angles, entries(v_start[grouped], 0, 3), entries(v_start[free], 3, 3), sliding)
    )
    angles, sliding = of_series(q_start)
    attitudes = entries(q_start[grouped], 0, 4)
    coordinates = (angles, sliding, attitudes, entries(q_start[free], 4, 3))
    return Layout(
        moving=moving,
        last=last,
        parent=merged_into[np.array(t.parents)[moving]],
        merged_into=merged_into,
        single=single,
        double=double,
        grouped=grouped,
        free=free,
        turning=np.concatenate((single, double, double, np.repeat(grouped, 3))),
        velocities=velocities,
        velocity_order=np.argsort(velocities),
        angles=angles,
        attitudes=attitudes.reshape(-1, 4),
        coordinate_order=np.argsort(np.concatenate(coordinates)),
    )

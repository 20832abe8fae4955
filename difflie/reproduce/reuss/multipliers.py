"""Constraints and multipliers of Reuss 2002, (27) to (32): a point of a body that is held."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .rigid_body import hat

Array = np.ndarray


class Held(NamedTuple):
    """A point of a body, in the inertial frame.

    place (3,) in m. Psi (3, 6 + n): its velocity in m/s is Psi w. drift (3,): (dPsi/dt) w in m/s^2.
    """

    place: Array
    Psi: Array
    drift: Array


def held_point(pose: Array, columns: Array, V: Array, drift: Array, point: Array) -> Held:
    """The point (3,) in m in the frame of a body with this pose (4, 4).

    columns (6, 6 + n): the Jacobian of its twist V (6,); drift (6,): the rate of V for dw/dt = 0.
    """
    R, p = pose[:3, :3], hat(point)
    (omega, v), (d_omega, d_v) = V.reshape(2, 3), drift.reshape(2, 3)
    speed = v + np.cross(omega, point)
    change = d_v + np.cross(d_omega, point) + np.cross(omega, speed)
    return Held(R @ point + pose[:3, 3], R @ np.hstack((-p, np.eye(3))) @ columns, R @ change)


def multipliers(D: Array, known: Array, Psi: Array, drift: Array) -> Array:
    """lambda (r,) by (32), with the derivative of Psi that its last term lacks in print.

    D (s, s); known (s,): tau + H; Psi (r, s); drift (r,): (dPsi/dt) w.
    """
    Y = np.linalg.solve(D, np.column_stack((Psi.T, known)))
    return np.linalg.solve(Psi @ Y[:, :-1], -Psi @ Y[:, -1] - drift)


def saddle_point(D: Array, known: Array, Psi: Array, drift: Array) -> tuple[Array, Array]:
    """dw/dt (s,) and lambda (r,) from (28) and (30) at once."""
    r = len(Psi)
    K = np.block([[D, -Psi.T], [Psi, np.zeros((r, r))]])
    x = np.linalg.solve(K, np.concatenate((known, -drift)))
    return x[:-r], x[-r:]

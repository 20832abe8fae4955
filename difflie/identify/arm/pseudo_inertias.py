"""Pseudo-inertias of inertial parameters, which are linear in them (Wensing, Kim and Slotine 2018).

A body has consistent numbers just where its pseudo-inertia J (4, 4) is positive definite.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SIX = (0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)


def basis() -> NDArray:
    """The pseudo-inertias (10, 4, 4) of the inertial parameters: J = sum_k pi_k basis_k."""
    found = np.zeros((10, 4, 4))
    found[0, 3, 3] = 1
    for k in range(3):
        found[1 + k, 3, k] = found[1 + k, k, 3] = 1
    for k, (i, j) in enumerate(_SIX):
        inertia = np.zeros((3, 3))
        inertia[i, j] = inertia[j, i] = 1
        found[4 + k, :3, :3] = np.trace(inertia) / 2 * np.eye(3) - inertia
    return found


BASIS = basis()


def pseudo_inertias(pi: NDArray) -> NDArray:
    """J (nb, 4, 4) of inertial parameters (nb, 10)."""
    return np.einsum("bk,kij->bij", pi, BASIS)


def parameters_of(pseudo: NDArray) -> NDArray:
    """The inertial parameters (nb, 10) of J (nb, 4, 4)."""
    second = pseudo[:, :3, :3]
    inertia = np.trace(second, axis1=1, axis2=2)[:, None, None] * np.eye(3) - second
    six = np.stack([inertia[:, i, j] for i, j in _SIX], axis=1)
    return np.concatenate((pseudo[:, 3:, 3], pseudo[:, 3, :3], six), axis=1)

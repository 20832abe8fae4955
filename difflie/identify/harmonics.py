"""Periodic motions as sums of harmonics (Swevers et al. 1997)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def at_rest(harmonics: int) -> NDArray:
    """The waves (1 + 2 H, 2 H - 1) that begin without velocity and acceleration, orthonormal."""
    order = np.arange(1, harmonics + 1)
    still = np.zeros((2, 1 + 2 * harmonics))
    still[0, 1::2], still[1, 2::2] = order, order**2
    return np.linalg.svd(still)[2][2:].T


def harmonics_at(t: NDArray, duration: float, harmonics: int) -> NDArray:
    """q, v and a (3, n, 1 + 2 H) at times t (n,) of 1, sin(w t), cos(w t), sin(2 w t), ..."""
    speed = 2 * np.pi / duration * np.arange(1, harmonics + 1)
    s, c = np.sin(np.outer(t, speed)), np.cos(np.outer(t, speed))
    pairs = [(s, c), (speed * c, -speed * s), (-(speed**2) * s, -(speed**2) * c)]
    return np.stack(
        [
            np.column_stack((np.full(len(t), float(k == 0)), np.stack(p, 2).reshape(len(t), -1)))
            for k, p in enumerate(pairs)
        ]
    )

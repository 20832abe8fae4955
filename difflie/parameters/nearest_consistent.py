"""The nearest inertia that a rigid body can have, where a file gives one that no body has."""

from __future__ import annotations

import numpy as np

from .pseudo_inertia import inconsistency

_WATER = 1000.0  # kg/m^3


def nearest_consistent(mass: float, inertia: np.ndarray) -> np.ndarray:
    """The inertia (3, 3) of a rigid body that is nearest to this one; itself where one has it.

    mass in kg, positive; inertia (3, 3) about the centre of mass in kg m^2, of which the symmetric
    part counts. Of the second moments S = tr(I) / 2 - I of mass the eigenvalues are clipped from
    below at those of a solid ball of water of this mass,

        m r^2 / 5,    r = (3 m / (4 pi 1000 kg/m^3))^(1/3),

    so the result is that of the S nearest in the Frobenius norm of all with no lesser eigenvalue
    (Higham 1988, "Computing a nearest symmetric positive semidefinite matrix", theorem 2.1, for
    S less the bound). Zero inertia becomes the ball's, 2 m r^2 / 5 about each axis.
    """
    symmetric = (np.asarray(inertia) + np.asarray(inertia).T) / 2
    if not inconsistency(symmetric):
        return symmetric
    moments, axes = np.linalg.eigh(np.trace(symmetric) / 2 * np.eye(3) - symmetric)
    clipped = np.maximum(moments, _ball(mass))
    result = (axes * (clipped.sum() - clipped)) @ axes.T
    return ((result + result.T) / 2).astype(symmetric.dtype)


def _ball(mass: float) -> float:
    """The second moment of mass in kg m^2 of a solid ball of water, about each plane through it."""
    radius = (3 * mass / (4 * np.pi * _WATER)) ** (1 / 3)
    return mass * radius**2 / 5

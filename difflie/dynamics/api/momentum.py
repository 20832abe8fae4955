"""The mass of a system, its centre of mass, and its momentum."""

from __future__ import annotations

from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from ...system.system import System
from .. import centroidal, energy
from .evaluate import evaluated


def total_mass(system: System) -> Float[Array, ""]:
    """The mass of the system in kg, a scalar; bodies fixed to the world do not count."""
    return evaluated(centroidal.mass, system)


def center_of_mass(system: System, q: ArrayLike) -> Float[Array, "3"]:
    """The centre of mass (3,) in the world, in m; bodies fixed to the world do not count."""
    return evaluated(centroidal.center_of_mass, system, q=q)


def center_of_mass_jacobian(system: System, q: ArrayLike) -> Float[Array, "3 nv"]:
    """The Jacobian (3, nv) whose J v is the velocity of the centre of mass in the world (m/s)."""
    return evaluated(centroidal.center_columns, system, q=q)


def centroidal_momentum_matrix(system: System, q: ArrayLike) -> Float[Array, "6 nv"]:
    """The matrix A (6, nv) whose A v is the momentum about the centre of mass, in world axes.

    First the angular momentum (N m s), then the linear (N s). Armature has no part in it, as in
    `momentum`.
    """
    return evaluated(centroidal.momentum_columns, system, q=q)


def momentum(system: System, q: ArrayLike, v: ArrayLike) -> Float[Array, "6"]:
    """The momentum (6,) in world coordinates: angular about the world origin, then linear."""
    return evaluated(energy.total_momentum, system, q=q, v=v)

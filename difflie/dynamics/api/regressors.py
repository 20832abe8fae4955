"""The inertial parameters, and what depends on them linearly."""

from __future__ import annotations

from typing import Any

from jaxtyping import Array, Float

from ...system.arguments import checked
from ...system.system import System
from .. import regressor
from ..identifiable import BaseParameters, independent_columns, sampled_regressor
from .evaluate import bare_tree, evaluated


def inertial_parameters(system: System) -> Float[Array, "nb 10"]:
    """The inertial parameters (nb, 10) of the bodies, on which the dynamics depend linearly.

    For each body (m, m c_x, m c_y, m c_z, I_xx, I_xy, I_xz, I_yy, I_yz, I_zz) in kg, kg m and
    kg m^2, in its body frame: c is the centre of mass, I the inertia about the frame's ORIGIN, not
    about the centre of mass.
    """
    return regressor.parameters(system.bodies)


def with_inertial_parameters(system: System, parameters: Any) -> System:
    """The system with other `inertial_parameters` (nb, 10).

    Of a body without mass the first moments cannot be kept. Nothing is checked: whether a rigid
    body can have the parameters is the caller's to know.
    """
    size = (len(system.body_names), 10)
    (parameters,) = checked(system, parameters=(parameters, size))
    mass, com, inertia = regressor.properties(parameters)
    return system.replace(mass=mass, com=com, inertia=inertia)


def inverse_dynamics_regressor(
    system: System, q: Any, v: Any, a: Any
) -> Float[Array, "nv n_parameters"]:
    """The matrix Y (nv, 10 nb) with Y pi + armature a = `inverse_dynamics`.

    pi (10 nb,) is `inertial_parameters(system).ravel()`. Armature (kg m^2 or kg) belongs to the
    joints and not to pi; without mimic joints its part is `system.joints.armature * a`.
    """
    return evaluated(regressor.effort_columns, system, q=q, v=v, a=a)


def kinetic_energy_regressor(system: System, q: Any, v: Any) -> Float[Array, " n_parameters"]:
    """The row y (10 nb,) with y . pi + armature v^2 / 2 = the kinetic energy; pi as above."""
    return evaluated(regressor.kinetic_columns, system, q=q, v=v)


def potential_energy_regressor(system: System, q: Any) -> Float[Array, " n_parameters"]:
    """The row y (10 nb,) with y . pi = the potential energy, pi `inertial_parameters` as a row."""
    return evaluated(regressor.potential_columns, system, q=q)


def momentum_regressor(system: System, q: Any, v: Any) -> Float[Array, "6 n_parameters"]:
    """The matrix Y (6, 10 nb) with Y pi = `momentum`, pi `inertial_parameters` as a row."""
    return evaluated(regressor.momentum_columns, system, q=q, v=v)


def base_parameters(system: System) -> BaseParameters:
    """The minimal parameters on which inverse dynamics depend; not for use in a trace.

    matrix (rank, 10 nb) takes the inertial parameters (nb, 10), one body after the other, to the
    base parameters; columns (rank,) are those of the regressor that remain. Found from
    the regressors of random states, by which columns depend on each other to the square root of the
    rounding unit: use double precision.
    """
    return independent_columns(sampled_regressor(bare_tree(system)))

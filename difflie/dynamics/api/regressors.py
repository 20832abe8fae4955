"""The inertial parameters, and the dynamics as linear functions of them."""

from __future__ import annotations

from typing import Any

from jaxtyping import Array, Float
from numpy.typing import ArrayLike

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

    The first moments of a body without mass are lost. It is not checked whether a rigid body can
    have these parameters.
    """
    size = (len(system.body_names), 10)
    (parameters,) = checked(system, parameters=(parameters, size))
    mass, com, inertia = regressor.properties(parameters)
    return system.replace(mass=mass, com=com, inertia=inertia)


def inverse_dynamics_regressor(
    system: System, q: ArrayLike, v: ArrayLike, a: ArrayLike
) -> Float[Array, "nv n_parameters"]:
    """The matrix Y (nv, 10 nb) with Y pi + armature a = `inverse_dynamics`.

    pi (10 nb,) is `inertial_parameters(system).ravel()`. Armature (kg m^2 or kg) belongs to the
    joints and not to pi; without mimic joints its part is `system.joints.armature * a`.
    """
    return evaluated(regressor.effort_columns, system, q=q, v=v, a=a)


def kinetic_energy_regressor(
    system: System, q: ArrayLike, v: ArrayLike
) -> Float[Array, " n_parameters"]:
    """The vector y (10 nb,) with y . pi + sum armature v^2 / 2 = kinetic energy; pi as above."""
    return evaluated(regressor.kinetic_columns, system, q=q, v=v)


def potential_energy_regressor(system: System, q: ArrayLike) -> Float[Array, " n_parameters"]:
    """The vector y (10 nb,) with y . pi = potential energy; pi as above."""
    return evaluated(regressor.potential_columns, system, q=q)


def momentum_regressor(
    system: System, q: ArrayLike, v: ArrayLike
) -> Float[Array, "6 n_parameters"]:
    """The matrix Y (6, 10 nb) with Y pi = `momentum`; pi as above."""
    return evaluated(regressor.momentum_columns, system, q=q, v=v)


def base_parameters(system: System) -> BaseParameters:
    """The base (minimal) parameters of inverse dynamics; cannot be traced.

    matrix (rank, 10 nb) maps the inertial parameters (nb, 10), one body after the other, to the
    base parameters. columns (rank,) are the columns of the regressor that remain. They follow from
    the regressors of random states. Columns count as linearly dependent to the square root of the
    rounding unit: use double precision. Source: Gautier 1991.
    """
    return independent_columns(sampled_regressor(bare_tree(system)))

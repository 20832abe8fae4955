"""Poses, twists and Jacobians of bodies, and steps of the configuration."""

from __future__ import annotations

from typing import Any

from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from ...system.arguments import checked
from ...system.system import System
from .. import jacobians, kinematics
from .evaluate import Index, evaluated


def body_poses(system: System, q: ArrayLike) -> Float[Array, "nb 4 4"]:
    """The poses (nb, 4, 4) of all bodies at q (nq,), body to world, as in `body_names`."""
    return evaluated(kinematics.body_world_poses, system, q=q).to_array()


def body_twists(system: System, q: ArrayLike, v: ArrayLike) -> Float[Array, "nb 6"]:
    """The body-fixed twists (nb, 6) of all bodies at q (nq,), v (nv,), in rad/s and m/s."""
    return evaluated(kinematics.body_twist_components, system, q=q, v=v).to_array()


def body_jacobian(system: System, q: ArrayLike, body: Index) -> Float[Array, "6 nv"]:
    """The Jacobian (6, nv) at q (nq,) of a body: J v is its body-fixed twist.

    body: its name or index. `jax.vmap` over indices takes all bodies at once, also in the functions
    below. Raises ValueError for an unknown name.
    """
    return evaluated(jacobians.body_columns, system, q=q, body=body)


def spatial_jacobian(system: System, q: ArrayLike, body: Index) -> Float[Array, "6 nv"]:
    """The Jacobian (6, nv) whose J v is the body's twist in world axes, at the world origin.

    The linear part is the velocity of the body-fixed point that is at the world origin at this
    moment. "Spatial" as in Murray, Li and Sastry 1994.
    """
    return evaluated(jacobians.spatial_columns, system, q=q, body=body)


def geometric_jacobian(system: System, q: ArrayLike, body: Index) -> Float[Array, "6 nv"]:
    """The Jacobian (6, nv) whose J v is the body's twist in world axes, at the body's origin.

    J v is the angular velocity (rad/s) and the velocity of the body's origin (m/s), both in world
    coordinates.
    """
    return evaluated(jacobians.geometric_columns, system, q=q, body=body)


def body_jacobian_rate(
    system: System, q: ArrayLike, v: ArrayLike, body: Index
) -> Float[Array, "6 nv"]:
    """The time derivative (6, nv) of `body_jacobian`, in 1/s.

    The time derivative of the body-fixed twist is J a + J' v.
    """
    return evaluated(jacobians.body_column_rates, system, q=q, v=v, body=body)


def spatial_jacobian_rate(
    system: System, q: ArrayLike, v: ArrayLike, body: Index
) -> Float[Array, "6 nv"]:
    """The time derivative (6, nv) of `spatial_jacobian`, in 1/s.

    The body's spatial acceleration in world axes, at the world origin, is J a + J' v.
    """
    return evaluated(jacobians.spatial_column_rates, system, q=q, v=v, body=body)


def geometric_jacobian_rate(
    system: System, q: ArrayLike, v: ArrayLike, body: Index
) -> Float[Array, "6 nv"]:
    """The time derivative (6, nv) of `geometric_jacobian`, in 1/s.

    J a + J' v is the angular acceleration and the acceleration of the body's origin, both in world
    coordinates.
    """
    return evaluated(jacobians.geometric_column_rates, system, q=q, v=v, body=body)


def integrate(system: System, q: ArrayLike, dv: Any) -> Float[Array, " nq"]:
    """The configuration (nq,) reached from q (nq,) at the constant rate dv (nv,) in unit time."""
    checked(system)
    q, dv = checked(system, q=(q, (system.nq,)), v=(dv, (system.nv,)))
    return system.manifold.retract(q, dv)


def difference(system: System, q0: ArrayLike, q1: Any) -> Float[Array, " nv"]:
    """The rate (nv,) of least rotation with integrate(q0, difference(q0, q1)) = q1."""
    checked(system)
    q0, q1 = checked(system, q0=(q0, (system.nq,)), q1=(q1, (system.nq,)))
    return system.manifold.difference(q0, q1)

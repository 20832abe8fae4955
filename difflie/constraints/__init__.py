"""Constraints between bodies and between joints: closed loops, and joints of free bodies.

The functions here are those of constrained motion; each checks its arrays, compiles itself once for
each system topology, and inlines under the transformations of jax. With g the equations of
positions, A v those of velocities, and c = (dA/dt) v:

    M a + bias = tau + sum J^T wrench + A^T lambda,    A a + c = 0
"""

from __future__ import annotations

from typing import Any

import jax

from ..system.linkage import linkage
from ..system.system import System
from ..system.validation import checked
from .assembly import assemble as assemble
from .assembly import check_consistent as check_consistent
from .assembly import mobility as mobility
from .assembly import redundant_equations as redundant_equations
from .constrain import constrain as constrain
from .constraint import Constraint as Constraint
from .constraint import CoordinateConstraint as CoordinateConstraint
from .constraint import FrameConstraint as FrameConstraint
from .constraint import VelocityConstraint as VelocityConstraint
from .curves import Curve as Curve
from .curves import PolynomialCurve as PolynomialCurve
from .curves import SplineCurve as SplineCurve
from .distance import Distance as Distance
from .equations import equations
from .frame import Frame as Frame
from .gears import Gear as Gear
from .gears import Transmission as Transmission
from .helical import Helical as Helical
from .joints import Cylindrical as Cylindrical
from .joints import Fixed as Fixed
from .joints import JointConstraint as JointConstraint
from .joints import Planar as Planar
from .joints import Prismatic as Prismatic
from .joints import Revolute as Revolute
from .joints import Spherical as Spherical
from .joints import Translation as Translation
from .joints import Universal as Universal
from .motion import constrained_acceleration
from .point_on_curve import PointOnCurve as PointOnCurve
from .proportional import Proportional as Proportional
from .rolling import KnifeEdge as KnifeEdge
from .rolling import RollingDisk as RollingDisk
from .stabilisation import Baumgarte as Baumgarte
from .stabilisation import NullSpace as NullSpace
from .stabilisation import Projection as Projection
from .stabilisation import Stabilisation as Stabilisation
from .stabilisation import Unstabilised as Unstabilised


def constrained_dynamics(
    system: System, q: Any, v: Any, tau: Any, wrench: Any = None
) -> tuple[jax.Array, jax.Array]:
    """The acceleration a (nv,) and the multipliers lambda (m,) of the m constraint equations.

    tau (nv,) and wrench (nb, 6) as in `forward_dynamics`. A^T lambda is the reaction that acts on
    the system: forces in N for equations between lengths, moments in N m for those between
    directions. Of redundant equations the multipliers are the smallest, and a is unique.
    """
    sizes = {"q": (q, (system.nq,)), "v": (v, (system.nv,)), "tau": (tau, (system.nv,))}
    q, v, tau = checked(system, **sizes)
    if wrench is not None:
        (wrench,) = checked(system, wrench=(wrench, (len(system.body_names), 6)))
    return _constrained_dynamics(system, linkage(system), q, v, tau, wrench)


def constraint_residual(system: System, q: Any) -> jax.Array:
    """g(q) (p,) at q (nq,): p equations of positions, in m or without unit."""
    (q,) = checked(system, q=(q, (system.nq,)))
    return _residual(system, linkage(system), q)


def constraint_jacobian(system: System, q: Any) -> jax.Array:
    """A(q) (m, nv) of all m equations at q (nq,): A v is zero where they hold."""
    (q,) = checked(system, q=(q, (system.nq,)))
    return _jacobian(system, linkage(system), q)


def constraint_bias(system: System, q: Any, v: Any) -> jax.Array:
    """c = (dA/dt) v (m,) at q (nq,), v (nv,)."""
    q, v = checked(system, q=(q, (system.nq,)), v=(v, (system.nv,)))
    return _bias(system, linkage(system), q, v)


_constrained_dynamics = jax.jit(constrained_acceleration)
_residual = jax.jit(lambda system, linkage, q: equations(system, linkage, q).residual())
_jacobian = jax.jit(lambda system, linkage, q: equations(system, linkage, q).jacobian())
_bias = jax.jit(lambda system, linkage, q, v: equations(system, linkage, q).bias(v))

"""Constraints between bodies and between joints: closed loops, and joints of free bodies.

The functions here are those of constrained motion. Each checks its arrays, compiles once for each
system topology, and inlines under the transformations of jax. With g the position constraints, A v
the velocity constraints, and c = (dA/dt) v:

    M a + bias = tau + sum J^T wrench + A^T lambda,    A a + c = 0

g is in m where it is a length and without unit where it compares directions; A v and A a + c are in
the same per s and per s^2; lambda is in N or N m.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from ..deprecated import names_of
from ..solvers.linear import product
from ..system.arguments import checked
from ..system.frame import Frame as Frame
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.traverse import tree_algorithm
from .absolute import absolute as absolute
from .absolute import absolute_state as absolute_state
from .assembly import assemble as assemble
from .assembly import start_error as start_error
from .constraint import Constraint as Constraint
from .constraint import CoordinateConstraint as CoordinateConstraint
from .constraint import FrameConstraint as FrameConstraint
from .constraint import JointConstraint as JointConstraint
from .constraint import MixedConstraint as MixedConstraint
from .constraint import VelocityConstraint as VelocityConstraint
from .constraint import constrain as constrain
from .coupled import Gear as Gear
from .coupled import Polynomial as Polynomial
from .coupled import PolynomialOfSums as PolynomialOfSums
from .coupled import Proportional as Proportional
from .coupled import Transmission as Transmission
from .curves import Curve as Curve
from .curves import PointOnCurve as PointOnCurve
from .curves import PolynomialCurve as PolynomialCurve
from .curves import SplineCurve as SplineCurve
from .equations import compiled_jacobian, equations
from .friction import Bearing as Bearing
from .friction import Friction as Friction
from .joints import CylindricalConstraint as CylindricalConstraint
from .joints import Distance as Distance
from .joints import FixedConstraint as FixedConstraint
from .joints import HelicalConstraint as HelicalConstraint
from .joints import PlanarConstraint as PlanarConstraint
from .joints import PrismaticConstraint as PrismaticConstraint
from .joints import RevoluteConstraint as RevoluteConstraint
from .joints import SphericalConstraint as SphericalConstraint
from .joints import TranslationConstraint as TranslationConstraint
from .joints import UniversalConstraint as UniversalConstraint
from .lengths import LengthConstraint as LengthConstraint
from .lock import lock as lock
from .motion import constrained_acceleration
from .position import preserving_constraints
from .redundancy import inconsistent_parameters as inconsistent_parameters
from .redundancy import mobility as mobility
from .redundancy import redundant_equations as redundant_equations
from .rolling import KnifeEdge as KnifeEdge
from .rolling import RollingDisk as RollingDisk
from .stabilisation import Baumgarte as Baumgarte
from .stabilisation import NullSpace as NullSpace
from .stabilisation import Projection as Projection
from .stabilisation import Stabilisation as Stabilisation
from .stabilisation import Unstabilised as Unstabilised
from .unilateral import HardContact as HardContact
from .unilateral import HardStop as HardStop
from .unilateral import PointOnPlane as PointOnPlane
from .unilateral import SphereOnPlane as SphereOnPlane
from .unilateral import SphereOnSphere as SphereOnSphere
from .unilateral import Unilateral as Unilateral
from .unilateral import bilateral


def constrained_dynamics(
    system: System, q: ArrayLike, v: ArrayLike, tau: ArrayLike, wrench: ArrayLike | None = None
) -> tuple[Float[Array, " nv"], Float[Array, " m"]]:
    """The acceleration a (nv,) and the multipliers lambda (m,) of the m constraint equations.

    q (nq,), v (nv,); tau (nv,) and wrench (nb, 6) as in `forward_dynamics`. A^T lambda is the
    reaction that acts on the system: forces in N for equations between lengths, moments in N m for
    those between directions. With redundant constraints lambda is the solution of minimum norm, and
    a is unique. The friction in joints that their reactions cause (`constraints.Friction`) is
    included in a.

    A change of q or of the system that makes redundant constraints inconsistent, such as of a
    single length of an overconstrained linkage, has no derivative: forward mode gives NaN. Reverse
    mode cannot know which changes are meant: its gradients hold for changes that keep the
    constraints consistent, and `inconsistent_parameters` names the leaves that do not.
    """
    sizes = {"q": (q, (system.nq,)), "v": (v, (system.nv,)), "tau": (tau, (system.nv,))}
    q, v, tau = checked(system, **sizes)
    if wrench is not None:
        (wrench,) = checked(system, wrench=(wrench, (len(system.body_names), 6)))
    return _constrained_dynamics(Tree.of(bilateral(system)), q, v, tau, wrench)


def constraint_residual(system: System, q: ArrayLike) -> Float[Array, " p"]:
    """The residual g (p,) of the p position constraints at q (nq,), in m or without unit."""
    (q,) = checked(system, q=(q, (system.nq,)))
    return _residual(Tree.of(bilateral(system)), q)


def constraint_jacobian(system: System, q: ArrayLike) -> Float[Array, "m nv"]:
    """The constraint Jacobian A (m, nv) of all m equations at q (nq,): they say A v = 0.

    A v is in the units of `constraint_residual` per s; for velocity constraints in m/s, or as their
    classes say.
    """
    (q,) = checked(system, q=(q, (system.nq,)))
    return compiled_jacobian(Tree.of(bilateral(system)), q)


def constraint_bias(system: System, q: ArrayLike, v: ArrayLike) -> Float[Array, " m"]:
    """The constraint bias acceleration c = (dA/dt) v (m,) at q (nq,), v (nv,), in A v per s.

    Accelerations a (nv,) that keep the constraints have A a + c = 0.
    """
    q, v = checked(system, q=(q, (system.nq,)), v=(v, (system.nv,)))
    return _bias(Tree.of(bilateral(system)), q, v)


@jax.jit
@tree_algorithm
def _constrained_dynamics(tree, q, v, tau, wrench):
    a, multipliers = constrained_acceleration(tree, q, v, tau, wrench)
    here = equations(tree, q)
    A = here.jacobian()
    left = product(A, a) + here.bias(v)
    both = preserving_constraints(
        jnp.concatenate((a, multipliers)), left, jnp.max(jnp.abs(A), initial=0)
    )
    return both[: len(v)], both[len(v) :]


_residual = jax.jit(tree_algorithm(lambda tree, q: equations(tree, q).residual()))
_bias = jax.jit(tree_algorithm(lambda tree, q, v: equations(tree, q).bias(v)))

__getattr__ = names_of(__name__)

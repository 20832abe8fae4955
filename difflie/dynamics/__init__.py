"""The dynamics of a system: the functions a user calls.

Each takes a `System` and flat arrays q (nq,), v (nv,), ... in its precision, checks them, and
compiles itself once for each system topology. Under `jax.vmap`, `jax.jit` and `jax.grad` they
inline. Twists and wrenches have their angular part first and are body-fixed unless said.

Units are SI, dof by dof those of the joint: v in rad/s or m/s, a generalised force in N m or N, and
M in kg m^2 or kg, or kg m between a turning and a sliding dof.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
from jax.core import Tracer
from jaxtyping import Array, Float

from ..system.arguments import checked
from ..system.frame import as_frame
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.validation import ModelError, nearest
from . import centroidal, coriolis, derivatives, jacobians, regressor
from .closed_form import ClosedForm, closed
from .crba import crba
from .energy import total_momentum
from .factorisation import Factorisation, factorised
from .forward import acceleration, mass_inverse, mass_inverse_times, mass_times
from .identifiable import BaseParameters as BaseParameters
from .identifiable import independent_columns, sampled_regressor
from .kinematics import body_twist_components, body_world_poses
from .operational_space import OperationalSpace as OperationalSpace
from .operational_space import operational_space as of_frame
from .rnea import rnea

Index = str | int | jax.Array


def forward_dynamics(
    system: System, q: Any, v: Any, tau: Any, wrench: Any = None
) -> Float[Array, " nv"]:
    """The acceleration a (nv,) with M a + bias = tau + sum J^T wrench.

    q (nq,), v (nv,), tau (nv,): the whole generalised force in N m or N; springs, damping,
    friction and drives are not added (see `passive_force`). wrench (nb, 6): external wrenches
    (moment, force) on the bodies, in body frames. Articulated-body algorithm, O(n); with mimic
    joints a dense solve.
    Raises ValueError and TypeError as `checked` does.
    """
    q, v, tau = _state(system, q=q, v=v, tau=tau)
    return _forward_dynamics(_tree(system), q, v, tau, _wrench(system, wrench))


def inverse_dynamics(
    system: System, q: Any, v: Any, a: Any, wrench: Any = None
) -> Float[Array, " nv"]:
    """The generalised force tau (nv,) that gives the acceleration a (nv,).

    Shapes and wrench as in `forward_dynamics`, whose inverse this is. Recursive Newton-Euler, O(n).
    """
    q, v, a = _state(system, q=q, v=v, a=a)
    return _inverse_dynamics(_tree(system), q, v, a, _wrench(system, wrench))


def bias_force(system: System, q: Any, v: Any) -> Float[Array, " nv"]:
    """The generalised force (nv,) of Coriolis, centrifugal and gravity terms: tau at a = 0."""
    q, v = _state(system, q=q, v=v)
    return _inverse_dynamics(_tree(system), q, v, jax.numpy.zeros_like(v), None)


def gravity_force(system: System, q: Any) -> Float[Array, " nv"]:
    """The generalised force (nv,) that holds the system at rest against gravity, in N m or N."""
    (q,) = _state(system, q=q)
    still = jax.numpy.zeros(system.nv, q.dtype)
    return _inverse_dynamics(_tree(system), q, still, still, None)


def mass_matrix(system: System, q: Any) -> Float[Array, "nv nv"]:
    """The mass matrix M(q) (nv, nv), armature included; kinetic energy is v . M v / 2."""
    (q,) = _state(system, q=q)
    return _mass_matrix(_tree(system), q)


def mass_product(system: System, q: Any, x: Any) -> Float[Array, " nv"]:
    """M(q) x (nv,): the generalised force that accelerates a system at rest by x (nv,).

    Gravity left out. Recursive Newton-Euler, O(n); M is not formed.
    """
    q, x = _state(system, q=q, x=x)
    return _mass_product(_tree(system), q, x)


def mass_solve(system: System, q: Any, x: Any) -> Float[Array, " nv"]:
    """M(q)^-1 x (nv,): the acceleration of a system at rest under the generalised force x (nv,).

    Gravity left out. Articulated-body algorithm, O(n); M is not formed, save with mimic joints.
    """
    q, x = _state(system, q=q, x=x)
    return _mass_solve(_tree(system), q, x)


def inverse_mass_matrix(system: System, q: Any) -> Float[Array, "nv nv"]:
    """The inverse (nv, nv) of the mass matrix, one solve for each dof; symmetric up to rounding."""
    (q,) = _state(system, q=q)
    return _inverse_mass_matrix(_tree(system), q)


def mass_factorisation(system: System, q: Any) -> Factorisation:
    """The factorisation M = L^T D L of the mass matrix at q (nq,), for solves and products.

    L is unit lower triangular and as sparse as the tree is branched. Raises ValueError for systems
    with mimic joints, which tie branches together.
    """
    (q,) = _state(system, q=q)
    _independent(system, "mass_factorisation", "solve with mass_matrix or mass_solve instead")
    return _mass_factorisation(_tree(system), q)


def body_poses(system: System, q: Any) -> Float[Array, "nb 4 4"]:
    """The poses (nb, 4, 4) of all bodies, body to world coordinates, as in `body_names`."""
    (q,) = _state(system, q=q)
    return _body_poses(_tree(system), q)


def body_twists(system: System, q: Any, v: Any) -> Float[Array, "nb 6"]:
    """The body-fixed twists (nb, 6) of all bodies, angular part first (rad/s, m/s)."""
    q, v = _state(system, q=q, v=v)
    return _body_twists(_tree(system), q, v)


def body_jacobian(system: System, q: Any, body: Index) -> Float[Array, "6 nv"]:
    """The Jacobian (6, nv) of a body: J v is its body-fixed twist.

    body: its name or index. A `jax.vmap` over indices takes all bodies at once, here and below.
    """
    (q,) = _state(system, q=q)
    return _body_jacobian(_tree(system), q, _index(system, body))


def spatial_jacobian(system: System, q: Any, body: Index) -> Float[Array, "6 nv"]:
    """The Jacobian (6, nv) whose J v is the body's twist in world axes, at the world origin.

    The linear part is the velocity of the point of the body, thought unbounded, that is at the
    world origin at the moment; "spatial" after Murray, Li and Sastry.
    """
    (q,) = _state(system, q=q)
    return _spatial_jacobian(_tree(system), q, _index(system, body))


def geometric_jacobian(system: System, q: Any, body: Index) -> Float[Array, "6 nv"]:
    """The Jacobian (6, nv) whose J v is the body's twist in world axes, at the body's origin.

    The angular velocity and the velocity of the body's origin, both in the world.
    """
    (q,) = _state(system, q=q)
    return _geometric_jacobian(_tree(system), q, _index(system, body))


def body_jacobian_rate(system: System, q: Any, v: Any, body: Index) -> Float[Array, "6 nv"]:
    """The derivative (6, nv) of `body_jacobian` with respect to time, in 1/s.

    With it the derivative of the body-fixed twist is J a + J' v.
    """
    q, v = _state(system, q=q, v=v)
    return _body_jacobian_rate(_tree(system), q, v, _index(system, body))


def spatial_jacobian_rate(system: System, q: Any, v: Any, body: Index) -> Float[Array, "6 nv"]:
    """The derivative (6, nv) of `spatial_jacobian` with respect to time, in 1/s.

    With it the body's spatial acceleration in world axes, at the world origin, is J a + J' v.
    """
    q, v = _state(system, q=q, v=v)
    return _spatial_jacobian_rate(_tree(system), q, v, _index(system, body))


def geometric_jacobian_rate(system: System, q: Any, v: Any, body: Index) -> Float[Array, "6 nv"]:
    """The derivative (6, nv) of `geometric_jacobian` with respect to time, in 1/s.

    With it the angular acceleration and the acceleration of the body's origin, both in the world,
    are J a + J' v.
    """
    q, v = _state(system, q=q, v=v)
    return _geometric_jacobian_rate(_tree(system), q, v, _index(system, body))


def total_mass(system: System) -> Float[Array, ""]:
    """The mass of the system in kg, a scalar; bodies fixed to the world do not count."""
    return _mass(_tree(system))


def center_of_mass(system: System, q: Any) -> Float[Array, "3"]:
    """The centre of mass (3,) in the world, in m; bodies fixed to the world do not count."""
    (q,) = _state(system, q=q)
    return _center_of_mass(_tree(system), q)


def center_of_mass_jacobian(system: System, q: Any) -> Float[Array, "3 nv"]:
    """The Jacobian (3, nv) whose J v is the velocity of the centre of mass in the world (m/s)."""
    (q,) = _state(system, q=q)
    return _center_of_mass_jacobian(_tree(system), q)


def centroidal_momentum_matrix(system: System, q: Any) -> Float[Array, "6 nv"]:
    """The matrix A (6, nv) whose A v is the momentum about the centre of mass, in world axes.

    First the angular momentum (N m s), then the linear (N s). Armature has no part in it, as in
    `momentum`.
    """
    (q,) = _state(system, q=q)
    return _centroidal_momentum_matrix(_tree(system), q)


def coriolis_matrix(system: System, q: Any, v: Any) -> Float[Array, "nv nv"]:
    """The Coriolis matrix C (nv, nv): C v + gravity = bias force, and dM/dt = C + C^T.

    dM/dt is the derivative of `mass_matrix` along v; for group joints its entries belong to
    body-fixed velocities. dM/dt - 2 C is then skew. C v does not determine C: this is the choice of
    Niemeyer and Slotine, and the Christoffel symbols where v is the derivative of q.
    """
    q, v = _state(system, q=q, v=v)
    return _coriolis_matrix(_tree(system), q, v)


def inverse_dynamics_derivatives(
    system: System, q: Any, v: Any, a: Any, wrench: Any = None
) -> tuple[Float[Array, "nv nv"], Float[Array, "nv nv"], Float[Array, "nv nv"]]:
    """dtau/dq, dtau/dv and dtau/da = M, each (nv, nv), of `inverse_dynamics`.

    dq is a tangent: column k is the derivative along `integrate(system, q, s e_k)` at s = 0.
    Wrenches (nb, 6) stay constant in their body frames. In closed form (Carpentier and Mansard
    2018), as fast as a few matrix products.
    """
    q, v, a = _state(system, q=q, v=v, a=a)
    return _inverse_derivatives(_tree(system), q, v, a, _wrench(system, wrench))


def forward_dynamics_derivatives(
    system: System, q: Any, v: Any, tau: Any, wrench: Any = None
) -> tuple[Float[Array, "nv nv"], Float[Array, "nv nv"], Float[Array, "nv nv"]]:
    """da/dq, da/dv and da/dtau = M^-1, each (nv, nv), of `forward_dynamics`.

    Tangents and wrenches as in `inverse_dynamics_derivatives`.
    """
    q, v, tau = _state(system, q=q, v=v, tau=tau)
    return _forward_derivatives(_tree(system), q, v, tau, _wrench(system, wrench))


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
    q, v, a = _state(system, q=q, v=v, a=a)
    return _inverse_dynamics_regressor(_tree(system), q, v, a)


def kinetic_energy_regressor(system: System, q: Any, v: Any) -> Float[Array, " n_parameters"]:
    """The row y (10 nb,) with y . pi + armature v^2 / 2 = the kinetic energy; pi as above."""
    q, v = _state(system, q=q, v=v)
    return _kinetic_energy_regressor(_tree(system), q, v)


def potential_energy_regressor(system: System, q: Any) -> Float[Array, " n_parameters"]:
    """The row y (10 nb,) with y . pi = the potential energy, pi `inertial_parameters` as a row."""
    (q,) = _state(system, q=q)
    return _potential_energy_regressor(_tree(system), q)


def momentum_regressor(system: System, q: Any, v: Any) -> Float[Array, "6 n_parameters"]:
    """The matrix Y (6, 10 nb) with Y pi = `momentum`, pi `inertial_parameters` as a row."""
    q, v = _state(system, q=q, v=v)
    return _momentum_regressor(_tree(system), q, v)


def base_parameters(system: System) -> BaseParameters:
    """The minimal parameters on which inverse dynamics depend; not for use in a trace.

    matrix (rank, 10 nb) takes the inertial parameters (nb, 10), one body after the other, to the
    base parameters; columns (rank,) are those of the regressor that remain. Found from
    the regressors of random states, by which columns depend on each other to the square root of the
    rounding unit: use double precision.
    """
    return independent_columns(sampled_regressor(_tree(system)))


def momentum(system: System, q: Any, v: Any) -> Float[Array, "6"]:
    """The momentum (6,) in world coordinates: angular about the world origin, then linear."""
    q, v = _state(system, q=q, v=v)
    return _momentum(_tree(system), q, v)


def operational_space(system: System, q: Any, v: Any, frame: Any) -> OperationalSpace:
    """The inertia, bias and gravity that a frame feels, in its own axes: F = Lambda dV/dt + mu + p.

    frame: a `Frame` on a body, or a body's name; V (6,) is its twist in its own axes, and F (6,)
    the wrench at it. Source: Khatib, A unified approach for motion and force control of robot
    manipulators, IEEE J. Robotics Automation 3 (1987), equations 9 to 12. Raises `ModelError`
    for a frame of the world or on no body.
    """
    q, v = _state(system, q=q, v=v)
    frame = as_frame(frame)
    if frame.body is None:
        raise ModelError(f"{system.name}: the world does not move; give a frame on a body")
    inner = jax.tree.map(lambda a: a.astype(q.dtype), frame).pose
    return _operational_space(_tree(system), q, v, _index(system, frame.body), inner)


def integrate(system: System, q: Any, dv: Any) -> Float[Array, " nq"]:
    """The configuration (nq,) reached from q along the constant rate dv (nv,) in unit time."""
    q, dv = _state(system, q=q, v=dv)
    return system.manifold.retract(q, dv)


def difference(system: System, q0: Any, q1: Any) -> Float[Array, " nv"]:
    """The rate (nv,) with integrate(q0, difference(q0, q1)) = q1, of least rotation."""
    size = (system.nq,)
    q0, q1 = checked(system, q0=(q0, size), q1=(q1, size))
    return system.manifold.difference(q0, q1)


def closed_form(system: System, q: Any, v: Any, frames: Any = None) -> ClosedForm:
    """The matrices of Ploen and Park's closed form at q (nq,), v (nv,), and its algorithms.

    frames (nv, 4, 4): for each degree of freedom the pose that takes coordinates of its own frame
    to those of the frame to write everything in. Raises ValueError for systems with mimic joints
    and for those on which nothing moves.
    """
    q, v = _state(system, q=q, v=v)
    if not system.nv:
        raise ValueError(f"{system.name}: closed_form needs a joint that moves, and none does")
    _independent(system, "closed_form", "build the system without mimic joints")
    if frames is not None:
        (frames,) = checked(system, frames=(frames, (system.nv, 4, 4)))
    return _closed_form(_tree(system), q, v, frames)


def _state(system: System, **arrays: Any) -> list[jax.Array]:
    checked(system)
    sizes = {"q": (system.nq,)}
    return checked(system, **{k: (a, sizes.get(k, (system.nv,))) for k, a in arrays.items()})


def _index(system: System, body: Index) -> int | jax.Array:
    names = system.body_names
    if isinstance(body, str):
        if body not in names:
            raise ValueError(f"{system.name}: no body is named {body!r}{nearest(body, names)}")
        return names.index(body)
    return body if isinstance(body, Tracer) else range(len(names))[body]


def _independent(system: System, name: str, fix: str) -> None:
    mimics = [
        system.topology.joints[b] for b, m in enumerate(system.topology.mimics) if m is not None
    ]
    if mimics:
        raise ValueError(
            f"{system.name}: {name} needs independent coordinates, but the joint {mimics[0]!r} "
            f"mimics another; {fix}"
        )


def _tree(system: System) -> Tree:
    """Of bodies and joints alone, so that nothing is compiled anew for what is attached to them."""
    if system.couplings or system.constraints or system.actuators or system.sensors:
        system = replace(system, couplings=(), constraints=(), actuators=(), sensors=())
    return Tree.of(system)


def _wrench(system: System, wrench: Any) -> Float[Array, "nb 6"] | None:
    if wrench is None:
        return None
    return checked(system, wrench=(wrench, (len(system.body_names), 6)))[0]


@jax.jit
def _forward_dynamics(link, q, v, tau, wrench):
    return acceleration(link, q, v, tau, wrench)


@jax.jit
def _inverse_dynamics(link, q, v, a, wrench):
    return rnea(link, q, v, a, wrench)


@jax.jit
def _mass_matrix(link, q):
    return crba(link, q)


@jax.jit
def _mass_product(link, q, x):
    return mass_times(link, q, x)


@jax.jit
def _mass_solve(link, q, x):
    return mass_inverse_times(link, q, x)


@jax.jit
def _mass_factorisation(link, q):
    return factorised(link, q)


@jax.jit
def _inverse_mass_matrix(link, q):
    return mass_inverse(link, q)


@jax.jit
def _closed_form(link, q, v, frames):
    return closed(link, q, v, frames)


@jax.jit
def _body_poses(link, q):
    return body_world_poses(link, q).to_array()


@jax.jit
def _body_twists(link, q, v):
    return body_twist_components(link, q, v).to_array()


@jax.jit
def _momentum(link, q, v):
    return total_momentum(link, q, v)


_body_jacobian = jax.jit(jacobians.body_columns)
_spatial_jacobian = jax.jit(jacobians.spatial_columns)
_geometric_jacobian = jax.jit(jacobians.geometric_columns)
_body_jacobian_rate = jax.jit(jacobians.body_column_rates)
_spatial_jacobian_rate = jax.jit(jacobians.spatial_column_rates)
_geometric_jacobian_rate = jax.jit(jacobians.geometric_column_rates)
_mass = jax.jit(centroidal.mass)
_center_of_mass = jax.jit(centroidal.center_of_mass)
_center_of_mass_jacobian = jax.jit(centroidal.center_columns)
_centroidal_momentum_matrix = jax.jit(centroidal.momentum_columns)
_operational_space = jax.jit(of_frame)
_coriolis_matrix = jax.jit(coriolis.matrix)
_inverse_derivatives = jax.jit(derivatives.of_inverse_dynamics)
_forward_derivatives = jax.jit(derivatives.of_forward_dynamics)
_inverse_dynamics_regressor = jax.jit(regressor.effort_columns)
_kinetic_energy_regressor = jax.jit(regressor.kinetic_columns)
_potential_energy_regressor = jax.jit(regressor.potential_columns)
_momentum_regressor = jax.jit(regressor.momentum_columns)

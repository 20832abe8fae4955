"""The dynamics of a system: the functions a user calls.

Each takes a `System` and flat arrays q (nq,), v (nv,), ... in its precision, checks them, and
compiles itself once for each system topology. Under `jax.vmap`, `jax.jit` and `jax.grad` they
inline. Twists and wrenches have their angular part first and are body-fixed unless said.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax

from .. import native
from ..system.linkage import linkage
from ..system.system import System
from ..system.validation import checked, nearest
from .closed_form import ClosedForm, closed
from .crba import crba
from .energy import kinetic_energy, potential_energy, total_momentum
from .factorisation import Factorisation, factorised
from .forward import acceleration, mass_inverse, mass_inverse_times, mass_times
from .kinematics import body_jacobian_components, body_twist_components, body_world_poses
from .rnea import rnea

_rnea = native.mark(rnea)
_acceleration = native.mark(acceleration)
_crba = native.mark(crba)
_mass_times = native.mark(mass_times)
_mass_inverse_times = native.mark(mass_inverse_times)


def forward_dynamics(system: System, q: Any, v: Any, tau: Any, wrench: Any = None) -> jax.Array:
    """The acceleration a (nv,) with M a + bias = tau + sum J^T wrench.

    q (nq,), v (nv,), tau (nv,): the whole generalised force in N m or N; damping, friction and
    drives are not added (see `passive_force`). wrench (nb, 6): external wrenches (moment, force) on
    the bodies, in body frames. Articulated-body algorithm, O(n); with mimic joints a dense solve.
    Raises ValueError and TypeError as `checked` does.
    """
    q, v, tau = _state(system, q=q, v=v, tau=tau)
    return _forward_dynamics(linkage(system), q, v, tau, _wrench(system, wrench))


def inverse_dynamics(system: System, q: Any, v: Any, a: Any, wrench: Any = None) -> jax.Array:
    """The generalised force tau (nv,) that gives the acceleration a (nv,).

    Shapes and wrench as in `forward_dynamics`, whose inverse this is. Recursive Newton-Euler, O(n).
    """
    q, v, a = _state(system, q=q, v=v, a=a)
    return _inverse_dynamics(linkage(system), q, v, a, _wrench(system, wrench))


def bias_force(system: System, q: Any, v: Any) -> jax.Array:
    """The generalised force (nv,) of Coriolis, centrifugal and gravity terms: tau at a = 0."""
    q, v = _state(system, q=q, v=v)
    return _inverse_dynamics(linkage(system), q, v, jax.numpy.zeros_like(v), None)


def gravity_force(system: System, q: Any) -> jax.Array:
    """The generalised force (nv,) that holds the system at rest against gravity, in N m or N."""
    (q,) = _state(system, q=q)
    still = jax.numpy.zeros(system.nv, q.dtype)
    return _inverse_dynamics(linkage(system), q, still, still, None)


def mass_matrix(system: System, q: Any) -> jax.Array:
    """The mass matrix M(q) (nv, nv), armature included; kinetic energy is v . M v / 2."""
    (q,) = _state(system, q=q)
    return _mass_matrix(linkage(system), q)


def mass_product(system: System, q: Any, x: Any) -> jax.Array:
    """M(q) x (nv,): the generalised force that accelerates a system at rest by x (nv,).

    Gravity left out. Recursive Newton-Euler, O(n); M is not formed.
    """
    q, x = _state(system, q=q, x=x)
    return _mass_product(linkage(system), q, x)


def mass_solve(system: System, q: Any, x: Any) -> jax.Array:
    """M(q)^-1 x (nv,): the acceleration of a system at rest under the generalised force x (nv,).

    Gravity left out. Articulated-body algorithm, O(n); M is not formed, save with mimic joints.
    """
    q, x = _state(system, q=q, x=x)
    return _mass_solve(linkage(system), q, x)


def inverse_mass_matrix(system: System, q: Any) -> jax.Array:
    """The inverse (nv, nv) of the mass matrix, one solve for each row; symmetric up to rounding."""
    (q,) = _state(system, q=q)
    return _inverse_mass_matrix(linkage(system), q)


def mass_factorisation(system: System, q: Any) -> Factorisation:
    """The factorisation M = L^T D L of the mass matrix at q (nq,), for solves and products.

    L is unit lower triangular and as sparse as the tree is branched. Raises ValueError for systems
    with mimic joints, which tie branches together.
    """
    (q,) = _state(system, q=q)
    _independent(system, "mass_factorisation", "solve with mass_matrix or mass_solve instead")
    return _mass_factorisation(linkage(system), q)


def body_poses(system: System, q: Any) -> jax.Array:
    """The poses (nb, 4, 4) of all bodies, body to world coordinates, as in `body_names`."""
    (q,) = _state(system, q=q)
    return _body_poses(linkage(system), q)


def body_twists(system: System, q: Any, v: Any) -> jax.Array:
    """The body-fixed twists (nb, 6) of all bodies, angular part first (rad/s, m/s)."""
    q, v = _state(system, q=q, v=v)
    return _body_twists(linkage(system), q, v)


def body_jacobian(system: System, q: Any, body: str | int) -> jax.Array:
    """The Jacobian (6, nv) of a body, by name or index: J v is its body-fixed twist."""
    (q,) = _state(system, q=q)
    names = system.body_names
    if isinstance(body, str):
        if body not in names:
            raise ValueError(f"{system.name}: no body is named {body!r}{nearest(body, names)}")
        body = names.index(body)
    return _body_jacobian(linkage(system), q, body)


def energy(system: System, q: Any, v: Any) -> tuple[jax.Array, jax.Array]:
    """Kinetic and potential energy in J, scalars; the potential is zero at the world origin.

    Bodies fixed to the world count in neither.
    """
    q, v = _state(system, q=q, v=v)
    return _energy(linkage(system), q, v)


def momentum(system: System, q: Any, v: Any) -> jax.Array:
    """The momentum (6,) in world coordinates: angular about the world origin, then linear."""
    q, v = _state(system, q=q, v=v)
    return _momentum(linkage(system), q, v)


def integrate(system: System, q: Any, dv: Any) -> jax.Array:
    """The configuration (nq,) reached from q along the constant rate dv (nv,) in unit time."""
    q, dv = _state(system, q=q, v=dv)
    return system.manifold.retract(q, dv)


def difference(system: System, q0: Any, q1: Any) -> jax.Array:
    """The rate (nv,) with integrate(q0, difference(q0, q1)) = q1, of least rotation."""
    size = (system.nq,)
    q0, q1 = checked(system, q0=(q0, size), q1=(q1, size))
    return system.manifold.difference(q0, q1)


def closed_form(system: System, q: Any, v: Any, frames: Any = None) -> ClosedForm:
    """The matrices of Ploen and Park's closed form at q (nq,), v (nv,), and its algorithms.

    frames (nv, 4, 4): for each degree of freedom the pose that takes coordinates of its own frame
    to those of the frame to write everything in. Raises ValueError for systems with mimic joints.
    """
    q, v = _state(system, q=q, v=v)
    _independent(system, "closed_form", "build the system without mimic joints")
    if frames is not None:
        (frames,) = checked(system, frames=(frames, (system.nv, 4, 4)))
    return _closed_form(linkage(system), q, v, frames)


def _state(system: System, **arrays: Any) -> list[jax.Array]:
    sizes = {"q": (system.nq,)}
    return checked(system, **{k: (a, sizes.get(k, (system.nv,))) for k, a in arrays.items()})


def _independent(system: System, name: str, mend: str) -> None:
    mimics = [
        system.topology.joints[b] for b, m in enumerate(system.topology.mimics) if m is not None
    ]
    if mimics:
        raise ValueError(
            f"{system.name}: {name} needs independent coordinates, but the joint {mimics[0]!r} "
            f"mimics another; {mend}"
        )


def _wrench(system: System, wrench: Any) -> jax.Array | None:
    if wrench is None:
        return None
    return checked(system, wrench=(wrench, (len(system.body_names), 6)))[0]


@jax.jit
def _forward_dynamics(link, q, v, tau, wrench):
    return _acceleration(link, q, v, tau, wrench)


@jax.jit
def _inverse_dynamics(link, q, v, a, wrench):
    return _rnea(link, q, v, a, wrench)


@jax.jit
def _mass_matrix(link, q):
    return _crba(link, q)


@jax.jit
def _mass_product(link, q, x):
    return _mass_times(link, q, x)


@jax.jit
def _mass_solve(link, q, x):
    return _mass_inverse_times(link, q, x)


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


@partial(jax.jit, static_argnames="body")
def _body_jacobian(link, q, body):
    return body_jacobian_components(link, q, body)


@jax.jit
def _energy(link, q, v):
    return kinetic_energy(link, q, v), potential_energy(link, q)


@jax.jit
def _momentum(link, q, v):
    return total_momentum(link, q, v)

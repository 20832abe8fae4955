"""The equations of motion: forces, accelerations, and the matrices that connect them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from ...system.arguments import check_independent, checked
from ...system.frame import as_frame
from ...system.system import System
from ...system.validation import ModelError
from .. import coriolis, derivatives, forward
from ..closed_form import ClosedForm, closed
from ..crba import crba
from ..factorisation import Factorisation, factorised
from ..operational_space import OperationalSpace, of_frame
from ..rnea import rnea
from .evaluate import bare_tree, body_index, compiled, evaluated


def forward_dynamics(
    system: System, q: ArrayLike, v: ArrayLike, tau: ArrayLike, wrench: ArrayLike | None = None
) -> Float[Array, " nv"]:
    """The acceleration a (nv,) with M a + bias = tau + sum J^T wrench.

    q (nq,), v (nv,), tau (nv,): the whole generalised force in N m or N. Springs, damping, friction
    and drives are not added (see `passive_force`). wrench (nb, 6): external wrenches (moment,
    force) on the bodies, in body frames. Articulated-body algorithm, O(n); with mimic joints a
    dense solve. Raises ValueError and TypeError as `checked` does.
    """
    return evaluated(forward.acceleration, system, q=q, v=v, tau=tau, wrench=wrench)


def inverse_dynamics(
    system: System, q: ArrayLike, v: ArrayLike, a: ArrayLike, wrench: ArrayLike | None = None
) -> Float[Array, " nv"]:
    """The generalised force tau (nv,) with M a + bias = tau + sum J^T wrench, for a given a (nv,).

    Shapes and wrench as in `forward_dynamics`, whose inverse this is. Recursive Newton-Euler
    algorithm, O(n).
    """
    return evaluated(rnea, system, q=q, v=v, a=a, wrench=wrench)


def bias_force(system: System, q: ArrayLike, v: ArrayLike) -> Float[Array, " nv"]:
    """The generalised force (nv,) of Coriolis, centrifugal and gravity terms: tau at a = 0."""
    checked(system)
    still = jnp.zeros(system.nv, system.dtype)
    return evaluated(rnea, system, q=q, v=v, a=still, wrench=None)


def gravity_force(system: System, q: ArrayLike) -> Float[Array, " nv"]:
    """The generalised force (nv,) that balances gravity at zero velocity, in N m or N."""
    checked(system)
    return bias_force(system, q, jnp.zeros(system.nv, system.dtype))


def mass_matrix(system: System, q: ArrayLike) -> Float[Array, "nv nv"]:
    """The mass matrix M(q) (nv, nv), armature included; kinetic energy is v . M v / 2."""
    return evaluated(crba, system, q=q)


def mass_product(system: System, q: ArrayLike, x: ArrayLike) -> Float[Array, " nv"]:
    """M(q) x (nv,): the generalised force for the acceleration x (nv,) at zero velocity.

    Without gravity. Recursive Newton-Euler algorithm, O(n); M is not formed.
    """
    return evaluated(forward.mass_times, system, q=q, x=x)


def mass_solve(system: System, q: ArrayLike, x: ArrayLike) -> Float[Array, " nv"]:
    """M(q)^-1 x (nv,): the acceleration under the generalised force x (nv,) at zero velocity.

    Without gravity. Articulated-body algorithm, O(n); M is formed only with mimic joints.
    """
    return evaluated(forward.mass_inverse_times, system, q=q, x=x)


def inverse_mass_matrix(system: System, q: ArrayLike) -> Float[Array, "nv nv"]:
    """M(q)^-1 (nv, nv), one solve for each dof; symmetric up to rounding."""
    return evaluated(forward.mass_inverse, system, q=q)


def mass_factorisation(system: System, q: ArrayLike) -> Factorisation:
    """The factorisation M = L^T D L of the mass matrix at q (nq,), for solves and products.

    L is unit lower triangular, with the sparsity of the tree's branches. Raises ValueError for
    systems with mimic joints, because these couple branches.
    """
    checked(system)
    what = f"{system.name}: mass_factorisation"
    check_independent(system.topology, what, "solve with mass_matrix or mass_solve instead")
    return evaluated(factorised, system, q=q)


def coriolis_matrix(system: System, q: ArrayLike, v: ArrayLike) -> Float[Array, "nv nv"]:
    """The Coriolis matrix C (nv, nv): C v + gravity = bias force, and dM/dt = C + C^T.

    dM/dt is the derivative of `mass_matrix` along v; for Lie-group joints its entries belong to
    body-fixed velocities. dM/dt - 2 C is therefore skew-symmetric. C v does not determine C: this
    is the choice of Niemeyer and Slotine 1991, and the Christoffel symbols where v is the
    derivative of q.
    """
    return evaluated(coriolis.matrix, system, q=q, v=v)


def inverse_dynamics_derivatives(
    system: System, q: ArrayLike, v: ArrayLike, a: ArrayLike, wrench: ArrayLike | None = None
) -> tuple[Float[Array, "nv nv"], Float[Array, "nv nv"], Float[Array, "nv nv"]]:
    """dtau/dq, dtau/dv and dtau/da = M, each (nv, nv), of `inverse_dynamics`.

    dq is a tangent: column k is the derivative along `integrate(system, q, s e_k)` at s = 0.
    Wrenches (nb, 6) stay constant in their body frames. In closed form (Carpentier and Mansard
    2018), as fast as a few matrix products.
    """
    return evaluated(derivatives.of_inverse_dynamics, system, q=q, v=v, a=a, wrench=wrench)


def forward_dynamics_derivatives(
    system: System, q: ArrayLike, v: ArrayLike, tau: ArrayLike, wrench: ArrayLike | None = None
) -> tuple[Float[Array, "nv nv"], Float[Array, "nv nv"], Float[Array, "nv nv"]]:
    """da/dq, da/dv and da/dtau = M^-1, each (nv, nv), of `forward_dynamics`.

    Tangents and wrenches as in `inverse_dynamics_derivatives`.
    """
    return evaluated(derivatives.of_forward_dynamics, system, q=q, v=v, tau=tau, wrench=wrench)


def operational_space(system: System, q: ArrayLike, v: ArrayLike, frame: Any) -> OperationalSpace:
    """Inertia, bias and gravity of a frame, in its own axes: F = Lambda dV/dt + mu + p.

    frame: a `Frame` on a body, or a body's name. V (6,) is its twist in its own axes, and F (6,)
    the wrench on it. Raises `ModelError` for a frame on the world and for an unknown body. Source:
    Khatib, A unified approach for motion and force control of robot manipulators, IEEE J. Robotics
    Automation 3 (1987), equations 9 to 12.
    """
    checked(system)
    q, v = checked(system, q=(q, (system.nq,)), v=(v, (system.nv,)))
    frame = as_frame(frame)
    if frame.body is None:
        raise ModelError(f"{system.name}: the world does not move; give a frame on a body")
    pose = jax.tree.map(lambda a: a.astype(q.dtype), frame).pose
    body = body_index(system, frame.body)
    return compiled(of_frame)(bare_tree(system), q, v, body, pose)


def closed_form(system: System, q: ArrayLike, v: ArrayLike, frames: Any = None) -> ClosedForm:
    """The matrices of Ploen and Park's closed form at q (nq,), v (nv,), and its algorithms.

    frames (nv, 4, 4): for each degree of freedom the pose of its own frame in the frame in which
    everything is expressed. Raises ValueError for systems with mimic joints and for systems without
    a joint that moves. Source: Ploen and Park 1999.
    """
    checked(system)
    what = f"{system.name}: closed_form"
    check_independent(system.topology, what, "build the system without mimic joints")
    if not system.nv:
        raise ValueError(f"{system.name}: closed_form needs a joint that moves, and none does")
    return evaluated(closed, system, q=q, v=v, frames=frames)

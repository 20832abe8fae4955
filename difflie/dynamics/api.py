"""What a user calls: the algorithms of `difflie.dynamics` on a system, checked and compiled.

Each function takes a `System` and flat arrays q (nq,), v (nv,), ... in its precision, checks them,
and compiles itself once for each system topology. Under `jax.vmap`, `jax.jit` and `jax.grad` they
inline.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from ..system.arguments import check_independent, checked
from ..system.frame import Frame, as_frame
from ..system.kinematic_tree import Tree
from ..system.named_frames import placement
from ..system.protocols import InertiaElement
from ..system.system import System
from ..system.validation import ModelError, format_value
from . import centroidal, coriolis, derivatives, energy, forward, jacobians, kinematics, regressor
from .closed_form import ClosedForm, closed
from .crba import crba
from .factorisation import Factorisation, factorised
from .identifiable import BaseParameters, independent_columns, sampled_regressor
from .kinematics import Place
from .operational_space import OperationalSpace, of_frame
from .rnea import rnea

Index = str | int | jax.Array

# Once for each algorithm; jax compiles it once for each topology.
compiled: Callable[..., Callable[..., Any]] = functools.cache(jax.jit)


def evaluated(algorithm: Callable[..., Any], system: System, **arguments: Any) -> Any:
    """The result of algorithm(tree, *arguments), compiled; each argument is checked by its name.

    q (nq,); body, a name or an index; place, that of a frame, see `placed`; wrench (nb, 6) and
    frames (nv, 4, 4), which may be None; all others (nv,). Raises ValueError and TypeError as
    `checked` does.
    """
    checked(system)
    shapes = {
        "q": (system.nq,),
        "wrench": (len(system.body_names), 6),
        "frames": (system.nv, 4, 4),
    }
    values = []
    for name, value in arguments.items():
        if name == "body":
            values.append(body_index(system, value))
        elif name == "place":
            values.append(placed(system, value))
        elif value is None and name in ("wrench", "frames"):
            values.append(None)
        else:
            values += checked(system, **{name: (value, shapes.get(name, (system.nv,)))})
    return compiled(algorithm)(bare_tree(system), *values)


def body_index(system: System, body: Index) -> int | jax.Array:
    """The index () of a body in `body_names`, from its name or index; traced indices pass through.

    Raises ValueError for an unknown name.
    """
    names = system.body_names
    if isinstance(body, str):
        if body not in names:
            on = system.frame(body)
            raise ValueError(f"{system.name}: {body!r} is a frame on {on}; name a body")
        return names.index(body)
    if isinstance(body, Tracer):
        return body
    try:
        return range(len(names))[body]
    except (TypeError, IndexError) as error:
        raise type(error)(
            f"{system.name}: {format_value(body)} is none of its {len(names)} bodies; give the "
            "name of a body or of a frame, a difflie.Frame, or an index"
        ) from None


def placed(system: System, frame: Index | Frame) -> Place:
    """The place of a frame: a `Frame`, or the name or index of a body, or the name of a frame.

    Traced indices pass through. Raises `ModelError` for an unknown name, and for a frame on the
    world.
    """
    if not isinstance(frame, str | Frame):
        return Place(body_index(system, frame))
    if isinstance(frame, str) and frame in system.body_names:
        return Place(system.body_names.index(frame))
    body, inner = placement(system, frame, system.dtype)
    if body is None:
        on_world = f"{format_value(frame)} is on the world; " if isinstance(frame, str) else ""
        raise ModelError(
            f"{system.name}: {on_world}the world does not move; give a frame on a body"
        )
    return Place(system.body_names.index(body), inner)


def bare_tree(system: System) -> Tree:
    """The `Tree` of bodies, joints and inerters; what else is there causes no new compilation."""
    heavy = tuple(part for part in system.couplings if isinstance(part, InertiaElement))
    bare: dict[str, Any] = {"couplings": heavy, "constraints": (), "actuators": ()}
    bare |= {"sensors": (), "frames": {}, "states": {}}
    if any(len(getattr(system, name)) > len(kept) for name, kept in bare.items()):
        system = replace(system, **bare)
    return Tree.of(system)


def body_poses(system: System, q: ArrayLike) -> Float[Array, "nb 4 4"]:
    """The poses (nb, 4, 4) of all bodies at q (nq,), body to world, as in `body_names`.

    Each is [[R, p], [0, 1]] with the rotation R (3, 3) and the origin p (3,) of the body frame in
    m.

    >>> rod = dl.Body(name="rod", joint=dl.Revolute(), position=(0, 0, 1), mass=1.0, com=(1, 0, 0))
    >>> pose = dl.body_poses(dl.chain([rod]), [np.pi / 2])[0]
    >>> print((pose @ np.array([1.0, 2.0, 3.0, 1.0]))[:3].round(3))  # a point of the body, world
    [-2.  1.  4.]
    """
    return evaluated(kinematics.body_world_poses, system, q=q).to_array()


def body_twists(system: System, q: ArrayLike, v: ArrayLike) -> Float[Array, "nb 6"]:
    """The body-fixed twists (nb, 6) of all bodies at q (nq,), v (nv,), in rad/s and m/s.

    Angular velocity first, then the velocity of the body frame's origin, both in body axes.

    >>> rod = dl.Body(name="rod", joint=dl.Revolute(axis=(0, 0, 1)), mass=1.0, com=(0.5, 0, 0))
    >>> print(dl.body_twists(dl.chain([rod]), [0.3], [2.0])[0, 2:3].round(3))  # about z, in rad/s
    [2.]
    """
    return evaluated(kinematics.body_twist_components, system, q=q, v=v).to_array()


def body_jacobian(system: System, q: ArrayLike, body: Index | Frame) -> Float[Array, "6 nv"]:
    """The Jacobian (6, nv) at q (nq,) of a body: J v is its body-fixed twist.

    J v is the angular velocity (rad/s), then the velocity of the body's origin (m/s), both in body
    axes. body: its name or index; `jax.vmap` over indices takes all bodies at once. Also the name
    of a frame, or a `Frame` on a body: then axes and origin are those of the frame. Raises
    ValueError for an unknown name, and for a frame on the world.

    >>> arm = dl.from_dh([(0.7, 0, 0, 0)], convention="standard", mass=[1.0], tool=np.eye(4))
    >>> jacobian = dl.body_jacobian(arm, [0.3], "tool")
    >>> print(jacobian[[2, 4], 0].round(3))  # about z in rad/s, along the tool's y in m/s
    [1.  0.7]
    """
    return evaluated(jacobians.body_columns, system, q=q, place=body)


def spatial_jacobian(system: System, q: ArrayLike, body: Index | Frame) -> Float[Array, "6 nv"]:
    """The Jacobian (6, nv) whose J v is the body's twist in world axes, at the world origin.

    J v is the angular velocity (rad/s) and the velocity (m/s) of the body-fixed point that is at
    the world origin at this moment. q (nq,); body as of `body_jacobian`. "Spatial" as in Murray, Li
    and Sastry 1994.
    """
    return evaluated(jacobians.spatial_columns, system, q=q, place=body)


def geometric_jacobian(system: System, q: ArrayLike, body: Index | Frame) -> Float[Array, "6 nv"]:
    """The Jacobian (6, nv) whose J v is the body's twist in world axes, at the body's origin.

    J v is the angular velocity (rad/s) and the velocity of the body's origin (m/s), both in world
    coordinates. q (nq,); body as of `body_jacobian`.

    >>> arm = dl.from_dh([(0.7, 0, 0, 0)], convention="standard", mass=[1.0], tool=np.eye(4))
    >>> jacobian = dl.geometric_jacobian(arm, [np.pi / 2], "tool")
    >>> print(jacobian[[2, 3], 0].round(3))  # about z in rad/s, along the world's x in m/s
    [ 1.  -0.7]
    """
    return evaluated(jacobians.geometric_columns, system, q=q, place=body)


def body_jacobian_rate(
    system: System, q: ArrayLike, v: ArrayLike, body: Index | Frame
) -> Float[Array, "6 nv"]:
    """The time derivative J' (6, nv) of `body_jacobian`, at q (nq,), v (nv,), per s.

    The time derivative of the body-fixed twist is J a + J' v, in rad/s^2 and m/s^2.
    """
    return evaluated(jacobians.body_column_rates, system, q=q, v=v, place=body)


def spatial_jacobian_rate(
    system: System, q: ArrayLike, v: ArrayLike, body: Index | Frame
) -> Float[Array, "6 nv"]:
    """The time derivative J' (6, nv) of `spatial_jacobian`, at q (nq,), v (nv,), per s.

    The body's spatial acceleration in world axes, at the world origin, is J a + J' v, in rad/s^2
    and m/s^2.
    """
    return evaluated(jacobians.spatial_column_rates, system, q=q, v=v, place=body)


def geometric_jacobian_rate(
    system: System, q: ArrayLike, v: ArrayLike, body: Index | Frame
) -> Float[Array, "6 nv"]:
    """The time derivative J' (6, nv) of `geometric_jacobian`, at q (nq,), v (nv,), per s.

    J a + J' v is the angular acceleration (rad/s^2) and the acceleration of the body's origin
    (m/s^2), both in world coordinates.
    """
    return evaluated(jacobians.geometric_column_rates, system, q=q, v=v, place=body)


def pose(system: System, q: ArrayLike, frame: Index | Frame) -> Float[Array, "4 4"]:
    """The pose (4, 4) of a frame in the world at q (nq,): [[R, p], [0, 1]].

    R (3, 3) takes the frame's axes to those of the world, and p (3,) in m is its origin. frame: the
    name of a body or of one of `System.frames`, a `Frame`, or the index of a body. `jax.vmap` over
    q takes many configurations at once. Raises ValueError for an unknown name, with the nearest
    one.

    >>> rod = dl.Body(name="rod", joint=dl.Revolute(), mass=1.0, com=(0.5, 0, 0))
    >>> rod = dl.chain([rod], frames={"tip": dl.Frame("rod", position=(1, 0, 0))})
    >>> turns = np.array([[0.0], [np.pi / 2]])
    >>> print(jax.vmap(lambda q: dl.pose(rod, q, "tip"))(turns)[:, :3, 3].round(3))
    [[1. 0. 0.]
     [0. 1. 0.]]
    """
    if isinstance(frame, str | Frame):
        body, inner = placement(system, frame, system.dtype)
        if body is None:
            checked(system, q=(q, (system.nq,)))
            return inner.to_array()
    return evaluated(kinematics.frame_world_pose, system, q=q, place=frame).to_array()


def jacobian(
    system: System,
    q: ArrayLike,
    frame: Index | Frame,
    axes: Literal["world", "frame"] = "world",
) -> Float[Array, "6 nv"]:
    """The Jacobian (6, nv) of a frame at q (nq,), at the frame's origin, angular rows first.

    J v is the angular velocity of the frame in rad/s (3 rows), then the velocity of its origin in
    m/s (3 rows), both in the axes of the world, or with axes="frame" in the frame's own. frame: as
    of `pose`, on a body. MuJoCo's mj_jacSite has the rows of "world" as two matrices, the linear
    one first; Pinocchio's getFrameJacobian has the linear rows first, of "world" as
    LOCAL_WORLD_ALIGNED, of "frame" as LOCAL. Raises ValueError for an unknown name, with the
    nearest one, and for a frame on the world.

    >>> rod = dl.Body(name="rod", joint=dl.Revolute(), mass=1.0, com=(0.5, 0, 0))
    >>> rod = dl.chain([rod], frames={"tip": dl.Frame("rod", position=(1, 0, 0))})
    >>> print(dl.jacobian(rod, [np.pi / 2], "tip")[[2, 3], 0].round(3))  # rad/s, m/s for 1 rad/s
    [ 1. -1.]
    """
    if axes not in ("world", "frame"):
        raise ValueError(f"jacobian: axes is {format_value(axes)}; it must be 'world' or 'frame'")
    columns = jacobians.body_columns if axes == "frame" else jacobians.geometric_columns
    return evaluated(columns, system, q=q, place=frame)


def integrate(system: System, q: ArrayLike, dv: ArrayLike) -> Float[Array, " nq"]:
    """The configuration (nq,) reached from q (nq,) at the constant rate dv (nv,) in unit time.

    Plain coordinates are added, in rad or m. Ball and free joints move along the exponential of
    their part of dv, which is body-fixed like v: a rotation vector, or a screw, angular part first.

    >>> top = dl.chain([dl.Body(name="top", joint=dl.Spherical(), mass=1.0, inertia=np.eye(3))])
    >>> print(dl.integrate(top, top.neutral(), [0.2, 0.4, 0.4]).round(3))
    [0.955 0.099 0.197 0.197]
    """
    checked(system)
    q, dv = checked(system, q=(q, (system.nq,)), v=(dv, (system.nv,)))
    return system.manifold.retract(q, dv)


def difference(system: System, q0: ArrayLike, q1: ArrayLike) -> Float[Array, " nv"]:
    """The rate (nv,) of least rotation with integrate(q0, difference(q0, q1)) = q1.

    q0, q1 (nq,); the rate is in rad or m in unit time, body-fixed at ball and free joints, as dv of
    `integrate`.

    >>> top = dl.chain([dl.Body(name="top", joint=dl.Spherical(), mass=1.0, inertia=np.eye(3))])
    >>> print(dl.difference(top, top.neutral(), [0.6, 0.0, 0.0, 0.8])[2:].round(3))  # in rad
    [1.855]
    """
    checked(system)
    q0, q1 = checked(system, q0=(q0, (system.nq,)), q1=(q1, (system.nq,)))
    return system.manifold.difference(q0, q1)


def forward_dynamics(
    system: System, q: ArrayLike, v: ArrayLike, tau: ArrayLike, wrench: ArrayLike | None = None
) -> Float[Array, " nv"]:
    """The acceleration a (nv,) with M a + bias = tau + sum J^T wrench.

    q (nq,), v (nv,), tau (nv,): the whole generalised force in N m or N. Springs, damping, friction
    and drives are not added (see `passive_force`). wrench (nb, 6): external wrenches (moment,
    force) on the bodies, in body frames. Constraints do not act (see `constrained_dynamics`).
    Articulated-body algorithm, O(n); with mimic joints a dense solve. Raises
    ValueError and TypeError as `checked` does.

    >>> rod = dl.Body(name="rod", joint=dl.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0.5, 0, 0))
    >>> print(dl.forward_dynamics(dl.chain([rod]), [0.0], [0.0], tau=[0.0]).round(3))  # in rad/s^2
    [19.62]
    """
    return evaluated(forward.acceleration, system, q=q, v=v, tau=tau, wrench=wrench)


def inverse_dynamics(
    system: System, q: ArrayLike, v: ArrayLike, a: ArrayLike, wrench: ArrayLike | None = None
) -> Float[Array, " nv"]:
    """The generalised force tau (nv,) with M a + bias = tau + sum J^T wrench, for a given a (nv,).

    q (nq,), v (nv,); tau in N m or N, wrench (nb, 6) as in `forward_dynamics`, whose inverse this
    is. Recursive Newton-Euler algorithm, O(n).

    >>> rod = dl.Body(name="rod", joint=dl.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0.5, 0, 0))
    >>> print(dl.inverse_dynamics(dl.chain([rod]), [0.0], [0.0], a=[2.0]).round(3))  # in N m
    [-4.405]
    """
    return evaluated(rnea, system, q=q, v=v, a=a, wrench=wrench)


def bias_force(system: System, q: ArrayLike, v: ArrayLike) -> Float[Array, " nv"]:
    """The generalised force (nv,) of Coriolis, centrifugal and gravity terms: tau at a = 0.

    At q (nq,), v (nv,), in N m or N, with the signs of `inverse_dynamics`.

    >>> rod = dl.Body(name="rod", joint=dl.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0.5, 0, 0))
    >>> print(dl.bias_force(dl.chain([rod]), [0.0], [3.0]).round(3))  # in N m
    [-4.905]
    """
    checked(system)
    still = jnp.zeros(system.nv, system.dtype)
    return evaluated(rnea, system, q=q, v=v, a=still, wrench=None)


def gravity_force(system: System, q: ArrayLike) -> Float[Array, " nv"]:
    """The generalised force (nv,) that balances gravity at rest at q (nq,), in N m or N.

    >>> rod = dl.Body(name="rod", joint=dl.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0.5, 0, 0))
    >>> print(dl.gravity_force(dl.chain([rod]), [0.0]).round(3))  # in N m, to hold the rod
    [-4.905]
    """
    checked(system)
    return bias_force(system, q, jnp.zeros(system.nv, system.dtype))


def mass_matrix(system: System, q: ArrayLike) -> Float[Array, "nv nv"]:
    """The mass matrix M (nv, nv) at q (nq,), armature included; kinetic energy is v . M v / 2.

    In kg m^2 between angles, kg between lengths, and kg m between both.

    >>> rod = dl.Body(name="rod", joint=dl.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0.5, 0, 0))
    >>> print(dl.mass_matrix(dl.chain([rod]), [0.0]).round(3))  # in kg m^2
    [[0.25]]
    """
    return evaluated(crba, system, q=q)


def mass_product(system: System, q: ArrayLike, x: ArrayLike) -> Float[Array, " nv"]:
    """M(q) x (nv,): the generalised force for the acceleration x (nv,) at zero velocity.

    At q (nq,), in N m or N for x in rad/s^2 or m/s^2, without gravity. Recursive Newton-Euler
    algorithm, O(n); M is not formed.
    """
    return evaluated(forward.mass_times, system, q=q, x=x)


def mass_solve(system: System, q: ArrayLike, x: ArrayLike) -> Float[Array, " nv"]:
    """M(q)^-1 x (nv,): the acceleration under the generalised force x (nv,) at zero velocity.

    At q (nq,), in rad/s^2 or m/s^2 for x in N m or N, without gravity. Articulated-body algorithm,
    O(n); M is formed only with mimic joints.
    """
    return evaluated(forward.mass_inverse_times, system, q=q, x=x)


def inverse_mass_matrix(system: System, q: ArrayLike) -> Float[Array, "nv nv"]:
    """M^-1 (nv, nv) at q (nq,), one solve for each dof; symmetric up to rounding.

    In units of acceleration over generalised force: the inverse of those of `mass_matrix`.
    """
    return evaluated(forward.mass_inverse, system, q=q)


def mass_factorisation(system: System, q: ArrayLike) -> Factorisation:
    """The factorisation M = L^T D L of the mass matrix at q (nq,), for solves and products.

    L is unit lower triangular, with the sparsity of the tree's branches. Raises ValueError for
    systems with mimic joints, because these couple branches.
    """
    checked(system)
    what = f"{system.name}: mass_factorisation"
    check_independent(system, what, "solve with mass_matrix or mass_solve instead")
    return evaluated(factorised, system, q=q)


def coriolis_matrix(system: System, q: ArrayLike, v: ArrayLike) -> Float[Array, "nv nv"]:
    """The Coriolis matrix C (nv, nv): C v + gravity = bias force, and dM/dt = C + C^T.

    q (nq,), v (nv,); C in units of `mass_matrix` per s. dM/dt is the derivative of `mass_matrix`
    along v; for Lie-group joints its entries belong to body-fixed velocities. dM/dt - 2 C is
    therefore skew-symmetric. C v does not determine C: this is the choice of Niemeyer and Slotine
    1991, and the Christoffel symbols where v is the derivative of q.
    """
    return evaluated(coriolis.matrix, system, q=q, v=v)


def inverse_dynamics_derivatives(
    system: System, q: ArrayLike, v: ArrayLike, a: ArrayLike, wrench: ArrayLike | None = None
) -> tuple[Float[Array, "nv nv"], Float[Array, "nv nv"], Float[Array, "nv nv"]]:
    """dtau/dq, dtau/dv and dtau/da = M, each (nv, nv), of `inverse_dynamics`.

    q (nq,), v (nv,), a (nv,). dq is a tangent: column k is the derivative along
    `integrate(system, q, s e_k)` at s = 0. wrench (nb, 6), in N m and N, stays constant in body
    frames. In closed form (Carpentier and Mansard 2018), as fast as a few matrix products.
    """
    return evaluated(derivatives.of_inverse_dynamics, system, q=q, v=v, a=a, wrench=wrench)


def forward_dynamics_derivatives(
    system: System, q: ArrayLike, v: ArrayLike, tau: ArrayLike, wrench: ArrayLike | None = None
) -> tuple[Float[Array, "nv nv"], Float[Array, "nv nv"], Float[Array, "nv nv"]]:
    """da/dq, da/dv and da/dtau = M^-1, each (nv, nv), of `forward_dynamics`.

    q (nq,), v (nv,), tau (nv,), wrench (nb, 6). Tangents and wrenches as in
    `inverse_dynamics_derivatives`.
    """
    return evaluated(derivatives.of_forward_dynamics, system, q=q, v=v, tau=tau, wrench=wrench)


def operational_space(
    system: System, q: ArrayLike, v: ArrayLike, frame: Frame | str
) -> OperationalSpace:
    """Inertia, bias and gravity of a frame, in its own axes: F = Lambda dV/dt + mu + p.

    q (nq,), v (nv,). frame: a `Frame` on a body, or a body's name. V (6,) is its twist in its own
    axes, and F (6,) the wrench on it, in N m and N. Raises `ModelError` for a frame on the world
    and for an unknown body. Source: Khatib, A unified approach for motion and force control of
    robot manipulators, IEEE J. Robotics Automation 3 (1987), equations 9 to 12.
    """
    checked(system)
    q, v = checked(system, q=(q, (system.nq,)), v=(v, (system.nv,)))
    return compiled(of_frame)(bare_tree(system), q, v, placed(system, as_frame(frame)))


def closed_form(
    system: System, q: ArrayLike, v: ArrayLike, frames: ArrayLike | None = None
) -> ClosedForm:
    """The matrices of Ploen and Park's closed form at q (nq,), v (nv,), and its algorithms.

    frames (nv, 4, 4): for each degree of freedom the pose of its own frame in the frame in which
    everything is expressed. Raises ValueError for systems with mimic joints and for systems without
    a joint that moves. Source: Ploen and Park 1999.
    """
    checked(system)
    what = f"{system.name}: closed_form"
    check_independent(system, what, "build the system without mimic joints and inerters")
    if not system.nv:
        raise ValueError(f"{system.name}: closed_form needs a joint that moves, and none does")
    return evaluated(closed, system, q=q, v=v, frames=frames)


def total_mass(system: System) -> Float[Array, ""]:
    """The mass of the system in kg, a scalar; bodies fixed to the world do not count."""
    return evaluated(centroidal.mass, system)


def center_of_mass(system: System, q: ArrayLike) -> Float[Array, "3"]:
    """The centre of mass (3,) at q (nq,), world, in m; bodies fixed to the world do not count.

    >>> rod = dl.Body(name="rod", joint=dl.Revolute(), mass=1.0, com=(0.3, 0.4, 0.5))
    >>> print(dl.center_of_mass(dl.chain([rod]), [np.pi / 2]).round(3))
    [-0.4  0.3  0.5]
    """
    return evaluated(centroidal.center_of_mass, system, q=q)


def center_of_mass_jacobian(system: System, q: ArrayLike) -> Float[Array, "3 nv"]:
    """The Jacobian (3, nv) whose J v is the velocity of the centre of mass in the world (m/s).

    At q (nq,).
    """
    return evaluated(centroidal.center_columns, system, q=q)


def centroidal_momentum_matrix(system: System, q: ArrayLike) -> Float[Array, "6 nv"]:
    """The matrix A (6, nv) whose A v is the momentum about the centre of mass, in world axes.

    At q (nq,). First the angular momentum (N m s), then the linear (N s). Armature has no part in
    it, as in `momentum`.
    """
    return evaluated(centroidal.momentum_columns, system, q=q)


def momentum(
    system: System, q: ArrayLike, v: ArrayLike, body: Index | None = None
) -> Float[Array, "6"]:
    """The momentum (6,) at q (nq,), v (nv,), of the system or of one body.

    In world axes: the angular momentum about the world origin (N m s), then the linear (N s), also
    of a body, so that those of all bodies add up to that of the system. Armature has no part in it.
    body: its name or index, without what is fixed to it; None for the system. Raises ValueError for
    an unknown name, with the nearest one.

    >>> ball = dl.chain([dl.Body(name="ball", joint=dl.Prismatic(), mass=2.0)])
    >>> print(dl.momentum(ball, [1.0], [3.0], body="ball")[5:].round(3))  # along z, in N s
    [6.]
    """
    if body is None:
        return evaluated(energy.total_momentum, system, q=q, v=v)
    return evaluated(energy.body_momentum, system, q=q, v=v, body=body)


def inertial_parameters(system: System) -> Float[Array, "nb 10"]:
    """The inertial parameters (nb, 10) of the bodies, on which the dynamics depend linearly.

    For each body (m, m c_x, m c_y, m c_z, I_xx, I_xy, I_xz, I_yy, I_yz, I_zz) in kg, kg m and
    kg m^2, in its body frame: c is the centre of mass, I the inertia about the frame's ORIGIN, not
    about the centre of mass.
    """
    return regressor.parameters(system.bodies)


def with_inertial_parameters(system: System, parameters: ArrayLike) -> System:
    """The system with other inertial parameters (nb, 10), as of `inertial_parameters`.

    parameters: in kg, kg m and kg m^2. The first moments of a body without mass are lost. It is not
    checked whether a rigid body can have these parameters.
    """
    size = (len(system.body_names), 10)
    (parameters,) = checked(system, parameters=(parameters, size))
    mass, com, inertia = regressor.properties(parameters)
    return system.replace(mass=mass, com=com, inertia=inertia)


def inverse_dynamics_regressor(
    system: System, q: ArrayLike, v: ArrayLike, a: ArrayLike
) -> Float[Array, "nv n_parameters"]:
    """The matrix Y (nv, 10 nb) with Y pi + armature a = `inverse_dynamics`.

    q (nq,), v (nv,), a (nv,). pi (10 nb,) is `inertial_parameters(system).ravel()`, in kg, kg m and
    kg m^2. Armature (kg m^2 or kg) belongs to the joints and not to pi; without mimic joints its
    part is `system.joints.armature * a`. That of an `Inerter` is in neither.
    """
    return evaluated(regressor.effort_columns, system, q=q, v=v, a=a)


def kinetic_energy_regressor(
    system: System, q: ArrayLike, v: ArrayLike
) -> Float[Array, " n_parameters"]:
    """The vector y (10 nb,) with y . pi + sum armature v^2 / 2 = kinetic energy in J.

    q (nq,), v (nv,); pi as of `inverse_dynamics_regressor`.
    """
    return evaluated(regressor.kinetic_columns, system, q=q, v=v)


def potential_energy_regressor(system: System, q: ArrayLike) -> Float[Array, " n_parameters"]:
    """The vector y (10 nb,) with y . pi = potential energy of gravity in J.

    q (nq,); pi as of `inverse_dynamics_regressor`. The energy is zero at the world origin.
    """
    return evaluated(regressor.potential_columns, system, q=q)


def momentum_regressor(
    system: System, q: ArrayLike, v: ArrayLike
) -> Float[Array, "6 n_parameters"]:
    """The matrix Y (6, 10 nb) with Y pi = `momentum`, in N m s and N s.

    q (nq,), v (nv,); pi as of `inverse_dynamics_regressor`.
    """
    return evaluated(regressor.momentum_columns, system, q=q, v=v)


def base_parameters(system: System) -> BaseParameters:
    """The base (minimal) parameters of inverse dynamics; cannot be traced.

    matrix (rank, 10 nb) maps the inertial parameters (nb, 10), one body after the other, to the
    base parameters. columns (rank,) are the columns of the regressor that remain. They follow from
    the regressors of random states. Columns count as linearly dependent to the square root of the
    rounding unit: use double precision. Source: Gautier 1991.
    """
    return independent_columns(sampled_regressor(bare_tree(system)))

"""Dynamics as linear functions of the inertial parameters (Atkeson, An, Hollerbach 1986).

The ten parameters of a body, about its frame's ORIGIN and in its axes:

    pi = (m, m c_x, m c_y, m c_z, I_xx, I_xy, I_xz, I_yy, I_yz, I_zz)

Its momentum at the twist (w, u) is K(w, u) pi, with L(w) the matrix that takes the six moments to
I w; its inertial wrench is K(A) pi + V x* K(V) pi.

    K(w, u) = [[0, -u~, L(w)],  [u, w~, 0]]

Bodies fixed to the world have columns of zeros: nothing depends on their parameters.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..groups.components import Vector
from ..solvers.linear import product
from ..spatial import Force, Inertia, Motion, Symmetric
from ..system.kinematic_tree import Tree
from ..system.system import Bodies
from .kinematics import body_twist_components, body_world_poses, world_frame
from .screws import masks, screws, total


def parameters(bodies: Bodies) -> Float[Array, "nb 10"]:
    """The inertial parameters (nb, 10)."""
    inertia = Inertia.about_com(
        bodies.mass, Vector.from_array(bodies.com), Symmetric.from_array(bodies.inertia)
    )
    return jnp.stack(jax.tree.leaves(inertia), axis=-1)


def properties(
    parameters: Float[Array, "nb 10"],
) -> tuple[Float[Array, " nb"], Float[Array, "nb 3"], Float[Array, "nb 3 3"]]:
    """mass (nb,), com (nb, 3) and inertia (nb, 3, 3) about it, of the parameters (nb, 10)."""
    mass, first, second = parameters[:, 0], parameters[:, 1:4], parameters[:, 4:]
    com = first / jnp.where(mass == 0, jnp.ones_like(mass), mass)[:, None]
    # Steiner's theorem goes back to the centre of mass with the opposite mass.
    about = Inertia.about_com(-mass, Vector.from_array(com), Symmetric(*second.T))
    return mass, com, about.second.matrix().to_array()


def effort_columns(
    tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"]
) -> Float[Array, "nv n_parameters"]:
    """The inverse-dynamics regressor (nv, 10 nb)."""
    s, t = screws(tree, q), tree.topology
    twists, gains = s.motion(tree.rates(v), tree.rates(a))
    accelerations = total(masks(t).ancestor_mask, gains) + tree.base_acceleration
    frames = tree.body_values(s.poses, world_frame(q.dtype)) @ tree.body_frames
    twist = _each(frames.inverse_motion(tree.body_values(twists, tree.zero_twist)))
    acceleration = _each(frames.inverse_motion(tree.body_values(accelerations, tree.zero_twist)))
    wrench = _momenta(acceleration) + twist.cross_force(_momenta(twist))

    # The wrench of a parameter works on the screws between the world and its body.
    seen = jnp.stack(jax.tree.leaves(_each(frames).force(wrench)), axis=-1)
    axes = jnp.stack(jax.tree.leaves(s.axes), axis=-1)
    efforts = product(axes, seen.reshape(-1, 6).T) * np.repeat(t.support_mask.T, 10, axis=1)
    return jax.vmap(tree.generalised, in_axes=1, out_axes=1)(efforts)


def kinetic_columns(
    tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Float[Array, " n_parameters"]:
    """The kinetic-energy regressor (10 nb,)."""
    twist = _each(body_twist_components(tree, q, v))
    return twist.dot(_momenta(twist)).ravel() / 2


def potential_columns(tree: Tree, q: Float[Array, " nq"]) -> Float[Array, " n_parameters"]:
    """The potential-energy regressor (10 nb,)."""
    pose, unit = _each(body_world_poses(tree, q)), _unit(q.dtype)
    moment = pose.rotation @ unit.first + pose.translation * unit.mass
    moving = tree.topology.body_dof[:, None] < tree.topology.n_dofs
    return (-tree.gravity.dot(moment) * moving).ravel()


def momentum_columns(
    tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Float[Array, "6 n_parameters"]:
    """The momentum regressor (6, 10 nb), about the world origin."""
    twist = _each(body_twist_components(tree, q, v))
    momentum = _each(body_world_poses(tree, q)).force(_momenta(twist))
    return jnp.stack([c.ravel() for c in jax.tree.leaves(momentum)])


def _momenta(m: Motion) -> Force:
    """K of motions (nb, 1): the momentum of each parameter alone (nb, 10)."""
    return _unit(m.linear.x.dtype) @ m


def _unit(dtype: np.dtype) -> Inertia:
    """The inertias (10,) that have one parameter one and the others zero."""
    mass, x, y, z, *second = jnp.eye(10, dtype=dtype)
    return Inertia(mass, Vector(x, y, z), Symmetric(*second))


def _each(values: Any) -> Any:
    """Values of the bodies (nb,) against those of the parameters: (nb, 1)."""
    return jax.tree.map(lambda a: a[:, None], values)

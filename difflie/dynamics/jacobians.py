"""Jacobians of frames on bodies and their derivatives with respect to time.

Column j of a Jacobian is the screw S_j of dof j, for the dofs between the world and the body (Park
1994; Murray, Li, Sastry 1994, section 3.4). With V the twist of the frame, r its origin and T its
pose, in a frame fixed in the world,

    body        Ad_T^-1 S,          d/dt:  Ad_T^-1 (dS/dt - V x S)
    spatial     S,                  d/dt:  dS/dt = V_c x S
    geometric   (w, u + w x r),     d/dt:  (w', u' + w' x r + w x r'),      S = (w, u)

where V_c is the twist of the frame in which the screw is fixed. The acceleration is
J a + (dJ/dt) v.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..groups.components import Vector
from ..spatial import Motion, Transform
from ..system.kinematic_tree import Tree
from .kinematics import Index, Place, world_frame
from .screws import Screws, generalised_columns, screws


def body_columns(tree: Tree, q: Float[Array, " nq"], place: Place) -> Float[Array, "6 nv"]:
    """The Jacobian (6, nv) of the twist in the frame's own axes, at its origin."""
    s = screws(tree, q)
    return _columns(tree, place.body, _pose(tree, s, place).inverse_motion(s.axes))


def spatial_columns(tree: Tree, q: Float[Array, " nq"], place: Place) -> Float[Array, "6 nv"]:
    """The Jacobian (6, nv) of the twist in world axes, at the world origin."""
    s = screws(tree, q)
    return _columns(tree, place.body, _moved(s.axes, -s.origin))


def geometric_columns(tree: Tree, q: Float[Array, " nq"], place: Place) -> Float[Array, "6 nv"]:
    """The Jacobian (6, nv) of the twist in world axes, at the frame's origin."""
    s = screws(tree, q)
    return _columns(tree, place.body, _moved(s.axes, _pose(tree, s, place).translation))


def body_column_rates(
    tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"], place: Place
) -> Float[Array, "6 nv"]:
    """The derivative (6, nv) of `body_columns` along the velocity v (nv,)."""
    s, change, twist = _moving(tree, q, v, place)
    relative = change + twist.cross(s.axes) * -1
    return _columns(tree, place.body, _pose(tree, s, place).inverse_motion(relative))


def spatial_column_rates(
    tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"], place: Place
) -> Float[Array, "6 nv"]:
    """The derivative (6, nv) of `spatial_columns` along the velocity v (nv,)."""
    s, change, _ = _moving(tree, q, v, place)
    return _columns(tree, place.body, _moved(change, -s.origin))


def geometric_column_rates(
    tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"], place: Place
) -> Float[Array, "6 nv"]:
    """The derivative (6, nv) of `geometric_columns` along the velocity v (nv,)."""
    s, change, twist = _moving(tree, q, v, place)
    point = _pose(tree, s, place).translation
    moved = _moved(change, point)
    by_point = s.axes.angular.cross(_moved(twist, point).linear)
    return _columns(tree, place.body, Motion(moved.angular, moved.linear + by_point))


def _moving(
    tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"], place: Place
) -> tuple[Screws, Motion, Motion]:
    """The screws, their derivatives, and the twist of the body."""
    s = screws(tree, q)
    rates = tree.rates(v)
    twists = s.twists(rates)
    return s, s.changes(twists, rates), _of_dof(tree, twists, tree.zero_twist, place.body)


def _pose(tree: Tree, s: Screws, place: Place) -> Transform:
    """The pose of the frame in that of its tree."""
    base = _of_dof(tree, s.poses, world_frame(s.origin.x.dtype), place.body)
    on_body = base @ jax.tree.map(lambda a: a[place.body], tree.offset)
    return on_body if place.inner is None else on_body @ place.inner


def _of_dof(tree: Tree, values, world, body: Index):
    """The value of the dof that carries the body; `world` for a body fixed to the world."""
    dof = jnp.asarray(tree.topology.body_dof)[body]
    return jax.tree.map(lambda a, w: jnp.append(a, w)[dof], values, world)


def _moved(m: Motion, point: Vector) -> Motion:
    """The same motion, with the linear part taken at the point."""
    return Motion(m.angular, m.linear + m.angular.cross(point))


def _columns(tree: Tree, body: Index, columns: Motion) -> Float[Array, "6 nv"]:
    supporting = jnp.asarray(tree.topology.support_mask)[body]
    kept = jax.tree.map(lambda a: jnp.where(supporting, a, jnp.zeros_like(a)), columns)
    return generalised_columns(tree, kept)

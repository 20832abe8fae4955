"""How free bodies go on in a step: straight in the world, and with their momentum.

A base is a body whose free or ball joint connects it to the world. In body coordinates a constant
velocity in the world turns with the body, and an explicit step of it lengthens it. So the base of a
tree is stepped by the balance of momentum of all it carries: P (linear) and L (about the centre of
mass c), in world axes,

    R' = R exp(h w'),        P' = P + h F,      L' = L + h M,      c' = c + h P' / m
    M'_bb V = (L' + (c' - p') x P', P') - M'_br r'

with F, M all outer forces, gravity included, and their moment about c; V the twist of the base in
its frame at p', r' the rates of the rest. Without outer forces the momentum about any fixed point
is the same afterwards up to rounding, and the motion does not depend on the velocity of c. On a
ball joint it is the angular momentum about its centre that is balanced.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..groups import Pose, UnitQuaternion
from ..groups.components import Matrix, Vector
from ..spatial import Force, Inertia, Symmetric, Transform
from ..system.kinematic_tree import Tree
from ..system.topology import WORLD, Topology
from ..system.traverse import backward_pass, tree_algorithm
from ..system.whole_joints import JointsOfType, joints_by_type
from .kinematics import dof_twists

# How often a base that coasts finds the rate at which it arrives: at half a rad a step its energy
# is then kept to 1e-8 of itself in a step.
_TURNS = 7


class Bases(NamedTuple):
    """The n bases of a system with joints of one type, of k = 6 or 3 dofs.

    last (n,): the dof that carries each. velocities (n, k): their entries in v.
    """

    joint: JointsOfType
    last: np.ndarray
    velocities: np.ndarray


@functools.lru_cache
def bases(t: Topology) -> tuple[Bases, ...]:
    """The bases of a topology, by the types of their joints."""
    found = []
    for whole in joints_by_type(t):
        at = np.flatnonzero(t.dof_parent[whole.dofs[:, 0]] == WORLD)
        turns_freely = isinstance(whole.joint.manifold, Pose | UnitQuaternion)
        columns = np.eye(6)[:, : whole.dofs.shape[1]]
        plain = whole.columns is not None and np.array_equal(whole.columns, columns)
        if at.size and turns_freely and plain:
            dofs, coordinates = whole.dofs[at], whole.coordinates[at]
            joint = whole._replace(dofs=dofs, coordinates=coordinates, number=whole.number[at])
            found.append(Bases(joint, dofs[:, -1], t.dof_velocity[dofs]))
    return tuple(found)


class Balance(NamedTuple):
    """What n bases of one type move on with, in the frames of their joints on the world.

    moment, force (n,): angular and linear momentum, the former about the point `center` (n,), of
    ball joints about their own. rotors (n, k): the momenta of armatures, along the dofs.
    """

    moment: Vector
    force: Vector
    center: Vector
    rotors: jax.Array


@tree_algorithm
def free_step(
    tree: Tree,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    h: Float[Array, ""],
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """q (nq,) and v (nv,) after a step h (s) at the acceleration a (nv,).

    tau (nv,): all that acts but gravity, M a + bias.
    """
    rates, balances = v + h * a, _balances(tree, q, v, tau, h)
    end = tree.topology.manifold.retract(q, h * rates)
    return _settled(tree, end, rates, balances, _composite(tree, end, rates), h)


@tree_algorithm
def coast(
    tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"], h: Float[Array, "..."]
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """q (nq,) and v (nv,) after the time h (s) without forces; other rates stay as they are.

    h () or (nv,): where trees move for times of their own, that of the tree of each entry of v.

    Bases turn at the mean w of the rates at which they depart and arrive, w' = I^-1 R'^T L: then a
    rigid body keeps its energy, whose change is w . (R'^T L - R^T L), and R' = R exp(h w).
    """
    balances, retract = _balances(tree, q, v), tree.topology.manifold.retract
    end = retract(q, h * v)
    # What a base carries does not depend on where the base is.
    composite = _composite(tree, end, v)

    def turned(_: Any, end: jax.Array) -> jax.Array:
        _, arriving = _settled(tree, end, v, balances, composite, h)
        return retract(q, h * (v + arriving) / 2)

    end = jax.lax.fori_loop(0, _TURNS, turned, end)
    return _settled(tree, end, v, balances, composite, h)


@tree_algorithm
def pushed(
    tree: Tree,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    h: Float[Array, ""],
) -> Float[Array, " nv"]:
    """v (nv,) after the time h (s) at the acceleration a (nv,), in the same configuration q (nq,).

    v + h a, but for the bases, whose coordinates turn while they go straight on. tau (nv,): all
    that acts but gravity, M a + bias.
    """
    rates, balances = v + h * a, _balances(tree, q, v, tau, h)
    return _settled(tree, q, rates, balances, _composite(tree, q, rates))[1]


@tree_algorithm
def carried(
    tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"], end: Float[Array, " nq"]
) -> Float[Array, " nv"]:
    """v (nv,) put into another configuration end (nq,).

    Bases keep their momentum about fixed points, on ball joints about the centre; other rates stay.
    """
    return _settled(tree, end, v, _balances(tree, q, v), _composite(tree, end, v))[1]


def _balances(
    tree: Tree,
    q: jax.Array,
    v: jax.Array,
    tau: jax.Array | None = None,
    h: jax.Array | None = None,
) -> list[Balance]:
    """The bases after the time h (s) under tau (nv,) and gravity, or at once.

    The forces act before anything moves.
    """

    def gather(children, dof):
        pose, inertia, twist = dof
        momentum, first = inertia @ twist + children[0], inertia.first + children[1]
        mass = inertia.mass + children[2]
        arm = pose.rotation @ first + pose.translation * mass
        return (pose.force(momentum), arm, mass), (momentum, first, mass)

    o = jnp.zeros((), tree.dtype)
    data = tree.poses(q), tree.inertia, dof_twists(tree, q, v)
    nothing = Force.zero(o), Vector(o, o, o), o
    gathered = backward_pass(tree.topology, gather, nothing, data)
    found = []
    for base in bases(tree.topology):
        mu, first, mass = jax.tree.map(lambda x, i=base.last: x[i], gathered)
        at, pose = base.velocities, _pose(tree, base, q)
        if tau is not None and h is not None:
            mu = mu + _as_force(h * tau[at])
        moment, force = pose.rotation @ mu.moment, pose.rotation @ mu.force
        arm, center = pose.rotation @ first, pose.translation
        if h is not None:
            fall = _placement(tree, base).rotation.transposed_times(tree.gravity) * h
            moment, force = moment + arm.cross(fall), force + fall * mass
        if at.shape[1] == 6:
            arm = arm * (1 / mass)
            moment, center = moment - arm.cross(force), center + arm
        rotors = tree.armature[base.joint.dofs] * v[at]
        found.append(Balance(moment, force, center, rotors))
    return found


def _settled(
    tree: Tree,
    q: jax.Array,
    rates: jax.Array,
    balances: list[Balance],
    composite: tuple[Inertia, Force],
    h: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array]:
    """q (nq,) and v (nv,) with the rates (nv,), and of bases what their momenta tell.

    composite: what dofs carry at these rates. h (s): for how long free bases have moved, which
    tells where they are; as in q for None.
    """
    v = rates
    for base, balance in zip(bases(tree.topology), balances, strict=True):
        own, other = jax.tree.map(lambda x, i=base.last: x[i], composite)
        at, pose = base.velocities, _pose(tree, base, q)
        moment = pose.rotation.transposed_times(balance.moment)
        force = pose.rotation.transposed_times(balance.force)
        if at.shape[1] == 6:
            if h is None:
                arm = pose.rotation.transposed_times(balance.center - pose.translation)
            else:
                time = jnp.broadcast_to(h, v.shape)[at[:, 0]]
                arm = (own.first - force * time) * (1 / own.mass)
                place = balance.center - pose.rotation @ arm
                q = q.at[base.joint.coordinates[:, 4:]].set(place.to_array())
            moment = moment + arm.cross(force)
        mu = Force(moment, force) - other + _as_force(balance.rotors)
        v = v.at[at].set(_twist(own, tree.armature[base.joint.dofs], mu))
    return q, v


def _composite(tree: Tree, q: jax.Array, v: jax.Array) -> tuple[Inertia, Force]:
    """Inertia and momentum (n_dofs,) of all that a dof carries, in its frame.

    The momentum is that of the rates v (nv,) beyond the dof; it stands still itself, as bases do.
    """
    for base in bases(tree.topology):
        v = v.at[base.velocities].set(0)
    zero = jnp.zeros((), tree.dtype)

    def compose(children, dof):
        pose, screw, rate, inertia = dof
        composite, momentum = inertia + children[0], children[1]
        passed = momentum + composite @ screw.times(rate).add_to(tree.zero_twist)
        return (composite.change_frame(pose), pose.force(passed)), (composite, momentum)

    nothing = Inertia(zero, Vector(zero, zero, zero), Symmetric(*[zero] * 6)), Force.zero(zero)
    data = tree.poses(q), tree.screws(q), tree.rates(v), tree.inertia
    return backward_pass(tree.topology, compose, nothing, data)


def _pose(tree: Tree, base: Bases, q: jax.Array) -> Transform:
    """The poses (n,) of bases in the frames of their joints."""
    joint, numbers = base.joint, tree.system.joints.numbers
    points = q[joint.coordinates]
    T = joint.evaluate(lambda joint, y: joint.transform(y), numbers, points)
    return Transform(Matrix.from_array(T[:, :3, :3]), Vector.from_array(T[:, :3, 3]))


def _placement(tree: Tree, base: Bases) -> Transform:
    """The poses (n,) of the frames of their joints in the world."""
    return jax.tree.map(lambda a: a[base.joint.dofs[:, 0]], tree.placement)


def _twist(inertia: Inertia, armature: jax.Array, mu: Force) -> jax.Array:
    """The velocity (n, 6) or (n, 3) of bases with the momentum mu (n,), armature included.

    Armature (n, 6) or (n, 3): the linear part is eliminated, and then the 3x3 equations are solved.
    """
    turning, first = _diagonal(armature[:, :3]), inertia.first
    if armature.shape[1] == 3:
        return (inertia.second + turning).solve(mu.moment).to_array()
    moved = Vector.from_array(inertia.mass[:, None] + armature[:, 3:])
    x, y, z = 1 / moved.x, 1 / moved.y, 1 / moved.z
    still = Vector(mu.force.x * x, mu.force.y * y, mu.force.z * z)
    c = first
    # skew(first) diag(x, y, z) skew(first)^T
    shift = Symmetric(
        c.z * c.z * y + c.y * c.y * z,
        -c.x * c.y * z,
        -c.x * c.z * y,
        c.z * c.z * x + c.x * c.x * z,
        -c.y * c.z * x,
        c.y * c.y * x + c.x * c.x * y,
    )
    angular = (inertia.second + turning - shift).solve(mu.moment - first.cross(still))
    turned = first.cross(angular)
    linear = still + Vector(turned.x * x, turned.y * y, turned.z * z)
    return jnp.concatenate((angular.to_array(), linear.to_array()), axis=1)


def _as_force(rows: jax.Array) -> Force:
    """Momenta (n, 6), or angular ones (n, 3) with no linear part, as wrenches (n,)."""
    return Force.from_array(jnp.pad(rows, ((0, 0), (0, 6 - rows.shape[1]))))


def _diagonal(a: jax.Array) -> Symmetric:
    o = jnp.zeros_like(a[:, 0])
    return Symmetric(a[:, 0], o, o, a[:, 1], o, a[:, 2])

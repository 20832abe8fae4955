"""Passive forces: those of joints and couplings, without control."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..system.arguments import checked
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.user_functions import called
from .at_joint import JointCoupling
from .points import coupling_force


def passive_force(system: System, q: Any, v: Any) -> Float[Array, " nv"]:
    """The generalised force (nv,) of springs, dampers, friction and couplings, in N m or N.

    For each degree of freedom, with q_0 the spring_reference, -stiffness (q - q_0) - damping v -
    friction tanh(v / friction_velocity): Coulomb friction, smoothed over `friction_velocity`, so
    that it has a derivative at v = 0. Added are the forces of the system's couplings (see
    `attach`), the sum of J^T F over their points, and those of stops, friction and forces at its
    joints. q (nq,), v (nv,). Raises as `checked` does.

    >>> hinge = dl.Revolute(damping=0.2, stiffness=3.0)
    >>> rod = dl.chain([dl.Body(name="rod", joint=hinge, mass=1.0, com=(0.5, 0, 0))])
    >>> print(dl.passive_force(rod, [0.1], [2.0]).round(3))  # -3 q - 0.2 v, in N m
    [-0.7]
    """
    q, v = checked(system, q=(q, (system.nq,)), v=(v, (system.nv,)))
    return _passive(Tree.of(system), q, v)


def passive(tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """`passive_force` (nv,) without checks."""
    return joint_force(tree, q, v) + coupling_force(tree, tree.system.couplings, q, v)


_passive = jax.jit(passive)


def joint_stretch(tree: Tree, q: Float[Array, " nq"]) -> Float[Array, " n_dofs"]:
    """The deflection q - q_0 of every dof's spring (n_dofs,), mimic joints included."""
    stretch = tree.coordinates(q) - tree.system.joints.spring_reference
    # Spherical and free joints, whose dofs have no coordinate, have no spring.
    return jnp.where(tree.topology.dof_coordinate >= 0, stretch, jnp.zeros_like(stretch))


def joint_force(tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """The generalised force (nv,) of springs, damping, friction, stops and forces at the joints.

    The forces of mimic joints act on the joint they follow.
    """
    t, joints = tree.topology, tree.system.joints
    stretch, rate = joint_stretch(tree, q), tree.rates(v)
    smooth = jnp.tanh(rate / joints.friction_velocity)
    force = -(joints.stiffness * stretch + joints.damping * rate + joints.friction * smooth)
    acting = [c for c in tree.system.couplings if isinstance(c, JointCoupling)]
    if acting:
        x = tree.coordinates(q)
        force = force + sum(called(c.efforts, t, joints, x, rate) for c in acting)
    return tree.generalised(force)

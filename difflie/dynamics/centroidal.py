"""The centre of mass of a system and its momentum about it (Orin, Goswami, Lee 2013).

    c = sum m_b c_b / m,      h = (angular momentum about c, linear momentum) = A_G(q) v

Column j of the centroidal momentum matrix A_G is the momentum Ic_j S_j of everything beyond dof j
when it moves along the screw S_j at unit rate; the linear part of A_G is m dc/dq. Bodies fixed to
the world do not move, and count neither here nor in the potential energy.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..groups.components import Vector
from ..spatial import Force
from ..system.kinematic_tree import Tree
from ..system.traverse import tree_algorithm
from .screws import Screws, generalised_columns, screws


def mass(tree: Tree) -> Float[Array, ""]:
    """The mass of all bodies that move, in kg, a scalar."""
    return jnp.sum(tree.inertia.mass)


@tree_algorithm
def center_of_mass(tree: Tree, q: Float[Array, " nq"]) -> Float[Array, "3"]:
    """The centre of mass (3,) in the world, in m."""
    s = screws(tree, q)
    return (_center(s) + _first(s.origin)).to_array()


def center_columns(tree: Tree, q: Float[Array, " nq"]) -> Float[Array, "3 nv"]:
    """The Jacobian (3, nv) of the centre of mass, world axes."""
    s = screws(tree, q)
    momentum = s.composite(s.inertia) @ s.axes
    return generalised_columns(tree, momentum)[3:] / mass(tree)


def momentum_columns(tree: Tree, q: Float[Array, " nq"]) -> Float[Array, "6 nv"]:
    """The centroidal momentum matrix (6, nv), angular part first, in world axes."""
    s = screws(tree, q)
    momentum = s.composite(s.inertia) @ s.axes
    arm = s.origin - _first(s.origin) - _center(s)
    about = Force(momentum.moment + arm.cross(momentum.force), momentum.force)
    return generalised_columns(tree, about)


def _center(s: Screws) -> Vector:
    """The centre of mass in the frame of the first tree."""
    moments = s.inertia.first + (s.origin - _first(s.origin)) * s.inertia.mass
    return jax.tree.map(jnp.sum, moments) * (1 / jnp.sum(s.inertia.mass))


def _first(origin: Vector) -> Vector:
    return jax.tree.map(lambda a: jnp.sum(a[:1]), origin)  # zero where nothing moves

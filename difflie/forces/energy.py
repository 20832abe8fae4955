"""The energy of a system, kinetic, gravitational and elastic, and the stiffness of its springs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..dynamics.energy import kinetic_energy, potential_energy
from ..system.arguments import checked
from ..system.internal_states import states_of, tree_with_states
from ..system.kinematic_tree import Tree
from ..system.protocols import ForceElement
from ..system.system import System
from ..system.traverse import tree_algorithm
from ..system.user_functions import called
from .at_joint import JointCoupling
from .coupling import Coupling, PointCoupling
from .internal_states import state_rates
from .passive import joint_force, joint_stretch, passive
from .points import coupling_force, point_frames
from .stateful import Stateful


def energy(system: System, q: Any, v: Any) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The kinetic and the potential energy in J, scalars; without dissipation the sum is constant.

    The potential is that of gravity, zero at the world origin, and of all springs, contacts and
    stops (see `elastic_energy`), at the internal states that the system holds. Bodies fixed to the
    world count in neither. q (nq,), v (nv,).

    >>> ball = dl.chain([dl.Body(name="ball", joint=dl.Prismatic(), mass=2.0)])
    >>> [round(float(part), 3) for part in dl.energy(ball, [1.0], [3.0])]  # in J
    [9.0, 19.62]
    """
    q, v = checked(system, q=(q, (system.nq,)), v=(v, (system.nv,)))
    return _energy(Tree.of(system), q, v)


def elastic_energy(system: System, q: Any) -> Float[Array, ""]:
    """The energy in J, a scalar, of the springs at the joints and between bodies, at q (nq,).

    Contacts and stops at joints count too, with the conservative part of their force.
    """
    (q,) = checked(system, q=(q, (system.nq,)))
    return _elastic_energy(Tree.of(system), q)


def spring_energy(tree: Tree, q: Float[Array, " nq"]) -> Float[Array, ""]:
    """`elastic_energy` () in J, without checks."""
    system, stretch = tree.system, joint_stretch(tree, q)
    energy = jnp.sum(system.joints.stiffness * stretch * stretch) / 2
    at_joints = [c for c in system.couplings if isinstance(c, JointCoupling) and c.stores_energy]
    if at_joints:
        x = tree.coordinates(q)
        at = system.topology, system.joints, x
        stored: list[Any] = [called(c.energy, *at) for c in at_joints]
        energy += jnp.asarray(sum(stored), energy.dtype)
    springs = storing(system.couplings)
    return energy + coupling_energy(tree, springs, q) if springs else energy


def storing(couplings: Sequence[ForceElement]) -> list[Coupling]:
    """The couplings between bodies that have a potential energy."""
    return [c for c in couplings if isinstance(c, Coupling) and c.stores_energy]


def with_mean_forces(couplings: Sequence[ForceElement]) -> list[PointCoupling]:
    """The couplings between bodies, for a method that conserves energy exactly.

    Raises ValueError for couplings with moments, and for those that store energy without defining
    `PointCoupling.mean_forces`.
    """
    for c in couplings:
        if not isinstance(c, Coupling | JointCoupling):
            continue
        by_forces = isinstance(c, PointCoupling)
        known = by_forces and type(c).mean_forces is not PointCoupling.mean_forces
        # What a part stores in internal states is no potential of q, so that it has no mean force.
        stores = c.stores_energy and not isinstance(c, Stateful)
        if (isinstance(c, Coupling) and not by_forces) or (stores and not known):
            raise ValueError(
                f"simulate: EnergyMomentum knows no mean force of {c}; use another method, such "
                "as RKMK4"
            )
    return [c for c in couplings if isinstance(c, PointCoupling)]


@tree_algorithm
def coupling_energy(
    tree: Tree, springs: Sequence[Coupling], q: Float[Array, " nq"]
) -> Float[Array, ""]:
    """The potential energy () in J of springs and contacts between bodies, at q (nq,)."""
    frames = point_frames(tree, [spring.path for spring in springs], q)
    laws = [spring.energy for spring in springs]
    energies: list[Any] = [called(*each) for each in zip(laws, frames, strict=True)]
    return sum(energies, jnp.zeros((), q.dtype)).astype(q.dtype)


_elastic_energy = jax.jit(spring_energy)


def lost_power(
    tree: Tree, command: Float[Array, " nu"], q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Float[Array, ""]:
    """The power () in W that passive forces take from the motion and do not store.

    That of dampers and friction, and of parts whose internal states lose energy. command (nu,): on
    which the rates of internal states depend.
    """
    t, system = tree.topology, tree.system

    def stored(step: jax.Array, z: jax.Array) -> jax.Array:
        return spring_energy(tree_with_states(tree, z), t.manifold.retract(q, step))

    at = jnp.zeros_like(v), states_of(system)
    rates = v, state_rates(tree, command, q, v) if system.nz else at[1]
    return -jnp.sum(passive(tree, q, v) * v) - jax.jvp(stored, at, rates)[1]


@jax.jit
@tree_algorithm
def _energy(tree, q, v):
    potential = potential_energy(tree, q) + spring_energy(tree, q)
    return kinetic_energy(tree, q, v), potential


def stiffness_matrix(system: System, q: Any) -> Float[Array, "nv nv"]:
    """The stiffness matrix K (nv, nv): minus the derivative of the springs' generalised force.

    In N m/rad or N/m, at q (nq,). The springs are those at the joints, the elastic couplings, and
    contacts and joint stops with the conservative part of their force; gravity is not included (see
    `inverse_dynamics_derivatives`). Column k is the derivative along `integrate(system, q, s e_k)`
    at s = 0. The symmetric part of K is the Hessian of `elastic_energy` along `integrate`. K itself
    is symmetric where all joints have plain coordinates, and where the springs balance. Otherwise,
    in the dofs of a spherical or free joint, K - K^T is the Lie bracket with the springs' moment,
    since rotations do not commute.
    """
    (q,) = checked(system, q=(q, (system.nq,)))
    return _stiffness_matrix(Tree.of(system), q)


@jax.jit
def _stiffness_matrix(tree, q):
    still = jnp.zeros(tree.topology.nv, q.dtype)
    springs = storing(tree.system.couplings)

    def force(step):
        moved = tree.topology.manifold.retract(q, step)
        at_joints = joint_force(tree, moved, still)
        return at_joints + coupling_force(tree, springs, moved, still)

    return -jax.jacfwd(force)(still)

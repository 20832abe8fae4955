"""Whether a motion in free flight kept its momentum, and whether the steps resolve its rotation."""

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..dynamics.free_flight import bases
from ..dynamics.kinematics import dof_poses, dof_twists
from ..forces.at_joint import JointCoupling
from ..forces.passive import passive
from ..groups.components import Vector
from ..integrators import Method
from ..integrators.embedded_munthe_kaas import EmbeddedMuntheKaas
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.topology import WORLD
from ..system.traverse import tree_algorithm

# Of the momentum in a second, and of rad in a step.
_CHANGE, _TURN = 0.01, 0.5


class Flight(eqx.Module):
    """A motion on which nothing but gravity acts from outside.

    change (): the largest change of a free body's momentum, linear or about its centre of mass,
    less that of gravity, as a part of the momentum; of long motions that in a second, on average.
    turn (): the largest rotation of a body in a step, in rad, among the saved states; 0 for
    adaptive methods, whose steps are divided.
    """

    change: jax.Array
    turn: jax.Array

    @property
    def good(self) -> Bool[Array, "*batch"]:
        """Whether the momentum was kept within 1 % and turns are below half a rad a step."""
        return ~(self.change > _CHANGE) & ~(self.turn > _TURN)

    def messages(self) -> list[str]:
        """One sentence for what is not good. Concrete numbers of one run only."""
        sentences = []
        if self.change > _CHANGE:
            sentences.append(
                f"the momentum of a free body changed by {100 * float(self.change):.2g} % within a "
                "second, and nothing but gravity acts on it; take a smaller dt, or "
                "SemiImplicitEuler or VariationalMidpoint, which keep it"
            )
        if self.turn > _TURN:
            sentences.append(
                f"a free body turns by {float(self.turn):.2g} rad in a step, which the step does "
                "not resolve; take a smaller dt"
            )
        return sentences


def flies(system: System, controlled: bool) -> bool:
    """Whether all moves freely, and nothing can act from outside but at the joints of free bodies.

    controlled: whether there is a control or a wrench.
    """
    t = system.topology
    free = [d for b in bases(t) if b.velocities.shape[1] == 6 for d in b.joint.dofs[:, 0]]
    alone = set(np.flatnonzero(t.dof_parent == WORLD)) == set(free)
    inner = all(isinstance(c, JointCoupling) for c in system.couplings)
    return bool(free) and alone and inner and not (controlled or system.constraints)


def flight(
    tree: Tree,
    q: Float[Array, "m nq"],
    v: Float[Array, "m nv"],
    time: Float[Array, ""],
    dt: Float[Array, ""],
    method: Method,
) -> Flight:
    """Of the saved states (m, ...) of a motion that took the time (s). Not differentiated."""
    tree, q, v, time, dt = jax.lax.stop_gradient((tree, q, v, time, dt))
    turning = np.stack([at[:3] for base in bases(tree.topology) for at in base.velocities])
    turn = dt * jnp.sqrt(jnp.max(jnp.sum(v[:, turning] ** 2, axis=2)))
    ends = np.array([0, -1])
    both = jax.vmap(functools.partial(_momenta, tree))(q[ends], v[ends])
    (P, L, force, moment, about), after = ([a[i] for a in both] for i in (0, 1))
    right = P + time * jnp.sum(tree.inertia.mass) * tree.system.gravity
    # Where all of it is zero but for rounding, or the parts cancel, it has no size of its own.
    small = float(jnp.finfo(q.dtype).eps) ** 0.5 * jnp.maximum(about, after[4])
    linear = jnp.maximum(_norm(P), _norm(right)) + 0.1 * jnp.maximum(force, after[2])
    angular = _norm(L) + 0.1 * jnp.maximum(moment, after[3]) + small
    change = jnp.maximum(
        _norm(after[0] - right) / jnp.where(linear > 0, linear, 1),
        _norm(after[1] - L) / jnp.where(angular > 0, angular, 1),
    )
    at_bases = np.concatenate([base.velocities.ravel() for base in bases(tree.topology)])
    outer = jax.vmap(functools.partial(passive, tree))(q[ends], v[ends])[:, at_bases]
    change = jnp.where(jnp.any(outer != 0), 0, change / jnp.maximum(time, 1))
    return Flight(change, jnp.zeros_like(turn) if isinstance(method, EmbeddedMuntheKaas) else turn)


@tree_algorithm
def _momenta(
    tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
    """Linear momentum (3,), angular (3,) about the centre of mass, both in world axes.

    Then the sums of the sizes of the bodies' shares: linear, angular about the centre of mass, and
    about the world's origin.
    """
    poses = dof_poses(tree, q)
    momenta = poses.force(tree.inertia @ dof_twists(tree, q, v))
    first = poses.rotation @ tree.inertia.first + poses.translation * tree.inertia.mass
    center = jax.tree.map(jnp.sum, first) * (1 / jnp.sum(tree.inertia.mass))
    about = momenta.moment - center.cross(momenta.force)

    def total(parts: Vector) -> jax.Array:
        return jnp.sum(parts.to_array(), axis=0)

    def size(parts: Vector) -> jax.Array:
        return jnp.sum(jnp.sqrt(parts.square()))

    return (
        *(total(momenta.force), total(about)),
        *(size(momenta.force), size(about), size(momenta.moment)),
    )


def _norm(x: jax.Array) -> jax.Array:
    return jnp.sqrt(jnp.sum(x**2))

"""Jumping velocities and impulses, for Moreau's time stepping."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..constraints.equations import dofs_of, equations, labels
from ..constraints.position import consistent_position
from ..constraints.unilateral import bilateral, unilateral
from ..dynamics.crba import crba
from ..dynamics.free_flight import bases, carried, coast, pushed
from ..integrators.jumps import Constraints, NonsmoothMechanics
from ..integrators.method import Scalar, State
from ..system.kinematic_tree import Tree
from .formulation import Formulation, Inputs


class ContactMotion(eqx.Module):
    """The impulses of the step before each saved time, in N s or N m s.

    bilateral (m + 1, b): of the b bilateral constraints. contacts (m + 1, k, 3): of the k contacts
    and stops, normal and along the two directions of slip; divided by dt they are the mean force.
    rounds (m + 1,): how many convex problems the step took; more than 1 where Coulomb's law was
    hard to meet, see `Moreau`. impacts (m + 1,): how many times contacts have hit until then, at
    times that are not located.
    """

    bilateral: jax.Array
    contacts: jax.Array
    rounds: jax.Array
    impacts: jax.Array


class NonsmoothFormulation(Formulation):
    """A system whose contacts and stops open and close."""

    equations: ClassVar[type] = NonsmoothMechanics
    supports: ClassVar[frozenset[str]] = frozenset(("constraints", "contacts"))

    def problem(self, t: jax.Array, h: Scalar, inputs: Inputs) -> NonsmoothMechanics:
        return Machine(self.tree, t + h / 2, inputs)

    def record(self, state: State) -> ContactMotion:
        p, rounds, impacts, _ = state.memory
        k = 3 * len(unilateral(self.tree).constraints)
        return ContactMotion(p[: len(p) - k], p[len(p) - k :].reshape(-1, 3), rounds, impacts)

    def impacts(self, state: State) -> jax.Array:
        return state.memory.impacts


class Machine(NonsmoothMechanics):
    """A system in a step whose middle is at the time t (s)."""

    tree: Tree
    t: jax.Array
    inputs: Inputs

    @property
    def size(self) -> int:
        b = len(labels(bilateral(self.tree).constraints))
        k = len(unilateral(self.tree).constraints)
        return b + 3 * k

    @property
    def trees(self) -> np.ndarray:
        return trees_of(self.tree)

    @property
    def touched(self) -> np.ndarray:
        t, trees = self.tree.topology, self.trees
        kinds = unilateral(self.tree).constraints
        touched = np.zeros((len(kinds), 1 + max(trees, default=0)), bool)
        for one, c in zip(touched, kinds, strict=True):
            dofs = dofs_of(self.tree.system, c)
            one[trees[t.dof_velocity[dofs]]] = True
        return touched

    def gaps(self, q: Float[Array, " nq"]) -> Float[Array, " k"]:
        return equations(unilateral(self.tree), q).residual()

    def coast(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], h: Scalar
    ) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
        return coasted(self.tree, q, v, jnp.asarray(h, v.dtype))

    def free(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], h: Scalar
    ) -> Float[Array, " nv"]:
        a, tau = self.inputs.accelerating(self.tree, self.t, q, v)
        if not bases(self.tree.topology):
            return v + h * a
        return pushed(self.tree, q, v, a, tau, jnp.asarray(h, v.dtype))

    def constraints(self, q: Float[Array, " nq"]) -> Constraints:
        always = equations(bilateral(self.tree), q).jacobian()
        contacts = unilateral(self.tree)
        gaps = equations(contacts, q)
        kinds: tuple[Any, ...] = contacts.constraints
        normals, start = gaps.jacobian(), 0
        blocks = []
        for c in kinds:
            block = normals[start : start + c.size]
            start += c.size
            blocks.append(jnp.zeros((3, self.tree.topology.nv), q.dtype).at[: c.size].set(block))
        A = jnp.concatenate([always, *blocks])
        M = crba(self.tree, q)
        factor = jax.scipy.linalg.cho_factor(M)

        def numbers(name: str) -> jax.Array:
            values = [getattr(c, name) for c in kinds]
            return jnp.stack(values) if values else q[:0]

        return Constraints(
            M=M,
            A=A,
            Y=jax.scipy.linalg.cho_solve(factor, A.T),
            gaps=gaps.residual(),
            friction=numbers("friction"),
            restitution=numbers("restitution"),
        )

    def position(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nq"], Float[Array, " nv"], Bool[Array, ""]]:
        return on_constraints(self.tree, q, v)


def trees_of(tree: Tree) -> np.ndarray:
    """(nv,) the number of the tree of each entry of v; with equations all are one."""
    t, every = tree.topology, np.zeros(tree.topology.nv, int)
    if not bilateral(tree).constraints:
        every[t.dof_velocity] = t.dof_root
    return np.unique(every, return_inverse=True)[1]


def coasted(
    tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"], h: Float[Array, "..."]
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """q (nq,) and v (nv,) after the time h (s) without forces, as of `free_flight.coast`."""
    if bases(tree.topology):
        return coast(tree, q, v, h)
    return tree.topology.manifold.retract(q, v * h), v


def on_constraints(
    tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> tuple[Float[Array, " nq"], Float[Array, " nv"], Bool[Array, ""]]:
    """q (nq,) and v (nv,) near q on the bilateral constraints; whether it converged ()."""
    kept = bilateral(tree)
    end, reached = consistent_position(kept, q)
    if kept.constraints and bases(tree.topology):
        v = carried(tree, q, v, end)
    return end, v, reached

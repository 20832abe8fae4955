"""Configurations, velocities and multipliers together, for methods in descriptor form."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..constraints.equations import equations, holonomic
from ..constraints.motion import Balance, constrained_acceleration
from ..dynamics.crba import crba
from ..dynamics.forward import acceleration
from ..dynamics.rnea import rnea
from ..groups import FlatProduct
from ..integrators.descriptor import DescriptorState, DescriptorSystem
from ..integrators.method import Scalar
from ..solvers.linear import minimum_norm, product
from ..system.kinematic_tree import Tree
from .formulation import Formulation, Inputs


class DescriptorMotion(eqx.Module):
    """Accelerations and multipliers of a method in descriptor form, at the saved times.

    acceleration (m + 1, nv): dv/dt in rad/s^2 or m/s^2. multipliers (m + 1, k) in N or N m, of the
    k constraint equations in the order of `constrained_dynamics`: A^T lambda is the reaction on the
    system. For redundant constraints they are the smallest.
    """

    acceleration: jax.Array
    multipliers: jax.Array


class DescriptorFormulation(Formulation):
    """M a + bias - tau - A^T lambda = 0, g(q) = 0, A v = 0, with a state `DescriptorState`."""

    equations: ClassVar[type] = DescriptorSystem
    supports: ClassVar[frozenset[str]] = frozenset(("constraints",))
    forces_at: ClassVar[float] = 1.0

    def problem(self, t: jax.Array, h: Scalar, inputs: Inputs) -> DescriptorSystem:
        return ConstrainedTree(self.tree, inputs)

    def record(self, state: DescriptorState) -> DescriptorMotion:
        # Those of the step are the smallest for the equations at its start.
        M, A = jax.lax.stop_gradient(ConstrainedTree(self.tree, Inputs()).matrices(state.q))
        gram = product(A, jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(M), A.T))
        smallest = minimum_norm(gram)(product(gram, state.multipliers))
        return DescriptorMotion(state.acceleration, smallest)


class ConstrainedTree(DescriptorSystem):
    """A system with its constraints and the inputs that act on it."""

    tree: Tree
    inputs: Inputs

    @property
    def manifold(self) -> FlatProduct:
        return self.tree.topology.manifold

    @property
    def holonomic(self) -> np.ndarray:
        return holonomic(self.tree.system.constraints)

    def equations(self, t, q, v, a):
        tau, wrench = self.inputs.acting(self.tree, t, q, v)
        effort = rnea(self.tree, q, v, a, wrench) - tau
        if not self.tree.system.constraints:
            return effort, v[:0], jnp.zeros((0, len(v)), v.dtype)
        constraints = equations(self.tree, q)
        return effort, constraints.residual(), constraints.jacobian()

    def matrices(self, q):
        M = crba(self.tree, q)
        if not self.tree.system.constraints:
            return M, jnp.zeros((0, len(M)), M.dtype)
        return M, equations(self.tree, q).jacobian()

    def acceleration(self, t, q, v):
        state = self.tree, q, v, *self.inputs.acting(self.tree, t, q, v)
        if not self.tree.system.constraints:
            return acceleration(*state), v[:0]
        return constrained_acceleration(*state)

    def normal(self, q, rate):
        M, A = self.matrices(q)
        return Balance(M, A).solve(jnp.zeros(len(M), M.dtype), rate)[0]

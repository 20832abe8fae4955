"""Configuration and momentum, for variational methods and, with constraints, RATTLE."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..constraints.equations import equations, holonomic, labels
from ..constraints.motion import Balance, constrained_acceleration
from ..dynamics.crba import crba
from ..dynamics.discrete_articulated import newton_step
from ..dynamics.discrete_inverse_dynamics import momenta
from ..dynamics.forward import mass_inverse_times, mass_times
from ..dynamics.rnea import rnea
from ..forces.actuators.acting import generalised, joint_force_of
from ..forces.effort_limits import limited
from ..forces.passive import joint_force
from ..forces.points import coupling_force
from ..groups import FlatProduct
from ..integrators.method import Method, Scalar, State
from ..integrators.rattle import ConstrainedMechanics
from ..integrators.variational import DiscreteMechanics
from ..system.arguments import check_independent
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.whole_joints import check_constant
from .formulation import Formulation, Inputs


class MomentumFormulation(Formulation):
    """Discrete mechanics of a tree of rigid bodies.

    Raises ValueError for mimic joints, because these couple branches in a discrete Lagrangian, and
    for joints that are not on a Lie group.
    """

    equations: ClassVar[type] = DiscreteMechanics
    forces_at: ClassVar[float] = 0.5

    @classmethod
    def check(cls, method: Method, system: System) -> None:
        t, what = system.topology, f"simulate: {method.name}"
        check_constant(t, what)
        check_independent(system, what, "use another method, such as RKMK4")

    def problem(self, t: jax.Array, h: Scalar, inputs: Inputs) -> TreeMechanics:
        return TreeMechanics(self.tree, t + h / 2, inputs)

    def moment(self, start: Any, end: Any, h: jax.Array) -> tuple[jax.Array, jax.Array]:
        (q, _), (after, _), space = start, end, self.tree.topology.manifold
        way = space.difference(q, after)
        return space.retract(q, way / 2), way / h


class TreeMechanics(DiscreteMechanics):
    """A tree of rigid bodies in a step whose middle is at the time t (s)."""

    tree: Tree
    t: jax.Array
    inputs: Inputs

    @property
    def manifold(self) -> FlatProduct:
        return self.tree.topology.manifold

    def momentum(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        return mass_times(self.tree, q, v)

    def velocity(self, q: Float[Array, " nq"], p: Float[Array, " nv"]) -> Float[Array, " nv"]:
        return mass_inverse_times(self.tree, q, p)

    def momenta(
        self, q: Float[Array, " nq"], w: Float[Array, " nv"], h: Scalar
    ) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
        return momenta(self.tree, q, w, h)

    def force(self, q: Float[Array, " nq"], w: Float[Array, " nv"]) -> Float[Array, " nv"]:
        still = jnp.zeros_like(w)
        tree, inputs = self.inputs.settled(self.tree, self.t, q, w)
        wrench = None if inputs.wrench is None else inputs.wrench(self.t, q, w)
        torques = inputs.torques(tree, self.t, q, w)
        force = joint_force(tree, q, w) - rnea(tree, q, still, still, wrench)
        force = force + coupling_force(tree, tree.system.couplings, q, w)
        return force if torques is None else force + generalised(tree, torques, q, w)

    def newton_step(
        self,
        q: Float[Array, " nq"],
        w: Float[Array, " nv"],
        h: Scalar,
        target: Float[Array, " nv"],
    ) -> Float[Array, " nv"]:
        # Forces at one joint that depend on its own motion only have a diagonal derivative, which
        # one direction gives. This is enough to solve for stiff dampers and drives.
        middle = self.manifold.retract(q, w * (h / 2))
        direction = jnp.full_like(q, h / 2), jnp.ones_like(w)

        def at_joints(q: jax.Array, w: jax.Array) -> jax.Array:
            tree, inputs = self.inputs.settled(self.tree, self.t, q, w)
            return _at_joints(tree, q, w, inputs.torques(tree, self.t, q, w))

        slope = jax.jvp(at_joints, (middle, w), direction)[1] * (-h / 2)
        return newton_step(self.tree, q, w, h, target, jnp.maximum(slope, 0))


def _at_joints(tree: Tree, q: jax.Array, w: jax.Array, torques: jax.Array | None) -> jax.Array:
    """The forces (nv,) at joints, with delivered torques (nu,)."""
    tau = joint_force(tree, q, w)
    if torques is None:
        return tau
    return tau + limited(tree.system, joint_force_of(tree.system, torques))


class ConstrainedMotion(eqx.Module):
    """The constraint multipliers at the saved times.

    multipliers (m + 1, p) in N or N m, of the p equations: the reaction A^T lambda acts on the
    system. For redundant constraints they are the smallest.
    """

    multipliers: jax.Array


class ConstrainedMomentumFormulation(MomentumFormulation):
    """Discrete mechanics of a system with constraints.

    Raises ValueError for mimic joints, and for velocity constraints, which a discrete action cannot
    contain.
    """

    equations: ClassVar[type] = ConstrainedMechanics
    supports: ClassVar[frozenset[str]] = frozenset(("constraints",))

    @classmethod
    def check(cls, method: Method, system: System) -> None:
        super().check(method, system)
        kinds = zip(labels(system.constraints), holonomic(system.constraints), strict=True)
        for label, of_positions in kinds:
            if not of_positions:
                raise ValueError(
                    f"simulate: {method.name} keeps equations of positions, but the {label}, "
                    "restricts velocities only; use another method, such as RKMK4"
                )

    def problem(self, t: jax.Array, h: Scalar, inputs: Inputs) -> TreeMechanics:
        return LinkedMechanics(self.tree, t + h / 2, inputs)

    def record(self, state: State) -> ConstrainedMotion:
        return ConstrainedMotion(state.memory.multipliers)


class LinkedMechanics(TreeMechanics, ConstrainedMechanics):
    """A tree of rigid bodies with constraints, in a step whose middle is at the time t (s)."""

    def residual(self, q: Float[Array, " nq"]) -> Float[Array, " p"]:
        return equations(self.tree, q).residual()

    def jacobian(self, q: Float[Array, " nq"]) -> Float[Array, "m nv"]:
        return equations(self.tree, q).jacobian()

    def consistent(self, q: Float[Array, " nq"], p: Float[Array, " nv"]) -> Float[Array, " nv"]:
        A = self.jacobian(q)
        _, mu = Balance(crba(self.tree, q), A).solve(p, 0 * A[:, 0])
        return p - A.T @ mu

    def multipliers(
        self, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> Float[Array, " m"]:
        inputs = self.inputs
        if inputs.states is not None:
            # From the start of the step to its end, which is twice as far as to its middle.
            inputs = inputs._replace(states=inputs.states._replace(h=2 * inputs.states.h))
        acting = inputs.acting(self.tree, jnp.asarray(t), q, v)
        return constrained_acceleration(self.tree, q, v, *acting)[1]

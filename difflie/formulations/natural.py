"""Bodies in natural coordinates, for the energy-momentum scheme."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..constraints.stabilisation import Stabilisation
from ..dynamics.forward import acceleration
from ..dynamics.natural.coordinates import NaturalCoordinates, natural_coordinates
from ..dynamics.natural.equations import combined, spread
from ..dynamics.natural.layout import check
from ..forces import energy
from ..forces.energy import with_mean_forces
from ..forces.passive import joint_force
from ..groups import directors
from ..groups.components import Vector
from ..integrators.energy_momentum import FrameMechanics, Step
from ..integrators.method import Method, Scalar, State
from ..spatial import Transform
from ..system.arguments import check_independent
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.user_functions import called
from .formulation import Formulation, Inputs


class NaturalMotion(eqx.Module):
    """The states of the energy-momentum scheme in its own coordinates, at the saved times.

    q (m + 1, nq). bodies (m + 1, nb, 4, 3): for each of the nb bodies with a joint of its own, in
    their order, the origin in m and the directors of its frame in the world; velocities, of the
    same shape, their rates; rotors (m + 1, nv): the rates of the armature. The energy and the
    momentum of these are the scheme's own, which it keeps to rounding.
    """

    q: jax.Array
    bodies: jax.Array
    velocities: jax.Array
    rotors: jax.Array

    def energy(self, system: System) -> tuple[Float[Array, " saved"], Float[Array, " saved"]]:
        """Kinetic and potential energy (m + 1,) in J at the saved times."""
        return _energy(system, self)

    def momentum(self, system: System) -> Float[Array, "saved 6"]:
        """Angular momentum about the world origin and linear momentum (m + 1, 6), world."""
        return _momentum(system, self)

    def constraint_error(self, system: System) -> Float[Array, " saved"]:
        """The error of the joints' and the directors' constraints (m + 1,) at the saved times.

        The largest residual in the equations of the joints and of the directors' scalar products.
        """
        return _constraint_error(system, self)


@jax.jit
def _energy(system: System, motion: NaturalMotion) -> tuple[jax.Array, jax.Array]:
    natural = natural_coordinates(Tree.of(system))
    armature = _by_velocity(system, system.joints.armature)
    kinetic = jax.vmap(natural.kinetic_energy)(motion.velocities)
    kinetic = kinetic + jnp.sum(armature * motion.rotors**2, axis=1) / 2
    _, potential = jax.vmap(lambda q, v: energy(system, q, v))(motion.q, motion.rotors)
    return kinetic, potential


@jax.jit
def _momentum(system: System, motion: NaturalMotion) -> jax.Array:
    natural = natural_coordinates(Tree.of(system))
    return jax.vmap(natural.momentum)(motion.bodies, motion.velocities)


@jax.jit
def _constraint_error(system: System, motion: NaturalMotion) -> jax.Array:
    natural = natural_coordinates(Tree.of(system))

    def error(bodies: jax.Array) -> jax.Array:
        axes = bodies[:, 1:]
        products = jnp.sum(axes[:, :, None] * axes[:, None], axis=-1)
        rigid = jnp.max(jnp.abs(products - jnp.eye(3, dtype=axes.dtype)))
        return jnp.maximum(rigid, jnp.max(jnp.abs(natural.constraints(bodies)), initial=0))

    return jax.vmap(error)(motion.bodies)


def _by_velocity(system: System, dofs: Float[Array, " n_dofs"]) -> Float[Array, " n_dofs"]:
    """Numbers of the dofs (n_dofs,), none of them a mimic joint's, in the order of v (nv,)."""
    return dofs[np.argsort(system.topology.dof_velocity)]


class NaturalFormulation(Formulation):
    """P Q'' = C^T mu + forces, c(Q) = 0 in natural coordinates Q.

    The velocity v that is returned has the momentum of the natural velocity: M(q) v = J^T P Q'. It
    keeps the momentum maps of the scheme. Its energy is that of the scheme less that of the part of
    Q' that is no tangent, which is O(h^4). Raises ValueError for mimic, helical and translation
    joints, and for contacts and stops.
    """

    equations: ClassVar[type] = FrameMechanics

    natural: NaturalCoordinates

    @classmethod
    def of(cls, tree: Tree, method: Method, stabilisation: Stabilisation) -> Formulation:
        return cls(tree, natural=natural_coordinates(tree), method=method)

    @classmethod
    def check(cls, method: Method, system: System) -> None:
        what = f"simulate: {method.name}"
        check(system.topology, what)
        check_independent(system, what, "use another method, such as RKMK4")

    def problem(self, t: jax.Array, h: Scalar, inputs: Inputs) -> FrameMechanics:
        return NaturalTree(self.tree, self.natural, t + h / 2, inputs)

    def record(self, state: State) -> NaturalMotion:
        bodies, velocities, rotors, *_ = state.memory
        return NaturalMotion(state.y[0], bodies, velocities, rotors)


class NaturalTree(FrameMechanics):
    """A tree of rigid bodies in a step whose middle is at the time t (s).

    Its further state is the rates (nv,) of the rotors (armature) at the joints, integrated by a
    scheme of their own with the same mean rate.
    """

    tree: Tree
    natural: NaturalCoordinates
    t: jax.Array
    inputs: Inputs

    @property
    def mass(self) -> Float[Array, "nb 4 4"]:
        return self.natural.mass

    def constraints(self, frames: Float[Array, "nb 4 3"]) -> Float[Array, " m"]:
        return self.natural.constraints(frames)

    def start(self, y: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
        q, v = y
        bodies = self.natural.bodies(q)
        return bodies, self.natural.velocities(bodies, q, v), v

    def load(self, step: Step, state: State, h: Scalar) -> Float[Array, "nb 6"]:
        natural, armature = self.natural, self._armature
        arms = natural.arms(step.middle, step.rates, h)
        v = natural.joint_rates(arms, step.rates)
        q = self.tree.topology.manifold.retract(state.y[0], (h / 2) * v)
        tau = joint_force(self.tree, q, v) - armature * (2 / h) * (v - state.memory.carried)
        effort = self.inputs.effort(self.tree, self.t, q, v)
        if effort is not None:
            tau = tau + effort
        total = natural.weight(step.middle) + natural.joint_load(arms, tau)
        couplings = with_mean_forces(self.tree.system.couplings)
        if couplings:
            total = total + self._couplings(couplings, step, h)
        if self.inputs.wrench is not None:
            total = total + natural.body_load(step.middle, self.inputs.wrench(self.t, q, v))
        return total

    def end(
        self, step: Step, velocities: Float[Array, "nb 4 3"], state: State, h: Scalar
    ) -> tuple[Any, Float[Array, " nv"]]:
        natural = self.natural
        arms = natural.arms(step.middle, step.rates, h)
        rotors = 2 * natural.joint_rates(arms, step.rates) - state.memory.carried
        q = natural.coordinates(step.end, state.y[0])
        return (q, self._velocity(step.end, velocities, rotors, q)), rotors

    @property
    def _armature(self) -> Float[Array, " nv"]:
        return _by_velocity(self.tree.system, self.tree.system.joints.armature)

    def _couplings(self, couplings: list[Any], step: Step, h: Scalar) -> Float[Array, "nb 6"]:
        """The loads (nb, 6) of couplings."""
        natural, paths = self.natural, [c.path for c in couplings]
        number = {name: b for b, name in enumerate((*self.tree.system.body_names, None))}
        body = np.array([number[name] for path in paths for name in path.bodies])
        points = natural.attached(body, jnp.concatenate([path.points for path in paths]))
        start, end = combined(points, step.start), combined(points, step.end)
        middle = natural.attitudes(step.middle, body), Vector.from_array((start + end) / 2)
        motion = (
            Vector.from_array(start),
            Vector.from_array(end),
            Transform(*middle),
            Vector.from_array((end - start) / h),
        )
        forces, first = [], 0
        for coupling, path in zip(couplings, paths, strict=True):
            own = slice(first, first := first + len(path.bodies))
            at = jax.tree.map(lambda a, own=own: a[own], motion)
            forces.append(called(coupling.mean_forces, *at).to_array())
        return directors.load(step.middle, spread(points, jnp.concatenate(forces)))

    def _velocity(
        self,
        bodies: Float[Array, "nb 4 3"],
        velocities: Float[Array, "nb 4 3"],
        rotors: Float[Array, " nv"],
        q: Float[Array, " nq"],
    ) -> Float[Array, " nv"]:
        """The velocity (nv,) with the momentum of the natural velocities."""
        momentum = self.natural.body_momentum(bodies, velocities)
        still = jnp.zeros_like(rotors)
        return acceleration(self.tree.weightless(), q, still, self._armature * rotors, momentum)

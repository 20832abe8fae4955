"""Bodies in natural coordinates: what the energy-momentum scheme needs."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from ..dynamics.forward import acceleration, weightless
from ..dynamics.natural_coordinates import NaturalCoordinates, natural_coordinates
from ..forces.passive import joint_force
from ..groups import directors
from ..integrators.energy_momentum import EnergyMomentum, Step
from ..system.linkage import Linkage
from ..system.system import System
from .formulation import Formulation, Input


class NaturalState(NamedTuple):
    """The state of the time loop.

    bodies, velocities (nb, 4, 3): natural coordinates and their rates; the latter are no tangents,
    and carry the energy of the scheme. rotors (nv,): the rates of the armature at the joints, a
    scheme of its own with the same mean rate. rates (nb, 6), impulse (m,): the last step's, where
    Newton's method begins. q (nq,), v (nv,): what is read.
    """

    bodies: jax.Array
    velocities: jax.Array
    rotors: jax.Array
    rates: jax.Array
    impulse: jax.Array
    q: jax.Array
    v: jax.Array


class NaturalFormulation(Formulation):
    """P Q'' = C^T mu + forces, c(Q) = 0 in natural coordinates Q.

    The velocity v that is read has the momentum of the natural velocity: M(q) v = J^T P Q'. It
    keeps the momentum maps of the scheme; its energy is that of the scheme less the part of Q' that
    is no tangent, which is O(h^4).
    """

    system: System
    linkage: Linkage
    natural: NaturalCoordinates
    method: EnergyMomentum = eqx.field(static=True)

    def __init__(self, system: System, linkage: Linkage, method: EnergyMomentum):
        self.system, self.linkage, self.method = system, linkage, method
        self.natural = natural_coordinates(linkage)

    def start(self, t: jax.Array, q: jax.Array, v: jax.Array, h: jax.Array) -> NaturalState:
        bodies = self.natural.bodies(q)
        velocities = self.natural.velocities(bodies, q, v)
        rates = directors.rates(bodies, velocities)
        impulse = jnp.zeros_like(self.natural.constraints.constant)
        return NaturalState(bodies, velocities, v, rates, impulse, q, v)

    def step(
        self, t: jax.Array, state: NaturalState, h: jax.Array, control: Input, wrench: Input
    ) -> tuple[NaturalState, Any]:
        natural, manifold = self.natural, self.system.manifold
        armature = self._armature()

        def load(step: Step) -> jax.Array:
            arms = natural.arms(step.middle, step.rates, h)
            v = natural.joint_rates(arms, step.rates)
            q = manifold.retract(state.q, (h / 2) * v)
            tau = joint_force(self.system, q, v) - armature * (2 / h) * (v - state.rotors)
            if control is not None:
                tau = tau + control(t + h / 2, q, v)
            total = natural.weight(step.middle) + natural.joint_load(arms, tau)
            if wrench is not None:
                total = total + natural.body_load(step.middle, wrench(t + h / 2, q, v))
            return total

        step, velocities, impulse, solved = self.method.step(
            natural.mass,
            natural.constraints,
            load,
            state.bodies,
            state.velocities,
            h,
            state.rates,
            state.impulse,
        )
        arms = natural.arms(step.middle, step.rates, h)
        rotors = 2 * natural.joint_rates(arms, step.rates) - state.rotors
        q = natural.coordinates(step.end, state.q)
        v = self._velocity(step.end, velocities, rotors, q)
        return NaturalState(step.end, velocities, rotors, step.rates, impulse, q, v), solved

    def read(self, state: NaturalState) -> tuple[jax.Array, jax.Array]:
        return state.q, state.v

    def _armature(self) -> jax.Array:
        """(nv,) in the order of v."""
        t = self.system.topology
        return self.system.joints.armature[jnp.argsort(t.row_velocity)]

    def _velocity(
        self, bodies: jax.Array, velocities: jax.Array, rotors: jax.Array, q: jax.Array
    ) -> jax.Array:
        """The velocity (nv,) with the momentum of the natural velocities."""
        momentum = self.natural.body_momentum(bodies, velocities)
        still = jnp.zeros_like(rotors)
        return acceleration(
            weightless(self.linkage), q, still, self._armature() * rotors, momentum
        )

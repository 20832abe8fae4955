"""The methods of the comparison, each with the chain in the variables that it moves.

A scheme has three functions: start(chain), the state at rest and stretched out along the x axis;
step(chain, state, h), the state h (s) later and whether the equations of the step were solved; and
observe(chain, state), what the thesis looks at: the angles phi (n,) in rad, the energy () in J, and
the error of the constraints (n,), (5.1) in m^2, or (5.2) of the attitudes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...groups import Euclidean
from ...integrators import FieldMethod, ImplicitMidpoint, State, VectorField
from . import energy_stable, variational
from .chain import PlanarChain, angles, mechanics
from .energy_stable import MeanGradient, discrete_gradient, gauss_mean


class EnergyStable(NamedTuple):
    """The energy-stable method, in the coordinates of the centres of mass."""

    mean: MeanGradient

    def start(self, chain: PlanarChain) -> State:
        q = chain.centres(jnp.zeros_like(chain.length)).ravel()
        return energy_stable.start(mechanics(chain), q, jnp.zeros_like(q))

    def step(self, chain: PlanarChain, state: State, h: jax.Array) -> tuple:
        return energy_stable.step(mechanics(chain), self.mean, state, h)

    def observe(self, chain: PlanarChain, state: State) -> tuple:
        problem, (q, v) = mechanics(chain), state.y
        energy = problem.kinetic_energy(v) + problem.potential(q)
        return angles(chain, q), energy, problem.constraint(q)


class Variational(NamedTuple):
    """The variational method, in angles and momenta."""

    rate: Callable[[jax.Array, Any], jax.Array]

    def start(self, chain: PlanarChain) -> State:
        zero = jnp.zeros_like(chain.length)
        return State((zero, zero), zero)

    def step(self, chain: PlanarChain, state: State, h: jax.Array) -> tuple:
        return variational.step(chain.lagrangian, self.rate, state, h)

    def observe(self, chain: PlanarChain, state: State) -> tuple:
        phi, p = state.y
        return _of_angles(chain, phi, chain.rate(phi, p))


class Rates(NamedTuple):
    """A method for vector fields, in angles and velocities: by the midpoint rule the reference."""

    method: FieldMethod

    def problem(self, chain: PlanarChain) -> VectorField:
        return VectorField(Euclidean(2 * len(chain.length)), chain.field)

    def start(self, chain: PlanarChain) -> State:
        at_rest = jnp.zeros(2 * len(chain.length), chain.length.dtype)
        return self.method.init(self.problem(chain), 0.0, at_rest, 0.0)

    def step(self, chain: PlanarChain, state: State, h: jax.Array) -> tuple:
        return self.method.step(self.problem(chain), 0.0, state, h)

    def observe(self, chain: PlanarChain, state: State) -> tuple:
        return _of_angles(chain, *jnp.split(state.y, 2))


def _of_angles(chain: PlanarChain, phi: jax.Array, rate: jax.Array) -> tuple:
    """Observed, with (5.2): | |q_i| - 1 | of the attitudes q_i = (cos phi_i, sin phi_i)."""
    norm = jnp.sqrt(jnp.cos(phi) ** 2 + jnp.sin(phi) ** 2)
    return phi, chain.kinetic_energy(phi, rate) + chain.potential(phi), jnp.abs(norm - 1)


Scheme = EnergyStable | Variational | Rates

SCHEMES: dict[str, Scheme] = {
    "energy-stable midpoint": EnergyStable(partial(gauss_mean, 1)),
    "energy-stable 2-point Gauss": EnergyStable(partial(gauss_mean, 2)),
    "energy-stable 3-point Gauss": EnergyStable(partial(gauss_mean, 3)),
    "energy-stable Gonzalez": EnergyStable(discrete_gradient),
    "variational sine": Variational(variational.chord_rate),
    "variational exact angle": Variational(variational.angle_rate),
    "implicit midpoint": Rates(ImplicitMidpoint()),
}

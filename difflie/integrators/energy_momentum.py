"""The energy-momentum scheme for bodies in natural coordinates, in the rates of its steps.

Bodies are frames Q (nb, 4, 3) of an origin and three directors, with the pseudo-inertias P (4, 4)
and equations c(Q) = 0 of their joints, at most quadratic. With the start Q_0, the middle Q_m and
the end Q_1 of a step h, one step of Betsch and Steinmann (2001) is

    P (Q'_1 - Q'_0) = C(Q_m)^T impulse + h force,    Q_1 - Q_0 = h (Q'_0 + Q'_1) / 2,    c(Q_1) = 0

where C = dc/dQ; that the directors stay orthonormal is among the equations. The null space of
these, Betsch and Leyendecker (2006), is known in closed form at the middle of a step: the rates
x = (w, u) of `groups.directors`, in which they hold identically. Tested with it,

    N(Q_m)^T (2 P (Q'_m - Q'_0) - C(Q_m)^T impulse - h force) = 0,    c(Q_1) = 0

is the same step in 6 unknowns a body and one for each equation of the joints. Q' is no tangent at
the nodes, C Q' = O(h^2), and must not be made one: Q'_m is.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..groups import directors
from ..solvers.linear import product
from ..solvers.newton import Newton
from ..solvers.root import root
from .method import Method, Scalar, State


class Step(NamedTuple):
    """A step: the frames (nb, 4, 3) at its start, middle and end, and the rates (nb, 6).

    The rates are those of `groups.directors`.
    """

    start: Float[Array, "nb 4 3"]
    middle: Float[Array, "nb 4 3"]
    end: Float[Array, "nb 4 3"]
    rates: Float[Array, "nb 6"]


class Frames(NamedTuple):
    """The memory of the scheme besides (q, v).

    frames, velocities (nb, 4, 3): natural coordinates and their rates, which are not tangents.
    carried: further state of the problem, a pytree. rates (nb, 6), impulse (m,): of the last step,
    the initial guess of Newton's method.
    """

    frames: jax.Array
    velocities: jax.Array
    carried: Any
    rates: jax.Array
    impulse: jax.Array


class FrameMechanics(eqx.Module):
    """A machine in natural coordinates, as the scheme needs it; points are y = (q, v)."""

    @property
    @abc.abstractmethod
    def mass(self) -> Float[Array, "nb 4 4"]:
        """The pseudo-inertias (nb, 4, 4)."""

    @abc.abstractmethod
    def constraints(self, frames: Float[Array, "nb 4 3"]) -> Float[Array, " m"]:
        """The residuals (m,) of the joints' equations."""

    @abc.abstractmethod
    def start(self, y: Any) -> tuple[Float[Array, "nb 4 3"], Float[Array, "nb 4 3"], Any]:
        """The frames and their velocities (nb, 4, 3) at y, and the further state."""

    @abc.abstractmethod
    def load(self, step: Step, state: State, h: Scalar) -> Float[Array, "nb 6"]:
        """The moments about the mean origins and the forces (nb, 6) in a step, in world axes."""

    @abc.abstractmethod
    def end(
        self, step: Step, velocities: Float[Array, "nb 4 3"], state: State, h: Scalar
    ) -> tuple[Any, Any]:
        """The point y = (q, v) after a step from a state, and the further state."""


class EnergyMomentum(Method):
    """Order 2: energy and momentum maps are kept to rounding, for every step length.

    Energy is kept for loads whose work in a step is the loss of their potential (a discrete
    gradient). A momentum map is kept if the loads have no moment about its axis at the middle of
    the step. Betsch and Steinmann 2001; Gonzalez 1996.
    """

    equations: ClassVar[type] = FrameMechanics
    time_symmetric: ClassVar[bool] = True
    implicit: ClassVar[bool] = True
    order: ClassVar[int] = 2

    def init(self, problem: FrameMechanics, t: Scalar, y: Any, h: Scalar) -> State:
        frames, velocities, carried = problem.start(y)
        rates = directors.rates(frames, velocities)
        impulse = jnp.zeros_like(problem.constraints(frames))
        return State(y, Frames(frames, velocities, carried, rates, impulse))

    def step(
        self, problem: FrameMechanics, t: Scalar, state: State, h: Scalar
    ) -> tuple[State, Bool[Array, ""]]:
        frames, velocities, _, rates, impulse = state.memory
        size = rates.size

        def taken(x: jax.Array) -> Step:
            rates = x[:size].reshape(-1, 6)
            middle = directors.middle(frames, rates, h)
            return Step(frames, middle, frames + h * directors.motion(middle, rates), rates)

        def residual(x: jax.Array) -> jax.Array:
            step, impulse = taken(x), x[size:]
            change = 2 * (directors.motion(step.middle, step.rates) - velocities)
            _, pull = jax.vjp(problem.constraints, step.middle)
            momentum = product(problem.mass, change)
            load = problem.load(step, state, h)
            balance = directors.load(step.middle, momentum - pull(impulse)[0]) - h * load
            return jnp.concatenate((balance.ravel(), problem.constraints(step.end) / h))

        x, solved = root(residual, jnp.concatenate((rates.ravel(), impulse)), Newton())
        step = taken(x)
        after = 2 * directors.motion(step.middle, step.rates) - velocities
        step = step._replace(end=directors.orthonormalised(step.end))
        y, carried = problem.end(step, after, state, h)
        return State(y, Frames(step.end, after, carried, step.rates, x[size:])), solved

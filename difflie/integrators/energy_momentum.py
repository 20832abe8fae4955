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

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..groups import directors
from ..solvers.linear import product
from ..solvers.newton import Newton
from ..solvers.root import root
from .method import Method, Scalar


class Step(NamedTuple):
    """A step as its loads see it: the frames (nb, 4, 3) at its start, middle and end, and the rates
    (nb, 6) of `groups.directors` in between."""

    start: Float[Array, "nb 4 3"]
    middle: Float[Array, "nb 4 3"]
    end: Float[Array, "nb 4 3"]
    rates: Float[Array, "nb 6"]


class EnergyMomentum(Method):
    """Order 2: energy and momentum maps are kept to rounding, whatever the step.

    Energy is kept for loads whose work in a step is the loss of their potential (a discrete
    gradient); a momentum map, if they have no moment about its axis at the middle of the step.
    Betsch and Steinmann 2001; Gonzalez 1996.
    """

    time_symmetric: ClassVar[bool] = True

    @property
    def order(self) -> int:
        return 2

    def step(
        self,
        mass: Float[Array, "nb 4 4"],
        equations: Callable[[jax.Array], jax.Array],
        load: Callable[[Step], jax.Array],
        frames: Float[Array, "nb 4 3"],
        velocities: Float[Array, "nb 4 3"],
        h: Scalar,
        rates: Float[Array, "nb 6"],
        impulse: Float[Array, " m"],
    ) -> tuple[Step, Float[Array, "nb 4 3"], Float[Array, " m"], Bool[Array, ""]]:
        """The step, the velocities at its end, the impulse, and whether it is solved ().

        mass (nb, 4, 4): the pseudo-inertias. equations: the values (m,) of the joints' equations at
        frames (nb, 4, 3). load: the moments about the mean origins and the forces (nb, 6), world
        axes. frames, velocities (nb, 4, 3): the start. rates (nb, 6), impulse (m,): where Newton's
        method begins.
        """
        size = rates.size

        def taken(x: jax.Array) -> Step:
            rates = x[:size].reshape(-1, 6)
            middle = directors.middle(frames, rates, h)
            return Step(frames, middle, frames + h * directors.motion(middle, rates), rates)

        def residual(x: jax.Array) -> jax.Array:
            step, impulse = taken(x), x[size:]
            change = 2 * (directors.motion(step.middle, step.rates) - velocities)
            _, pull = jax.vjp(equations, step.middle)
            momentum = product(mass, change)
            balance = directors.load(step.middle, momentum - pull(impulse)[0]) - h * load(step)
            return jnp.concatenate((balance.ravel(), equations(step.end) / h))

        x, solved = root(residual, jnp.concatenate((rates.ravel(), impulse)), Newton())
        step = taken(x)
        after = 2 * directors.motion(step.middle, step.rates) - velocities
        return step._replace(end=directors.orthonormalised(step.end)), after, x[size:], solved

"""Implicit steps of mechanical systems in descriptor form, with constraints and multipliers.

    M(q) a + bias(q, v) - tau(t, q, v) - A(q)^T lambda = 0,    g(q) = 0,    A(q) v = 0

A method writes configuration, velocity and acceleration at the end of a step as functions of one
increment u. The dynamics and the constraints there are solved for u and the multipliers. Index 3
keeps the position constraints only. The stabilised index 2 form keeps position and velocity
constraints, by a correction M^-1 A(q_n)^T eta of the positions (Gear, Gupta and Leimkuhler 1985).

Unknowns and equations are scaled to displacements, as h^2 M^-1 times the dynamics and h^2 lambda:
the condition of the linear equations does not depend on h (Bottasso, Bauchau and Cardona 2007).
Redundant combinations of constraints are left out, and the multipliers along them are zero.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..groups import FlatProduct
from ..solvers.corrections import Chord
from ..solvers.linear import decomposed, product
from ..solvers.root import root
from .method import Method, Scalar, chosen


class DescriptorSystem(eqx.Module):
    """A mechanical system with p position constraints and m velocity constraints, for a method.

    Arrays are q (nq,), others (nv,), multipliers (m,). Of the m equations A v = 0 the p holonomic
    ones are the derivatives of g = 0, in their order.
    """

    @property
    @abc.abstractmethod
    def manifold(self) -> FlatProduct:
        """The configuration manifold."""

    @property
    @abc.abstractmethod
    def holonomic(self) -> np.ndarray:
        """(m,) which velocity constraints are derivatives of position constraints."""

    @abc.abstractmethod
    def equations(
        self, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nv"], Float[Array, " p"], Float[Array, "m nv"]]:
        """M a + bias - tau (nv,), g (p,) and A (m, nv)."""

    @abc.abstractmethod
    def matrices(
        self, q: Float[Array, " nq"]
    ) -> tuple[Float[Array, "nv nv"], Float[Array, "m nv"]]:
        """M (nv, nv) and A (m, nv)."""

    @abc.abstractmethod
    def acceleration(
        self, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nv"], Float[Array, " m"]]:
        """The acceleration (nv,) and the multipliers (m,) that keep A v = 0."""

    @abc.abstractmethod
    def normal(self, q: Float[Array, " nq"], rate: Float[Array, " m"]) -> Float[Array, " nv"]:
        """The smallest x (nv,) in the metric of M with A x = rate (m,)."""


class DescriptorState(NamedTuple):
    """What a method keeps from step to step.

    q (nq,), v (nv,), acceleration (nv,) and multipliers (m,) at the same time; memory is the
    method's own.
    """

    q: jax.Array
    v: jax.Array
    acceleration: jax.Array
    multipliers: jax.Array
    memory: Any

    @property
    def y(self) -> tuple[jax.Array, jax.Array]:
        """(q, v)."""
        return self.q, self.v


class Start(NamedTuple):
    """The Taylor expansion of a consistent motion at its start; arrays (nv,), multipliers (m,).

    acceleration and jerk: dv/dt and its derivative. bracket: [v, dv/dt], an additional term of the
    logarithm of the motion: log(q_0^-1 q_1) = h v + h^2/2 dv/dt + h^3 (jerk / 6 + bracket / 12).
    stiff: 1 where a step is too long for the expansion, so that its terms grow, otherwise 0. There
    jerk and bracket are zero, and a method starts with a step of implicit Euler.
    """

    acceleration: jax.Array
    jerk: jax.Array
    bracket: jax.Array
    multipliers: jax.Array
    stiff: jax.Array


class End(NamedTuple):
    """The end of a step for an increment: h times its rate, v, and h^2 times the acceleration.

    All (nv,): q_1 = retract(q_0, displacement). memory is what the method keeps for the next step.
    """

    displacement: jax.Array
    velocity: jax.Array
    acceleration: jax.Array
    memory: Any


class DescriptorMethod(Method):
    """An implicit method for systems in descriptor form.

    index: 2 keeps the position and the velocity constraints, 3 the position constraints only.
    Raises ValueError for another index.
    """

    equations: ClassVar[type] = DescriptorSystem
    implicit: ClassVar[bool] = True

    index: int = eqx.field(default=2, static=True)

    def __check_init__(self) -> None:
        if self.index not in (2, 3):
            raise ValueError(f"{self.name}: the index is {self.index!r}; it must be 2 or 3")

    @abc.abstractmethod
    def init(
        self, problem: DescriptorSystem, t: Scalar, y: tuple[jax.Array, jax.Array], h: Scalar
    ) -> DescriptorState:
        """The state before the first step h, from a consistent y = (q, v) at the time t."""

    @abc.abstractmethod
    def step(
        self, problem: DescriptorSystem, t: Scalar, state: DescriptorState, h: Scalar
    ) -> tuple[DescriptorState, Bool[Array, ""]]:
        """The state at t + h, and whether the step was solved (); if not, the state at t."""

    def solved(
        self,
        system: DescriptorSystem,
        t: Scalar,
        state: DescriptorState,
        h: Scalar,
        end: Callable[[jax.Array, jax.Array], End],
        guess: Float[Array, " nv"],
    ) -> tuple[DescriptorState, Bool[Array, ""]]:
        """The state at t + h, and whether the step was solved (); if not, the state at t.

        end(u, correction): the `End` for the increment u (nv,), with a guess, and the correction of
        positions (nv,), zero in index 3. Both are scaled as displacements.
        """
        q, n, m = state.q, len(state.v), len(state.multipliers)
        rows = np.flatnonzero(system.holonomic)
        weight, size, ways, redundant, redundant_positions = _scales(system, q, rows)

        def reached(x: jax.Array) -> DescriptorState:
            u, mu, eta = x[:n], x[n : n + m], x[n + m :]
            e = end(u, product(ways, eta) if self.index == 2 else jnp.zeros_like(u))
            q1 = system.manifold.retract(q, e.displacement)
            scale = 1 / h**2
            return DescriptorState(
                q1, e.velocity, scale * e.acceleration, scale / size * mu, e.memory
            )

        def parts(x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
            """The residuals of dynamics (nv,) and constraints (m + p or m,), and A (m, nv)."""
            mu, eta = x[n : n + m], x[n + m :]
            q1, v1, a1, multipliers, _ = reached(x)
            effort, g, A = system.equations(t + h, q1, v1, a1)
            balance = product(weight, h**2 * (effort - product(A.T, multipliers)))
            rate = h * product(A, v1)
            if self.index == 3:
                return balance, _without(redundant, rate.at[rows].set(g), mu), A
            rate, g = _without(redundant, rate, mu), _without(redundant_positions, g, eta)
            return balance, jnp.concatenate((rate, g)), A

        def residual(x: jax.Array) -> jax.Array:
            balance, kept, _ = parts(x)
            return jnp.concatenate((balance, kept))

        def jacobian(x: jax.Array, exact: jax.Array) -> jax.Array:
            """Differences in u and, if `exact`, in the corrections of positions.

            Their effect on forces and rates is small, unless a step is nearly as long as the
            distance to a singular configuration.
            """
            step = float(jnp.finfo(x.dtype).eps) ** 0.5 * jnp.maximum(1, jnp.max(jnp.abs(x)))
            # The first evaluation is at x.
            places = np.r_[0, np.arange(n), np.arange(n + m, x.size)]

            def column(k: jax.Array, state: tuple) -> tuple:
                at_x, A, columns = state
                place = jnp.asarray(places)[k]
                shift = jnp.where((jnp.arange(x.size) == place) & (k > 0), step, 0)
                *values, moved = parts(x + shift)
                values = jnp.concatenate(values)
                at_x, A = chosen(k == 0, (values, moved), (at_x, A))
                return at_x, A, columns.at[place].set((values - at_x) / step)

            start = x, jnp.zeros((m, n), x.dtype), jnp.zeros((x.size, x.size), x.dtype)
            turns = jnp.where(exact, len(places), n + 1)
            _, A_x, columns = jax.lax.fori_loop(0, turns, column, start)
            matrix = columns.T
            matrix = matrix.at[:n, n : n + m].set(-product(weight, A_x.T) / size)
            matrix = matrix.at[n : n + m, n : n + m].set(redundant)
            if self.index == 2:
                unit = jnp.eye(len(rows), dtype=x.dtype)
                corrected = _without(redundant_positions, product(A_x[rows], ways), unit)
                corrected = jnp.zeros((x.size, len(rows)), x.dtype).at[n + m :].set(corrected)
                matrix = matrix.at[:, n + m :].set(jnp.where(exact, matrix[:, n + m :], corrected))
            return matrix

        mu = size * h**2 * state.multipliers
        eta = jnp.zeros(len(rows) if self.index == 2 else 0, q.dtype)
        guess = jnp.concatenate((guess, mu - product(redundant, mu), eta))
        x, solved = root(residual, guess, Chord(jacobian))
        return chosen(solved, reached(x), state), solved


def expanded(
    system: DescriptorSystem,
    t: Scalar,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    h: Scalar,
) -> Start:
    """The expansion at a consistent state q (nq,), v (nv,), for steps of length h.

    The jerk is a difference over h/8, accurate to O(h^2). It compiles faster than a derivative.
    """

    def later(a: jax.Array, s: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        moved = system.manifold.retract(q, s * (v + s / 2 * a)), v + s * a
        new, multipliers = system.acceleration(t + s, *moved)
        return jnp.where(s == 0, new, a), (new, multipliers)

    pause = h / 16
    times = pause * jnp.arange(3, dtype=q.dtype)
    a, (rates, multipliers) = jax.lax.scan(later, jnp.zeros_like(v), times)
    jerk = (4 * rates[1] - 3 * rates[0] - rates[2]) / (2 * pause)
    # Compared with the largest, too: a coordinate may begin with nothing but a small jerk.
    sizes = jnp.abs(v) + h * jnp.abs(a)
    stiff = h**2 / 2 * jnp.abs(jerk) > sizes + 0.05 * jnp.max(sizes)
    jerk, bracket = (jnp.where(stiff, 0, x) for x in (jerk, system.manifold.bracket(v, a)))
    return Start(a, jerk, bracket, multipliers[0], stiff.astype(v.dtype))


def across(
    system: DescriptorSystem, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """The part (nv,) of v (nv,) that violates the derivatives of the position constraints."""
    _, A = system.matrices(q)
    return system.normal(q, jnp.where(system.holonomic, product(A, v), 0))


class _Scales(NamedTuple):
    """Scaling of the equations of a step, evaluated at its start.

    weight (n, n): M^-1. size (): of A M^-1 A^T. ways (n, p): M^-1 A^T / size of the p position
    constraints, the directions in which positions are corrected. redundant (m, m),
    redundant_positions (p, p): the projectors on redundant combinations of constraints.
    """

    weight: jax.Array
    size: jax.Array
    ways: jax.Array
    redundant: jax.Array
    redundant_positions: jax.Array


def _scales(system: DescriptorSystem, q: Float[Array, " nq"], rows: np.ndarray) -> _Scales:
    """The scaling at q; `rows` are the position constraints among the equations."""
    M, A = system.matrices(q)
    factor = jax.scipy.linalg.cho_factor(M)
    Y = jax.scipy.linalg.cho_solve(factor, A.T)
    unit = jnp.eye(len(M), dtype=q.dtype)
    weight = jax.lax.stop_gradient(jax.scipy.linalg.cho_solve(factor, unit))
    gram = jax.lax.stop_gradient(product(A, Y))
    size = jnp.trace(gram) / max(len(A), 1)
    size = jnp.where(size > 0, size, 1)
    redundant = _redundant(gram), _redundant(gram[rows][:, rows])
    return _Scales(weight, size, Y[:, rows] / size, *redundant)


def _redundant(gram: Float[Array, "m m"]) -> Float[Array, "m m"]:
    """The projector (m, m) on the redundant combinations of m constraints.

    gram (m, m): A M^-1 A^T, whose eigenvalues are the squared sizes of the combinations.
    """
    if not len(gram):
        return gram
    s, basis = decomposed(gram)
    nothing = s < float(jnp.finfo(gram.dtype).eps) ** 0.75 * jnp.max(s)
    return product(basis * nothing, basis.T)


def _without(
    redundant: Float[Array, "m m"],
    equations: Float[Array, " m *k"],
    unknowns: Float[Array, " m *k"],
) -> Float[Array, " m *k"]:
    """The equations (m, ...), with the redundant ones replaced by: these unknowns are zero."""
    return equations - product(redundant, equations - unknowns)

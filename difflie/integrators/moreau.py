"""Moreau's time stepping: velocities jump, and impulses decide whether contacts open and slide.

    q_m = q exp(h v / 2)
    M (v' - v) = h f(q_m, v) + A_b^T p_b + sum over closed contacts (A_n^T p_n + A_t^T p_t)
    q' = q_m exp(h v' / 2)

Free bodies, and ball joints on the world, go straight on in the world from q to q_m and to q', with
their momentum (`difflie.dynamics.free_flight`).

    A_b v' = 0,    0 <= p_n  |_  A_n v' + e A_n v >= 0,    p_t = proj of the disk |p_t| <= mu p_n

A contact closes where its gap g_m at q_m is not positive. One that pressed in the step before stays
closed as long as what acts would close its gap again within a step, g_m + h A_n v < 0: the motion
bends away from the tangent along which impulses let it go, by h^2. Then A_n v' + g_m / h >= 0.

An impulse belongs to a whole step. Impacts, any number of them in a step, and steady forces are
treated alike, and no event has to be located in time. Moreau 1988; Jean 1999; the
conditions as projections after Alart and Curnier 1991.

The step in which an impact falls is not differentiated. Derivatives by what changes the time of an
impact are therefore wrong, in sign too: with e = 1 the height after a bounce rises by 1 with that
of the start, where it falls by 1. Take compliant contacts for them. Impacts that come at once, as
of balls that touch each other, have no unique outcome; the impulses found are one of them.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..solvers.linear import product
from ..solvers.newton import Piecewise
from ..solvers.root import root
from .method import Method, Scalar, State, chosen


class Constraints(eqx.Module):
    """The constraints at one configuration; each contact has three: normal, and two of slip.

    delassus (m, m): A M^-1 A^T. Y (nv, m): M^-1 A^T. A (m, nv). m = b + 3 k: b bilateral equations,
    then k contacts. gaps (k,), m or rad. friction, restitution (k,).
    """

    A: jax.Array
    Y: jax.Array
    gaps: jax.Array
    friction: jax.Array
    restitution: jax.Array


class NonsmoothMechanics(eqx.Module):
    """A mechanical system in a step of `Moreau`; q (nq,), v (nv,), points y = (q, v)."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """The number m = b + 3 k of constraints."""

    @abc.abstractmethod
    def coast(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], h: Scalar
    ) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
        """q (nq,) and v (nv,) after the time h without forces."""

    @abc.abstractmethod
    def free(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], h: Scalar
    ) -> Float[Array, " nv"]:
        """v (nv,) after the time h at q (nq,), without constraints."""

    @abc.abstractmethod
    def constraints(self, q: Float[Array, " nq"]) -> Constraints:
        """The constraints at q (nq,)."""

    @abc.abstractmethod
    def position(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nq"], Float[Array, " nv"], Bool[Array, ""]]:
        """q (nq,) and v (nv,) near q on the bilateral constraints; whether it converged ()."""


class Moreau(Method):
    """Order 1, for contacts and stops: a contact may overlap by the path of one step.

    The memory is the impulses p (m,) of the step before. Moreau 1988.
    """

    equations: ClassVar[type] = NonsmoothMechanics
    implicit: ClassVar[bool] = True
    order: ClassVar[int] = 1
    stability: ClassVar[tuple[float, float]] = 2.0, 2.0

    def init(self, problem: NonsmoothMechanics, t: Scalar, y: Any, h: Scalar) -> State:
        return State(y, jnp.zeros(problem.size, y[0].dtype))

    def step(
        self, problem: NonsmoothMechanics, t: Scalar, state: State, h: Scalar
    ) -> tuple[State, Bool[Array, ""]]:
        q, v = state.y
        middle, before = problem.coast(q, v, h / 2)
        contacts = problem.constraints(middle)
        free = problem.free(middle, before, h)
        velocities = product(contacts.A, before), product(contacts.A, free)
        p, solved = impulses(contacts, *velocities, state.memory, h)
        after = free + product(contacts.Y, p)
        *y, reached = problem.position(*problem.coast(middle, after, h / 2))
        solved = solved & reached
        y = chosen(solved, tuple(y), state.y)
        return State(y, jnp.where(solved, p, 0)), solved


def impulses(
    contacts: Constraints,
    before: Float[Array, " m"],
    free: Float[Array, " m"],
    last: Float[Array, " m"],
    h: Scalar,
) -> tuple[Float[Array, " m"], Bool[Array, ""]]:
    """The impulses p (m,), and whether they were solved for ().

    before, free (m,): the velocities A v of the constraints before the step, and after it without
    impulses. last (m,): the impulses of the step before; h (s). Gauss-Seidel iteration decides
    which contacts stick, slide and open. Newton's method then solves the resulting equations for
    the impulses.
    """
    m, k = len(free), len(contacts.gaps)
    if not m:
        return free, jnp.asarray(True)
    b = m - 3 * k
    delassus = product(contacts.A, contacts.Y)
    # Redundant contacts share the load evenly.
    size = jnp.trace(delassus) / m
    delassus = delassus + 1e-7 * size * jnp.eye(m, dtype=free.dtype)
    normals = b + 3 * jnp.arange(k)
    opens = contacts.gaps + h * free[normals] > 0
    closed = (contacts.gaps <= 0) | ((last[normals] > 0) & ~opens)
    approach = contacts.restitution * jnp.minimum(before[normals], 0)
    free = free.at[normals].add(approach + jnp.maximum(contacts.gaps, 0) / h)
    diagonal = jax.lax.stop_gradient(jnp.diag(delassus))
    scale = jnp.where(diagonal > 1e-8 * size, 1 / diagonal, 1 / size)
    tangent = jnp.minimum(scale[b:].reshape(k, 3)[:, 1], scale[b:].reshape(k, 3)[:, 2])

    def projected(p: jax.Array, w: jax.Array) -> jax.Array:
        """The impulses p projected on the conditions of all contacts, at velocities w."""
        both = p[:b] - scale[:b] * w[:b]
        pushed = p[b:].reshape(k, 3)
        slip = w[b:].reshape(k, 3)
        normal = jnp.maximum(pushed[:, 0] - scale[b:].reshape(k, 3)[:, 0] * slip[:, 0], 0)
        sideways = pushed[:, 1:] - tangent[:, None] * slip[:, 1:]
        square = jnp.sum(sideways**2, axis=1)
        moving = square > 0
        length = jnp.sqrt(jnp.where(moving, square, 1))
        limit = contacts.friction * normal
        inside = jnp.where(moving, length, 0) <= limit
        sideways = sideways * jnp.where(inside, 1, limit / length)[:, None]
        forces = jnp.concatenate((normal[:, None], sideways), axis=1)
        forces = jnp.where(closed[:, None], forces, 0)
        return jnp.concatenate((both, forces.ravel()))

    def sweep(_: jax.Array, p: jax.Array) -> jax.Array:
        def one(i: jax.Array, p: jax.Array) -> jax.Array:
            new = projected(p, product(delassus, p) + free)
            group = jnp.where(jnp.arange(m) < b, jnp.arange(m), b + (jnp.arange(m) - b) // 3)
            return jnp.where(group == i, new, p)

        return jax.lax.fori_loop(0, b + k, one, p)

    guess = jax.lax.fori_loop(0, 20, sweep, jnp.zeros_like(free))

    # In units of velocity, so that rounding errors are those of velocities.
    def residual(x: jax.Array) -> jax.Array:
        p = x * scale
        return (p - projected(p, product(delassus, p) + free)) / scale

    x, solved = root(residual, guess / scale, Piecewise())
    return x * scale, solved

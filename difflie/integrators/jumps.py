"""Velocities that jump: the impulses of Coulomb's law, of stops and of closed loops in a step.

    M (v' - v) = M (v* - v) + A_b^T p_b + sum over closed contacts (A_n^T p_n + A_t^T p_t)
    A_b v' = 0,    0 <= p_n  |_  A_n v' - u >= 0,    p_t = proj of the disk |p_t| <= mu p_n

v* is the velocity after the step without impulses. A contact that closes at the rate A_n v < 0 has
the target u = u_0 - e A_n v.

These are equations for v' alone, with the impulses as functions of A v' (`impulse_balance`), softer
by 1e-7 of the inverse mass that they move: redundant contacts share a load evenly. Where bodies are
wedged, by friction above 1, there may be no such solution near one with 1e-5, which is then taken.

With friction, or with several contacts, Newton's restitution may gain energy (Kane and Levinson
1985). The work of the impulses, sum p . A (v + v') / 2, is therefore kept from being positive: v'
is the point between the solution without restitution and that with it that comes as near to the
latter as this allows.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..solvers.linear import product
from .impacts import Flights
from .impulse_balance import coulomb_velocity, hardness
from .impulse_laws import Coulomb, Intervals
from .method import Scalar


class Constraints(eqx.Module):
    """The constraints at one configuration; each contact has three: normal, and two of slip.

    M (nv, nv): the mass matrix. A (m, nv), m = b + 3 k: b bilateral equations, then k contacts. Y
    (nv, m): M^-1 A^T. gaps (k,), m or rad. friction, restitution (k,).
    """

    M: jax.Array
    A: jax.Array
    Y: jax.Array
    gaps: jax.Array
    friction: jax.Array
    restitution: jax.Array

    @property
    def normals(self) -> Float[Array, "k nv"]:
        """The rows of A of the gaps."""
        return self.A[len(self.A) - 3 * len(self.gaps) :: 3]

    def closed(
        self, free: Float[Array, " nv"], pressed: Bool[Array, " k"], h: Scalar
    ) -> Bool[Array, " k"]:
        """Which contacts are closed, of those that do not hit later in a step h (s).

        free (nv,): v*. pressed (k,): which pressed in the step before; they open where their gap
        would at v*.
        """
        opens = self.gaps + h * product(self.normals, free) > 0
        return (self.gaps <= 0) | (pressed & ~opens)

    def still(self, h: Scalar) -> Float[Array, " k"]:
        """The targets u_0 (k,) of contacts that were closed before."""
        return -jnp.maximum(self.gaps, 0) / h


class NonsmoothMechanics(Flights):
    """A mechanical system in a step of `Moreau`; q (nq,), v (nv,), points y = (q, v)."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """The number m = b + 3 k of constraints."""

    def pressures(self, p: Float[Array, " m"]) -> Float[Array, " k"]:
        """The normal impulses among p."""
        return p[len(p) - 3 * len(self.touched) :: 3]

    @property
    @abc.abstractmethod
    def touched(self) -> np.ndarray:
        """(k, trees) which trees each contact moves."""

    @abc.abstractmethod
    def free(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], h: Scalar
    ) -> Float[Array, " nv"]:
        """v (nv,) after the time h at q (nq,), without constraints."""

    @abc.abstractmethod
    def constraints(self, q: Float[Array, " nq"]) -> Constraints:
        """The constraints at q (nq,)."""

    def accelerating(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], h: Scalar
    ) -> Float[Array, " nv"]:
        return (self.free(q, v, h) - v) / h


class Memory(NamedTuple):
    """The impulses p (m,) of the step before, and the number () of rounds that they took.

    The impulses are as of a step that is `usual` long () in s. impacts (): how many times contacts
    have hit so far at times that are not located.
    """

    impulses: Any
    rounds: Any
    impacts: Any
    usual: Any


class Closing(NamedTuple):
    """How k contacts close in a step, shapes (k,), in m/s or rad/s.

    closed: whether they do. coming: the rates of the gaps before. still: the targets u_0. least:
    what targets with restitution are at least.
    """

    closed: jax.Array
    coming: jax.Array
    still: jax.Array
    least: jax.Array


def jumped(
    contacts: Constraints,
    closing: Closing,
    before: Float[Array, " nv"],
    free: Float[Array, " nv"],
    again: Callable[[jax.Array], tuple[jax.Array, jax.Array]] | None = None,
) -> tuple[Float[Array, " nv"], Memory, Bool[Array, ""]]:
    """The velocity v' (nv,) after the step, its impulses, and whether they were found ().

    before, free (nv,): the velocities v before the step, and v* after it without impulses. again:
    v* (nv,) and the targets u_0 (k,) for the jump (nv,) of a first solution, if they depend on it.
    """
    none, zero = jnp.zeros(len(contacts.A), free.dtype), jnp.zeros((), free.dtype)
    if not contacts.A.size:
        return free, Memory(none, zero, zero, zero), jnp.asarray(True)
    coming, (hard, soft) = jnp.minimum(closing.coming, 0), hardness(free.dtype)

    def ended(state: tuple, first: jax.Array) -> tuple:
        guess, last, restitution, free, still = state
        target = jnp.maximum(still - restitution * coming, closing.least)
        laws = _laws(contacts, target, closing.closed)
        mobility = [law.softness[:, :1] / hard for law in laws]
        v, p, rounds, solved = coulomb_velocity(
            contacts.M, free, contacts.A, laws, guess, last, mobility, soft
        )
        work = jnp.sum(p * product(contacts.A, before + v)) / 2
        if again is not None:
            new = again(product(contacts.Y, p))
            free, still = (jnp.where(first, *x) for x in zip(new, (free, still), strict=True))
        # Where nothing is gained the next one is the same again.
        changes = first | (work > 0)
        restitution = jnp.where(~first & changes, 0, restitution)
        state = v, jnp.where(changes, 0, p), restitution, free, still
        return state, (v, p, work, rounds, solved)

    start = before, none, contacts.restitution, free, closing.still
    order = jnp.asarray([False, False] if again is None else [True, False, False])
    _, (v, p, work, rounds, solved) = jax.lax.scan(ended, start, order)
    v, p, work = v[-2:], p[-2:], work[-2:]
    gained = v[0] - v[1]
    share = _limited(jnp.sum(gained * product(contacts.M, gained)) / 2, work)
    # All of what bounces, or only a part of it.
    after, p = (a[1] + share * (a[0] - a[1]) for a in (v, p))
    return after, Memory(p, jnp.max(rounds), zero, zero), jnp.all(solved)


def _limited(square: Float[Array, ""], work: Float[Array, " 2"]) -> Float[Array, ""]:
    """The largest part () of the way to what bounces on which impulses do no positive work.

    work (2,): of what bounces, and of what does not. square (): the kinetic energy of what differs.
    """
    gains = work[0] > 0
    least = jnp.minimum(work[1], 0)
    slope = work[0] - work[1] - square
    root = jnp.sqrt(jnp.where(gains, slope * slope - 4 * square * least, 1))
    # The larger root of square s^2 + slope s + least, without cancellation.
    stable = jnp.where(slope > 0, slope + root, 1)
    falling = jnp.where(square > 0, (root - slope) / (2 * jnp.where(square > 0, square, 1)), 0)
    part = jnp.where(slope > 0, -2 * least / stable, falling)
    return jnp.where(gains, jnp.clip(part, 0, 1), 1)


def _laws(
    contacts: Constraints, target: Float[Array, " k"], closed: Bool[Array, " k"]
) -> tuple[Intervals, Coulomb]:
    """The laws of the bilateral equations and of the contacts; target (k,): of the normals."""
    k, nv = len(contacts.gaps), contacts.A.shape[1]
    b = len(contacts.A) - 3 * k
    dtype = contacts.A.dtype
    diagonal = jax.lax.stop_gradient(jnp.sum(contacts.A[:b] * contacts.Y[:, :b].T, axis=1))
    rows, moved = contacts.A[b:].reshape(k, 3, nv), contacts.Y[:, b:].T.reshape(k, 3, nv)
    square = jnp.sum(product(rows, jnp.swapaxes(moved, 1, 2)) ** 2, axis=(1, 2)) / 9
    mobility = jax.lax.stop_gradient(jnp.sqrt(square))
    # What moves nothing, such as redundant equations at singular points, is as soft as the rest.
    size = jnp.max(jnp.concatenate((diagonal, mobility)))
    diagonal, mobility = (
        jnp.where(a > 1e-8 * size, a, jnp.where(size > 0, size, 1)) for a in (diagonal, mobility)
    )
    softness, _ = hardness(dtype)
    target = jnp.pad(target[:, None], ((0, 0), (0, 2)))
    infinite, hard = jnp.full_like(diagonal, jnp.inf), softness * diagonal[:, None]
    each = jnp.repeat(softness * mobility[:, None], 3, axis=1)
    return (
        Intervals(hard, jnp.zeros_like(hard), -infinite, infinite),
        Coulomb(each, target, contacts.friction, closed),
    )

"""Roots of laws with kinks, beside convex problems that have their minimum near the root."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from .convex import ConvexNewton
from .root import Function, LinearSolve, Search

# How much softer than others the first convex problem is.
_FIRST = 1e3


@dataclass(frozen=True)
class ConvexRounds(Search):
    """Newton's method for equations such as Coulomb's law, started from convex problems.

    The unknowns are x (n,) and p (m,), which follows from x by steep laws. These are met as limits
    of soft ones that give p where the steep ones do, if there are such limits: relaxed(x, p) (n,)
    is zero at the root, and passed(x, p) (m,) are then the same p again. jacobian(x, p) (n, n): one
    of the derivatives of relaxed by x. convex(x, shift, softness) (n,): the gradient of a strictly
    convex function, which for the right shift (k,) is zero at the root of relaxed for p = 0, softer
    for factors () above 1; hessian (n, n). shift(x) (k,): the one that belongs to x. size(x) ():
    what rounding errors are measured by. derivative(x, p) (n + m, n + m): that of the residual.

    Newton's method, which halves steps, is tried from the guess, whose p is near or 0. Where it
    fails it goes on from the minima of convex problems. The first one is soft and not shifted. The
    shifts of further ones go half the way to those of the last minimum: whole ways go round in
    circles (Acary, Cadoux, Lemarechal and Malick 2011). The memory is how many problems it took.
    """

    relaxed: Callable[[jax.Array, jax.Array], jax.Array]
    passed: Callable[[jax.Array, jax.Array], jax.Array]
    jacobian: Callable[[jax.Array, jax.Array], jax.Array]
    convex: Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
    hessian: Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
    shift: Callable[[jax.Array], jax.Array]
    size: Callable[[jax.Array], jax.Array]
    derivative: Callable[[jax.Array, jax.Array], jax.Array]
    n: int
    rounds: int = 150

    def functions(self, guess: jax.Array) -> list:
        one, (x, p) = jnp.ones((), guess.dtype), jnp.split(guess, [self.n])
        shift = jnp.zeros(jax.eval_shape(self.shift, x).shape, x.dtype)
        return [
            (self.relaxed, (x, p)),
            (self.passed, (x, p)),
            (self.jacobian, (x, p)),
            (self.convex, (x, shift, one)),
            (self.hessian, (x, shift, one)),
            (self.shift, (x,)),
            (self.size, (x,)),
            (self.derivative, (x, p)),
        ]

    def find(
        self,
        residual: Function,
        guess: jax.Array,
        relaxed: Callable,
        passed: Callable,
        jacobian: Callable,
        convex: Callable,
        hessian: Callable,
        shift: Callable,
        size: Callable,
        derivative: Callable,
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        x, known = jnp.split(guess, [self.n])

        def one(state: tuple) -> tuple:
            x, _, _, lower, _, count = state
            softness = jnp.where(count == 1, _FIRST, jnp.ones((), x.dtype))
            first = jnp.where(count == 0, known, 0)
            # Both loops occur in the program once.
            many, steps = jnp.where(count == 0, -1, 60), jnp.where(count == 0, 8, 30)
            minimum = ConvexNewton(lambda x: hessian(x, lower, softness), size, many)
            x, *_ = minimum.find(
                lambda x: convex(x, lower, softness), x, minimum.hessian, minimum.size
            )
            end, p, solved = _newton(relaxed, passed, jacobian, size, x, first, steps)
            way = jnp.where(count == 0, 0, jnp.where(count == 1, 1, 0.5))
            return x, end, p, lower + way * (shift(x) - lower), solved, count + 1

        def unfinished(state: tuple) -> jax.Array:
            *_, solved, count = state
            return ~solved & (count <= self.rounds)

        lower = jnp.zeros_like(shift(x))
        begin = x, x, known, lower, jnp.asarray(False), jnp.asarray(0)
        _, x, p, _, solved, count = jax.lax.while_loop(unfinished, one, begin)
        return jnp.concatenate((x, p)), solved, count - 1

    def linear(
        self, x: jax.Array, memory: jax.Array, *functions: Callable
    ) -> tuple[LinearSolve, LinearSolve]:
        *_, derivative = functions
        parts = jnp.split(x, [self.n])

        def solve(linear: Function, b: jax.Array) -> jax.Array:
            return jnp.linalg.solve(derivative(*parts), b)

        def transposed(linear: Function, b: jax.Array) -> jax.Array:
            return jnp.linalg.solve(derivative(*parts).T, b)

        return solve, transposed


def _newton(
    relaxed: Callable,
    passed: Callable,
    jacobian: Callable,
    size: Callable,
    guess: jax.Array,
    first: jax.Array,
    steps: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """x (n,) near the guess, p (m,) and whether they were found (). first (m,): the first p.

    A step is halved until the residual is smaller, and where it never is the best one is taken.
    Where the soft laws are met p is taken anew, as long as this moves x ever less: at last the
    steep laws are met. Where it does not, as with bodies that are wedged, the soft laws have to do.
    """
    eps = float(jnp.finfo(guess.dtype).eps)

    def improve(state: tuple) -> tuple:
        x, p, found, fresh, last, _, count = state
        r = relaxed(x, p)
        d = -jnp.linalg.solve(jacobian(x, p), r)
        before, full = jnp.sum(r * r), jnp.max(jnp.abs(d))

        def halve(state: tuple) -> tuple:
            share, best, least, _, tries = state
            r = relaxed(x + share * d, p)
            now = jnp.sum(r * r)
            better = now < least
            best, least = jnp.where(better, share, best), jnp.where(better, now, least)
            good = now <= (1 - 1e-4 * share) * before
            return share / 2, best, least, good, tries + 1

        def searching(state: tuple) -> jax.Array:
            *_, good, tries = state
            return ~good & (tries < 10)

        one, infinite = jnp.ones((), x.dtype), jnp.asarray(jnp.inf, x.dtype)
        whole = one, one, infinite, no, jnp.asarray(0)
        _, share, least, *_ = jax.lax.while_loop(searching, halve, whole)
        scale = size(x)
        # Where the residual is steep, its rounding errors are large, but not those of x.
        still = full <= 32 * eps * scale
        new = jnp.where(still, x + d, x + share * d)
        met = still | (least <= (eps**0.6 * scale) ** 2)
        soft = last < jnp.inf
        astray = soft & ~still & ((share < 1) | (fresh & (full > last / 4)))
        settled = fresh & soft & still
        kept = met & ~astray
        found, p = jnp.where(kept, new, found), jnp.where(kept, passed(new, p), p)
        last = jnp.where(soft, jnp.where(fresh, full, last), jnp.where(met, 1e-2 * scale, jnp.inf))
        return new, p, found, kept, last, astray | settled, count + 1

    def unfinished(state: tuple) -> jax.Array:
        x, *_, last, ended, count = state
        allowed = jnp.where(last < jnp.inf, steps + 12, steps)
        return ~ended & (count < allowed) & jnp.all(jnp.isfinite(x))

    no, infinite = jnp.asarray(False), jnp.asarray(jnp.inf, guess.dtype)
    begin = guess, first, guess, no, infinite, no, jnp.asarray(0)
    _, p, x, _, last, *_ = jax.lax.while_loop(unfinished, improve, begin)
    return x, p, last < jnp.inf

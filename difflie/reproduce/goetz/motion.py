"""Motions of the manipulator of Table 5.1, from the stretched position at rest."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ... import native
from ...integrators import RKMK8
from .chain import PlanarChain
from .schemes import Rates, Scheme
from .springs import PlanarSprings

# States that one native call gives: few enough to be short where a motion has fewer.
_BLOCK = 1024

# Which segments the springs of each case run along: none under gravity alone.
_ROUTES = {"gravity": (), "mono": ((0,), (1,), (2,)), "multi": ((0, 1, 2),)}


def three_links(case: str) -> PlanarChain:
    """The manipulator of Table 5.1 under gravity alone ("gravity"), or with mono-articular springs
    ("mono") or one multi-articular spring ("multi") in addition.
    """
    one, routes = jnp.ones(3), _ROUTES[case]
    springs = PlanarSprings(jnp.full(3, 0.2), jnp.full(4, 0.4), jnp.ones(len(routes)), routes)
    return PlanarChain(one, jnp.array([[0.5, 0.0]] * 3), one, one, jnp.ones(()), springs)


class Motion(NamedTuple):
    """What is seen of a motion at m times.

    t (m,) in s, phi (m, n) in rad, energy_error (m,) in J, (5.3), constraint (m, n) as schemes
    observe it. It ends at the first step whose equations were not solved: unsolved is the time in s
    at which that step would have ended, None where there is none. seconds: the processor time of
    the steps, which other programs on the machine change little.
    """

    t: np.ndarray
    phi: np.ndarray
    energy_error: np.ndarray
    constraint: np.ndarray
    unsolved: float | None
    seconds: float


def move(scheme: Scheme, chain: PlanarChain, h: float, duration: float) -> Motion:
    """The motion over a duration (s) in steps of h (s)."""
    state, left, solved, parts = scheme.start(chain), round(duration / h) + 1, True, []
    begin = time.process_time()
    while left > 0 and solved:
        step, remaining = jnp.asarray(h, chain.length.dtype), jnp.asarray(left)
        (state, solved), (states, reached) = _march(scheme, chain, state, step, remaining)
        parts.append((states, np.asarray(reached)))
        left -= np.count_nonzero(reached)
    seconds = time.process_time() - begin
    seen = [[np.asarray(a)[reached] for a in _observe(scheme, chain, x)] for x, reached in parts]
    phi, energy, constraint = (np.concatenate(each) for each in zip(*seen, strict=True))
    t, unsolved = h * np.arange(len(phi)), h * len(phi) if left > 0 else None
    return Motion(t, phi, energy - energy[0], constraint, unsolved, seconds)


@eqx.filter_jit
def _march(scheme: Scheme, chain: PlanarChain, state: Any, h: jax.Array, left: jax.Array) -> tuple:
    """The next _BLOCK states, this one included, and which of them are reached of those left.

    First the state after the last of them, and whether the step to it was solved.
    """

    def turn(carry: tuple, k: jax.Array) -> tuple:
        state, solved = carry
        reached = solved & (k < left)
        after = jax.lax.cond(
            reached, lambda: scheme.step(chain, state, h), lambda: (state, reached)
        )
        return after, (state, reached)

    return native.scan(turn, (state, jnp.asarray(True)), jnp.arange(_BLOCK), _BLOCK)


@eqx.filter_jit
def _observe(scheme: Scheme, chain: PlanarChain, states: Any) -> tuple:
    return jax.vmap(lambda state: scheme.observe(chain, state))(states)


def exact_angles(chain: PlanarChain, t: float) -> np.ndarray:
    """phi (n,) in rad at the time t (s), by a Runge-Kutta method of order 8 with small steps."""
    return move(Rates(RKMK8()), chain, t / 400, t).phi[-1]

"""Motions of the manipulator of Table 5.1, from the stretched position at rest, and errors of them.

The runs behind the figures: the energy over 50 s, and errors over the step size.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ... import native
from ...integrators import RKMK8
from ...view.plots import slope
from .chain import PlanarChain, PlanarSprings
from .schemes import SCHEMES, Rates, Scheme

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


# In s: of the standard run; of the order plots, (5.7); and of the runs whose ends are compared with
# the exact motion.
STEP, DURATION = 0.01, 50.0
ORDER_STEPS, ORDER_DURATION = np.arange(1, 201) / 1000, 10.0
STATE_STEPS, STATE_TIME = (0.04, 0.02, 0.01, 0.005), 2.0

TIMED_RUNS = 10

# Mean energy errors below, in J, are too near to rounding to show an order.
SMALLEST_FITTED = 1e-11


class Study(NamedTuple):
    """What is computed of one method in one case.

    long: the standard run. averages: the mean energy errors (5.5) in J, one for each of the order
    steps, not a number where a run ended early. state_errors (4,): in rad, for STATE_STEPS.
    """

    long: Motion
    averages: np.ndarray
    state_errors: np.ndarray


def study(case: str, method: str) -> Study:
    """The runs of a method of SCHEMES in a case."""
    scheme, chain = SCHEMES[method], three_links(case)
    long = move(scheme, chain, STEP, DURATION)
    averages = [_mean_energy_error(move(scheme, chain, h, ORDER_DURATION)) for h in ORDER_STEPS]
    exact = exact_angles(chain, STATE_TIME)
    apart = [move(scheme, chain, h, STATE_TIME).phi[-1] - exact for h in STATE_STEPS]
    return Study(
        long, np.array(averages), np.max(np.abs(np.angle(np.exp(1j * np.array(apart)))), 1)
    )


def _mean_energy_error(motion: Motion) -> float:
    """(5.5) in J; not a number where the run ended early."""
    return np.nan if motion.unsolved else float(np.mean(np.abs(motion.energy_error[1:])))


def energy_order(h: np.ndarray, averages: np.ndarray) -> float | None:
    """The exponent of the mean energy errors where they show one; None where they do not.

    h (k,): the step sizes in s, ascending; averages (k,): in J.
    """
    part = showing_order(averages)
    return slope(h[part], averages[part]) if np.sum(part) >= 3 else None


def showing_order(averages: np.ndarray) -> np.ndarray:
    """Which errors (k,) are above rounding, and of steps smaller than all with which a run ended
    early. A run of larger ones that does not end wanders: its steps find solutions far away.
    """
    return (averages > SMALLEST_FITTED) & ~np.maximum.accumulate(np.isnan(averages))


def seconds(case: str, method: str) -> float:
    """Processor time of the standard run in s, without compilation: the least of TIMED_RUNS."""
    scheme, chain = SCHEMES[method], three_links(case)
    return min(move(scheme, chain, STEP, DURATION).seconds for _ in range(TIMED_RUNS))

"""Planar chains of two links for tests, a state of them, and a check of derivatives."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from difflie.reproduce.goetz.chain import PlanarChain, PlanarSprings

ROUTES = {"gravity": (), "mono": ((0,), (1,)), "multi": ((0, 1),)}
PHI, RATE = jnp.array((0.4, -1.1)), jnp.array((0.7, -1.9))


def two_links(routes=ROUTES["mono"], slack=0.2, fastening=(0.4, 0.3, 0.5)) -> PlanarChain:
    """No two numbers alike, and centres of mass off the lines between joints."""
    stiffness = jnp.array((1.5, 0.8))[: len(routes)]
    return PlanarChain(
        length=jnp.array((0.9, 0.7)),
        com=jnp.array(((0.5, 0.1), (0.3, -0.2))),
        mass=jnp.array((1.2, 0.7)),
        inertia=jnp.array((0.3, 0.2)),
        gravity=jnp.array(1.7),
        springs=PlanarSprings(jnp.full(2, slack), jnp.array(fastening), stiffness, routes),
    )


# Both ends of the first spring are in one point when link 1 stands at this angle.
COINCIDENT = two_links(slack=0.0, fastening=(np.hypot(0.9, 0.5), 0.5, 0.3))
MEETING = np.pi / 2 - np.arctan2(0.5, 0.9)
STATES = {
    "moving": (PHI, RATE, two_links()),
    "at rest": (jnp.zeros(2), jnp.zeros(2), two_links()),
    "coincident": (jnp.array((MEETING, 0.4)), jnp.zeros(2), COINCIDENT),
    "slack": (PHI, RATE, two_links(slack=3.0)),
}


def direction_of(chain):
    """A direction to move all numbers of a chain in."""
    return jax.tree.map(lambda x: jnp.cos(3.0 * jnp.arange(x.size)).reshape(x.shape), chain)


def check_derivatives(reached, phi, rate, chain, direction):
    """Forward and reverse mode against central differences, along all leaves at once.

    reached(chain, phi, rate) is a number, compiled.
    """

    def at(s):
        moved = jax.tree.map(lambda x, d: x + s * d, chain, direction)
        return float(reached(moved, phi + s, rate + s))

    e = 2e-5
    difference = (8 * (at(e) - at(-e)) - (at(2 * e) - at(-2 * e))) / (12 * e)
    forward, reverse = _slopes(reached, chain, phi, rate, direction)
    assert float(forward) == pytest.approx(difference, rel=1e-6, abs=1e-8)
    assert float(reverse) == pytest.approx(float(forward), rel=1e-10)


@partial(jax.jit, static_argnums=0)
def _slopes(reached, chain, phi, rate, direction):
    arguments, directions = (chain, phi, rate), (direction, jnp.ones_like(phi), jnp.ones_like(phi))
    _, forward = jax.jvp(reached, arguments, directions)
    gradient = jax.grad(reached, (0, 1, 2))(*arguments)
    products = jax.tree.map(jnp.vdot, gradient, directions)
    return forward, sum(jax.tree.leaves(products))

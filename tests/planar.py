"""Planar chains for tests."""

from functools import partial

import jax.numpy as jnp

from difflie import native
from difflie.dynamics.planar_centres import centre_mass, centre_potential, length_constraint
from difflie.dynamics.planar_chain import PlanarChain
from difflie.dynamics.planar_springs import PlanarSprings
from difflie.integrators.energy_stable import ConstrainedProblem

ROUTES = {"gravity": None, "mono": ((0,), (1,)), "multi": ((0, 1),)}


def two_links(routes=ROUTES["mono"], slack=0.2, fastening=(0.4, 0.3, 0.5)) -> PlanarChain:
    """No two numbers alike, and centres of mass off the lines between joints."""
    springs = None
    if routes is not None:
        stiffness = jnp.array((1.5, 0.8))[: len(routes)]
        springs = PlanarSprings(jnp.array(fastening), jnp.full(2, slack), stiffness, routes)
    return PlanarChain(
        length=jnp.array((0.9, 0.7)),
        com=jnp.array(((0.5, 0.1), (0.3, -0.2))),
        mass=jnp.array((1.2, 0.7)),
        inertia=jnp.array((0.3, 0.2)),
        gravity=jnp.array(1.7),
        springs=springs,
    )


def problem(chain: PlanarChain) -> ConstrainedProblem:
    return ConstrainedProblem(
        centre_mass(chain),
        native.kernel(partial(length_constraint, chain)),
        native.kernel(partial(centre_potential, chain)),
    )

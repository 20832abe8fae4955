"""The pendulum A01: a point mass that keeps its distance from the origin.

Library of computational benchmark problems of the IFToMM, problem A01.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ...constraints import Distance, Frame, constrain
from ...system import Body, Translation, chain
from .elliptic import functions, quarter_period
from .problem import Problem, named

GRAVITY = 9.81


def pendulum() -> Problem:
    """1 kg on a massless bar of 1 m, let go at (-1, 0); gravity against y."""
    mass = Body(name="mass", joint=Translation(), mass=1.0)
    bar = Distance(Frame(None), Frame("mass"), 1.0)
    system = constrain(chain([mass], name="pendulum", gravity=(0, -GRAVITY, 0)), bar)

    return Problem(
        name="pendulum",
        source="IFToMM A01",
        system=system,
        q=jnp.asarray([-1.0, 0.0, 0.0]),
        v=jnp.zeros(3),
        time=9.99,
        quantities=named("x [m], y [m]", position(9.99)),
        measured=lambda q, v: q[:2],
        target=1e-8,
        steps=512,
    )


def position(t: float) -> np.ndarray:
    """(x, y) in m at t in s: sin(psi / 2) = k sn(K - t sqrt(g)), k^2 = 1/2, psi from below."""
    sn, _, _ = functions(quarter_period(0.5) - np.sqrt(GRAVITY) * t, 0.5)
    psi = 2 * np.arcsin(np.sqrt(0.5) * sn)
    return np.array([-np.sin(psi), -np.cos(psi)])

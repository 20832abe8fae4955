"""Pendulums: one on a massless bar, and two that hang on each other.

The pendulum A01: a point mass that keeps its distance from the origin. Library of computational
benchmark problems of the IFToMM, problem A01.

The chaotic babyboot: two pendulums about axes at right angles, whose motion forgets its start. T.
R. Kane and D. A. Levinson, "Dynamics: Theory and Applications", 1985.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ...constraints import Distance, Frame, constrain
from ...system import Body, Revolute, Translation, chain
from .elliptic import functions, quarter_period
from .problem import KNOWN, Problem, named

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


def babyboot() -> Problem:
    """A body about x, and a plate about the body's z, from the horizontal and at rest.

    The reference is that of Kane's two equations, extrapolated with 25 digits and by a method of
    order 8; both agree to 1e-12.
    """
    bodies = [
        # The plane of its motion leaves the other two inertias without meaning.
        Body(
            name="arm",
            joint=Revolute(axis=(1, 0, 0)),
            mass=0.01,
            com=(0, 0, -0.075),
            inertia=np.diag([5e-6, 5e-6, 1e-6]),
        ),
        Body(
            name="plate",
            joint=Revolute(axis=(0, 0, 1)),
            position=(0, 0, -0.2),
            mass=0.1,
            inertia=np.diag([2.5e-4, 5e-5, 2e-4]),
        ),
    ]
    system = chain(bodies, name="babyboot")

    return Problem(
        name="babyboot",
        source="Kane and Levinson 1985",
        system=system,
        q=jnp.deg2rad(jnp.asarray([90.0, 1.0])),
        v=jnp.zeros(2),
        time=5.0,
        quantities=KNOWN["babyboot"],
        measured=lambda q, v: jnp.concatenate((q, v)),
        target=1e-6,
        steps=4096,
    )

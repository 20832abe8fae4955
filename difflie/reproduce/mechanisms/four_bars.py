"""The windows of four-bars A02, which pass through a singular position in every half turn.

Library of computational benchmark problems of the IFToMM, problem A02. The bars stand upright on
the ground, 1 m apart, and as many less one lie on their tops. Where all of them lie in one line the
parallelograms could turn into antiparallelograms: the equations lose rank there. In space the
revolute joints that close the windows say some things several times.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ...constraints import Frame, RevoluteConstraint, constrain
from ...system import Body, Revolute, System, tree
from .elliptic import amplitude, quarter_period
from .problem import Problem, named

GRAVITY, SPEED, WINDOWS = 9.81, 1.0, 2

# Turning this way leads from y to x.
AXIS = (0.0, 0.0, -1.0)


def windows(count: int) -> System:
    """`count` windows of bars of 1 m and 1 kg, which lie upright and level where q is zero."""
    upright = {"mass": 1.0, "com": (0, 0.5, 0), "inertia": np.diag([1 / 12, 0, 1 / 12])}
    level = {"mass": 1.0, "com": (0.5, 0, 0), "inertia": np.diag([0, 1 / 12, 1 / 12])}
    bars = [
        Body(name=f"upright {k}", joint=Revolute(axis=AXIS), position=(k, 0, 0), **upright)
        for k in range(count + 1)
    ] + [
        Body(
            name=f"level {k}",
            parent=f"upright {k}",
            joint=Revolute(axis=AXIS),
            position=(0, 1, 0),
            **level,
        )
        for k in range(count)
    ]
    closures = [
        RevoluteConstraint(
            Frame(f"upright {k + 1}", position=(0, 1, 0), axis=AXIS),
            Frame(f"level {k}", position=(1, 0, 0), axis=AXIS),
        )
        for k in range(count)
    ]
    system = tree(bars, name="windows of four-bars", gravity=(0, -GRAVITY, 0))
    return constrain(system, *closures)


def four_bars() -> Problem:
    """Two windows, upright, with 1 m/s at the tops."""
    system = windows(WINDOWS)

    turning = [-1.0 if name.startswith("level") else 1.0 for name in system.body_names]
    theta = angle(4.0)
    return Problem(
        name="four-bars",
        source="IFToMM A02",
        system=system,
        q=jnp.zeros(system.nq),
        v=SPEED * jnp.asarray(turning),
        time=4.0,
        quantities=named("x [m], y [m]", (np.sin(theta), np.cos(theta))),
        measured=lambda q, v: jnp.stack((jnp.sin(q[0]), jnp.cos(q[0]))),
        target=1e-6,
        steps=256,
    )


def angle(t: float, count: int = WINDOWS) -> float:
    """The angle in rad of the upright bars at t in s, from upright; it does not turn back.

    inertia theta'' = moment sin(theta), which is that of a pendulum that turns over.
    """
    inertia = (count + 1) / 3 + count
    square = ((count + 1) / 2 + count) * GRAVITY / inertia
    m = 4 * square / (SPEED**2 + 4 * square)
    return float(np.pi + 2 * amplitude(np.sqrt(square / m) * t - quarter_period(m), m))

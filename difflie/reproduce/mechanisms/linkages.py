"""Linkages: chains of bodies on joints that close loops, and a governor.

The windows of four-bars A02, which pass through a singular position in every half turn. Library of
computational benchmark problems of the IFToMM, problem A02. The bars stand upright on the ground, 1
m apart, and as many less one lie on their tops. Where all of them lie in one line the
parallelograms could turn into antiparallelograms: the equations lose rank there. In space the
revolute joints that close the windows say some things several times.

Bricard's mechanism A04: five rods that no count of equations lets move. Library of computational
benchmark problems of the IFToMM, problem A04. Six revolute joints at the corners of a cube close a
loop in space: of the five equations that close the chain of rods one follows from the others, and
one degree of freedom is left.

The spatial slider-crank: the crank turns about x, and the slider moves along x. E. J. Haug,
"Computer Aided Kinematics and Dynamics of Mechanical Systems", 1989.

Andrews' squeezer A03: seven bodies in a plane that a motor drives against a spring. Library of
computational benchmark problems of the IFToMM, problem A03; E. Hairer and G. Wanner, "Solving
Ordinary Differential Equations II", 1996, VII.7; F. Mazzia and C. Magherini, "Test Set for Initial
Value Problem Solvers", 2008. Joint coordinates are those of the benchmark: beta and Theta of the
crank and the rod it moves, gamma of the body with the spring, delta and Phi, epsilon and Omega of
two pairs of bodies. Three of them end in the point where the rod does.

The flyball governor A05 with springs and dampers for two of its rods, which makes it stiff. Library
of computational benchmark problems of the IFToMM, problem A05.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ...constraints import (
    Frame,
    RevoluteConstraint,
    SphericalConstraint,
    constrain,
    constrained_dynamics,
)
from ...dynamics import body_poses
from ...forces import Damper, Spring, attach, passive_force
from ...system import Body, Prismatic, Revolute, System, Universal, chain, tree
from .elliptic import amplitude, quarter_period
from .problem import KNOWN, Problem, named

GRAVITY, TOP_SPEED, WINDOWS = 9.81, 1.0, 2

# Turning this way leads from y to x.
BAR_AXIS = (0.0, 0.0, -1.0)


def windows(count: int) -> System:
    """`count` windows of bars of 1 m and 1 kg, which lie upright and level where q is zero."""
    upright = {"mass": 1.0, "com": (0, 0.5, 0), "inertia": np.diag([1 / 12, 0, 1 / 12])}
    level = {"mass": 1.0, "com": (0.5, 0, 0), "inertia": np.diag([0, 1 / 12, 1 / 12])}
    bars = [
        Body(name=f"upright {k}", joint=Revolute(axis=BAR_AXIS), position=(k, 0, 0), **upright)
        for k in range(count + 1)
    ] + [
        Body(
            name=f"level {k}",
            parent=f"upright {k}",
            joint=Revolute(axis=BAR_AXIS),
            position=(0, 1, 0),
            **level,
        )
        for k in range(count)
    ]
    closures = [
        RevoluteConstraint(
            Frame(f"upright {k + 1}", position=(0, 1, 0), axis=BAR_AXIS),
            Frame(f"level {k}", position=(1, 0, 0), axis=BAR_AXIS),
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
        v=TOP_SPEED * jnp.asarray(turning),
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
    m = 4 * square / (TOP_SPEED**2 + 4 * square)
    return float(np.pi + 2 * amplitude(np.sqrt(square / m) * t - quarter_period(m), m))


BRICARD_CORNERS = ((0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1))
BRICARD_AXES = "yzxyzx"


def bricard() -> Problem:
    """Rods of 1 m and 1 kg with a square section of 0.1 m, at rest; gravity against y."""
    axes = dict(zip("xyz", np.eye(3).tolist(), strict=True))
    along = np.diff(BRICARD_CORNERS, axis=0)
    rods = [
        Body(
            name=f"rod {k}",
            joint=Revolute(axis=axes[BRICARD_AXES[k]]),
            position=along[k - 1] if k else (0, 0, 0),
            mass=1.0,
            com=along[k] / 2,
            inertia=np.diag(np.where(along[k] == 0, 1.01 / 12, 0.02 / 12)),
        )
        for k in range(5)
    ]
    closure = RevoluteConstraint(
        Frame(None, position=BRICARD_CORNERS[5], axis=axes[BRICARD_AXES[5]]),
        Frame("rod 4", position=along[4], axis=axes[BRICARD_AXES[5]]),
    )
    system = constrain(chain(rods, name="Bricard", gravity=(0, -9.81, 0)), closure)

    return Problem(
        name="Bricard",
        source="IFToMM A04",
        system=system,
        q=jnp.zeros(5),
        v=jnp.zeros(5),
        time=1.0,
        quantities=KNOWN["Bricard"],
        measured=lambda q, v: jnp.concatenate((body_poses(system, q)[3, :3, 3], q[:1], v[:1])),
        target=1e-8,
        steps=64,
        energy_time=10.0,
        energy_target=1e-8,
    )


CRANK_BEARING = np.array([0.0, 0.1, 0.12])
CRANK_RADIUS, ROD, SLIDER_START, CRANK_SPEED = 0.08, 0.3, 0.2, 6.0


def slider_crank() -> Problem:
    """The rod hangs on the slider by a universal joint; a ball joint closes the loop at the crank.

    The crank stands upright at the start, its centre of mass in the bearing.
    """
    # The rod's frame: x along it to the slider, y the axis of the cross that is fixed on it.
    along = (np.array([SLIDER_START, 0, 0]) - CRANK_BEARING - [0, 0, CRANK_RADIUS]) / ROD
    cross = np.array([0, 2, -1]) / np.sqrt(5)
    rod = np.stack((along, cross, np.cross(along, cross)), axis=1)
    bodies = [
        Body(
            name="crank",
            joint=Revolute(axis=(1, 0, 0)),
            position=CRANK_BEARING,
            mass=0.12,
            inertia=np.diag([1e-4, 1e-5, 1e-4]),
        ),
        Body(
            name="slider",
            joint=Prismatic(axis=(1, 0, 0)),
            mass=2.0,
            inertia=1e-4 * np.eye(3),
        ),
        Body(
            name="rod",
            parent="slider",
            joint=Universal(axis=rod[0].tolist(), second_axis=(0, 1, 0)),
            rotation=rod,
            mass=0.5,
            com=(-ROD / 2, 0, 0),
            inertia=np.diag([4e-4, 4e-3, 4e-3]),
        ),
    ]
    ball = SphericalConstraint(
        Frame("crank", position=(0, 0, CRANK_RADIUS)), Frame("rod", position=(-ROD, 0, 0))
    )
    system = constrain(tree(bodies, name="slider-crank"), ball)

    # Angular velocity of the rod (1.92, -0.96, 0.48) rad/s, on both axes of the cross.
    return Problem(
        name="slider-crank",
        source="Haug 1989",
        system=system,
        q=jnp.asarray([0, SLIDER_START, 0, 0]),
        v=jnp.asarray([CRANK_SPEED, 0.24, 1.92, -0.48 * np.sqrt(5)]),
        time=1.0,
        quantities=KNOWN["slider-crank"],
        measured=lambda q, v: jnp.stack((q[0], v[0], q[1], v[1])),
        target=1e-7,
        steps=128,
    )


# In the order of the system.
COORDINATES = ("beta", "Theta", "gamma", "delta", "Phi", "epsilon", "Omega")

SQUEEZER_TORQUE = 0.033
SQUEEZER_A, SQUEEZER_B, SQUEEZER_C = (
    (-0.06934, -0.00227, 0.0),
    (-0.03635, 0.03273, 0.0),
    (0.014, 0.072, 0.0),
)

SQUEEZER_START = (
    *(-0.0617138900142764496, 0.0, 0.455279819163070380),
    *(0.487364979543842550, 0.222668390165885885),
    *(1.23054744454982119, -0.222668390165885885),
)

# The test set prints these at the end.
PRINTED = ("beta", "Theta", "gamma", "Phi")


def squeezer_system() -> System:
    """Seven bodies on revolute joints, and three closures where they meet in a point.

    The joints keep the bodies in their plane, so that a common point is all there is to close.
    """

    def planar(name, coordinate, parent, position, mass, moment, com):
        return Body(
            name=name,
            joint=Revolute(name=coordinate),
            parent=parent,
            position=position,
            mass=mass,
            com=com,
            inertia=moment * np.diag([0.5, 0.5, 1.0]),
        )

    bodies = [
        planar("K1", "beta", None, (0, 0, 0), 0.04325, 2.194e-6, (0.00092, 0, 0)),
        planar("K2", "Theta", "K1", (0.007, 0, 0), 0.00365, 4.410e-7, (-0.0115, 0, 0)),
        planar("K3", "gamma", None, SQUEEZER_B, 0.02373, 5.255e-6, (0.01043, -0.01874, 0)),
        planar("K5", "delta", None, SQUEEZER_A, 0.07050, 1.169e-5, (0.02308, 0.00916, 0)),
        planar("K4", "Phi", "K5", (0.04, 0, 0), 0.00706, 5.667e-7, (0, 0.01421 - 0.02, 0)),
        planar("K7", "epsilon", None, SQUEEZER_A, 0.05498, 1.912e-5, (0.00449, -0.01228, 0)),
        planar("K6", "Omega", "K7", (0, -0.04, 0), 0.00706, 5.667e-7, (0.02 - 0.01421, 0, 0)),
    ]
    point = "K2", (-0.028, 0, 0)
    ends = {"K3": (0, -0.035, 0), "K4": (0, -0.02, 0), "K6": (0.02, 0, 0)}
    closures = [
        SphericalConstraint(Frame(body, position=end), Frame(*point)) for body, end in ends.items()
    ]
    spring = Spring([(None, SQUEEZER_C), ("K3", (0.02, -0.018, 0))], 4530.0, 0.07785)
    system = tree(bodies, name="squeezer", gravity=(0, 0, 0))
    return constrain(attach(system, spring), *closures)


def squeezer() -> Problem:
    """At rest, driven by 0.033 N m at the crank."""
    system = squeezer_system()
    printed = np.array([COORDINATES.index(name) for name in PRINTED])

    return Problem(
        name="squeezer",
        source="IFToMM A03",
        system=system,
        q=jnp.asarray(SQUEEZER_START),
        v=jnp.zeros(7),
        time=0.03,
        quantities=KNOWN["squeezer"],
        scales=np.abs(list(KNOWN["squeezer"].values())),
        measured=lambda q, v: jnp.concatenate((q, v, multipliers(system, q, v), q[printed])),
        target=1e-7,
        steps=512,
        drive=jnp.zeros(7).at[0].set(SQUEEZER_TORQUE),
    )


def multipliers(system: System, q: jax.Array, v: jax.Array) -> jax.Array:
    """The six multipliers (6,) of the benchmark, whose reaction is -G^T lambda."""
    effort = jnp.zeros_like(v).at[0].set(SQUEEZER_TORQUE) + passive_force(system, q, v)
    _, force = constrained_dynamics(system, q, v, effort)
    return -force[np.array([0, 1, 3, 4, 6, 7])]


def governor_system() -> System:
    """Shaft about z, slider on the shaft, two rods hinged 0.05 m beside it with 5 kg at the ends.

    Coordinates: angle of the shaft, height of the slider, angles of the rods below the horizontal.
    """
    rod = 0.3 * np.array([2e-4, 1.0001, 1.0001]) / 12
    bodies = [
        Body(
            name="shaft",
            joint=Revolute(axis=(0, 0, 1)),
            mass=0.3,
            com=(0, 0, 0.5),
            inertia=np.diag(rod[::-1]),
        ),
        Body(
            name="slider",
            parent="shaft",
            joint=Prismatic(axis=(0, 0, 1)),
            mass=3.0,
            inertia=3.0 * 0.02 / 12 * np.eye(3),
        ),
    ]
    couplings = []
    for side, name in ((1.0, "right"), (-1.0, "left")):
        bodies += [
            Body(
                name=f"{name} rod",
                parent="shaft",
                joint=Revolute(axis=(0, side, 0)),
                position=(0.05 * side, 0, 1),
                mass=0.3,
                com=(0.5 * side, 0, 0),
                inertia=np.diag(rod),
            ),
            Body(name=f"{name} ball", parent=f"{name} rod", position=(side, 0, 0), mass=5.0),
        ]
        path = [(f"{name} rod", (0.5 * side, 0, 0)), ("slider", (0.05 * side, 0, 0))]
        couplings += [Spring(path, 8e5, 0.5), Damper(path, 4e4)]
    return attach(tree(bodies, name="governor"), *couplings)


def governor() -> Problem:
    """The shaft turns once a second, all else rests on it."""
    system = governor_system()

    return Problem(
        name="governor",
        source="IFToMM A05",
        system=system,
        q=jnp.asarray([0, 0.5, np.pi / 6, np.pi / 6]),
        v=jnp.asarray([2 * np.pi, 0, 0, 0]),
        time=1.0,
        quantities=KNOWN["governor"],
        measured=lambda q, v: jnp.stack((q[0], q[2], q[1], v[0])),
        target=1e-7,
        steps=256,
        conserved=False,
    )

"""Free and constrained motion of the chain by difflie, beside that by (29) to (32).

Three motions: free in space, with springs in the joints and without gravity; the tip of the last
body held at a point, with a multiplier for each direction; and a foot on a floor with Coulomb
friction, where body 0 slides, sticks and slips.

The chain has a foot, three links on hinges, and a rod that slides out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...constraints import (
    Frame,
    PointOnPlane,
    SphericalConstraint,
    Unstabilised,
    constrain,
    constrained_dynamics,
)
from ...forces import passive_force
from ...integrators import RKMK4, RKMK6, Method, Moreau
from ...simulate import simulate
from ...system import System
from .chain import PRISMATIC, REVOLUTE, Chain, Posture, at_state, poses, posture
from .reference import Reference, Stretch
from .rigid_body import exp

Array = np.ndarray

LENGTH = 0.4
"""Of every body, m."""
FOOT = np.zeros(3)
"""The lower end of body 0, m in its frame."""
TIP = np.array([0.0, 0, LENGTH])
"""The end of the last body, m in its frame."""
FRICTION = 0.3
FREE_TIME, HELD_TIME, SLIDING_TIME = 1.5, 1.0, 0.72
"""Of the motions, s."""


def machine(gravity: float = 9.81, damping: float = 0.0) -> Chain:
    """A chain of n + 1 = 5 bodies; damping in N m s/rad, of the hinges."""
    # The z axis of a hinge is horizontal where the chain stands upright, its x axis along the body.
    rise = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]]).T
    up = np.eye(4)
    up[:3, :3] = np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])
    up[2, 3] = LENGTH
    turned = exp(np.array([np.pi / 2, 0, 0, 0, 0, 0]))
    turned[0, 3] = LENGTH
    out = np.eye(4)
    out[:3, :3], out[0, 3] = rise.T, 0.7 * LENGTH
    mass = np.array([1.2, 0.8, 0.6, 0.4, 0.3])
    along = [np.diag([0.0, 0, 1])] + [np.diag([1.0, 0, 0])] * 3 + [np.diag([0.0, 0, 1])]
    com = np.array([LENGTH / 2 * np.diag(a) for a in along])
    # Rods with a radius of 0.05 m.
    across = [m * (LENGTH**2 / 12 + 0.05**2 / 4) for m in mass]
    inertia = [
        i * (np.eye(3) - a) + m * 0.05**2 / 2 * a
        for i, m, a in zip(across, mass, along, strict=True)
    ]
    return Chain(
        KK=np.array([up, turned, turned, out]),
        screws=np.array([REVOLUTE, REVOLUTE, REVOLUTE, PRISMATIC]),
        mass=mass,
        com=com,
        inertia=np.array(inertia),
        gravity=np.array([0.0, 0, -gravity]),
        stiffness=np.array([25.0, 15.0, 8.0, 200.0]),
        damping=damping * np.array([1.0, 1.0, 1.0, 10.0]),
    )


def leaning(chain: Chain, tilt: tuple[float, float] = (0.35, 0.1)) -> Posture:
    """Straight, on the foot at the origin, turned by a vector (tilt, 0) in rad."""
    f0 = exp(np.array([*tilt, 0, 0, 0, 0]))
    return posture(chain, f0, np.zeros(chain.n))


class Compared(NamedTuple):
    """A motion by difflie, and the same by the equations of the paper.

    t (m,) in s; q (m, 7 + n), v (m, 6 + n) by difflie; forces (m, 3) in N on the held point or the
    foot, x, y, z, by the paper; stretches: the motion by the paper. numbers: what is reported.
    """

    name: str
    machine: Chain
    system: System
    t: Array
    q: Array
    v: Array
    forces: Array
    stretches: list[Stretch]
    numbers: dict[str, float]

    @property
    def reference(self) -> Array:
        """The states (m, 13 + 2 n) by the paper's equations at t."""
        times = np.concatenate([s.t for s in self.stretches])
        states = np.concatenate([s.y for s in self.stretches])
        return states[np.searchsorted(times, self.t)]


def free(steps: int = 1000) -> Compared:
    """The chain in space, turning, with springs in its joints: momentum and energy stay."""
    chain = machine(gravity=0.0)
    at = leaning(chain, (0.3, -0.2))
    w = np.array([0.3, 1.6, 0.8, 0, 0, 0, 5.0, -7.0, 5.0, 0.6])
    # Sideways for who looks from (1, -1.4, 0.75).
    w[3:6] = at.f0[:3, :3].T @ np.array([1.2, 0.85, 0.0])
    model = Reference(chain, chain.n, TIP)
    made = _both("free", chain.system(), model, "free", at, w, (FREE_TIME, steps), RKMK6())
    momentum = np.asarray(made.run.momentum(made.compared.system))
    kinetic, potential = made.run.energy(made.compared.system)
    energy = np.asarray(kinetic + potential)
    drifts = {
        "drift of the momentum, N s and N m s": float(np.max(np.abs(momentum - momentum[0]))),
        "drift of the energy, J": float(np.max(np.abs(energy - energy[0]))),
    }
    made.compared.numbers.update(drifts)
    return made.compared


def held(steps: int = 1000) -> Compared:
    """The tip of the last body is held in space: the chain swings below it, under gravity."""
    chain = machine(damping=0.3)
    at = leaning(chain, (2.6, 0.6))
    place = (poses(chain, at)[chain.n] @ [*TIP, 1.0])[:3]
    fixed = SphericalConstraint(Frame(None, place), Frame(f"C{chain.n}", TIP))
    system = constrain(chain.system("held chain"), fixed)
    model = Reference(chain, chain.n, TIP)
    made = _both("held", system, model, "sticks", at, np.zeros(10), (HELD_TIME, steps), RKMK4())
    compared = made.compared
    violation, rate = made.run.constraint_violation(system)
    reactions = _reactions(system, compared.q, compared.v)
    # The constraint is resolved in the world's axes, where the paper's multipliers are.
    error = np.max(np.abs(reactions - compared.forces)) / np.max(np.abs(compared.forces))
    numbers = {
        "distance of the tip from its place, m": float(np.max(violation)),
        "its velocity, m/s": float(np.max(rate)),
        "multipliers: difference to the paper's, relative": float(error),
    }
    compared.numbers.update(numbers)
    return compared


def sliding(steps: int = 1440) -> Compared:
    """A foot on a floor: the chain arrives sliding, sticks, slips back, sticks and slips away."""
    chain = machine(damping=0.3)
    at = leaning(chain, (0.2, -0.1))
    w = np.zeros(10)
    w[:6] = (at.f0[:3, :3].T @ np.array([[0, 0, 2.0], [-0.8, 0, 0]]).T).T.ravel()
    floor = PointOnPlane(Frame("C0", FOOT), Frame(), friction=FRICTION)
    system = constrain(chain.system("chain on a floor"), floor)
    model = Reference(chain, 0, FOOT, FRICTION)
    made = _both("sliding", system, model, "", at, w, (SLIDING_TIME, steps), Moreau())
    compared = made.compared
    dt = SLIDING_TIME / steps
    # An impulse is that of the step before: normal, along x, along y.
    impulses = np.asarray(made.run.states.contacts)[:, 0] / dt
    by_difflie = impulses[:, [1, 2, 0]]
    forces = compared.forces
    normal, tangent = forces[:, 2], np.hypot(*forces[:, :2].T)
    # The contact closes in the first steps, as rounding puts the foot on or above the floor.
    shut = by_difflie[:, 2] > 0
    pushed, dragged = by_difflie[shut, 2], np.hypot(*by_difflie[shut, :2].T)
    error = np.mean(np.abs(by_difflie[shut] - forces[shut]))
    numbers = {
        "least normal force, N": float(normal.min()),
        "friction / (mu normal force), by the paper": float(np.max(tangent / (FRICTION * normal))),
        "friction / (mu normal force), by difflie": float(np.max(dragged / (FRICTION * pushed))),
        "steps without contact": float(np.sum(~shut) - 1),
        "contact forces: mean difference to the paper's, N": float(error),
    }
    compared.numbers.update(numbers)
    return compared


class _Made(NamedTuple):
    compared: Compared
    run: Any


def _both(
    name: str,
    system: System,
    model: Reference,
    mode: str,
    at: Posture,
    w: Array,
    duration: tuple[float, int],
    method: Method,
) -> _Made:
    """A motion by difflie and by the paper's equations; mode "" for a foot on the floor."""
    time, steps = duration
    q, v = at_state(at.q, w)
    # The paper's equations are not stabilised either.
    plain = Unstabilised()
    run = simulate(system, q, v, dt=time / steps, steps=steps, method=method, stabilisation=plain)
    t, start = np.asarray(run.t), np.concatenate((at.q, w))
    if mode:
        stretches = [model.stretch(mode, t, start, np.zeros(2), 1e-10)]
    else:
        stretches = model.motion(t, start)
    times = np.concatenate([s.t for s in stretches])
    place = np.searchsorted(times, t)
    states = np.concatenate([s.y for s in stretches])[place]
    forces = np.concatenate([s.force for s in stretches])[place]
    difference = jax.vmap(system.manifold.difference)(jnp.asarray(states[:, : system.nq]), run.q)
    numbers = {
        "coordinates: difference to the paper's": float(np.max(np.abs(np.asarray(difference))))
    }
    q, v = np.asarray(run.q), np.asarray(run.v)
    return _Made(Compared(name, model.machine, system, t, q, v, forces, stretches, numbers), run)


@jax.jit
def _all_reactions(system, q, v):
    def reaction(q, v):
        return constrained_dynamics(system, q, v, passive_force(system, q, v))[1]

    return jax.vmap(reaction)(q, v)


def _reactions(system: System, q: Array, v: Array) -> Array:
    """The multipliers (m, 3) by difflie."""
    return np.asarray(_all_reactions(system, jnp.asarray(q), jnp.asarray(v)))


MOTIONS = {"free": free, "held": held, "sliding": sliding}
"""The motions by name; each is a function of its number of steps."""

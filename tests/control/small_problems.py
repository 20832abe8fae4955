"""Problems of optimal control that take no time."""

import jax.numpy as jnp

import difflie as dl
from difflie import control as dc


def block(steps=40, end=(1.0,), dtype=jnp.float64, **more):
    """A block of 1 kg that is to move 1 m in 1 s, from rest to rest, at the cost of int u^2 dt."""
    slide = dl.Body(name="block", joint=dl.Prismatic(axis=(1.0, 0.0, 0.0)), mass=1.0)
    system = dl.chain([slide], gravity=(0.0, 0.0, 0.0)).astype(dtype)
    terms = {"running": [dc.Effort(2.0)], "final": [dc.ReachState(list(end))], **more}
    return dc.Problem(system, [0.0], [0.0], dt=1 / steps, steps=steps, **terms)


def pendulum(q0=0.1, steps=20):
    """A pendulum of 1 kg with its mass at 0.5 m, to be upright after 1.5 s, limits active."""
    joint = dl.Revolute(axis=(0.0, 1.0, 0.0))
    system = dl.chain([dl.Body(name="rod", joint=joint, mass=1.0, com=(0.0, 0.0, -0.5))])
    return dc.Problem(
        system,
        jnp.reshape(q0, (1,)),
        [0.0],
        dt=1.5 / steps,
        steps=steps,
        running=[dc.Effort(0.1)],
        final=[dc.ReachState([jnp.pi])],
        limits=dc.Limits(u_lower=-4.5, u_upper=4.5, v=jnp.array([5.0])),
    )


def lift(steps=25):
    """A planar arm of two links that lifts 1 kg from hanging in 1 s, without limits."""
    joint = dl.Revolute(axis=(0.0, -1.0, 0.0))
    link = {"joint": joint, "mass": 0.8, "com": (0.0, 0.0, -0.2)}
    forearm = dl.Body(name="forearm", position=(0.0, 0.0, -0.4), **link)
    load = dl.Body(name="load", joint=dl.Fixed(), position=(0.0, 0.0, -0.4), mass=1.0)
    return dc.Problem(
        dl.chain([dl.Body(name="upper arm", **link), forearm, load]),
        [0.1, -0.3],
        [0.0, 0.0],
        dt=1 / steps,
        steps=steps,
        running=[dc.Effort(0.1), dc.Velocity(1e-3)],
        final=[dc.Point("load", [0.5, 0.0, 0.2], 1e3), dc.Velocity(10.0)],
    )


def around_a_pillar(steps=20):
    """A point mass that moves 2 m in 1 s past a pillar of 0.5 m about the middle of the way."""
    axes = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0)}
    bodies = [
        dl.Body(name=name, joint=dl.Prismatic(axis=axis), mass=0.5) for name, axis in axes.items()
    ]
    pillar = dl.Frame(None, position=(0.0, 0.1, 0.0))
    return dc.Problem(
        dl.chain(bodies, gravity=(0.0, 0.0, 0.0)),
        [-1.0, 0.0],
        [0.0, 0.0],
        dt=1 / steps,
        steps=steps,
        running=[dc.Effort(1.0), dc.MinDistance("y", pillar, 0.5)],
        final=[dc.ReachState([1.0, 0.0])],
    )


def straight_way(problem):
    """A guess for it, at constant speed, through the pillar."""
    q = jnp.stack((jnp.linspace(-1, 1, problem.steps + 1), jnp.zeros(problem.steps + 1)), axis=1)
    v = jnp.tile(jnp.array([2.0, 0.0]), (problem.steps + 1, 1))
    return q, v, jnp.zeros((problem.steps, 2))


def slew(steps=15, **more):
    """A free body that is to turn by 2.5 rad about a tilted axis in 1 s, and come to rest."""
    inertia = jnp.diag(jnp.array([0.3, 0.5, 0.7]))
    hull = dl.Body(name="hull", joint=dl.Spherical(), mass=1.0, inertia=inertia)
    system = dl.chain([hull], gravity=(0.0, 0.0, 0.0))
    start = system.neutral()
    goal = system.topology.manifold.retract(start, jnp.array([2.0, 1.2, 0.9]))
    terms = {"running": [dc.Effort(1.0)], "final": [dc.ReachState(goal)], **more}
    return dc.Problem(system, start, [0.0] * 3, dt=1 / steps, steps=steps, **terms)

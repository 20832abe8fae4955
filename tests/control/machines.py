"""Small machines and problems of control."""

import dataclasses

import jax.numpy as jnp
import numpy as np

import difflie as dl
from difflie import control as dc


def pendulum(mass=1.0):
    """A rod of 1 m that hangs from a hinge; q = pi is upright."""
    rod = dl.Body(
        name="rod",
        joint=dl.Revolute(axis=(0.0, 1.0, 0.0)),
        mass=1.0,
        com=(0.0, 0.0, -0.5),
        inertia=np.diag([0.02, 0.02, 0.001]),
    )
    return _with_mass(dl.chain([rod], name="pendulum"), mass)


def _with_mass(system, mass):
    """The system of one body with a mass that may be traced."""
    bodies = dataclasses.replace(system.bodies, mass=jnp.asarray([1.0]) * mass)
    return dataclasses.replace(system, bodies=bodies)


def slider(mass=1.0):
    """A block on a rail along x, without gravity."""
    block = dl.Body(
        name="block",
        joint=dl.Prismatic(axis=(1.0, 0.0, 0.0)),
        mass=1.0,
        inertia=np.diag([0.1, 0.1, 0.1]),
    )
    return _with_mass(dl.chain([block], name="slider", gravity=(0.0, 0.0, 0.0)), mass)


def satellite():
    """A body that floats without gravity, with three different moments of inertia."""
    body = dl.Body(name="hull", joint=dl.Free(), mass=2.0, inertia=np.diag([0.2, 0.3, 0.4]))
    return dl.chain([body], name="satellite", gravity=(0.0, 0.0, 0.0))


def swing(system=None, **changes):
    """The pendulum swings up with a weak motor."""
    system = pendulum() if system is None else system
    arguments = {
        "dt": 0.05,
        "steps": 30,
        "running": [dc.State([jnp.pi], 0.1), dc.Effort(1e-2)],
        "final": [dc.State([jnp.pi], 100.0)],
        "limits": dc.Limits(u_lower=-4.0, u_upper=4.0),
    }
    zero = jnp.zeros(1, system.dtype)
    return dc.Problem(system, zero, zero, **(arguments | changes))


def move(steps=50, **changes):
    """The block moves 1 m in 1 s, from rest to rest, at least int u^2 dt."""
    arguments = {
        "dt": 1.0 / steps,
        "steps": steps,
        "running": [dc.Effort(2.0)],
        "final": [dc.ReachState([1.0])],
    }
    return dc.Problem(slider(), [0.0], [0.0], **(arguments | changes))

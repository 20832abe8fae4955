"""Mimic joints: the system is the full one, in which they move freely, reduced by their laws.

With q_full = G q + offset and v_full = G v, forces reduce by G^T and M to G^T M G.
"""

from dataclasses import replace

import jax
import numpy as np
import pytest
from slow_dynamics import SlowSystem
from trees import error, random_body, random_joint, random_states

import difflie as dl

LAWS = {"b": ("a", -1.5, 0.4), "d": ("a", 0.3, -0.2), "f": ("e", 2.0, 0.0)}


def hand():
    """A follower beside its source, one above it and of another type, one before its source."""
    rng = np.random.default_rng(11)
    made = (
        ("f", "Continuous", "base"),
        ("base", "Free", None),
        ("a", "Revolute", "base"),
        ("b", "Revolute", "base"),
        ("c", "Spherical", "b"),
        ("d", "Prismatic", "a"),
        ("e", "Helical", "d"),
        ("tip", "Fixed", "f"),
    )
    bodies = []
    for name, kind, parent in made:
        joint = random_joint(rng, kind, name=f"joint {name}")
        if name in LAWS:
            source, multiplier, offset = LAWS[name]
            joint = replace(joint, mimic=dl.Mimic(f"joint {source}", multiplier, offset))
        bodies.append(random_body(rng, name, joint, parent))
    return bodies


def reduction(slow, system):
    """G for coordinates and for velocities, and the offset; group joints keep their coordinates."""
    t = system.topology
    laws = {name: (name, 1.0, 0.0) for name in slow.names} | LAWS
    offset = np.zeros(slow.nq)
    matrices = []
    for full, reduced in (
        (slow.q_start, t.coordinate_start),
        (slow.v_start, t.velocity_start),
    ):
        g = np.zeros((full[-1], reduced[-1]))
        for i, name in enumerate(slow.names):
            source, multiplier, shift = laws[name]
            start, count = reduced[slow.names.index(source)], full[i + 1] - full[i]
            g[full[i] : full[i + 1], start : start + count] = multiplier * np.eye(count)
            if full is slow.q_start:
                offset[full[i] : full[i + 1]] = shift
        matrices.append(g)
    return *matrices, offset


@pytest.mark.slow
def test_mimic_joints_are_a_reduction():
    bodies = hand()
    system, slow = dl.tree(bodies), SlowSystem(bodies)
    assert system.joint_names == ("joint base", "joint a", "joint c", "joint e")
    assert (slow.nv - system.nv, system.nq) == (3, 13)
    states = random_states(system, 3, seed=2)

    @jax.jit
    @jax.vmap
    def ours(q, v, a, tau, wrench):
        forward = dl.forward_dynamics(system, q, v, tau, wrench)
        return {
            "inverse dynamics": dl.inverse_dynamics(system, q, v, a, wrench),
            "mass matrix": dl.mass_matrix(system, q),
            "body poses": dl.body_poses(system, q),
            "body twists": dl.body_twists(system, q, v),
            "body jacobian": dl.body_jacobian(system, q, "tip"),
            "kinetic energy": dl.energy(system, q, v)[0],
            "potential energy": dl.energy(system, q, v)[1],
            "momentum": dl.momentum(system, q, v),
            "forward dynamics": forward,
            "there and back": dl.inverse_dynamics(system, q, v, forward, wrench),
        }

    g, h, offset = reduction(slow, system)

    def expected(q, v, a, tau, wrench):
        x, rate = g @ q + offset, h @ v
        mass = h.T @ slow.mass_matrix(x) @ h
        rest = h.T @ slow.inverse_dynamics(x, rate, 0 * rate, wrench)
        return {
            "inverse dynamics": h.T @ slow.inverse_dynamics(x, rate, h @ a, wrench),
            "mass matrix": mass,
            "body poses": slow.poses(x),
            "body twists": slow.twists(x, rate),
            "body jacobian": slow.jacobians(x)[slow.names.index("tip")] @ h,
            "kinetic energy": slow.energy(x, rate)[0],
            "potential energy": slow.energy(x, rate)[1],
            "momentum": slow.momentum(x, rate),
            "forward dynamics": np.linalg.solve(mass, tau - rest),
            "there and back": tau,
        }

    samples = [expected(*s) for s in zip(*states, strict=True)]
    for name, found in ours(*states).items():
        assert error(found, np.array([s[name] for s in samples])) < 1e-12, name

"""The package against Pinocchio, on real robots.

Quantities with the inverse of the mass matrix M agree to 1e-14 cond(M) where that is more than
1e-12: the rounding errors of either library are amplified so much.
"""

from functools import partial

import jax
import numpy as np
import pytest
from pinocchio_twin import ROBOTS, built, read
from trees import error, random_body, random_states

import difflie as dl

QUICKLY = {"xla_backend_optimization_level": 0}

ARMS = (
    "panda_description/urdf/panda.urdf",  # with a mimic joint
    "ur_description/urdf/ur5_robot.urdf",
    "kinova_description/robots/kinova.urdf",  # with continuous joints
    "baxter_description/urdf/baxter.urdf",  # with two arms and two mimic joints
    "tiago_description/robots/tiago_no_hand.urdf",  # with continuous wheels
    "allegro_hand_description/urdf/allegro_right_hand.urdf",
)
LEGS = (
    "ur_description/urdf/ur5_robot.urdf",
    "solo_description/robots/solo12.urdf",
    "anymal_b_simple_description/robots/anymal.urdf",
    "hyq_description/robots/hyq_no_sensors.urdf",
    "bolt_description/robots/bolt.urdf",
    "talos_data/robots/talos_reduced.urdf",
    "g1_description/urdf/g1_29dof_rev_1_0.urdf",
    "icub_description/robots/icub.urdf",
)


def check(twin):
    system = twin.system
    q, v, a, tau, _ = random_states(system, 3, seed=0)

    @partial(jax.jit, compiler_options=QUICKLY)
    @jax.vmap
    def ours(q, v, a, tau):
        kinetic, potential = dl.energy(system, q, v)
        return {
            "inverse dynamics": dl.inverse_dynamics(system, q, v, a),
            "forward dynamics": dl.forward_dynamics(system, q, v, tau),
            "mass matrix": dl.mass_matrix(system, q),
            "body poses": dl.body_poses(system, q),
            "kinetic energy": kinetic,
            "potential energy": potential,
            "momentum": dl.momentum(system, q, v),
        }

    twice = [np.concatenate((x, x)) for x in (q, v, tau)]
    found = ours(twice[0], twice[1], np.concatenate((a, 0 * a)), twice[2])
    bias = found["inverse dynamics"][len(q) :]
    found = {name: value[: len(q)] for name, value in found.items()} | {"bias force": bias}
    samples = [twin.expected(*s) for s in zip(q, v, a, tau, strict=True)]
    condition = max(np.linalg.cond(s["mass matrix"]) for s in samples)
    for name, value in found.items():
        tolerance = max(1e-12, 1e-14 * condition) if name == "forward dynamics" else 1e-12
        assert error(value, np.array([s[name] for s in samples])) < tolerance, name


@pytest.mark.parametrize(
    ("path", "base"), [*((p, "fixed") for p in ARMS), *((p, "free") for p in LEGS)]
)
def test_robot(path, base):
    check(read(ROBOTS / path, base))


def test_joint_types_that_robots_lack():
    rng = np.random.default_rng(3)
    joints = (
        *(dl.Universal(axis=(0.0, 0.6, 0.8), second_axis=(2.0, 0.0, 0.0)), dl.Planar()),
        *(dl.Fixed(), dl.Helical(axis=(1.0, 2.0, -3.0), pitch=0.4), dl.Spherical()),
        *(dl.Free(), dl.Prismatic(axis=(0.0, -1.0, -1.0)), dl.Planar(), dl.Revolute()),
    )
    bodies = [
        random_body(rng, f"b{i}", joint, f"b{i - 1}" if i else None)
        for i, joint in enumerate(joints)
    ]
    check(built(bodies))

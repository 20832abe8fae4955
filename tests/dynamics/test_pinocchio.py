"""The package against Pinocchio, on real robots and on joint types that they lack."""

import numpy as np
import pytest
from robots import ROBOTS, built, check, read
from trees import random_body, random_states

import difflie as dl

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


# The others have nothing that these lack.
@pytest.mark.slow(
    "anymal*", "bolt*", "panda*", "talos*", "tiago*", "kinova_description/robots/kinova.urdf-fixed"
)
@pytest.mark.thorough("allegro*", "baxter*", "g1*", "hyq*", "icub*", "solo*", "ur_*-free")
@pytest.mark.parametrize(
    ("path", "base"),
    [*((p, "fixed") for p in ARMS), *((p, "free") for p in LEGS)],
)
def test_robot(path, base):
    check(read(ROBOTS / path, base))


@pytest.mark.slow
def test_joint_types_that_robots_lack():
    rng = np.random.default_rng(3)
    joints = (
        *(dl.Universal(axis=(0.0, 0.6, 0.8), second_axis=(2.0, 0.0, 0.0)), dl.Planar()),
        *(dl.Fixed(), dl.Helical(axis=(1.0, 2.0, -3.0), pitch=0.4), dl.Spherical()),
        *(dl.Free(), dl.Prismatic(axis=(0.0, -1.0, -1.0)), dl.Planar(), dl.Translation()),
        dl.Revolute(),
    )
    bodies = [
        random_body(rng, f"b{i}", joint, f"b{i - 1}" if i else None)
        for i, joint in enumerate(joints)
    ]
    twin = built(bodies)
    check(twin)
    q = random_states(twin.system, 1, seed=0)[0][0]
    theirs = dl.PinocchioOrdering(twin.system, twin.model).q(q)
    np.testing.assert_allclose(theirs, twin.coordinates(q), rtol=0, atol=1e-15)

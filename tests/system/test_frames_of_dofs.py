"""The frames of the dofs, as they are drawn at the head of `whole_joints`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.groups import se3
from difflie.spatial import Motion
from difflie.system.kinematic_tree import Tree

TURNED = {"position": (0.3, -0.2, 0.5), "rotation": (0.4, -0.3, 0.6)}
JOINTS = {
    "revolute": dl.Revolute(axis=(1.0, 2.0, -0.5)),
    "universal": dl.Universal(),
    "spherical": dl.Spherical(),
    "planar": dl.Planar(),
    "free": dl.Free(),
}


def poses(tree, q):
    """The pose (4, 4) of each dof's frame in that of the dof before it."""
    placed = tree.poses(q)
    R, p = placed.rotation.to_array(), placed.translation.to_array()
    top = jnp.concatenate((R, p[:, :, None]), axis=2)
    last = jnp.broadcast_to(jnp.array([0.0, 0.0, 0.0, 1.0]), (len(R), 1, 4))
    return jnp.concatenate((top, last), axis=1)


@pytest.mark.slow("free", "spherical", "planar", "revolute")
@pytest.mark.parametrize("name", JOINTS)
def test_frames_of_a_joint(name):
    joint = JOINTS[name]
    body = dl.Body(
        name="b", joint=joint, mass=1.0, inertia=np.eye(3), com=(0.1, 0.2, 0.3), **TURNED
    )
    system = dl.chain([body])
    tree, t = Tree.of(system), system.topology
    random = np.random.default_rng(0)
    q = system.manifold.retract(system.neutral(), jnp.asarray(random.normal(size=system.nv)))
    v = jnp.asarray(random.normal(size=system.nv))

    # Of a joint that moves as a whole the first pose alone depends on q.
    moving = np.abs(jax.jacfwd(lambda q: poses(tree, q))(q)).sum(axis=(1, 2, 3)) > 0
    assert moving.tolist() == [not t.whole_dofs[i] or i == 0 for i in range(t.n_dofs)]

    # Only the last dof carries an inertia.
    assert np.flatnonzero(tree.inertia.mass).tolist() == [t.n_dofs - 1]

    # The twist of the last dof is the sum of the screws, each moved from the frame of its dof.
    screws = tree.screws(q).add_to(Motion.zero(jnp.zeros(t.n_dofs)))
    columns, after = screws.to_array(), jnp.eye(4)
    total, one = jnp.zeros(6), poses(tree, q)
    for i in reversed(range(t.n_dofs)):
        total = total + se3.Ad(se3.inverse(after)) @ columns[i] * tree.rates(v)[i]
        after = one[i] @ after

    def end(s):
        moved = poses(tree, system.manifold.retract(q, s * v))
        product = jnp.eye(4)
        for pose in moved:
            product = product @ pose
        return product

    T, dT = jax.jvp(end, (0.0,), (1.0,))
    twist = jnp.linalg.solve(T, dT)
    found = jnp.array([twist[2, 1], twist[0, 2], twist[1, 0], *twist[:3, 3]])
    np.testing.assert_allclose(total, found, atol=1e-12)

    # The last frame, turned back, is that of the body.
    offset = tree.offset.rotation.to_array()[0]
    np.testing.assert_allclose(T[:3, :3] @ offset, dl.body_poses(system, q)[0, :3, :3], atol=1e-12)

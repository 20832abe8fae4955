"""Results that are shared between the quantities of one state, and only then."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.dynamics.kinematics import body_twist_components, body_world_poses
from difflie.system.kinematic_tree import Tree
from difflie.system.shared import sharing

ROD = dl.chain([dl.Body(name="rod", joint=dl.Revolute(), mass=1.0, com=(0.5, 0, 0))])


def test_results_are_shared_within_the_block_alone():
    """Guards that the same arrays give the same result, others another, and none is kept."""
    q, other, v = jnp.array([0.3]), jnp.array([0.3]), jnp.array([1.0])
    with sharing(ROD) as known:
        tree = Tree.of(known)
        poses = body_world_poses(tree, q)
        assert body_world_poses(tree, q) is poses
        assert body_world_poses(tree, other) is not poses
        assert body_twist_components(tree, q, v) is body_twist_components(tree, q, v)
        with sharing(known) as again:
            assert body_world_poses(Tree.of(again), q) is poses
        assert body_world_poses(tree, q) is poses
    assert body_world_poses(tree, q) is not poses


def test_nothing_is_left_after_an_error():
    """Guards that a fault in the block ends the sharing, so that no traced value outlives it."""
    q, tree = jnp.array([0.3]), Tree.of(ROD)

    def failing():
        with sharing(tree.carried()):
            body_world_poses(tree, q)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        failing()
    assert body_world_poses(tree, q) is not body_world_poses(tree, q)


def test_sharing_within_transformations():
    """Guards derivatives of what was shared."""

    def height(q):
        with sharing(ROD) as known:
            tree = Tree.of(known)
            return sum(body_world_poses(tree, q).rotation.yx.sum() for _ in range(2))

    np.testing.assert_allclose(jax.jit(jax.grad(height))(jnp.array([0.3])), [2 * np.cos(0.3)])

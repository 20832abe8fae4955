"""Rows of lengths: the derivative of each length along the configuration manifold."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.forces.length_rows import length_rows
from difflie.system.kinematic_tree import Tree


@pytest.mark.slow
def test_rows_are_the_derivatives_of_lengths():
    """Along paths, around a cylinder, between sites, of a rotation and of joints; with a mimic."""
    inertia, elbow = 0.02 * np.eye(3), dl.Revolute(axis=(0, 1, 0))
    there = {"mass": 1.0, "inertia": inertia}
    bodies = [
        dl.Body(name="trunk", joint=dl.Free(), **there),
        dl.Body(name="arm", joint=dl.Spherical(), parent="trunk", position=(0, 0.2, 0), **there),
        dl.Body(name="hand", joint=elbow, parent="arm", position=(0, 0, -0.4), **there),
        dl.Body(
            name="tip",
            joint=dl.Revolute(axis=(1, 0, 0), mimic=dl.Mimic("hand", 0.5, 0.1)),
            parent="hand",
            position=(0, 0, -0.2),
            **there,
        ),
    ]
    system = dl.tree(bodies)
    tree = Tree.of(system)
    points = [("trunk", (0.1, 0, 0)), ("arm", (0.1, 0, -0.2)), ("tip", (0.05, 0, -0.1))]
    around = dl.Wrap(0, dl.Frame("arm", (0, 0, 0), (np.pi / 2, 0, 0)), 0.09, cylinder=True)
    levers = [
        dl.SpatialTendon([(None, (0, 0, 1)), *points], gear=0.7),
        dl.FixedTendon(("hand",), [0.3]),
        dl.SpatialTendon(points, wraps=[around]),
        dl.RotationStop([("trunk", (0, 0, 0)), ("arm", (0, 0, 0))], 1.0, angle=0.3),
    ]
    rng = np.random.default_rng(0)
    t = tree.topology

    @jax.jit
    def both(q):
        moved = lambda xi: length_rows(tree, levers, t.manifold.retract(q, xi))[0]  # noqa: E731
        return length_rows(tree, levers, q)[1], jax.jacfwd(moved)(jnp.zeros(t.nv))

    for _ in range(3):
        q = t.manifold.retract(system.neutral(), jnp.asarray(0.4 * rng.normal(size=t.nv)))
        np.testing.assert_allclose(*both(q), atol=1e-12)

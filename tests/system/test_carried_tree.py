"""The system that users' costs and quantities get carries its tree."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from pendulums import pendulum

import difflie as dl
from difflie import quantities as dq
from difflie.forces.actuators.acting import applied
from difflie.system.kinematic_tree import Tree

PENDULUM = dl.attach(pendulum(name="hinge"), dl.Drive("hinge", delay=0.03))


def test_a_tree_belongs_to_one_system():
    """Copies with other numbers, and what leaves a pytree, never have the tree of the old ones."""
    tree = Tree.of(PENDULUM)
    system = tree.carried()
    assert Tree.of(system) is tree
    copies = (
        *(system.replace(mass=jnp.array([2.0])), dataclasses.replace(system), PENDULUM),
        eqx.tree_at(lambda s: s.bodies.mass, system, jnp.array([2.0])),
        jax.tree.map(lambda a: a, system),
    )
    assert all(Tree.of(copy) is not tree for copy in copies)
    assert jax.tree.structure(system) == jax.tree.structure(PENDULUM)


def test_other_actuators_leave_the_tree():
    """The quantities of a motion get what was delivered, and no tree is made in the loop."""
    tree = Tree.of(PENDULUM)
    changed = applied(tree.carried(), jnp.array([1.0]))
    assert Tree.of(changed).placement is tree.placement
    assert Tree.of(changed).system.actuators == changed.actuators


@pytest.mark.parametrize("use", ["reduction", "along"])
def test_quantities_get_a_system_with_its_tree(use):
    """A user's function asks for the tree and gets the one that is there."""
    seen = []

    def height(system, q, v, u, t):
        seen.append(Tree.of(system) is Tree.of(system))
        return -jnp.cos(q[0])

    kept = {"height": dq.Final(height)} if use == "reduction" else None
    run = dl.simulate(PENDULUM, [0.5], [0.0], steps=2, reductions=kept)
    if use == "along":
        dq.along(height, PENDULUM, run)
    assert seen
    assert all(seen)

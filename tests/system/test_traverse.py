"""Both ways to walk a tree give the same numbers, and so do their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trees import random_body, random_joint, random_states

import difflie as dl
from difflie.system.kinematic_tree import Tree


def humanoid():
    """A free base with limbs of lengths 1 to 3, two of which branch."""
    rng = np.random.default_rng(11)
    limbs = {"torso": None, "arm": "torso", "leg": "torso", "foot": "leg", "toe": "foot"}
    limbs |= {"tail": "torso", "neck": "torso", "eye": "neck", "jaw": "neck"}
    kinds = ("Free", "Revolute", "Revolute", "Spherical", "Prismatic", "Planar", "Revolute")
    return dl.tree(
        [
            random_body(rng, name, random_joint(rng, kinds[i % len(kinds)]), parent)
            for i, (name, parent) in enumerate(limbs.items())
        ]
    )


@pytest.mark.slow
def test_both_traversals_agree(monkeypatch):
    system = humanoid()
    q, v, _, tau, _ = (jnp.asarray(x[0]) for x in random_states(system, 1, seed=1))

    def everything(system, q, v, tau):
        def work(q, v, tau):
            return jnp.sum(dl.forward_dynamics(system, q, v, tau) * tau)

        gradient = jax.grad(work, (0, 1, 2))(q, v, tau)
        return dl.forward_dynamics(system, q, v, tau), dl.mass_matrix(system, q), gradient

    fast = jax.jit(everything)(system, q, v, tau)
    jax.clear_caches()
    monkeypatch.setattr("difflie.system.topology._SMALL", 0)
    loop = jax.jit(lambda *args: everything(*args))(system, q, v, tau)
    jax.clear_caches()
    for one, two in zip(jax.tree.leaves(loop), jax.tree.leaves(fast), strict=True):
        np.testing.assert_allclose(two, one, rtol=0, atol=1e-12 * np.abs(one).max())


def test_a_very_long_chain_falls_freely():
    """Each of its three passes is one native loop."""
    links = [
        dl.Body(name=f"b{i}", joint=dl.Prismatic(axis=(0.0, 0.0, 1.0)), mass=1.0)
        for i in range(1200)
    ]
    system = dl.chain(links)
    q, v, tau = system.neutral(), jnp.zeros(system.nv), jnp.zeros(system.nv)
    fall = jax.jit(dl.forward_dynamics)
    a = fall(system, q, v, tau)
    np.testing.assert_allclose(a, [system.gravity[2]] + [0.0] * (system.nv - 1), atol=1e-8)
    if jax.default_backend() == "cpu":
        calls = fall.lower(system, q, v, tau).as_text().count("@difflie_")
        of_tree = jax.jit(Tree.of).lower(system).as_text().count("@difflie_")
        assert calls - of_tree == 3

"""Both ways to walk a tree give the same numbers, and so do their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trees import random_body, random_joint, random_states

import difflie as dl


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
def test_both_traversals_agree():
    system = humanoid()
    q, v, _, tau, _ = (jnp.asarray(x[0]) for x in random_states(system, 1, seed=1))

    def everything(system, q, v, tau):
        def work(q, v, tau):
            return jnp.sum(dl.forward_dynamics(system, q, v, tau) * tau)

        gradient = jax.grad(work, (0, 1, 2))(q, v, tau)
        return dl.forward_dynamics(system, q, v, tau), dl.mass_matrix(system, q), gradient

    loop, fast = (
        jax.jit(everything)(system.with_traversal(way), q, v, tau)
        for way in ("scanned", "unrolled")
    )
    for one, two in zip(jax.tree.leaves(loop), jax.tree.leaves(fast), strict=True):
        np.testing.assert_allclose(two, one, rtol=0, atol=1e-12 * np.abs(one).max())


def test_small_trees_are_unrolled():
    one = dl.tree([random_body(np.random.default_rng(0), "rod", dl.Revolute(), None)])
    assert [s.topology.unrolled for s in (one, humanoid())] == [True, False]
    assert not one.with_traversal("scanned").topology.unrolled
    quadruped = dl.chain(
        [random_body(np.random.default_rng(0), k, dl.Spherical(), None) for k in "abcdef"]
    )
    assert (quadruped.nv, quadruped.topology.unrolled) == (18, True)


def test_a_very_long_chain_is_one_native_call_and_falls_freely():
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
        # The steps of the three loops, and the whole program.
        assert fall.lower(system, q, v, tau).as_text().count("small_call") == 4


def test_an_unknown_traversal_is_refused():
    with pytest.raises(ValueError, match="'scanned' or 'unrolled'"):
        humanoid().with_traversal("quick")

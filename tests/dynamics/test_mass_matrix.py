"""The mass matrix, products and solves with it, and its inverse."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_dynamics import SlowSystem
from trees import error, random_body, random_joint, random_states, random_tree, zoo

import difflie as dl

TREES = {"zoo": zoo(), "random": random_tree(4)}
SOME = ["zoo", pytest.param("random", marks=pytest.mark.slow)]


def quantities(system):
    def all_of_them(q, x):
        return {
            "matrix": dl.mass_matrix(system, q),
            "inverse": dl.inverse_mass_matrix(system, q),
            "product": dl.mass_product(system, q, x),
            "solution": dl.mass_solve(system, q, x),
            "gravity": dl.gravity_force(system, q),
        }

    return jax.jit(jax.vmap(all_of_them))


@pytest.mark.slow
@pytest.mark.thorough("random")
@pytest.mark.parametrize("case", SOME)
def test_against_the_slow_reference(case):
    system, slow = dl.tree(TREES[case]), SlowSystem(TREES[case])
    q, x, *_ = random_states(system, 3, seed=9)
    found = quantities(system)(q, x)
    masses = np.array([slow.mass_matrix(s) for s in q])
    tolerance = max(1e-12, 1e-14 * np.linalg.cond(masses).max())
    still = np.zeros(system.nv)
    assert error(found["matrix"], masses) < 1e-12
    assert error(found["product"], np.einsum("bij,bj->bi", masses, x)) < 1e-12
    assert error(found["gravity"], np.array([slow.bias_force(s, still) for s in q])) < 1e-12
    assert error(found["solution"], np.linalg.solve(masses, x[..., None])[..., 0]) < tolerance
    assert error(found["inverse"], np.linalg.inv(masses)) < tolerance
    np.testing.assert_array_equal(found["matrix"], np.swapaxes(found["matrix"], 1, 2))


def chain(kinds=("Free", "Revolute", "Spherical", "Prismatic"), **fields):
    rng = np.random.default_rng(10)
    return dl.chain([random_body(rng, k, random_joint(rng, k), **fields) for k in kinds])


def test_mimic_joints_reduce_it():
    rng = np.random.default_rng(11)
    joints = [
        dl.Revolute(name="a", armature=0.3),
        dl.Revolute(name="b", mimic=dl.Mimic("a", -0.7, 0.2), armature=0.4),
        dl.Prismatic(name="c", axis=(1.0, 0.0, 0.0)),
    ]
    system = dl.chain([random_body(rng, j.name, j) for j in joints])
    q, x, *_ = random_states(system, 3, seed=12)
    found = quantities(system)(q, x)
    unit = jax.vmap(jax.vmap(partial(dl.mass_product, system), (None, 0)), (0, None))
    assert error(unit(jnp.asarray(q), jnp.eye(2)), found["matrix"]) < 1e-13
    assert error(found["matrix"] @ found["inverse"], np.stack([np.eye(2)] * 3)) < 1e-12
    assert error(found["inverse"] @ x[..., None], found["solution"][..., None]) < 1e-12


def test_a_machine_far_from_the_origin_loses_no_digits():
    here = chain(("Revolute", "Universal", "Prismatic"))
    far = here.replace(position=here.joints.position.at[0].add(1e8))
    q = jnp.asarray([0.3, -1.1, 0.7, 0.4])
    assert error(dl.mass_matrix(far, q)[None], dl.mass_matrix(here, q)[None]) < 1e-14


@pytest.mark.slow
def test_single_precision():
    single = chain().astype(jnp.float32)
    q, x = single.neutral(), jnp.ones(single.nv, jnp.float32)
    for value in (
        dl.mass_matrix(single, q),
        dl.inverse_mass_matrix(single, q),
        dl.mass_product(single, q, x),
        dl.mass_solve(single, q, x),
        dl.gravity_force(single, q),
    ):
        assert value.dtype == jnp.float32

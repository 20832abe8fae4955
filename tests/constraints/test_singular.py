"""Singular configurations that a motion reaches are named; near ones are not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loops import bar

import difflie as dl
from difflie.constraints.redundancy import independence
from difflie.solvers.singular_values import singular_value
from difflie.system.kinematic_tree import Tree


def parallelogram(rod=1.0):
    """Two cranks of 0.5 m and a rod: in a line twice a revolution, where it may fold."""
    hinge = {"joint": dl.Revolute(axis=(0.0, 1.0, 0.0))}
    system = dl.tree(
        [
            bar("crank", 0.5, None, (0.0, 0.0, 0.0), **hinge),
            bar("rod", rod, "crank", (0.5, 0.0, 0.0), **hinge),
            bar("rocker", 0.5, None, (1.0, 0.0, 0.0), **hinge),
        ],
        gravity=(0.0, 0.0, 0.0),
    )
    ends = dl.Frame("rod", (rod, 0.0, 0.0)), dl.Frame("rocker", (0.5, 0.0, 0.0))
    system = dl.constrain(system, dl.constraints.SphericalConstraint(*ends))
    return system, *dl.assemble(system, np.array((-1.0, 1.0, -1.0)), np.array((4.0, -4.0, 4.0)))


@pytest.mark.slow
@pytest.mark.parametrize("dt", [0.01, 0.007])
def test_a_parallelogram_that_comes_to_lie_in_a_line(dt):
    system, q, v = parallelogram()
    run = dl.simulate(system, q, v, dt=dt, steps=60)
    assert run.result.ok
    angle = np.asarray(run.q[:, 0])
    assert angle[0] < 0 < angle[-1]
    reached = int(run.result.singular_step)
    assert angle[reached - 2] < 0 < angle[min(reached + 1, len(angle) - 1)]
    told = f"a singular configuration near t = {reached * dt:.6g} s"
    assert any(m.startswith(told) for m in run.result.messages())
    here = singular_value(independence(Tree.of(system), run.q[reached]), jnp.asarray(1))
    np.testing.assert_allclose(here, 0, atol=5 * dt)


@pytest.mark.slow
def test_a_machine_that_keeps_its_rank():
    run = dl.simulate(*parallelogram(1.05), dt=0.01, steps=60)
    assert run.result.ok and run.result.singular_step == np.iinfo(np.int32).max
    assert len(run.result.messages()) == 1


@pytest.mark.slow
def test_a_machine_without_constraints_and_a_batch_of_others():
    chain = dl.chain([bar("a", 1.0, None, (0, 0, 0), joint=dl.Revolute(axis=(0.0, 1.0, 0.0)))])
    run = dl.simulate(chain, jnp.zeros(1), jnp.ones(1), steps=3)
    assert run.result.singular_step == np.iinfo(np.int32).max
    system, q, v = parallelogram()

    def when(speed):
        return dl.simulate(system, q, speed * v, dt=0.01, steps=60).result.singular_step

    steps = np.asarray(jax.vmap(when)(jnp.asarray((0.1, 1.0, 2.0))))
    assert steps[0] == np.iinfo(np.int32).max and steps[2] < steps[1] < 40

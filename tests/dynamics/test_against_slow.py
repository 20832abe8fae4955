"""The package against the slow reference, on trees with every joint type.

The reference inverts its mass matrix densely, so that forward dynamics agrees to the rounding
error that the condition of this matrix allows; everything else agrees to 1e-12.
"""

import jax
import numpy as np
import pytest
from slow_dynamics import SlowSystem
from trees import error, random_states, random_tree, zoo

import difflie as dl

# Compiling takes most of the time, and little of it is worth optimising for three states.
TREES = {"zoo": zoo(), "random": random_tree(0)}
SOME = ["zoo", pytest.param("random", marks=pytest.mark.slow)]


def quantities(system, bodies):
    """All public functions at once, for a batch of states."""

    def all_of_them(q, v, a, tau, wrench):
        return {
            "inverse dynamics": dl.inverse_dynamics(system, q, v, a, wrench),
            "forward dynamics": dl.forward_dynamics(system, q, v, tau, wrench),
            "mass matrix": dl.mass_matrix(system, q),
            "bias force": dl.bias_force(system, q, v),
            "body poses": dl.body_poses(system, q),
            "body twists": dl.body_twists(system, q, v),
            "body jacobians": [dl.body_jacobian(system, q, b) for b in bodies],
            "energy": dl.energy(system, q, v),
            "momentum": dl.momentum(system, q, v),
        }

    return jax.jit(jax.vmap(all_of_them))


@pytest.mark.slow
@pytest.mark.thorough("random")
@pytest.mark.parametrize("case", SOME)
def test_every_quantity(case):
    bodies = TREES[case]
    system, slow = dl.tree(bodies), SlowSystem(bodies)
    assert system.body_names == tuple(slow.names)
    assert (system.nq, system.nv) == (slow.nq, slow.nv)
    q, v, a, tau, wrench = states = random_states(system, 3, seed=1)
    chosen = [0, len(bodies) // 2, len(bodies) - 1]
    found = quantities(system, chosen)(*states)

    def expected(f, *arrays):
        return np.array([f(*sample) for sample in zip(*arrays, strict=True)])

    def agrees(name, value, reference, tolerance=1e-12):
        assert error(value, reference) < tolerance, name

    jacobians = expected(slow.jacobians, q)
    masses = expected(slow.mass_matrix, q)
    for name, reference in (
        ("inverse dynamics", expected(slow.inverse_dynamics, q, v, a, wrench)),
        ("mass matrix", masses),
        ("bias force", expected(slow.bias_force, q, v)),
        ("body poses", expected(slow.poses, q)),
        ("body twists", expected(slow.twists, q, v)),
        ("momentum", expected(slow.momentum, q, v)),
    ):
        agrees(name, found[name], reference)
    for b, value in zip(chosen, found["body jacobians"], strict=True):
        agrees("body jacobian", value, jacobians[:, b])
    agrees("energy", np.stack(found["energy"], axis=1), expected(slow.energy, q, v))
    forward = expected(slow.forward_dynamics, q, v, tau, wrench)
    agrees(
        "forward dynamics", found["forward dynamics"], forward, 1e-14 * np.linalg.cond(masses).max()
    )
    # What needs no reference.
    agrees("symmetry", found["mass matrix"], np.swapaxes(found["mass matrix"], 1, 2))
    np.testing.assert_array_less(0, np.linalg.eigvalsh(found["mass matrix"]))

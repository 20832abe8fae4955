"""Long chains, wide and deep trees, massless links and heavy loads on light links.

Forward dynamics inverts M and cannot be more accurate than its condition allows; what is stated
here is its residual: inverse dynamics of the accelerations gives the forces back, to the stated
fraction of the largest term that inverse dynamics adds up.
"""

from dataclasses import replace

import numpy as np
import pytest
from trees import random_body, random_joint

import difflie as dl

KINDS = ("Revolute", "Prismatic", "Helical", "Continuous")


def link(rng, i, parent, kind="Revolute", **fields):
    joint = replace(random_joint(rng, kind), armature=0.0)
    return random_body(rng, f"b{i}", joint, None if parent is None else f"b{parent}", **fields)


def long_chain(rng):
    return [link(rng, i, i - 1 if i else None) for i in range(1000)]


def many_branches(rng):
    """200 branches of five links on one hub."""
    return [
        link(rng, i, None if not i else 0 if i % 5 == 1 else i - 1, KINDS[i % 4])
        for i in range(1001)
    ]


def deep_tree(rng):
    """A trunk of depth 300 with a twig at every third link."""
    trunk = [link(rng, i, i - 1 if i else None) for i in range(300)]
    return trunk + [link(rng, 300 + i, 3 * i) for i in range(100)]


def massless_links(rng):
    """Two of three links have no mass; the last has one."""
    bodies = [link(rng, i, i - 1 if i else None) for i in range(60)]
    nothing = {"mass": 0.0, "com": (0.0, 0.0, 0.0), "inertia": np.zeros((3, 3))}
    return [replace(b, **nothing) if i % 3 != 2 else b for i, b in enumerate(bodies)]


def heavy_on_light(rng):
    """Links that are in turn a million times heavier and lighter than the one before."""
    bodies = [link(rng, i, i - 1 if i else None) for i in range(20)]
    return [
        replace(b, mass=1e6 * b.mass, inertia=1e6 * b.inertia) if i % 2 else b
        for i, b in enumerate(bodies)
    ]


TREES = {
    f.__name__: f for f in (long_chain, many_branches, deep_tree, massless_links, heavy_on_light)
}


@pytest.mark.slow
@pytest.mark.thorough("heavy_on_light")
@pytest.mark.parametrize("case", TREES)
def test_forward_dynamics_is_undone_by_inverse_dynamics(case):
    rng = np.random.default_rng(20)
    bodies = TREES[case](rng)
    system = dl.tree(bodies)
    n = system.nv
    assert n == len(bodies)
    q, v, tau = rng.uniform(-1, 1, n), rng.normal(size=n) / n, rng.normal(size=n)
    a = dl.forward_dynamics(system, q, v, tau)
    again = dl.inverse_dynamics(system, q, v, a)
    mass = np.asarray(dl.mass_matrix(system, q))
    terms = np.abs(mass) @ np.abs(a) + np.abs(dl.bias_force(system, q, v))
    residual = np.max(np.abs(again - tau)) / np.max(terms)
    factors = dl.mass_factorisation(system, q)
    x = rng.normal(size=n)
    product = np.max(np.abs(factors.multiply(x) - mass @ x)) / np.max(np.abs(mass) @ np.abs(x))
    assert np.all(np.isfinite(a))
    assert residual < 1e-15
    assert product < 1e-14
    np.testing.assert_array_less(0, factors.diagonal)

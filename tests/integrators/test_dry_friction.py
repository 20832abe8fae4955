"""Implicit methods on arms with dry friction, which turns within a hundredth of a rad/s."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl

AXES = np.eye(3)[[2, 1, 0]]
# The parent of each link: one to seven joints, one of them branched.
PARENTS = ((-1,), (-1, 0), (-1, 0, 1, 2), (-1, 0, 1, 2, 1, 4), (-1, 0, 1, 2, 3, 4, 5))
METHODS = (
    *("ImplicitMidpoint", "StormerVerlet", "GaussLegendre4", "GeneralizedAlpha", "BDF1"),
    *("BDF2", "GaussLegendre6", "VariationalMidpoint"),
)


def arm(parents):
    """An arm without armature whose numbers are to be replaced."""
    bodies = [
        dl.Body(
            name=f"b{i}",
            joint=dl.Revolute(axis=tuple(AXES[(i + len(parents)) % 3])),
            parent=None if p < 0 else f"b{p}",
            position=(0, 0, 0.2 if i else 0.0),
            mass=1.0,
            inertia=1e-3 * np.eye(3),
        )
        for i, p in enumerate(parents)
    ]
    return dl.tree(bodies)


def drawn(n, seed, count):
    """Masses, centres, inertias, friction of 0.01 to 5 N m, states and dt of 0.5 to 10 ms."""
    rng = np.random.default_rng([seed, n])
    mass, size = 10 ** rng.uniform(-1, 0.5, (count, n)), 10 ** rng.uniform(-1.3, -0.5, (count, n))
    radius = size**2 * 10 ** rng.uniform(-1.5, -0.5, (count, n))
    return (
        mass,
        rng.normal(size=(count, n, 3)) * size[..., None] / 2,
        (mass * radius)[..., None, None] * np.eye(3),
        10 ** rng.uniform(-2, np.log10(5), (count, n)),
        rng.uniform(-2, 2, (count, n)),
        rng.normal(size=(count, n)),
        10 ** rng.uniform(np.log10(5e-4), -2, count),
    )


def moved(system, method, steps):
    """The end of a motion and whether every step was solved, as a function of what is drawn."""

    def run(mass, com, inertia, friction, q, v, dt):
        arm = system.replace(mass=mass, com=com, inertia=inertia, friction=friction)
        run = dl.simulate(arm, q, v, dt=dt, steps=steps, save_every=steps, method=method)
        return jnp.concatenate((run.q[-1], run.v[-1])), run.result.ok

    return run


# What is left of the thousand: an arm of seven light links, which one step of 9 ms throws so far
# that the search for the next velocity ends at none, or at one of thousands of rad/s.
UNSOLVED = {("BDF1", 4): [108], ("GeneralizedAlpha", 4): [108]}


def check(method, kind, seed, count, steps):
    run, arms = moved(arm(PARENTS[kind]), method, steps), drawn(len(PARENTS[kind]), seed, count)
    _, ok = jax.jit(jax.vmap(run))(*arms)
    left = [i for i in UNSOLVED.get((method, kind), []) if i < count]
    np.testing.assert_array_equal(np.flatnonzero(~ok), left)


@pytest.mark.slow("3", "2")
@pytest.mark.parametrize("kind", range(5))
def test_no_step_is_left_unsolved(kind):
    """A seeded tenth, each topology with one method."""
    check(METHODS[kind], kind, 0, 20, 30)


@pytest.mark.thorough
@pytest.mark.parametrize("method", METHODS[:6])
def test_no_step_of_a_thousand_arms_is_left_unsolved(method):
    for kind in range(5):
        check(method, kind, 0, 200, 30)


def check_derivatives(method, kind, count):
    """Changes by the start and by the friction, against differences where these have a limit."""
    system, n = arm(PARENTS[kind]), len(PARENTS[kind])
    *numbers, friction, q, v, dt = drawn(n, 1, count)
    run = moved(system, method, 10)
    rng = np.random.default_rng(2)
    along = [rng.normal(size=(count, n)) for _ in range(3)]
    along[0] *= friction / 10

    def end(friction, q, v, *others):
        return run(*others[:3], friction, q, v, others[3])

    @jax.jit
    @jax.vmap
    def all_of(friction, q, v, along, *others):
        def shifted(length):
            return end(
                *(x + length * d for x, d in zip((friction, q, v), along, strict=True)), *others
            )

        slope = jax.jvp(lambda s: shifted(s)[0], (0.0,), (1.0,))[1]
        weights = jnp.arange(2.0 * n)
        back = jax.grad(lambda *x: weights @ end(*x, *others)[0], (0, 1, 2))(friction, q, v)
        back = sum(jnp.sum(g * d) for g, d in zip(back, along, strict=True))
        near = [(shifted(s)[0] - shifted(-s)[0]) / (2 * s) for s in (1e-6, 3e-7)]
        return slope, weights @ slope - back, near, shifted(0.0)[1]

    slope, off, near, ok = all_of(friction, q, v, along, *numbers, dt)
    size = np.max(np.abs(slope), axis=1)
    wrong = [np.max(np.abs(slope - d), axis=1) / size for d in near]
    limit = np.max(np.abs(near[0] - near[1]), axis=1) / size < 1e-4
    assert ok.all() and limit.mean() > 0.8
    assert np.all(np.abs(off) < 1e-8 * size * 4 * n**2)
    assert np.all(np.minimum(*wrong)[limit] < 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [1])
def test_derivatives_of_motions_with_friction(kind):
    check_derivatives("ImplicitMidpoint", kind, 20)


@pytest.mark.slow
@pytest.mark.thorough("2")
@pytest.mark.parametrize("kind", range(5))
def test_derivatives_of_a_thousand_arms(kind):
    """200 of each topology, each with another method."""
    check_derivatives(METHODS[kind], kind, 200)

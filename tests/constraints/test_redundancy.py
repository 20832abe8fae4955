"""Machines whose equations say the same twice: what is unique, what is not, what is reported.

Bricard's linkage moves by its proportions only: five rods of 1 m on six hinges, whose axes are
those of x, y and z in turn. The double parallelogram has planar closures of spatial hinges.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import constraints as dc

CORNERS = np.array([(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)], float)
AXES = np.array([(0, 1, 0), (0, 0, 1), (1, 0, 0)] * 2, float)


def bricard(scale=1.0, rod=0.0):
    """The tree of rods, closed at its end; all lengths times `scale`, that of one rod plus `rod`.

    The frames of the bodies have the axes of the world in the first configuration.
    """
    bodies = []
    for k in range(5):
        along = CORNERS[k + 1] - CORNERS[k]
        inertia = np.diag(np.where(along != 0, 0.02 / 12, 1.01 / 12))
        bodies.append(
            dl.Body(
                name=f"rod{k}",
                joint=dl.Revolute(axis=AXES[k]),
                position=CORNERS[k] - CORNERS[max(k - 1, 0)],
                mass=1.0,
                com=along / 2,
                inertia=inertia,
            )
        )
    end = dc.Frame("rod4", CORNERS[5] - CORNERS[4], axis=AXES[5])
    system = dl.chain(bodies, name="bricard", gravity=(0, -9.81, 0))
    system = dl.constrain(
        system, dc.RevoluteConstraint(dc.Frame(None, CORNERS[5], axis=AXES[5]), end)
    )
    return stretched(system, scale, rod)


def stretched(system, scale, rod=0.0):
    position = system.joints.position.at[2].add(rod * (CORNERS[2] - CORNERS[1]))
    system = system.replace(position=scale * position, com=scale * system.bodies.com)
    (closure,) = system.constraints
    frames = [replace_position(f, scale * f.position) for f in closure.frames]
    return replace(system, constraints=(dc.RevoluteConstraint(*frames),))


def replace_position(frame, position):
    return dc.Frame(frame.body, position, frame.rotation)


# Somewhere in its motion: found from the first configuration, with the first joint turned.
@pytest.fixture(scope="module")
def linkage():
    system = bricard()
    q, v = dl.assemble(system, (0.5, 0.45, -0.5, -0.5, 0.45), (1.0, 0, 0, 0, 0))
    return system, q, v


def test_of_five_equations_one_is_redundant(linkage):
    system, q, _ = linkage
    redundant = dl.redundant_equations(system, q)
    assert len(redundant) == 1 and "constraint 0, Revolute" in redundant[0]
    assert dl.mobility(system, q) == 1
    start = jnp.zeros(5)
    assert np.max(np.abs(dl.constraint_residual(system, start))) < 1e-15
    assert dl.mobility(system, start) == 1


def smallest(system, q, v):
    """Acceleration and multipliers by numpy's least squares."""
    M, A = np.asarray(dl.mass_matrix(system, q)), np.asarray(dl.constraint_jacobian(system, q))
    free = np.linalg.solve(M, -np.asarray(dl.bias_force(system, q, v)))
    Y = np.linalg.solve(M, A.T)
    wanted = -np.asarray(dl.constraint_bias(system, q, v)) - A @ free
    multipliers = np.linalg.lstsq(A @ Y, wanted, rcond=1e-10)[0]
    return free + Y @ multipliers, multipliers


@pytest.mark.slow
def test_accelerations_are_unique_and_multipliers_smallest(linkage):
    system, q, v = linkage
    a, multipliers = dl.constrained_dynamics(system, q, v, jnp.zeros(5))
    expected, least = smallest(system, q, v)
    np.testing.assert_allclose(a, expected, atol=1e-10 * np.max(np.abs(expected)))
    np.testing.assert_allclose(multipliers, least, atol=1e-8 * np.max(np.abs(least)))
    A, c = dl.constraint_jacobian(system, q), dl.constraint_bias(system, q, v)
    assert np.max(np.abs(A @ a + c)) < 1e-10
    again = dl.constrain(system, *system.constraints)
    twice, halves = dl.constrained_dynamics(again, q, v, jnp.zeros(5))
    np.testing.assert_allclose(twice, a, atol=1e-9)
    np.testing.assert_allclose(halves, np.r_[least, least] / 2, atol=1e-8 * np.max(np.abs(least)))


@pytest.fixture(scope="module")
def changes(linkage):
    """Of the accelerations and multipliers at fixed angles, which keep for any scale."""
    system, q, v = linkage

    def dynamics(mass, scale, rod):
        changed = stretched(system, scale, rod).replace(mass=jnp.ones(5).at[1].set(mass))
        return jnp.concatenate(dl.constrained_dynamics(changed, q, v, jnp.zeros(5)))

    return jax.jit(dynamics), jax.jit(jax.jacfwd(dynamics, argnums=(0, 1, 2)))(1.0, 1.0, 0.0)


@pytest.mark.slow
def test_changes_that_keep_the_proportions_have_derivatives(changes):
    dynamics, (of_mass, of_scale, _) = changes
    h = 1e-5
    for found, d in ((of_mass, (h, 0)), (of_scale, (0, h))):
        difference = dynamics(1 + d[0], 1 + d[1], 0.0) - dynamics(1 - d[0], 1 - d[1], 0.0)
        expected = difference / (2 * h)
        np.testing.assert_allclose(found, expected, atol=1e-6 * np.max(np.abs(expected)))


@pytest.mark.slow
def test_changes_that_break_the_machine_are_reported(changes, linkage):
    _, (_, _, of_rod) = changes
    assert np.all(np.isnan(of_rod))
    system, q, _ = linkage
    broken = dl.inconsistent_parameters(system, q)
    assert np.all(np.any(broken.joints.position[1:], axis=1))
    assert not np.any(broken.bodies.mass) and not np.any(broken.joints.damping)

    def position(scale, rod):
        return dl.assemble(stretched(system, scale, rod), q)[0]

    of_scale, of_rod = jax.jit(jax.jacfwd(position, argnums=(0, 1)))(1.0, 0.0)
    assert np.max(np.abs(of_scale)) < 1e-9
    assert np.all(np.isnan(of_rod))
    # It can still be put together, but does not move any more.
    locked = bricard(rod=0.05)
    assert dl.mobility(locked, dl.assemble(locked, q)[0]) == 0


@pytest.mark.slow
def test_reverse_mode_is_right_for_what_keeps_the_proportions(changes, linkage):
    _, (of_mass, of_scale, _) = changes
    system, q, v = linkage
    weight = np.random.default_rng(0).normal(size=5)

    def measured(mass, scale):
        changed = stretched(system, scale).replace(mass=jnp.ones(5).at[1].set(mass))
        return weight @ dl.constrained_dynamics(changed, q, v, jnp.zeros(5))[0]

    found = jax.jit(jax.grad(measured, argnums=(0, 1)))(1.0, 1.0)
    np.testing.assert_allclose(found, (weight @ of_mass[:5], weight @ of_scale[:5]), rtol=1e-7)


@pytest.mark.slow
def test_free_bodies_move_as_the_tree(linkage):
    system, q, v = linkage
    machine = dl.absolute(system)
    x, u = dl.absolute_state(machine, system, q, v)
    assert len(dl.redundant_equations(machine, x)) == 1
    assert dl.mobility(machine, x) == 1
    a, _ = dl.constrained_dynamics(machine, x, u, jnp.zeros(30))
    expected, _ = dl.constrained_dynamics(system, q, v, jnp.zeros(5))
    turning = [np.r_[0.0, np.asarray(AXES[k])][1:] for k in range(5)]
    # The angular acceleration of the first rod is that of the first joint.
    np.testing.assert_allclose(a[:3], turning[0] * expected[0], atol=1e-8)


def parallelogram(windows=2):
    """Upright bars on the ground, joined by bars on top; free bodies, frames at their ends."""
    bar = {"joint": dl.Free(), "mass": 1.0}
    thick = 1e-3
    up = {"com": (0, 0, 0.5), "inertia": np.diag((1 / 12, 1 / 12, thick))}
    flat = {"com": (0.5, 0, 0), "inertia": np.diag((thick, 1 / 12, 1 / 12))}
    uprights = [dl.Body(name=f"up{k}", **bar, **up) for k in range(windows + 1)]
    tops = [dl.Body(name=f"top{k}", **bar, **flat) for k in range(windows)]

    def hinge(first, at, second, to):
        y = (0, 1, 0)
        return dc.RevoluteConstraint(dc.Frame(first, at, axis=y), dc.Frame(second, to, axis=y))

    hinges = [hinge(None, (k, 0, 0), f"up{k}", (0, 0, 0)) for k in range(windows + 1)]
    for k in range(windows):
        hinges.append(hinge(f"up{k}", (0, 0, 1), f"top{k}", (0, 0, 0)))
        hinges.append(hinge(f"up{k + 1}", (0, 0, 1), f"top{k}", (1, 0, 0)))
    system = dl.tree([*uprights, *tops], name="parallelogram")
    return dl.constrain(system, *hinges)


def placed(angle, rate):
    turn = [np.cos(angle / 2), 0, np.sin(angle / 2), 0]
    tip = np.array((np.sin(angle), 0, np.cos(angle)))
    moving = rate * np.array((np.cos(angle), 0, -np.sin(angle)))
    q, v = [], []
    for k in range(3):
        q += [*turn, k, 0, 0]
        v += [0, rate, 0, 0, 0, 0]
    for k in range(2):
        q += [1, 0, 0, 0, *(tip + np.array((k, 0, 0)))]
        v += [0, 0, 0, *moving]
    return np.array(q), np.array(v)


@pytest.mark.slow
def test_double_parallelogram():
    system = parallelogram()
    angle, rate = 0.7, 1.3
    q, v = placed(angle, rate)
    assert np.max(np.abs(dl.constraint_residual(system, q))) < 1e-15
    assert dl.mobility(system, q) == 1
    assert len(dl.redundant_equations(system, q)) == 6
    flat, _ = placed(np.pi / 2, 0)
    assert dl.mobility(system, flat) == 3
    a, multipliers = dl.constrained_dynamics(system, q, v, np.zeros(30))
    expected, least = smallest(system, q, v)
    np.testing.assert_allclose(a, expected, atol=1e-9)
    np.testing.assert_allclose(multipliers, least, atol=1e-7)
    about = (1.5 + 2) * 9.81 * np.sin(angle) / (1 + 2)
    np.testing.assert_allclose(a.reshape(5, 6)[:3, 1], about, rtol=1e-10)

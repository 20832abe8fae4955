"""The impulses of hard contacts: redundant ones, open ones, and their derivatives."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.constraints import PointOnPlane


def box(points, friction=0.2, restitution=0.1, size=(0.05, 0.05, 0.05)):
    square = np.square(size)
    inertia = 0.4 / 3 * np.diag(square.sum() - square)
    body = dl.tree([dl.Body(name="box", joint=dl.Free(), mass=0.4, inertia=inertia)])
    return dl.constrain(
        body,
        *(
            PointOnPlane(dl.Frame("box", p), dl.Frame(), friction=friction, restitution=restitution)
            for p in points
        ),
    )


SHAPES = {"cube": (0.05, 0.05, 0.05), "rod": (0.2, 0.01, 0.01), "plate": (0.1, 0.1, 0.005)}


@pytest.mark.slow
@pytest.mark.thorough("cube-float64")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_step_of_tossed_boxes_is_solved(shape, dtype):
    """Guards the fallback, with redundant and wedged contacts, and the energy."""
    rng, n, dt = np.random.default_rng(7), 170, 2e-3
    turn = rng.normal(size=(n, 4))
    q = np.c_[turn / np.linalg.norm(turn, axis=1)[:, None], np.tile((0, 0, 0.3), (n, 1))]
    v = np.c_[5 * rng.normal(size=(n, 3)), rng.normal(size=(n, 3))]
    numbers = rng.uniform(0, 2, n), rng.uniform(0, 1, n)
    corners = list(itertools.product(*((-a, a) for a in SHAPES[shape])))

    def toss(q, v, friction, restitution):
        body = box(corners, friction, restitution, size=SHAPES[shape]).astype(dtype)
        run = dl.simulate(body, q, v, dt=dt, steps=350, method="Moreau")
        return run.result.ok, run.states.rounds, jnp.diff(sum(run.energy(body)))

    ok, rounds, gains = jax.jit(jax.vmap(toss))(*(a.astype(dtype) for a in (q, v, *numbers)))
    assert ok.all()
    assert rounds.max() > 1
    # What weight does between the end of a step, where it is supported, and its middle.
    assert gains.max() < 0.4 * (9.81 * dt) ** 2 / 8 + (1e-8 if dtype == "float64" else 2e-3)


@pytest.mark.slow
def test_restitution_gains_no_energy():
    """Guards against Newton's law with friction, by which some of these rods would gain energy."""
    system = box([(-0.5, 0.0, 0.0)], 0.8, 0.9, size=(0.5, 0.01, 0.01)).replace(gravity=jnp.zeros(3))
    rng, n = np.random.default_rng(3), 300
    tilt = rng.uniform(0.1, 1.4, n)
    q = np.zeros((n, 7))
    q[:, 0], q[:, 2], q[:, 6] = np.cos(tilt / 2), -np.sin(tilt / 2), 0.5 * np.sin(tilt) + 1e-9
    v = np.c_[0 * tilt, rng.normal(size=n), 0 * tilt, rng.normal(size=n), 0 * tilt, -1 + 0 * tilt]

    def hit(q, v):
        run = dl.simulate(system, q, v, dt=1e-6, steps=1, method="Moreau")
        turns = jax.vmap(lambda q: dl.body_poses(system, q)[0, 2, :3])(run.q)
        tip = run.v[:, 3:] + jnp.cross(run.v[:, :3], jnp.array([-0.5, 0, 0]))
        return jnp.diff(run.energy(system)[0])[0], jnp.sum(turns * tip, axis=1)

    change, speeds = jax.jit(jax.vmap(hit))(q, v)
    hits = np.asarray(speeds[:, 0]) < -1e-3
    assert hits.sum() > 50
    assert np.asarray(change).max() < 1e-9
    ratio = (-speeds[:, 1] / speeds[:, 0])[hits]
    # Most bounce by Newton's law; others only as much as their energy allows.
    assert (np.abs(ratio - 0.9) < 1e-3).mean() > 0.5
    assert (ratio < 0.85).sum() > 3


@pytest.mark.slow
def test_derivatives_with_open_closed_and_mixed_contacts():
    """Finite, and those of differences; also along nothing in a batch."""
    system = box([(-0.05, 0.0, 0.0), (0.05, 0.0, 0.0)])

    def end(q, v):
        return dl.simulate(system, q, v, dt=1e-2, steps=2, method="Moreau").v[-1]

    rest = system.neutral()
    tilted = rest.at[0].set(np.cos(0.1)).at[2].set(np.sin(0.1))
    starts = jnp.stack((rest.at[6].set(1.0), rest.at[6].set(-1e-4), tilted.at[6].set(1e-3)))
    v = jnp.asarray([0.3, -0.2, 0.1, 0.5, 0.4, -0.2])
    along = jnp.concatenate((jnp.eye(6), jnp.zeros((1, 6))))
    forward = jax.jit(
        jax.vmap(lambda q: jax.vmap(lambda d: jax.jvp(lambda v: end(q, v), (v,), (d,))[1])(along))
    )
    slopes = forward(starts)
    step = 1e-6
    moved = jax.jit(
        jax.vmap(
            lambda q: jax.vmap(
                lambda d: (end(q, v + step * d) - end(q, v - step * d)) / (2 * step)
            )(along)
        )
    )
    np.testing.assert_allclose(slopes, moved(starts), atol=1e-6)
    np.testing.assert_array_equal(slopes[:, 6], 0)
    back = jax.jit(jax.vmap(lambda q: jax.jacrev(lambda v: end(q, v))(v)))(starts)
    np.testing.assert_allclose(back, jnp.swapaxes(slopes[:, :6], 1, 2), atol=1e-9)


@pytest.mark.slow
def test_an_open_contact_has_derivatives():
    """By the speed upwards, sideways and along nothing."""
    system = box([(0.0, 0.0, 0.0)])
    start = system.neutral().at[6].set(1.0)

    def height(v):
        return dl.simulate(system, start, v, dt=1e-2, steps=3, method="Moreau").q[-1, 6]

    along = jnp.stack((jnp.eye(6)[5], jnp.eye(6)[3], jnp.zeros(6)))
    slopes = jax.vmap(lambda d: jax.jvp(height, (jnp.zeros(6),), (d,))[1])(along)
    np.testing.assert_allclose(slopes, (0.03, 0.0, 0.0), atol=1e-15)


def test_a_contact_stays_closed_along_a_bent_path():
    """Guards contact forces that drop out: a rod that topples about its foot presses all the time.

    The foot is bent away from the tangent of the step, and by Coulomb's law it cannot slide.
    """
    rod = dl.Body(name="rod", joint=dl.Free(), mass=2.0, inertia=np.diag([0.06, 0.06, 0.001]))
    foot = PointOnPlane(dl.Frame("rod", (0, 0, -0.3)), dl.Frame(), friction=0.9)
    system = dl.constrain(dl.tree([rod]), foot)
    q = jnp.array([1.0, 0, 0, 0, 0, 0, 0.3])
    v = jnp.array([0.0, 2.0, 0, 0.6, 0, 0])
    run = dl.simulate(system, q, v, dt=1e-3, steps=150, method="Moreau")
    assert run.result.ok
    normal = np.asarray(run.states.contacts)[2:, 0, 0]
    assert np.all(normal > 0)
    tip = dl.body_poses(system, run.q[-1])[0] @ jnp.array([0, 0, -0.3, 1.0])
    assert np.abs(tip[:3]).max() < 2e-3

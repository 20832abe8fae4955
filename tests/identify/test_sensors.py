"""Encoders with a zero and a scale of their own, found with what they measure."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pendulums import pendulum

import difflie as dl
from difflie import identify as di
from difflie.sensors.sensor import to_measured, to_true

SCALE, BIAS = 1.05, -0.3


ARM = pendulum(0.2, "arm", name="hinge", damping=0.1)
READ = di.with_sensors(ARM, di.Encoder("hinge", position_scale=SCALE, position_bias=BIAS))
ROUGH = di.with_sensors(ARM.replace(damping=np.array([0.02])), di.Encoder("hinge"))
FREE = dl.Parameters(ROUGH, ["hinge/position_scale", "hinge/position_bias", "hinge/damping"])
TRUTH = SCALE, BIAS, 0.1


@pytest.fixture(scope="module")
def recording():
    """A swing as the encoder tells it."""
    t = 0.02 * np.arange(151)
    tau = 0.8 * np.sin(3 * t)[:, None]
    how = {"dt": 0.02, "steps": 150, "control": jnp.asarray(tau[:-1])}
    run = dl.simulate(READ, [0.6], [0.0], **how)
    force = jax.vmap(lambda *x: dl.forward_dynamics(READ, *x))
    a = force(run.q, run.v, tau - 0.1 * run.v)
    return di.Recording("swing", t, SCALE * run.q + BIAS, SCALE * run.v, SCALE * a, tau)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["torques", "windows", "states"])
def test_zero_and_scale_are_found_again(kind, recording):
    if kind == "torques":
        problem = di.InverseDynamics.of(ROUGH, [recording])
    elif kind == "windows":
        problem = di.Shooting.of(ROUGH, [recording], window=50, position=1e-3, velocity=1e-2)
    else:
        # Starts that were measured badly, and no velocity beside.
        off = 0.02 * np.cos(np.arange(151))[:, None]
        wrong = dataclasses.replace(recording, v=recording.v + off)
        problem = di.Shooting.of(ROUGH, [wrong], window=75, position=1e-3, free=True)
    found = di.fit(FREE, problem, minimiser=di.LevenbergMarquardt(tolerance=1e-12))
    assert found.converged
    np.testing.assert_allclose(found.values, TRUTH, rtol=1e-8)
    assert np.isfinite(found.standard_errors).all()
    assert found.parameters.names[:2] == ("hinge/position_scale", "hinge/position_bias")


def test_what_is_seen_and_what_is_meant():
    """Coordinates and velocities of other joints stay, behind a ball with one coordinate more."""
    bodies = [
        dl.Body(name="ball", joint=dl.Spherical(name="socket"), mass=1.0, inertia=np.eye(3)),
        dl.Body(name="arm", joint=dl.Revolute(name="hinge"), mass=1.0, inertia=np.eye(3)),
    ]
    encoder = di.Encoder("hinge", position_scale=-2.0, position_bias=0.5)
    system = di.with_sensors(dl.chain(bodies), encoder)
    q, v = np.array([[0.6, 0.8, 0.0, 0.0, 0.3]]), np.array([[1.0, 2.0, 3.0, 4.0]])
    read = to_measured(system, jnp.asarray(q), jnp.asarray(v))
    np.testing.assert_allclose(read[0], [[0.6, 0.8, 0.0, 0.0, -0.1]], rtol=1e-14)
    np.testing.assert_allclose(read[1], [[1.0, 2.0, 3.0, -8.0]], rtol=1e-14)
    for back, true in zip(to_true(system, *read), (q, v), strict=True):
        np.testing.assert_allclose(back, true, rtol=1e-14)


@pytest.mark.slow
def test_derivatives_in_both_modes(recording):
    problems = (
        di.InverseDynamics.of(ROUGH, [recording]),
        di.Shooting.of(ROUGH, [recording], window=5),
    )

    @jax.jit
    def cost(x):
        system = FREE.system_at(x)
        return sum(jnp.sum(p.residual(system, p.own) ** 2) for p in problems)

    ahead, back = (jax.jit(f(cost))(FREE.start) for f in (jax.jacfwd, jax.grad))
    np.testing.assert_allclose(ahead, back, rtol=1e-10)
    for k in range(2):
        step = 1e-5 * jnp.eye(3)[k]
        off = (cost(FREE.start + step) - cost(FREE.start - step)) / 2e-5
        np.testing.assert_allclose(ahead[k], off, rtol=1e-6)


@pytest.mark.slow
def test_in_single_precision_and_in_simulations(recording):
    half = READ.astype(jnp.float32)
    problem = di.InverseDynamics.of(half, [recording])
    missing = problem.residual(half, problem.own)
    assert missing.dtype == jnp.float32
    np.testing.assert_allclose(missing, 0, atol=1e-5)
    how = {"dt": 0.02, "steps": 5}
    a, b = (dl.simulate(s, [0.6], [0.0], **how) for s in (READ, ARM))
    np.testing.assert_array_equal(a.q, b.q)


@pytest.mark.parametrize(
    ("joint", "numbers", "said"),
    [
        ("hing", {}, "no joint that moves by itself is named 'hing'; did you mean 'hinge'"),
        ("hinge", {"position_scale": 0.0}, "position_scale is 0.0; it must not be zero"),
        ("hinge", {"position_bias": np.nan}, "position_bias is nan; it must be finite"),
        ("hinge", {"position_bias": [0.0, 1.0]}, "position_bias has shape"),
    ],
)
def test_what_is_no_encoder_is_named(joint, numbers, said):
    with pytest.raises(dl.ModelError, match=said):
        di.with_sensors(ARM, di.Encoder(joint, **numbers))


def test_one_encoder_a_joint_and_none_in_urdf(tmp_path):
    with pytest.raises(dl.ModelError, match="has one already"):
        di.with_sensors(READ, di.Encoder("hinge"))
    ball = dl.chain([dl.Body(name="ball", joint=dl.Spherical(), mass=1.0, inertia=np.eye(3))])
    with pytest.raises(dl.ModelError, match="several degrees of freedom"):
        di.with_sensors(ball, di.Encoder(ball.joint_names[0]))
    with pytest.raises(dl.ModelError, match="no words for its sensors: Encoder"):
        dl.save(READ, tmp_path / "read.urdf")

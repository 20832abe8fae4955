"""Control of a frame: the error of a decoupled second-order system, the null space, errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import control as dc

ARM = dl.load("difflie/data/arm7.urdf")
Q = jnp.array([0.0, -0.6, 0.0, -2.2, 0.0, 1.7, 0.8])
V = jnp.array([0.3, -0.2, 0.4, 0.5, -0.6, 0.1, 0.2])
HAND = dl.Frame("payload", (0.0, 0.0, 0.1), (0.1, 0.2, 0.3))
STIFFNESS = jnp.array([20.0, 25.0, 30.0, 35.0, 40.0, 45.0])
CONTROL = dc.OperationalSpaceControl(HAND, STIFFNESS, damping=8.0, posture=Q + 0.3)


HINGE = dl.chain([dl.Body(name="link1", joint=dl.Revolute(), mass=1.0, inertia=np.eye(3))])


def pose(q):
    return dl.body_poses(ARM, q)[ARM.body_names.index("payload")] @ HAND.pose.to_array()


GOAL = pose(Q) @ dl.se3.exp(jnp.array([0.3, -0.5, 0.2, 0.05, 0.1, -0.08]))


def error(q, goal=GOAL):
    return dl.se3.log(dl.se3.inverse(pose(q)) @ goal)


def acceleration(tau):
    return dl.forward_dynamics(ARM, Q, V, tau + dl.passive_force(ARM, Q, V))


@pytest.mark.thorough
def test_the_error_is_a_decoupled_second_order_system():
    """Its second derivative along the motion, to a goal that stands and to one that turns."""

    @jax.jit
    def derivatives(twist, rate):
        a = acceleration(CONTROL(ARM, Q, V, GOAL, twist, rate))

        def e(s):
            goal = GOAL @ dl.se3.exp(s * twist + s**2 / 2 * rate)
            return error(Q + s * V + s**2 / 2 * a, goal)

        first = jax.jacfwd(e)
        return e(0.0), first(0.0), jax.jacfwd(first)(0.0)

    turning = jnp.array([0.5, -0.3, 0.2, 0.1, 0.4, -0.2])
    for twist, rate in ((0 * turning, 0 * turning), (turning, 2 * turning[::-1])):
        e, first, second = derivatives(twist, rate)
        np.testing.assert_allclose(second, -8 * first - STIFFNESS * e, atol=1e-9)


@pytest.mark.slow
def test_the_posture_does_not_disturb_the_frame():
    """Other postures change the motion, along the null space of the Jacobian, by what they ask."""
    far = dc.OperationalSpaceControl(
        HAND, STIFFNESS, 8.0, Q - 2.0, posture_stiffness=50.0, posture_damping=3.0
    )
    change = acceleration(far(ARM, Q, V, GOAL)) - acceleration(CONTROL(ARM, Q, V, GOAL))
    J = np.asarray(dl.body_jacobian(ARM, Q, "payload"))
    assert abs(change).max() > 1
    np.testing.assert_allclose(J @ change, 0, atol=1e-9)
    # The rest of what is asked for is in the range of M^-1 J'.
    asked = 50 * -2.0 * np.ones(7) - 3 * V - (0.3 - 2 * V)
    null = np.linalg.svd(J)[2][-1]
    np.testing.assert_allclose(
        null @ dl.mass_matrix(ARM, Q) @ change, null @ dl.mass_matrix(ARM, Q) @ asked, rtol=1e-9
    )


@pytest.mark.slow
def test_a_closed_loop_follows_the_exact_error():
    """From rest, the solution of e'' + 8 e' + 25 e = 0, and critical damping by default."""
    for control, law in (
        (
            dc.OperationalSpaceControl(HAND, 25.0, 8.0, posture=Q),
            lambda t: jnp.exp(-4 * t) * (jnp.cos(3 * t) + 4 / 3 * jnp.sin(3 * t)),
        ),
        (dc.OperationalSpaceControl(HAND, 25.0), lambda t: jnp.exp(-5 * t) * (1 + 5 * t)),
    ):
        run = dl.simulate(
            ARM,
            Q,
            0 * Q,
            dt=2e-3,
            steps=500,
            save_every=50,
            control=lambda t, q, v, control=control: control(ARM, q, v, GOAL),
        )
        exact = law(run.t)[:, None] * error(Q)
        np.testing.assert_allclose(jax.vmap(error)(run.q), exact, atol=1e-9)


@pytest.mark.slow
def test_derivatives_in_both_modes():
    """Of the torque with respect to gains, state and goal."""

    def weighed(x):
        control = dc.OperationalSpaceControl(HAND, x[0] * STIFFNESS, posture=Q)
        tau = control(ARM, Q + x[1] * V, x[2] * V, GOAL @ dl.se3.exp(x[3] * jnp.arange(6.0)))
        return jnp.cos(jnp.arange(7.0)) @ tau

    x = jnp.array([1.0, 0.1, 0.9, 0.02])
    forward, reverse = jax.jit(lambda x: (jax.jacfwd(weighed)(x), jax.grad(weighed)(x)))(x)
    difference = [(weighed(x + e) - weighed(x - e)) / 2e-5 for e in 1e-5 * np.eye(4)]
    np.testing.assert_allclose(reverse, forward, rtol=1e-9)
    np.testing.assert_allclose(forward, difference, rtol=1e-6)


@pytest.mark.slow
def test_single_precision_stays_single():
    q, v, goal = (a.astype("float32") for a in (Q, V, GOAL))
    tau = CONTROL(ARM.astype("float32"), q, v, goal)
    assert tau.dtype == "float32"
    np.testing.assert_allclose(tau, CONTROL(ARM, Q, V, GOAL), atol=1e-2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda: dc.OperationalSpaceControl(None, 1.0), "the world does not move; give a body"),
        (lambda: dc.OperationalSpaceControl("hand", [1.0, 2.0]), r"stiffness has shape \(2,\)"),
        (lambda: dc.OperationalSpaceControl("palm", 1.0)(ARM, Q, V, GOAL), "no body is named 'pa"),
        (lambda: CONTROL(ARM, Q, V, GOAL[:3]), r"goal has shape \(3, 4\), needed is \(4, 4\)"),
        (
            lambda: dc.OperationalSpaceControl("link1", 1.0)(HINGE, [0.0], [0.0], GOAL),
            "there are 1 degrees of freedom",
        ),
    ],
)
def test_bad_input_is_one_clear_error(change, words):
    with pytest.raises(ValueError, match=words):
        change()

"""What is printed of large objects fits a screen of 24 lines and 100 columns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pendulums import pendulum

import difflie as dl
from difflie import control as dc
from difflie import identify as di
from difflie import view as dv

ARM = dl.load("difflie/data/arm7.urdf")
Q, V = ARM.neutral(), jnp.zeros(7)
RUN = dl.simulate(ARM, Q, V, dt=1e-3, steps=3)
PARAMETERS = dl.Parameters(
    ARM, ["*/inertial", dl.Parameter("joint*/damping", bounds=(0.01, 2.0), start=0.1)]
)
PROBLEM = dc.Problem(
    ARM,
    Q,
    V,
    dt=0.01,
    steps=20,
    running=[dc.Effort(1e-2), lambda system, q, v, u, t: v],
    final=[dc.State(jnp.ones(7), 1.0)],
    limits=dc.Limits(u_lower=-1.0, u_upper=1.0),
    duration=(0.1, 1.0),
)
T = 0.01 * np.arange(5000)
LOG = di.Recording("log", T, *(np.zeros((5000, 7)),) * 4, {"imu": np.zeros((5000, 3))})


def excitation():
    arm = pendulum(0.5, "arm", name="hinge", lower=-1, upper=1, max_velocity=3.0)
    return di.excitation(dl.Parameters(arm, ["hinge/damping", "arm/mass"]), duration=5.0)


def fit():
    return di.fit(
        dl.Parameters(ARM, ["joint*/damping", "joint*/friction", "link*/mass"]),
        di.InverseDynamics.of(ARM, [wave()]),
    )


def wave():
    t = 0.02 * np.arange(200)
    q = 0.3 * np.sin(np.outer(t, 1 + 0.3 * np.arange(7)))
    v, a = np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0)
    tau = dl.inverse_dynamics(ARM, jnp.asarray(q[0]), jnp.asarray(v[0]), jnp.asarray(a[0]))
    return di.Recording("wave", t, q, v, a, np.tile(np.asarray(tau), (200, 1)))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: PARAMETERS, ["87 numbers", "link1/mass", "kg", "and 71 more numbers"]),
        (
            lambda: PROBLEM,
            ["20 steps of 0.01 s, of free duration", "7 controls", "limits: of u_lower, u_upper"],
        ),
        (lambda: LOG, ["5000 rows", "tau (7), imu (3)"]),
        (lambda: dl.Grid({"x": np.arange(1e4)}), ["10000 rows"]),
        (lambda: dl.Grid({"x": [1.0]}) * dl.Sobol({"y": dl.Uniform(0, 1)}, 8), ["Sobol"]),
        (lambda: RUN, ["Trajectory of 'arm7'"]),
        (lambda: RUN.result, ["completed: 3 steps"]),
        (RUN.error_estimate, ["of 4 saved rows: largest of q", "rad/s or m/s"]),
        (lambda: dv.scene(ARM, RUN), ["Scene of 'arm7': 9 bodies, 4 times from 0 to 0.003 s"]),
        (excitation, ["5 harmonics", "standard errors fell by", "largest rate"]),
        pytest.param(fit, ["Fit of arm7", "standard error"], marks=pytest.mark.slow),
    ],
)
def test_it_fits_a_screen(made, words):
    """And says what it is."""
    text = str(made())
    assert text == repr(made())
    assert text.count("\n") < 24 and max(map(len, text.splitlines())) <= 120, text
    for word in words:
        assert word in text


def test_masks_and_traced_objects_are_printed(capsys):
    """Whatever the leaves are: nothing that is printed may raise."""
    str(jax.tree.map(lambda a: True, PROBLEM))

    @jax.jit
    def traced(problem):
        str(problem)
        return problem.q0

    traced(PROBLEM)
    str(jax.tree.map(lambda a: jnp.stack((a, a)), PROBLEM))
    for made in (RUN.result, RUN.error_estimate()):
        repr(jax.tree.map(lambda a: True, made))
        repr(jax.tree.map(lambda a: jnp.stack((a, a)), made))
        jax.make_jaxpr(lambda made: (repr(made), 0)[1])(made)
    assert "joint1/damping  N m s/rad  0.01 to 2" in str(
        dl.Parameters(ARM, [dl.Parameter("joint1/damping", bounds=(0.01, 2.0))])
    )

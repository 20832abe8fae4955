"""The error of every method falls with its own power of the step, on two rigid-body motions."""

import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from difflie import integrators
from difflie.groups import SE3, SO3, Euclidean, Product
from difflie.integrators import tableaux

# (a) Free symmetric body: inertia diag(A, A, C), about its centre, kg m^2; rates in rad/s.

A, C = 1.0, 2.5
R0 = Rotation.from_rotvec([0.4, -0.7, 0.3]).as_matrix()
W0 = np.array([0.8, -0.5, 0.9])


def symmetric_body(t):
    """Attitude (3, 3) and body rates (3,) at t, in closed form.

    With s = (C - A) w3 / A the equations A w1' = (A - C) w2 w3, A w2' = (C - A) w3 w1, w3' = 0 turn
    (w1, w2) with the rate s, and w = R^T L / A - s e3 with the constant angular momentum L, so that
    R(t) = exp(t L / A) R0 exp(-t s e3).
    """
    spin = (C - A) * W0[2] / A
    L = R0 @ (np.array([A, A, C]) * W0)
    axis = np.array([0.0, 0.0, 1.0])
    R = Rotation.from_rotvec(t * L / A).as_matrix() @ R0
    return (
        R @ Rotation.from_rotvec(-t * spin * axis).as_matrix(),
        Rotation.from_rotvec(t * spin * axis).as_matrix() @ W0,
    )


def euler_equations(t, y):
    _, w = y
    inertia = jnp.array([A, A, C], w.dtype)
    return w, jnp.cross(inertia * w, w) / inertia


# (b) Body under gravity, a spring and a swaying force; V = (w, v) at a frame away from its centre.

MASS, CENTRE = 1.3, np.array([0.15, -0.1, 0.2])
INERTIA = np.array([[0.9, 0.05, -0.1], [0.05, 0.6, 0.08], [-0.1, 0.08, 1.1]])
STIFFNESS, HOOK, ANCHOR = 4.0, np.array([0.5, 0.3, -0.2]), np.array([0.3, -0.4, 0.8])
GRAVITY = np.array([0.0, 0.0, -3.0])
V0 = np.array([0.9, -0.6, 0.7, 0.3, 0.5, -0.4])
r0 = np.array([0.1, 0.2, -0.3])


def sway(t, xp=np):
    return xp.stack((0.5 * xp.cos(3.0 * t), 0.0 * t, 0.7 * xp.sin(2.0 * t)))


_LEVER = np.cross(np.eye(3), CENTRE)
SPATIAL_INERTIA = np.block(
    [[INERTIA - MASS * _LEVER @ _LEVER, MASS * _LEVER], [-MASS * _LEVER, MASS * np.eye(3)]]
)
INVERSE_INERTIA = np.linalg.inv(SPATIAL_INERTIA)


def sprung_body(t, y):
    """J dV/dt = ad_V^T J V + F, all in the body frame."""
    T, V = y
    R, r, w, v = T[:3, :3], T[:3, 3], V[:3], V[3:]
    pull = R.T @ (-STIFFNESS * (r + R @ HOOK - ANCHOR))
    push = R.T @ (MASS * GRAVITY + sway(t, jnp))
    n, p = jnp.split(SPATIAL_INERTIA @ V, 2)
    moment = jnp.cross(n, w) + jnp.cross(p, v) + jnp.cross(HOOK, pull) + jnp.cross(CENTRE, push)
    force = jnp.cross(p, w) + pull + push
    return V, INVERSE_INERTIA @ jnp.concatenate((moment, force))


@functools.cache
def sprung_body_at(t_end):
    """Pose (4, 4) and twist (6,) at the end, from momenta in the space frame about the centre."""
    w0, v0 = V0[:3], V0[3:]
    start = (R0, r0 + R0 @ CENTRE, MASS * R0 @ (v0 + np.cross(w0, CENTRE)), R0 @ INERTIA @ w0)

    def split(state):
        return state[:9].reshape(3, 3), state[9:12], state[12:15], state[15:]

    def rhs(t, state):
        R, x, p, L = split(state)
        w = R @ np.linalg.solve(INERTIA, R.T @ L)
        hook = x + R @ (HOOK - CENTRE)
        pull = -STIFFNESS * (hook - ANCHOR)
        force = MASS * GRAVITY + sway(t) + pull
        return np.concatenate(
            (np.cross(w, R.T).T.ravel(), p / MASS, force, np.cross(hook - x, pull))
        )

    end = solve_ivp(
        rhs,
        (0.0, t_end),
        np.concatenate([a.ravel() for a in start]),
        method="DOP853",
        rtol=1e-13,
        atol=1e-14,
    ).y[:, -1]
    R, x, p, L = split(end)
    w = np.linalg.solve(INERTIA, R.T @ L)
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, x - R @ CENTRE
    return T, np.concatenate((w, R.T @ p / MASS - np.cross(w, CENTRE)))


T0 = np.block([[R0, r0[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])
FIELD_METHODS = [m for m in integrators.METHODS if m.equations is integrators.VectorField]

PROBLEMS = {
    "symmetric": SimpleNamespace(
        manifold=Product((SO3(), Euclidean(3))),
        field=euler_equations,
        start=(jnp.array(R0), jnp.array(W0)),
        end=symmetric_body,
        time=2.0,
    ),
    "sprung": SimpleNamespace(
        manifold=Product((SE3(), Euclidean(6))),
        field=sprung_body,
        start=(jnp.array(T0), jnp.array(V0)),
        end=sprung_body_at,
        time=1.0,
    ),
}

# Numbers of steps, by order; the times of order 1 are an eighth of the others.
STEPS = {
    1: (2048, 4096, 8192, 16384),
    2: (512, 1024, 2048, 4096),
    3: (64, 128, 256, 512),
    4: (32, 64, 128, 256),
    5: (12, 24, 48, 96),
    6: (16, 20, 25, 31),
    8: (8, 10, 12, 15, 18),
}


def errors(method, name, time, steps, manifold=None):
    """Distance from the true end, for each number of steps."""
    p = PROBLEMS[name]
    manifold = manifold or p.manifold

    @jax.jit
    def run(n):
        h = time / n
        return jax.lax.fori_loop(
            0,
            n,
            lambda i, y: integrators.single_step(method, manifold, p.field, i * h, y, h),
            p.start,
        )

    def distance(y):
        return np.sqrt(
            sum(np.sum((np.asarray(a) - b) ** 2) for a, b in zip(y, p.end(time), strict=True))
        )

    return np.array([distance(run(n)) for n in steps])


def slope(error, steps):
    return -np.polyfit(np.log(steps), np.log(error), 1)[0]


def test_closed_form_of_the_symmetric_body():
    d = 1e-5
    for t in (0.0, 0.7, 2.0):
        (R, w), before, after = symmetric_body(t), symmetric_body(t - d), symmetric_body(t + d)
        rate, acceleration = ((b - a) / (2 * d) for a, b in zip(before, after, strict=True))
        np.testing.assert_allclose(R.T @ rate, np.cross(np.eye(3), w), atol=1e-9)
        inertia = np.diag([A, A, C])
        np.testing.assert_allclose(inertia @ acceleration, np.cross(inertia @ w, w), atol=1e-9)
    np.testing.assert_allclose(symmetric_body(0.0)[0], R0, atol=1e-15)
    np.testing.assert_allclose(symmetric_body(0.0)[1], W0, atol=1e-15)


FIXED_STEP = [m for m in FIELD_METHODS if not isinstance(m, integrators.EmbeddedMuntheKaas)]


@pytest.mark.slow(
    "ImplicitMidpoint-sprung",
    "GaussLegendre4-sprung",
    "GaussLegendre6-sprung",
    "GaussLegendre4-sprung",
    "GaussLegendre6-sprung",
)
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("method", FIXED_STEP, ids=lambda m: m.name)
def test_order(method, name):
    steps = STEPS[method.order]
    time = PROBLEMS[name].time * (0.125 if method.order == 1 else 1.0)
    error = errors(method, name, time, steps)
    assert np.all((error > 1e-11) & (error < 1e-4)), error
    assert abs(slope(error, steps) - method.order) < 0.15, error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "orders"),
    [
        # By the highest bracket that is kept; the third has the coefficient zero.
        (integrators.RKMK3, (2.2, 3, 3)),
        (integrators.RKMK4, (2, 3.3, 4)),
        (integrators.RKMK5, (2, 3, 5)),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_order_by_the_number_of_brackets(method, orders):
    # Fewer brackets than order - 2 cost the order, and as many keep it, but for vanishing terms.
    steps = STEPS[method().order]
    for brackets, order in enumerate(orders):
        error = errors(method(brackets=brackets), "sprung", 1.0, steps)
        kept = order == method().order
        assert abs(slope(error, steps) - order) < (0.15 if kept else 0.4), (brackets, error)


def test_these_problems_see_a_wrong_order_of_factors():
    right = tableaux.CF4
    full = [row + (0.0,) * (4 - len(row)) for row in right.beta]
    alpha = tuple(
        tuple(row + (0.0,) * (i - len(row)) for row in rows) for i, rows in enumerate(right.alpha)
    )
    wrong = integrators.CommutatorFreeTableau(alpha, tuple(reversed(full)), order=4)
    steps = STEPS[4]
    for name, p in PROBLEMS.items():
        error = errors(integrators.CommutatorFree(tableau=wrong), name, p.time, steps)
        assert slope(error, steps) < 2.2


class WrongSign(Product):
    def dexp_inv(self, theta, xi):
        return super().dexp_inv(jax.tree.map(jnp.negative, theta), xi)


def test_these_problems_see_a_wrong_sign_in_dexp_inv():
    steps = STEPS[4]
    for name, p in PROBLEMS.items():
        wrong = WrongSign(p.manifold.factors)
        error = errors(integrators.RKMK4(), name, p.time, steps, wrong)
        assert slope(error, steps) < 2.2

"""Mueller's eight local-global transition maps: against matrices, and under the integrators."""

from functools import cache
from math import pi

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from difflie.groups import Euclidean, Product, UnitQuaternion, quaternion, so3
from difflie.integrators import CF4, CG3, METHODS, RKMK4, VectorField, single_step
from difflie.reproduce.mueller.transition import TRANSITION_MAPS, RotationVector

each = pytest.mark.parametrize("name", TRANSITION_MAPS)


@pytest.fixture(autouse=True)
def strict_promotion():
    """No map may promote a precision or a rank silently, derivatives included."""
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        yield


def stored(name, x):
    """The absolute coordinates of the rotation vector x[:3] and the position x[3:]."""
    return jnp.concatenate((quaternion.exp(x[:3]), x[3:])) if name[0] == "1" else x


def rotation(q):
    return quaternion.to_matrix(q[:4]) if q.size == 7 else so3.exp(q[:3])


def on_se3(name):
    return name[1] in "ad"


def skew(w):
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def screw(X):
    return np.block([[skew(X[:3]), X[3:, None]], [np.zeros((1, 4))]])


def cayley(A):
    return np.linalg.solve(np.eye(len(A)) - A / 2, np.eye(len(A)) + A / 2)


def samples(lengths, seed):
    rng = np.random.default_rng(seed)
    axes, shifts = rng.normal(size=(2, len(lengths), 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    return np.concatenate((axes * np.array(lengths)[:, None], shifts), axis=1)


ANGLES = (0.0, 1e-160, 1e-12, 1e-4, 0.1, 1.0, 2.0, 3.1)
HERE = samples((0.3, 1.0, 0.0, pi - 1e-3, 3.0, 2.0, 0.7, 1.5), 1)
LOCAL = samples(ANGLES, 2)
RATE = samples(np.ones(8), 3)


@cache
def evaluated(name, single=False):
    """R, r, the coordinates of the way back, and the rates of R and r along dexp_inv(X, V)."""

    def one(x, X, V):
        m, q = TRANSITION_MAPS[name], stored(name, x)
        rate = m.dexp_inv(X, V)

        def moved(X):
            end = m.retract(q, X)
            return rotation(end), end[-3:], m.difference(q, end)

        (R, r, back), (dR, dr, _) = jax.jvp(moved, (X,), (rate,))
        return R, r, back, dR, dr, m.retract(q, X)

    dtype = np.float32 if single else np.float64
    f = jax.jit(jax.vmap(one))
    return [np.asarray(a) for a in f(*(a.astype(dtype) for a in (HERE, LOCAL, RATE)))]


@pytest.mark.slow
@each
def test_it_is_the_product_in_the_group(name):
    R, r, back, *_ = evaluated(name)
    psi = expm if name[1] in "ab" else cayley
    for i, (x, X) in enumerate(zip(HERE, LOCAL, strict=True)):
        if on_se3(name):
            end = np.block([[expm(skew(x[:3])), x[3:, None]], [0, 0, 0, 1]]) @ psi(screw(X))
            wanted = end[:3, :3], end[:3, 3]
        else:
            wanted = expm(skew(x[:3])) @ psi(skew(X[:3])), x[3:] + X[3:]
        np.testing.assert_allclose(R[i], wanted[0], rtol=0, atol=2e-14)
        np.testing.assert_allclose(r[i], wanted[1], rtol=0, atol=2e-14)
    np.testing.assert_allclose(back, LOCAL, rtol=0, atol=5e-14)


@pytest.mark.slow("2a")
@each
def test_dexp_inv_is_the_rate_of_the_local_coordinates(name):
    R, _, _, dR, dr, _ = evaluated(name)
    for i, V in enumerate(RATE):
        np.testing.assert_allclose(dR[i], R[i] @ skew(V[:3]), rtol=0, atol=2e-13)
        wanted = R[i] @ V[3:] if on_se3(name) else V[3:]
        np.testing.assert_allclose(dr[i], wanted, rtol=0, atol=2e-13)


@pytest.mark.slow
@each
def test_single_precision_is_close_to_double(name):
    for one, two in zip(evaluated(name, single=True)[:5], evaluated(name)[:5], strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, two, rtol=0, atol=2e-5)


@pytest.mark.slow
@pytest.mark.thorough("1a", "2a", "2b", "2c", "1b")
@each
def test_derivatives_at_rest(name):
    """At X = 0, from the identity and from elsewhere: finite, and those of differences."""
    m, V = TRANSITION_MAPS[name], RATE[0]

    def f(z):
        q, X = stored(name, z[:6]), z[6:]
        end = m.retract(q, X)
        return jnp.concatenate((end, m.difference(q, end), m.dexp_inv(X, jnp.asarray(V, z.dtype))))

    at = np.zeros((2, 12))
    at[1, :6] = HERE[1]
    forward, reverse = (np.asarray(jax.jit(jax.vmap(d(f)))(at)) for d in (jax.jacfwd, jax.jacrev))
    second = jax.jit(jax.vmap(jax.jacfwd(jax.jacrev(f))))(at)
    values, d = jax.jit(jax.vmap(jax.vmap(f))), 1e-3
    up, down, further, lower = values(
        np.stack([at[:, None] + s * d * np.eye(12) for s in (1, -1, 2, -2)]).reshape(4, 24, 12)
    ).reshape(4, 2, 12, -1)
    wanted = (8 * (up - down) - (further - lower)) / (12 * d)
    np.testing.assert_allclose(forward, wanted.swapaxes(1, 2), rtol=0, atol=1e-10)
    np.testing.assert_allclose(reverse, forward, rtol=0, atol=1e-13)
    assert np.all(np.isfinite(second))
    # X is a tangent: the way back is X, and its rate the velocity.
    for jacobian, z in zip(forward, at, strict=True):
        np.testing.assert_allclose(jacobian[-12:-6, 6:], np.eye(6), rtol=0, atol=1e-14)
        np.testing.assert_allclose(f(jnp.asarray(z))[-6:], V, rtol=0, atol=1e-15)


def test_rotation_vectors_pass_a_half_turn():
    m = RotationVector(UnitQuaternion())
    q = jnp.array([pi - 0.1, 0.0, 0.0])
    np.testing.assert_allclose(m.retract(q, jnp.array([0.1, 0.0, 0.0]))[0], pi, atol=1e-15)
    beyond = m.retract(q, jnp.array([0.3, 0.0, 0.0]))
    np.testing.assert_allclose(beyond, [0.2 - pi, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(m.difference(q, beyond), [0.3, 0.0, 0.0], atol=1e-15)
    for turns in (2 * pi, 7.0, 40.0):  # longer vectors are attitudes as well
        shorter = m.retract(jnp.array([0.0, turns, 0.0]), jnp.zeros(3))
        wanted = (turns + pi) % (2 * pi) - pi
        np.testing.assert_allclose(shorter, [0.0, wanted, 0.0], atol=1e-14)


# A body under gravity, a spring and a torque; its frame lies away from its centre.

MASS, CENTRE = 1.3, np.array([0.15, -0.1, 0.2])
INERTIA = np.array([[0.9, 0.05, -0.1], [0.05, 0.6, 0.08], [-0.1, 0.08, 1.1]])
STIFFNESS, HOOK, ANCHOR = 4.0, np.array([0.5, 0.3, -0.2]), np.array([0.3, -0.4, 0.8])
GRAVITY = np.array([0.0, 0.0, -3.0])
LEVER = skew(CENTRE)
J = np.block([[INERTIA - MASS * LEVER @ LEVER, MASS * LEVER], [-MASS * LEVER, MASS * np.eye(3)]])
J_INVERSE = np.linalg.inv(J)
X0, V0 = np.array([0.4, -0.7, 0.3, 0.1, 0.2, -0.3]), np.array([0.9, -0.6, 0.7, 0.3, 0.5, -0.4])
TIME = 2.0


def acceleration(R, r, w, v, xp=np):
    """dw/dt and dv/dt of the body twist (w, v)."""
    pull, weight = R.T @ (-STIFFNESS * (r + R @ HOOK - ANCHOR)), R.T @ (MASS * GRAVITY)
    n, p = xp.split(J @ xp.concatenate((w, v)), 2)
    moment = xp.cross(n, w) + xp.cross(p, v) + xp.cross(HOOK, pull) + xp.cross(CENTRE, weight)
    moment = moment + xp.stack((0.2, 0.0 * w[1], -0.3 * w[2]))
    return xp.split(J_INVERSE @ xp.concatenate((moment, xp.cross(p, w) + pull + weight)), 2)


def field(name):
    def rate(t, y):
        q, V = y
        R, r, w = rotation(q), q[-3:], V[:3]
        if on_se3(name):
            return V, jnp.concatenate(acceleration(R, r, w, V[3:], jnp))
        v = R.T @ V[3:]
        dw, dv = acceleration(R, r, w, v, jnp)
        return V, jnp.concatenate((dw, R @ (dv + jnp.cross(w, v))))

    return rate


@cache
def integrator(name, method=RKMK4()):
    """(steps, h) -> R, r, body twist, and the coordinates at the end."""
    manifold = Product((TRANSITION_MAPS[name], Euclidean(6)))
    q = stored(name, jnp.asarray(X0))
    V = jnp.asarray(V0) if on_se3(name) else jnp.concatenate((V0[:3], rotation(q) @ V0[3:]))

    @jax.jit
    def run(steps, h):
        def step(_, y):
            return single_step(method, manifold, field(name), 0.0, y, h)

        q_end, V_end = jax.lax.fori_loop(0, steps, step, (q, V))
        R = rotation(q_end)
        v = V_end[3:] if on_se3(name) else R.T @ V_end[3:]
        return R, q_end[-3:], V_end[:3], v, q_end

    return run


@cache
def exact():
    def rhs(t, s):
        R, r, w, v = s[:9].reshape(3, 3), s[9:12], s[12:15], s[15:]
        dw, dv = acceleration(R, r, w, v)
        return np.concatenate(((R @ skew(w)).ravel(), R @ v, dw, dv))

    start = np.concatenate((expm(skew(X0[:3])).ravel(), X0[3:], V0))
    s = solve_ivp(rhs, (0, TIME), start, "DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    return s[:9].reshape(3, 3), s[9:12], s[12:15], s[15:]


def error(found, wanted):
    return max(np.abs(a - b).max() for a, b in zip(found, wanted, strict=True))


STEPS = (128, 256, 512)


@pytest.mark.slow
@each
def test_the_classical_tableau_has_order_four(name):
    errors = np.array([error(integrator(name)(n, TIME / n)[:4], exact()) for n in STEPS])
    slope = np.polyfit(np.log(STEPS), np.log(errors), 1)[0]
    assert np.all((errors > 1e-11) & (errors < 1e-4)), errors
    assert abs(slope + 4) < 0.1, (slope, errors)


@pytest.mark.parametrize(
    ("method", "name", "order"), [(CF4(), "2a", 4), (CG3(), "2b", 3), (CF4(), "1d", 2)]
)
def test_products_of_exponentials_have_their_order_in_exponential_coordinates(method, name, order):
    errors = [error(integrator(name, method)(n, TIME / n)[:4], exact()) for n in STEPS]
    slope = np.polyfit(np.log(STEPS), np.log(errors), 1)[0]
    assert abs(slope + order) < 0.15, (slope, errors)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["1b", "2d"])  # the classical tableau takes all of them, above
def test_every_integrator_takes_it(name):
    manifold = Product((TRANSITION_MAPS[name], Euclidean(6)))
    y = stored(name, jnp.asarray(X0)), jnp.asarray(V0)
    for method in METHODS:
        if method.equations is VectorField:
            q, V = jax.eval_shape(
                lambda y, method=method: single_step(method, manifold, field(name), 0.0, y, 0.1), y
            )
            assert (q.shape, V.shape) == (y[0].shape, (6,)), method


@pytest.mark.slow("a", "d")
@pytest.mark.parametrize("letter", "abcd")
def test_the_attitude_may_be_stored_either_way(letter):
    one, two = (integrator(f"{number}{letter}")(64, TIME / 64)[:4] for number in "12")
    assert error(one, two) < 1e-13


@pytest.mark.slow("a")
@pytest.mark.parametrize("letter", "abcd")
def test_quaternions_keep_their_length(letter):
    q = integrator(f"1{letter}")(100_000, 1e-3)[-1]
    assert abs(float(jnp.linalg.norm(q[:4])) - 1) < 1e-13

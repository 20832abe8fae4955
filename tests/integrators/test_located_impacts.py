"""Derivatives through impacts that `Moreau` and `ConvexContact` locate within their steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

import difflie as dl
from difflie.constraints import PointOnPlane

G, DT = 9.81, 1e-3
LOCATED = dl.Moreau(located=True)


def falling(mass, inertia, points, friction, restitution):
    body = dl.Body(name="body", joint=dl.Free(), mass=mass, inertia=inertia)
    numbers = {"friction": friction, "restitution": restitution}
    feet = [PointOnPlane(dl.Frame("body", p), dl.Frame(), **numbers) for p in points]
    return dl.constrain(dl.tree([body]), *feet)


def heights(start, restitution, method=LOCATED):
    ball = falling(1.0, 0.4 * np.eye(3), [(0, 0, 0)], 0.0, restitution)
    q, v = ball.neutral().at[6].set(start[0]), jnp.zeros(6).at[5].set(start[1])
    run = dl.simulate(ball, q, v, dt=DT, steps=1400, save_every=50, method=method)
    return jnp.stack((run.q[:, 6], run.v[:, 5]), axis=1)


def bounced(start, restitution, t):
    """Height and speed of a point at the time t."""
    (z, speed), passed = start, 0.0
    while True:
        flight = (speed + np.sqrt(speed**2 + 2 * G * z)) / G
        if passed + flight > t:
            s = t - passed
            return np.array([z + speed * s - G * s * s / 2, speed - G * s])
        z, speed, passed = 0.0, -restitution * (speed - G * flight), passed + flight


def slopes_of_bounces(start, restitution, t):
    at = [bounced(start + s * d, restitution, t) for d in np.eye(2) for s in (1e-6, -1e-6)]
    return np.stack([at[0] - at[1], at[2] - at[3]], axis=1) / 2e-6


# The flight of the convex step is of order 1.
@pytest.mark.slow
@pytest.mark.thorough("method1*")
@pytest.mark.parametrize(
    ("method", "part"), [(LOCATED, 1e-5), (dl.ConvexContact(located=True), 5e-3)]
)
def test_of_elastic_and_lossy_bounces(method, part):
    """Guards both modes after one and two bounces: what starts higher may end lower."""
    start = np.array([1.0, -0.3])
    for mode in (jax.jacfwd, jax.jacrev):
        slopes = jax.jit(jax.vmap(mode(lambda x, e: heights(x, e, method)), (None, 0)))
        found = slopes(start, jnp.array([1.0, 0.7]))
        for k, restitution in enumerate((1.0, 0.7)):
            for t in (0.6, 0.95, 1.4):
                expected = slopes_of_bounces(start, restitution, t)
                atol = 0 if part == 1e-5 else part * np.abs(expected).max()
                assert_allclose(found[k, round(t / DT / 50)], expected, rtol=1e-5, atol=atol)


@pytest.mark.slow
@pytest.mark.parametrize("method", [dl.Moreau, dl.ConvexContact])
def test_the_result_tells_of_impacts(method):
    """Guards that nobody differentiates impacts unaware; rest on the ground is none."""
    ball = falling(1.0, 0.4 * np.eye(3), [(0, 0, 0)], 0.0, 0.5)

    def ended(z, method):
        q = ball.neutral().at[6].set(z)
        return dl.simulate(ball, q, np.zeros(6), dt=DT, steps=500, save_every=250, method=method)

    runs = jax.vmap(lambda z: ended(z, method()))(jnp.array([0.0, 0.5]))
    np.testing.assert_array_equal(runs.states.impacts[:, -1], [0, 1])
    said = "1 impact: derivatives by what changes the time of an impact are wrong"
    assert f"in 1 of 2, first in 1: {said}" in str(runs.result)
    rest, hit = (jax.tree.map(lambda a, i=i: a[i], runs.result) for i in (0, 1))
    assert "impact" not in str(rest) and said in str(hit)
    assert f"those of {method.__name__}(located=True) are right" in str(hit)
    assert "impact" not in str(ended(0.5, method(located=True)).result)


def landed(start, end, mu, e):
    """A rod with ends at +-0.5 m in a plane, x, z, angle and rates, after its only impact."""
    q, v = start[:3].copy(), start[3:].copy()

    def gap(t):
        return q[1] + v[1] * t - G * t * t / 2 - 0.5 * np.abs(np.sin(q[2] + v[2] * t))

    times = np.linspace(0, end, 2001)
    k = np.argmax(gap(times) < 0)
    low, high = times[k - 1], times[k]
    for _ in range(60):
        t = (low + high) / 2
        low, high = (t, high) if gap(t) > 0 else (low, t)
    q, v = q + low * v - [0, G * low**2 / 2, 0], v - [0, G * low, 0]
    side = -0.5 * np.sign(np.sin(q[2]))
    J = np.array([[0, 1, side * np.cos(q[2])], [1, 0, -side * np.sin(q[2])]])
    v = v + _impulse(J, np.diag([1, 1, 12.0]), v, mu, e)
    rest = end - low
    return np.concatenate((q + rest * v - [0, G * rest**2 / 2, 0], v - [0, G * rest, 0])), gap(end)


def _impulse(J, inverse_mass, v, mu, e):
    """How v jumps by an impact with rows (normal, tangent) that sticks, or slides as after it."""
    W, u = J @ inverse_mass @ J.T, J @ v
    p = np.linalg.solve(W, [-(1 + e) * u[0], -u[1]])
    if abs(p[1]) > mu * p[0]:
        for s in (-1, 1):
            p = -(1 + e) * u[0] / (W[0, 0] + mu * s * W[0, 1]) * np.array([1, mu * s])
            if (u + W @ p)[1] * s <= 0:
                break
    return inverse_mass @ J.T @ p


def rod(start, mu):
    body = falling(1.0, np.eye(3) / 12, [(-0.5, 0, 0), (0.5, 0, 0)], mu, 0.6)
    x, z, angle, *rates = start
    c, s, o = jnp.cos(angle), jnp.sin(angle), 0 * angle
    q = jnp.stack([jnp.cos(angle / 2), o, -jnp.sin(angle / 2), o, x, o, z])
    v = jnp.stack([o, -rates[2], o, c * rates[0] + s * rates[1], o, c * rates[1] - s * rates[0]])
    run = dl.simulate(body, q, v, dt=DT, steps=300, save_every=300, method=LOCATED)
    q, v = run.q[-1], run.v[-1]
    angle = -2 * jnp.arctan2(q[2], q[0])
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([q[4], q[6], angle, c * v[3] - s * v[5], s * v[3] + c * v[5], -v[1]])


@pytest.mark.slow
def test_of_a_rod_that_lands_with_friction():
    """Guards the pose of the impact, and what turns after it, sticking and sliding."""
    cases = [
        ((0, 0.75, 0.8, 0.63, -1, -6.61), 0.1),
        ((0, 0.75, -0.17, -1.17, -1, 5.22), 0.1),
        ((0, 0.75, -0.78, 0.84, -1, 3.49), 1.0),
        ((0, 0.75, -0.49, 1.96, -1, 5.4), 1.0),
    ]
    starts, mus = np.array([c[0] for c in cases]), np.array([c[1] for c in cases])
    state = jax.jit(jax.vmap(lambda y, mu: (rod(y, mu), jax.jacfwd(rod)(y, mu))))
    ends, slopes = state(starts, mus)
    for start, mu, end, slope in zip(starts, mus, ends, slopes, strict=True):
        expected, gap = landed(start, 0.3, mu, 0.6)
        assert gap < 0
        assert_allclose(end, expected, atol=3e-6)
        moved = [landed(start + s * d, 0.3, mu, 0.6)[0] for d in np.eye(6) for s in (1e-6, -1e-6)]
        columns = np.stack([a - b for a, b in zip(moved[::2], moved[1::2], strict=True)], axis=1)
        assert_allclose(slope, columns / 2e-6, atol=1e-5 * np.abs(columns / 2e-6).max())


@pytest.mark.slow
def test_of_an_arm_whose_tip_hits_the_ground():
    """Guards the mass matrix at the impact and the acceleration after it, of a tree: order 1."""
    numbers = {"joint": dl.Revolute(axis=(0, 1, 0)), "com": (0.25, 0, 0)}
    inertia = np.diag([0.001, 0.02, 0.02])
    upper = dl.Body(name="a", mass=1.0, inertia=inertia, position=(0, 0, 0.6), **numbers)
    lower = dl.Body(name="b", mass=0.7, inertia=inertia, position=(0.5, 0, 0), **numbers)
    arm = dl.chain([upper, lower])
    tip = PointOnPlane(dl.Frame("b", (0.5, 0, 0)), dl.Frame(), friction=0.4, restitution=0.5)
    system, end = dl.constrain(arm, tip), 0.35
    forward = jax.jit(lambda q, v: dl.forward_dynamics(arm, q, v, jnp.zeros(2)))

    def rate(t, y):
        return np.concatenate((y[2:], forward(y[:2], y[2:])))

    def height(t, y):
        return 0.6 - 0.5 * np.sin(y[0]) - 0.5 * np.sin(y[0] + y[1])

    height.terminal, height.direction = True, -1

    def reference(y):
        accuracy = {"rtol": 1e-12, "atol": 1e-13}
        first = solve_ivp(rate, (0, end), y, events=height, **accuracy)
        y = first.y[:, -1]
        one, both = np.array([y[0], y[0] + y[1]]), np.array([[1, 1], [0, 1]])
        J = np.stack([-0.5 * both @ np.cos(one), -0.5 * both @ np.sin(one)])
        mass = np.linalg.inv(dl.mass_matrix(arm, y[:2]))
        y[2:] += _impulse(J, mass, y[2:], 0.4, 0.5)
        return solve_ivp(rate, (first.t[-1], end), y, **accuracy).y[:, -1]

    start = np.array([0.3, 0.2, 1.0, 1.0])
    at = [reference(start + s * d) for d in np.eye(4) for s in (1e-5, -1e-5)]
    expected = np.stack([a - b for a, b in zip(at[::2], at[1::2], strict=True)], axis=1) / 2e-5

    def moved(y):
        steps = round(end / DT)
        run = dl.simulate(
            system, y[:2], y[2:], dt=DT, steps=steps, save_every=steps, method=LOCATED
        )
        return jnp.concatenate((run.q[-1], run.v[-1]))

    slope = jax.jit(jax.jacfwd(moved))(start)
    assert_allclose(slope, expected, atol=1e-2 * np.abs(expected).max())
    assert_allclose(jax.jit(jax.jacrev(moved))(start), slope, atol=1e-9)


@pytest.mark.thorough
def test_a_block_that_slides_to_rest_and_independent_impacts():
    """Guards what needs no location: friction that ends; and trees with times of their own."""
    corners = [(x, y, -0.05) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    block = falling(1.0, 0.01 * np.eye(3), corners, 0.5, 0.0)

    def path(speed):
        q, v = block.neutral().at[6].set(0.05), jnp.zeros(6).at[3].set(speed)
        return dl.simulate(block, q, v, dt=DT, steps=500, save_every=500, method=LOCATED).q[-1, 4]

    found, slope = jax.jit(jax.value_and_grad(path))(1.0)
    assert_allclose(found, 1 / (2 * 0.5 * G), rtol=5e-3)
    assert_allclose(slope, 1 / (0.5 * G), rtol=1e-2)

    # Both hit in the same step, at different times.
    bodies = [dl.Body(name=n, joint=dl.Free(), mass=1.0, inertia=np.eye(3)) for n in "ab"]
    feet = [PointOnPlane(dl.Frame(n), dl.Frame(), restitution=0.7) for n in "ab"]
    two = dl.constrain(dl.tree(bodies), *feet)

    def both(z):
        q = two.neutral().at[jnp.array([6, 13])].set(z)
        run = dl.simulate(two, q, jnp.zeros(12), dt=DT, steps=600, save_every=600, method=LOCATED)
        return run.q[-1, jnp.array([6, 13])]

    z = np.array([1.0, 1.001])
    expected = [slopes_of_bounces(np.array([x, 0.0]), 0.7, 0.6)[0, 0] for x in z]
    assert_allclose(jax.jit(jax.jacfwd(both))(jnp.asarray(z)), np.diag(expected), atol=1e-5)

"""The variational integrator of one rigid body: on two groups, with two maps."""

from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ellipj

from difflie.groups import (
    Cayley,
    Euclidean,
    FlatProduct,
    Pose,
    UnitQuaternion,
    quaternion,
    so3,
)
from difflie.integrators import LieVariational
from difflie.integrators.variational import GroupMechanics

METHOD = LieVariational()
GROUPS = {
    "SE3 exp": Pose(),
    "SE3 cay": Pose(Cayley()),
    "SO3 x R3 exp": FlatProduct((UnitQuaternion(), Euclidean(3))),
    "SO3 x R3 cay": FlatProduct((UnitQuaternion(Cayley()), Euclidean(3))),
}
MASS, COM = 2.0, np.array([0.1, -0.05, 0.2])
INERTIA = np.array([[0.3, 0.02, -0.01], [0.02, 0.4, 0.03], [-0.01, 0.03, 0.6]])
TIP, GRAVITY, STIFFNESS = np.array([0.3, 0.1, -0.2]), 9.81, 30.0
# The pose of the centre of mass, the body rate, and the velocity of the centre of mass.
ATTITUDE, PLACE = np.array([0.3, -0.8, 0.5]), np.array([0.4, 0.2, -0.3])
SPIN, SPEED = np.array([1.0, -2.0, 1.5]), np.array([0.3, 0.6, -0.2])


def on_pose(group):
    return isinstance(group, Pose)


def inertia(group):
    """About the frame's origin, which is the centre of mass but on SE(3)."""
    c = np.cross(COM, np.eye(3)).T if on_pose(group) else np.zeros((3, 3))
    upper = np.hstack((INERTIA - MASS * c @ c, MASS * c))
    return jnp.asarray(np.vstack((upper, np.hstack((-MASS * c, MASS * np.eye(3))))))


def start(group):
    q, r = quaternion.exp(ATTITUDE), so3.exp(ATTITUDE)
    if not on_pose(group):
        return jnp.concatenate((q, PLACE)), jnp.concatenate((SPIN, SPEED))
    origin = PLACE - r @ COM
    return jnp.concatenate((q, origin)), jnp.concatenate((SPIN, r.T @ SPEED - np.cross(SPIN, COM)))


def centre(group, q):
    """The rotation and the centre of mass at q."""
    r = quaternion.to_matrix(q[:4])
    return r, q[4:] + (r @ COM if on_pose(group) else 0)


def potential(group, q):
    """Weight, and a spring from a point beside the centre of mass to a point on the vertical."""
    r, x = centre(group, q)
    stretch = jnp.linalg.norm(x + r @ TIP - jnp.array([0, 0, 1.0])) - 0.8
    return MASS * GRAVITY * x[2] + STIFFNESS * stretch**2 / 2


def force(group, t, q):
    def moved(x):
        return potential(group, group.retract(q, x))

    return -jax.grad(moved)(jnp.zeros(6))


@partial(jax.jit, static_argnums=0)
def run(group, h, every, state, weight=1.0):
    """101 states, `every` steps apart, and whether all steps were solved."""

    def step(_, carried):
        state, t, so_far = carried
        pull = GroupMechanics(group, inertia(group), lambda t, q: weight * force(group, t, q))
        state, solved = METHOD.step(pull, t, state, h)
        return state, t + h, so_far & solved

    def steps(carried, _):
        carried = jax.lax.fori_loop(0, every, step, carried)
        return carried, carried[0]

    (_, _, solved), states = jax.lax.scan(steps, (state, 0.0, jnp.asarray(True)), length=100)
    return jax.tree.map(lambda a, b: jnp.concatenate((a[None], b)), state, states), solved


def begun(group, q=None, v=None):
    q0, v0 = start(group)
    y = q0 if q is None else q, v0 if v is None else v
    return METHOD.init(GroupMechanics(group, inertia(group)), 0.0, y, 0.0)


def momentum(group, state):
    """About the origin and linear, in space."""
    r, x = quaternion.to_matrix(state.q[:4]), state.q[4:]
    linear = r @ state.mu[3:] if on_pose(group) else state.mu[3:]
    return jnp.concatenate((r @ state.mu[:3] + jnp.cross(x, linear), linear))


@partial(jax.jit, static_argnums=0)
def seen(group, states):
    return jax.vmap(lambda state: (momentum(group, state), energy(group, state)))(states)


def energy(group, state):
    v = GroupMechanics(group, inertia(group)).velocity(state.mu)
    return state.mu @ v / 2, potential(group, state.q)


@pytest.mark.slow("SE3 exp", "SE3 cay", "SO3 x R3 exp")
@pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)
def test_a_step_is_that_of_the_discrete_lagrangian(group):
    """mu = -D1 L_d and mu' = D2 L_d, with V from the difference of the two points."""
    h = 0.05
    states, solved = run(group, h, 1, begun(group))

    @jax.jit
    def slopes(q0, q1):
        def action(d0, d1):
            a, b = group.retract(q0, d0), group.retract(q1, d1)
            rate = group.difference(a, b) / h
            wells = potential(group, a) + potential(group, b)
            return h * (rate @ inertia(group) @ rate - wells) / 2

        return jax.grad(action, (0, 1))(jnp.zeros(6), jnp.zeros(6))

    left, right = slopes(*states.q[:2])
    assert solved
    np.testing.assert_allclose(-left, states.mu[0], atol=2e-13)
    np.testing.assert_allclose(right, states.mu[1], atol=2e-13)


@pytest.mark.parametrize("name", ["SO3 x R3 exp", "SO3 x R3 cay"])
def test_the_closed_equations_of_a_rotation(name):
    """I w + h/2 w x I w + h^2/4 w (w . I w) = mu by the Cayley map; by exp, k_g w x (w x I w)."""
    h = 0.3
    states, _ = run(GROUPS[name], h, 1, begun(GROUPS[name]), 0.0)
    w, before = np.split(np.asarray(states.rate[1]), 2)[0], np.asarray(states.mu[0, :3])
    pull, half = INERTIA @ w, h * np.linalg.norm(w) / 2
    if name.endswith("cay"):
        last = h**2 / 4 * w * (w @ pull)
        turn = so3.cay(h * w / 2)
    else:
        factor = (1 - half / np.tan(half)) / (2 * half) ** 2
        last = h**2 * factor * np.cross(w, np.cross(w, pull))
        turn = so3.exp(h * w)
    np.testing.assert_allclose(pull + h / 2 * np.cross(w, pull) + last, before, atol=1e-14)
    np.testing.assert_allclose(turn.T @ before, states.mu[1, :3], atol=1e-14)
    np.testing.assert_allclose(states.q[1, 4:], PLACE + h * SPEED, atol=1e-15)


@pytest.mark.slow
@pytest.mark.thorough("SE3 exp")
@pytest.mark.parametrize("name", GROUPS)
def test_symplectic_to_rounding(name):
    """Dz^T J Dz = J in the canonical charts q = q* tau(x), p_x = dtau_{-x}^T mu."""
    group = GROUPS[name]
    q0, v = start(group)
    mu0 = inertia(group) @ v

    def to_body(x, px):
        return jax.vjp(lambda r: group.dexp_inv(x, r), px)[1](px)[0]

    @jax.jit
    def derivative():
        def step(z, end):
            q, mu = group.retract(q0, z[:6]), to_body(z[:6], z[6:])
            problem = GroupMechanics(group, inertia(group), partial(force, group))
            state = METHOD.init(problem, 0.0, (q, v), 0.05)._replace(mu=mu)
            after, solved = METHOD.step(problem, 0.0, state, 0.05)
            x = group.difference(end, after.q)
            # dtau^T is 2 - dtau^-T near the centre of the chart, to first order.
            return jnp.concatenate((x, 2 * after.mu - to_body(x, after.mu))), (after.q, solved)

        z = jnp.concatenate((jnp.zeros(6), mu0))
        end, solved = step(z, q0)[1]
        return jax.jacfwd(lambda z: step(z, end)[0])(z), solved

    d, solved = derivative()
    J = np.kron([[0, 1], [-1, 0]], np.eye(6))
    assert solved
    np.testing.assert_allclose(d.T @ J @ d, J, atol=3e-13)


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)
def test_momentum_and_energy_over_ten_thousand_steps(group):
    """All of the momentum of a free body; with weight and spring what the vertical has of it."""
    q, v = start(group)
    for weight, kept in ((0.0, slice(0, 6)), (1.0, slice(2, 3))):
        # A body that does not fly away keeps its digits.
        speed = v if weight else v.at[3:].add(-group.dexp_inv(0 * v, v)[3:] + resting(group))
        states, solved = run(group, 0.01, 100, begun(group, q, speed), weight)
        found, (kinetic, well) = seen(group, states)
        found = found[:, kept]
        total = np.asarray(kinetic + weight * well)
        error = np.abs(total - total[0])
        assert solved
        assert np.abs(found - found[0]).max() < 2e-13
        assert error.max() < 2e-2 * kinetic[0]
        assert error[75:].max() < 1.5 * error[:25].max()
        lengths = np.sum(np.asarray(states.q[:, :4]) ** 2, axis=1)
        assert np.abs(lengths - 1).max() < 1e-12


def resting(group):
    """The linear part of the velocity with the centre of mass at rest."""
    return -jnp.cross(SPIN, COM) if on_pose(group) else jnp.zeros(3)


def reference(duration):
    """Rotation matrix and centre of mass, by Newton and Euler."""

    def rate(t, y):
        r, x, w, u = y[:9].reshape(3, 3), y[9:12], y[12:15], y[15:]
        arm = x + r @ TIP - np.array([0, 0, 1.0])
        length = np.linalg.norm(arm)
        pull = -STIFFNESS * (length - 0.8) * arm / length
        moment = np.cross(TIP, r.T @ pull) - np.cross(w, INERTIA @ w)
        spin = np.cross(r, np.broadcast_to(w, (3, 3)))
        fall = pull / MASS - np.array([0, 0, GRAVITY])
        return np.concatenate((spin.ravel(), u, np.linalg.solve(INERTIA, moment), fall))

    y0 = np.concatenate((np.asarray(so3.exp(ATTITUDE)).ravel(), PLACE, SPIN, SPEED))
    y = solve_ivp(rate, (0, duration), y0, "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    return y[:9].reshape(3, 3), y[9:12]


def test_order_two():
    """Against Newton's and Euler's equations, with the smaller errors by exp."""
    r, x = reference(0.5)
    errors = {}
    for name, group in GROUPS.items():
        ends = [run(group, 5e-3 / n, n, begun(group))[0].q[-1] for n in (1, 2, 4)]
        found = [centre(group, q) for q in ends]
        errors[name] = [max(np.abs(a - r).max(), np.abs(b - x).max()) for a, b in found]
        ratios = [coarse / fine for coarse, fine in pairwise(errors[name])]
        np.testing.assert_allclose(np.log2(ratios), 2, atol=0.1)
    assert errors["SO3 x R3 exp"][-1] < errors["SO3 x R3 cay"][-1]


@pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)
def test_forth_and_back(group):
    there, _ = run(group, 0.02, 1, begun(group))
    back, solved = run(group, -0.02, 1, jax.tree.map(lambda a: a[-1], there))
    assert solved
    np.testing.assert_allclose(back.q[::-1], there.q, atol=1e-13)
    np.testing.assert_allclose(back.mu[::-1], there.mu, atol=1e-12)


@pytest.mark.parametrize("group", [UnitQuaternion(), UnitQuaternion(Cayley())], ids=["exp", "cay"])
def test_a_free_rotation_in_closed_form(group):
    """Jacobi's elliptic functions, to second order; a principal axis and a sphere."""
    i1, i2, i3 = moments = np.array([0.2, 0.35, 0.5])
    w0 = np.array([1.2, 0.0, 2.0])  # of 2 T I_2 < L^2: about the third axis
    twice, square = np.sum(moments * w0**2), np.sum((moments * w0) ** 2)
    rate = np.sqrt((i3 - i2) * (square - twice * i1) / (i1 * i2 * i3))
    parameter = (i2 - i1) * (twice * i3 - square) / ((i3 - i2) * (square - twice * i1))
    t = np.linspace(0, 3, 7)
    sn, cn, dn, _ = ellipj(rate * t, parameter)
    second = np.sqrt((twice * i3 - square) / (i2 * (i3 - i2)))
    exact = np.stack((w0[0] * cn, second * sn, w0[2] * dn), axis=1)

    @partial(jax.jit, static_argnums=0)
    def rates(steps, moments, w0):
        problem, h = GroupMechanics(group, jnp.diag(moments)), 3 / steps

        def step(state, _):
            state, solved = METHOD.step(problem, 0.0, state, h)
            return state, (state, solved)

        first = METHOD.init(problem, 0.0, (jnp.array([1.0, 0, 0, 0]), w0), h)
        _, (states, solved) = jax.lax.scan(step, first, length=steps)
        return states, jnp.concatenate((first.mu[None], states.mu)) / moments, solved

    errors = []
    for steps in (120, 240):
        _, found, solved = rates(steps, moments, w0)
        assert jnp.all(solved)
        errors.append(np.abs(found[:: steps // 6] - exact).max())
    assert errors[1] < 4e-3 and 3.9 < errors[0] / errors[1] < 4.1
    for i, w in ((moments, np.array([0, 2.0, 0])), (np.full(3, 0.3), w0)):
        states, found, _ = rates(120, jnp.asarray(i), jnp.asarray(w))
        np.testing.assert_allclose(found, np.broadcast_to(w, found.shape), atol=1e-13)
        if group == UnitQuaternion():
            turn = quaternion.to_matrix(states.q[-1])
            np.testing.assert_allclose(turn, so3.exp(3 * w), atol=1e-13)


@pytest.mark.slow
def test_gradients():
    """Of a heavy top: both modes against central differences, in all there is, and the step."""
    group, rng = UnitQuaternion(Cayley()), np.random.default_rng(1)
    q0, v0, weight = quaternion.exp(ATTITUDE), SPIN, rng.normal(size=7)

    def value(x):
        matrix, h = INERTIA + jnp.diag(x[6:9]), 0.02 + x[12]

        def weigh(t, q):
            down = quaternion.to_matrix(q).T @ jnp.array([0, 0, -GRAVITY])
            return jnp.cross(COM + x[9:12], down)

        def step(state, _):
            return METHOD.step(problem, 0.0, state, h)

        problem = GroupMechanics(group, matrix, weigh)
        first = METHOD.init(problem, 0.0, (group.retract(q0, x[:3]), v0 + x[3:6]), h)
        last, _ = jax.lax.scan(step, first, length=6)
        return weight @ jnp.concatenate((last.q, last.mu))

    x, e, way = jnp.zeros(13), 1e-5, jnp.asarray(rng.normal(size=13))
    both = jax.jit(jax.value_and_grad(value))
    _, reverse = both(x)
    difference = [(both(e * d)[0] - both(-e * d)[0]) / (2 * e) for d in jnp.eye(13)]
    np.testing.assert_allclose(reverse, jnp.stack(difference), rtol=1e-6, atol=1e-8)
    _, forward = jax.jit(lambda x: jax.jvp(value, (x,), (way,)))(x)
    np.testing.assert_allclose(forward, reverse @ way, rtol=1e-10)


def test_single_precision_and_a_body_at_rest():
    group = GROUPS["SE3 exp"]
    q, _ = (a.astype(jnp.float32) for a in start(group))
    still, matrix = jnp.zeros(6, jnp.float32), inertia(group).astype(jnp.float32)
    state = METHOD.init(GroupMechanics(group, matrix), 0.0, (q, still), 0.1)

    @jax.jit
    def step(state, still):
        return METHOD.step(GroupMechanics(group, matrix, lambda t, q: still), 0.0, state, 0.1)

    after, solved = step(state, still)
    assert solved and after.q.dtype == after.mu.dtype == jnp.float32
    np.testing.assert_allclose(after.q, q, atol=1e-7)
    pushed, solved = step(state, still.at[5].set(3.0))
    assert solved and float(pushed.mu[5]) == pytest.approx(0.3, rel=0.05)
    # A turn by more than the map reaches.
    wild = state._replace(mu=state.mu.at[:3].set(jnp.float32(3e6)))
    lost, solved = step(wild, still)
    assert not solved
    np.testing.assert_array_equal(lost.q, q)

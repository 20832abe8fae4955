"""Generalised-alpha: order from the first step, constraints, dissipation and derivatives."""

import equinox as eqx
import heavy_top
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from heavy_top import HeavyTop, errors, run

import difflie as dl
from difflie.constraints.motion import Balance
from difflie.groups import Euclidean, FlatProduct
from difflie.integrators import DescriptorSystem


class Free(DescriptorSystem):
    """a = force(v) - stiffness q on a line."""

    stiffness: float
    square: float = 0.0

    @property
    def manifold(self):
        return FlatProduct((Euclidean(1),))

    @property
    def holonomic(self):
        return np.zeros(0, dtype=bool)

    def matrices(self, q):
        return jnp.ones((1, 1), q.dtype), jnp.zeros((0, 1), q.dtype)

    def equations(self, t, q, v, a):
        return a + self.stiffness * q - self.square * (1 + v**2), q[:0], jnp.zeros((0, 1), q.dtype)

    def acceleration(self, t, q, v):
        return self.square * (1 + v**2) - self.stiffness * q, q[:0]

    def normal(self, q, rate):
        return jnp.zeros_like(q)


class Sleigh(DescriptorSystem):
    """A knife edge on a slope, q = (x, y, angle), that slips only along itself; G = 1.

    With the angle w t it runs on a cycloid, x = sin^2(w t) / (2 w^2), and lambda = 2 sin(w t).
    """

    @property
    def manifold(self):
        return FlatProduct((Euclidean(3),))

    @property
    def holonomic(self):
        return np.zeros(1, dtype=bool)

    def matrices(self, q):
        return jnp.eye(3), jnp.stack((-jnp.sin(q[2]), jnp.cos(q[2]), 0.0))[None]

    def equations(self, t, q, v, a):
        return a - jnp.array([1.0, 0, 0]), q[:0], self.matrices(q)[1]

    def acceleration(self, t, q, v):
        (_, A), c = self.matrices(q), -v[2] * (jnp.cos(q[2]) * v[0] + jnp.sin(q[2]) * v[1])
        push = -c - A[0, 0]
        return jnp.array([1.0, 0, 0]) + A[0] * push, push[None]

    def normal(self, q, rate):
        return self.matrices(q)[1][0] * rate[0]


class Parallelogram(DescriptorSystem):
    """Cranks of 0.5 m and a rod of 1 m, by their angles q; in a line at q = 0 g has rank 1."""

    mass: jax.Array

    @property
    def manifold(self):
        return FlatProduct((Euclidean(3),))

    @property
    def holonomic(self):
        return np.ones(2, dtype=bool)

    def matrices(self, q):
        lengths = jnp.asarray([0.5, 1.0, -0.5])
        return jnp.diag(jnp.stack((self.mass, 2.0, 1.5))), lengths * jnp.stack(
            (-jnp.sin(q), jnp.cos(q))
        )

    def equations(self, t, q, v, a):
        (M, A), lengths = self.matrices(q), jnp.asarray([0.5, 1.0, -0.5])
        g = jnp.stack((jnp.cos(q) @ lengths - 1, jnp.sin(q) @ lengths))
        return M @ a + 3 * jnp.sin(q), g, A

    def acceleration(self, t, q, v):
        M, A = self.matrices(q)
        bias = jax.jvp(lambda q: self.matrices(q)[1], (q,), (v,))[1] @ v
        a, nu = Balance(M, A).solve(-3 * jnp.sin(q), -bias)
        return a, -nu

    def normal(self, q, rate):
        return Balance(*self.matrices(q)).solve(jnp.zeros_like(q), rate)[0]


# The distance from the line at the start, of which 0.1 rad are left behind in ten steps; the value
# and its derivatives by the mass and the speed, of the same equations in 40 digits.
NEARLY_FLAT = [
    (2, -0.12, 1.04956700685793685, -0.000533622377021, 0.391405458699),
    (2, -0.11, 1.06858187387147413, -0.000462369102816, 0.390844512107),
    (2, -0.105, 1.07806804700661291, -0.000426768917573, 0.39055692936),
    (3, -0.105, 1.07806804700661291, -0.000426768917573, 0.39055692936),
]


def near_a_line(index, start):
    method = dl.GeneralizedAlpha(index=index)

    def reached(x):
        system = Parallelogram(x[0])
        q, v = jnp.stack((start, 0.0, start)), jnp.asarray([2.0, 0.0, 2.0]) * x[1]
        state = method.init(system, jnp.asarray(0.0), (q, v), 5e-3)
        times = 5e-3 * jnp.arange(10)
        state, solved = jax.lax.scan(lambda s, t: method.step(system, t, s, 5e-3), state, times)
        value = jnp.sum(jnp.sin(state.q + 0.3)) + 0.1 * state.v[0]
        return value, (value, jnp.all(solved))

    return jax.jacfwd(reached, has_aux=True)(jnp.ones(2))


NEAR_A_LINE = jax.jit(near_a_line, static_argnums=0)


@pytest.mark.slow
@pytest.mark.parametrize(("index", "start", "value", "by_mass", "by_speed"), NEARLY_FLAT)
def test_steps_are_solved_and_differentiated_near_a_singular_configuration(
    index, start, value, by_mass, by_speed
):
    """Also where a step is as long as the way that is left, and corrections change velocities."""
    slopes, (found, solved) = NEAR_A_LINE(index, start)
    assert solved
    assert float(found) == pytest.approx(value, abs=1e-11)
    np.testing.assert_allclose(slopes, (by_mass, by_speed), rtol=3e-9)


PRINTED = {  # err(2.5e-4) of pose, velocity and multipliers for rho = 0.8
    (3, False): (2.9e-5, 1.3e-3, 1.3e-1),
    (2, False): (6.1e-6, 1.1e-4, 3.4e-2),
    (3, True): (4.0e-4, 7.8e-3, 5.9e-1),
    (2, True): (4.0e-4, 7.8e-3, 5.9e-1),
}


@pytest.mark.slow
@pytest.mark.thorough("3-*")
@pytest.mark.parametrize(("index", "se3"), PRINTED)
def test_errors_of_the_heavy_top(index, se3):
    found, orders, position, velocity = errors(dl.GeneralizedAlpha(index=index), se3)
    np.testing.assert_allclose(found, PRINTED[index, se3], rtol=0.07)
    np.testing.assert_allclose(orders, 2, atol=0.02)
    assert position < 1e-15
    # On SE(3) the equations of a fixed pivot hold for velocities as soon as they do for positions.
    assert velocity < (1e-13 if index == 2 else 1e-10 if se3 else 2e-3)


@pytest.mark.slow
def test_without_the_corrections_of_the_start_multipliers_are_of_first_order():
    found, orders, _, _ = errors(
        dl.GeneralizedAlpha(), False, lambda s: s._replace(memory=(s.acceleration, s.memory[1]))
    )
    assert found[2] == pytest.approx(1.6e-1, rel=0.07)
    np.testing.assert_allclose(orders, (2, 2, 1), atol=0.05)
    exact = HeavyTop(False).start[1]
    found, orders, _, _ = errors(dl.GeneralizedAlpha(index=3), False, lambda s: s._replace(v=exact))
    np.testing.assert_allclose(found, (2.9e-5, 2.0e-3, 1.4e1), rtol=0.1)
    np.testing.assert_allclose(orders, (2, 2, 1), atol=0.05)


@pytest.mark.slow
@pytest.mark.thorough("0.5", "0.9")
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 1.0])
def test_every_rho_has_second_order(rho):
    found, orders, _, _ = errors(dl.GeneralizedAlpha(index=3, rho=rho), False)
    printed = {0.0: (9.4e-5, 3.1e-1), 0.5: (3.5e-5, 1.4e-1), 0.9: (2.8e-5, 1.3e-1)}
    np.testing.assert_allclose(found[[0, 2]], printed.get(rho, (2.8e-5, 4.5e-1)), rtol=0.07)
    np.testing.assert_allclose(orders, 2, atol=0.03)


@pytest.mark.parametrize("rho", [0.3, 0.6, 0.9])
def test_what_the_step_does_not_resolve_dies_out_as_rho_says(rho):
    method, system = dl.GeneralizedAlpha(rho=rho), Free(1e12)
    state = method.init(system, jnp.zeros(()), (jnp.ones(1), jnp.zeros(1)), 1e-2)
    state = state._replace(memory=(state.acceleration, jnp.zeros(1)))
    states, ok = run(method, system, state, 1e-2, 200)
    size = np.abs(states.q[:, 0])
    # A double eigenvalue: n rho^n.
    assert ok and (size[199] / size[99] / 2) ** (1 / 100) == pytest.approx(rho, rel=0.01)


@pytest.mark.slow
def test_equations_of_velocities_alone():
    method, w = dl.GeneralizedAlpha(), 2.0
    start = jnp.zeros(3), jnp.asarray([0.0, 0.0, w])
    off = []
    for steps in (100, 200):
        h = 1 / steps
        state = method.init(Sleigh(), jnp.zeros(()), start, h)
        states, ok = jax.jit(lambda s, h, n=steps: run(method, Sleigh(), s, h, n))(state, h)
        t = h * np.arange(1, steps + 1)
        _, A = jax.vmap(Sleigh().matrices)(states.q)
        assert ok and float(jnp.abs(jnp.einsum("kij,kj->ki", A, states.v)).max()) < 1e-14
        x = np.sin(w * t) ** 2 / (2 * w**2)
        off.append(
            (
                np.abs(states.q[:, 0] - x).max(),
                np.abs(states.multipliers[:, 0] - 2 * np.sin(w * t)).max(),
            )
        )
    position, multipliers = np.log2(np.divide(*off))
    # Here the error of second order of the multiplier vanishes.
    assert position == pytest.approx(2, abs=0.05) and multipliers > 1.95


def test_a_step_without_solution_is_reported_and_stays():
    # v' = h (1 + v'^2) has no solution for h > 1/2.
    method, system = dl.GeneralizedAlpha(rho=0.0), Free(0.0, 1.0)
    state = method.init(system, jnp.zeros(()), (jnp.zeros(1), jnp.zeros(1)), 2.0)
    after, found = jax.jit(lambda s: method.step(system, jnp.zeros(()), s, 2.0))(state)
    assert not found
    for a, b in zip(jax.tree.leaves(after), jax.tree.leaves(state), strict=True):
        np.testing.assert_array_equal(a, b)


def moved(method, mass, height, spin):
    """Where a top is after 20 steps, and what holds it there."""
    top = HeavyTop(True, mass, jnp.stack((0.0, height, 0.1)), jnp.stack((0.0, spin, -4.6)))
    state = method.init(top, jnp.zeros(()), top.start, 1e-3)
    states, _ = run(method, top, state, 1e-3, 20)
    last = jax.tree.map(lambda a: a[-1], states)
    return jnp.sum(jnp.sin(last.q)) + 1e-2 * jnp.sum(last.v) + 1e-4 * jnp.sum(last.multipliers)


@pytest.mark.slow
@pytest.mark.thorough("3")
@pytest.mark.parametrize("index", [2, 3])
def test_derivatives_in_both_modes(index):
    at = 15.0, 1.0, 150.0
    f = jax.jit(lambda *x: moved(dl.GeneralizedAlpha(index=index), *x))
    forward = jax.jit(jax.jacfwd(f, (0, 1, 2)))(*at)
    backward = jax.jit(jax.grad(f, (0, 1, 2)))(*at)
    np.testing.assert_allclose(forward, backward, rtol=1e-8)
    for k, x in enumerate(at):
        up, down = (f(*at[:k], x * (1 + d), *at[k + 1 :]) for d in (1e-4, -1e-4))
        assert float(forward[k]) == pytest.approx(float(up - down) / (2e-4 * x), rel=1e-6)


@pytest.mark.slow
def test_single_precision():
    method = dl.GeneralizedAlpha()
    top = jax.tree.map(lambda a: a.astype(jnp.float32), HeavyTop(True))
    # The constants of the problem are not leaves.
    with pytest.MonkeyPatch.context() as patch:
        for name in ("INERTIA", "GRAVITY"):
            patch.setattr(heavy_top, name, getattr(heavy_top, name).astype(jnp.float32))
        h = jnp.asarray(1e-3, jnp.float32)
        state = method.init(top, 0 * h, top.start, h)
        states, ok = run(method, top, state, h, 100)
    assert ok and all(a.dtype == jnp.float32 for a in jax.tree.leaves(states))
    exact, _, multipliers = heavy_top.reference(np.array([0.0, 0.1]), True)
    assert np.abs(states.q[-1] - exact[-1]).max() < 2e-2
    assert np.abs(states.multipliers[-1] - multipliers[-1]).max() < 50


def test_settings_are_checked():
    with pytest.raises(ValueError, match=r"rho is 1\.5"):
        dl.GeneralizedAlpha(rho=1.5)
    with pytest.raises(ValueError, match="index is 1"):
        dl.GeneralizedAlpha(index=1)
    assert eqx.tree_equal(dl.integrators.by_name("GeneralizedAlpha"), dl.GeneralizedAlpha())

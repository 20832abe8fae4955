"""Implicit methods: symmetry, invariants, what happens to a step that is too large, derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.groups import SE3, SO3, Euclidean, FlatProduct, Pose, Product, UnitQuaternion
from difflie.integrators import VectorField, by_name, single_step
from difflie.integrators.munthe_kaas import dexp_inv_coefficients, truncated_dexp_inv

GAUSS = ("ImplicitMidpoint", "GaussLegendre4", "GaussLegendre6")
SYMMETRIC = (*GAUSS, "StormerVerlet")
POSES = Product((Pose(), Euclidean(6)))


def swaying(t, y):
    """A body on a spring in a fluid that sways; y = (pose (7,), twist (6,)), no units."""
    pose, twist = y
    w, v = twist[:3], twist[3:]
    inertia = jnp.array([1.0, 2.0, 2.5], twist.dtype)
    turn = (jnp.cross(inertia * w, w) + jnp.sin(3 * t) * pose[1:4]) / inertia
    up = dl.quaternion.to_matrix(pose[:4]).T @ (jnp.cos(t) - 3 * pose[4:])
    return twist, jnp.concatenate((turn, up - jnp.cross(w, v))) - 0.1 * twist


@functools.partial(jax.jit, static_argnums=(0, 1))
def states(method, field, y, t, h, n):
    """The state after n steps from y at t, and whether all were solved."""

    def body(i, state):
        state, solved = state
        state, now = method.step(problem, t + i * h, state, h)
        return state, solved & now

    problem = VectorField(POSES, field)
    start = method.init(problem, t, y, h), jnp.asarray(True)
    state, solved = jax.lax.fori_loop(0, n, body, start)
    return state.y, solved


POSE = np.array([0.8, 0.3, -0.4, 0.2, 0.5, -0.2, 0.3])
POSE[:4] /= np.linalg.norm(POSE[:4])
BODY_START = jnp.asarray(POSE), jnp.array([0.5, -0.8, 0.6, 0.3, 0.2, -0.4])


@pytest.mark.slow
@pytest.mark.parametrize("name", SYMMETRIC)
def test_forth_and_back_is_where_it_began(name):
    y, solved = states(by_name(name), swaying, BODY_START, 0.2, 0.05, 100)
    back, also = states(by_name(name), swaying, y, 0.2 + 100 * 0.05, -0.05, 100)
    assert solved and also
    assert max(float(jnp.abs(a - b).max()) for a, b in zip(y, BODY_START, strict=True)) > 0.1
    for a, b in zip(back, BODY_START, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-13)


def free_body(t, y):
    _, twist = y
    w = twist[:3]
    inertia = jnp.array([1.0, 2.0, 2.5], w.dtype)
    return twist, jnp.concatenate((jnp.cross(inertia * w, w) / inertia, -jnp.cross(w, twist[3:])))


@pytest.mark.parametrize("name", GAUSS)
def test_quadratic_invariants_of_a_free_body(name):
    (_, twist), solved = states(by_name(name), free_body, BODY_START, 0.0, 0.02, 2000)
    assert solved
    inertia = np.array([1.0, 2.0, 2.5])

    def invariants(twist):
        w = np.asarray(twist[:3])
        return w @ (inertia * w), np.linalg.norm(inertia * w), np.linalg.norm(twist[3:])

    before = invariants(BODY_START[1])
    np.testing.assert_allclose(invariants(twist), before, rtol=3e-14)
    assert np.abs(twist - BODY_START[1]).max() > 0.1


def test_stormer_verlet_on_a_separable_system_is_explicit_and_symplectic():
    method = dl.StormerVerlet()
    line = Product((Euclidean(2), Euclidean(2)))
    evaluations = []

    def step(x):
        def field(t, y):
            jax.debug.callback(lambda: evaluations.append(1))
            return y[1], -jnp.sin(y[0]) - 0.3 * y[0][::-1]

        return jnp.concatenate(single_step(method, line, field, 0.0, (x[:2], x[2:]), 0.3))

    x = jnp.array([0.4, -1.0, 0.7, 0.2])
    q, v = np.split(np.asarray(x), 2)
    u = v + 0.15 * (-np.sin(q) - 0.3 * q[::-1])
    q = q + 0.3 * u
    v = u + 0.15 * (-np.sin(q) - 0.3 * q[::-1])
    np.testing.assert_allclose(jax.jit(step)(x), np.concatenate((q, v)), atol=1e-15)
    jax.effects_barrier()
    # The first kick, the same again to see that it does not change, and the second.
    assert len(evaluations) == 3
    derivative = np.asarray(jax.jit(jax.jacfwd(step))(x))
    unit = np.kron([[0, 1], [-1, 0]], np.eye(2))
    np.testing.assert_allclose(derivative.T @ unit @ derivative, unit, atol=1e-14)


def arm():
    """A spherical and a revolute joint."""
    inertia = np.diag([0.02, 0.03, 0.01])
    turning = dl.Revolute(axis=(0.0, 1.0, 1.0), damping=0.05, friction=0.02)
    return dl.chain(
        [
            dl.Body(name="a", joint=dl.Spherical(), mass=1.0, com=(0, 0, -0.3), inertia=inertia),
            dl.Body(
                name="b",
                joint=turning,
                position=(0, 0, -0.6),
                mass=0.7,
                com=(0.1, 0, -0.2),
                inertia=inertia / 2,
            ),
        ]
    )


ARM = arm()
Q0 = dl.integrate(ARM, ARM.neutral(), jnp.array([0.5, -0.3, 0.4, 0.6]))


@pytest.mark.slow
@pytest.mark.thorough("StormerVerlet", "GaussLegendre4")
@pytest.mark.parametrize("name", ["ImplicitMidpoint", "GaussLegendre4", "StormerVerlet"])
def test_gradients_through_a_simulation(name):
    def end(system, q, v, dt, push):
        control = jnp.broadcast_to(push, (6, 4))
        run = dl.simulate(system, q, v, dt=dt, steps=6, save_every=6, method=name, control=control)
        return run.q[-1] @ jnp.linspace(-1, 1, 5) + run.v[-1] @ jnp.linspace(0.5, -0.3, 4)

    def along(x, stiff, v):
        """x: scale of the masses, of the damping, changes of q0 and v0, the step, a force."""
        system = ARM.replace(
            mass=ARM.bodies.mass * (1 + x[0]),
            damping=jnp.zeros(4).at[3].set(stiff * (1 + x[1])),
        )
        q = dl.integrate(ARM, Q0, x[2] * jnp.array([0.3, 0.1, -0.2, 0.4]))
        v = v + x[3] * jnp.array([0.2, -0.5, 0.4, 0.1])
        return end(system, q, v, 0.02 * (1 + x[4]), x[5] * jnp.array([0.3, 0.1, 0.2, -0.4]))

    value, gradient = jax.jit(along), jax.jit(jax.grad(along))
    forward = jax.jit(lambda x, stiff, v, d: jax.jvp(lambda x: along(x, stiff, v), (x,), (d,))[1])
    moving = jnp.array([0.4, -0.6, 0.3, 0.8])
    # At rest, where the angular velocity is zero; and with so much damping that
    # iteration does not contract.
    for stiff, v in ((0.0, moving), (0.05, 0 * moving), (1e3, moving)):
        x, d = jnp.zeros(6), 1e-5
        reverse = gradient(x, stiff, v)
        wanted = [
            (value(x + d * e, stiff, v) - value(x - d * e, stiff, v)) / (2 * d) for e in np.eye(6)
        ]
        np.testing.assert_allclose(reverse, wanted, rtol=1e-6, atol=1e-7)
        direction = jnp.linspace(1.0, -0.5, 6)
        np.testing.assert_allclose(forward(x, stiff, v, direction), reverse @ direction, rtol=1e-11)


STEPS = 20


def motion(v, dt, name="ImplicitMidpoint", system=ARM):
    return dl.simulate(system, Q0.astype(v.dtype), v, dt=dt, steps=STEPS, method=name)


def test_a_step_too_large_is_reported_with_its_time_and_not_made():
    run = motion(jnp.array([30.0, -50.0, 40.0, 60.0]), 5.0)
    step = int(run.result.unsolved_step)
    assert not run.result.ok and step <= STEPS
    assert f"the step that ends at t = {5.0 * step:g} s (step {step} of 20) were" in str(run.result)
    assert bool(jnp.all(jnp.isfinite(run.q))) and bool(jnp.all(jnp.isfinite(run.v)))
    np.testing.assert_array_equal(run.q[step], run.q[step - 1])
    np.testing.assert_array_equal(run.v[step], run.v[step - 1])


def test_a_stiff_spring_keeps_its_energy():
    # It swings once in every step, so that iteration does not contract.
    slide = dl.Prismatic(axis=(1.0, 0.0, 0.0), stiffness=4e6)
    system = dl.chain([dl.Body(name="mass", joint=slide, mass=10.0)], gravity=(0.0, 0.0, 0.0))
    run = dl.simulate(system, jnp.array([1e-3]), jnp.zeros(1), dt=1e-2, steps=500, method=GAUSS[0])
    assert run.result.ok
    total = 2e6 * run.q[:, 0] ** 2 + 5 * run.v[:, 0] ** 2
    np.testing.assert_allclose(total, total[0], rtol=1e-12)


@pytest.mark.slow
def test_single_precision_terminates_and_is_solved():
    v = jnp.array([0.4, -0.6, 0.3, 0.8])
    one = motion(v.astype(jnp.float32), 1e-2, "GaussLegendre4", ARM.astype(jnp.float32))
    two = motion(v, 1e-2, "GaussLegendre4")
    assert one.result.ok and one.q.dtype == one.v.dtype == jnp.float32
    np.testing.assert_allclose(one.q, two.q, atol=3e-6)


def test_a_batch_is_solved_entry_by_entry():
    v = jnp.array([0.4, -0.6, 0.3, 0.8])
    scales, dts = jnp.array([1.0, 0.0, 80.0]), jnp.array([1e-2, 2e-2, 5.0])
    runs = jax.vmap(lambda s, dt: motion(s * v, dt))(scales, dts)
    assert list(runs.result.ok) == [True, True, False]
    for i in range(2):
        one = motion(scales[i] * v, dts[i])
        np.testing.assert_allclose(runs.q[i], one.q, atol=1e-13)


# The series of dexp^-1.


def test_coefficients_of_the_series():
    assert [str(c) for c in dexp_inv_coefficients(9)] == (
        "1 1/2 1/12 0 -1/720 0 1/30240 0 -1/1209600".split()
    )
    assert len(dexp_inv_coefficients(3)) == 3 and len(dexp_inv_coefficients(0)) == 1
    with pytest.raises(ValueError, match="RKMK4: brackets is -1"):
        dl.RKMK4(brackets=-1)


@pytest.mark.parametrize(
    ("manifold", "size"),
    [
        (SO3(), 3),
        (UnitQuaternion(), 3),
        (SE3(), 6),
        (Pose(), 6),
        (Euclidean(2), 2),
        (FlatProduct((Pose(), Euclidean(2), UnitQuaternion())), 11),
    ],
    ids=lambda m: type(m).__name__,
)
def test_the_series_converges_to_the_exact_inverse(manifold, size):
    theta, xi = jax.random.normal(jax.random.key(1), (2, size)) * jnp.array([[0.3], [1.0]])
    exact = manifold.dexp_inv(theta, xi)
    found = truncated_dexp_inv(manifold, theta, xi, 16)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-13)

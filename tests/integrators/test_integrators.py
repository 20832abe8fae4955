"""Methods as functions: shapes, precision, transformations, errors."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from difflie import integrators
from difflie.groups import SO3, Euclidean, FlatProduct, Product, UnitQuaternion, quaternion
from difflie.integrators import (
    METHODS,
    EmbeddedMuntheKaas,
    RungeKuttaMuntheKaas,
    VectorField,
    by_name,
    single_step,
    tableaux,
)

FIELD_METHODS = [m for m in METHODS if m.equations is VectorField]
# The explicit methods of one fixed step that a tableau defines.
RUNGE_KUTTA = [
    m
    for m in FIELD_METHODS
    if hasattr(m, "tableau") and m.tableau.a[0] == () and not isinstance(m, EmbeddedMuntheKaas)
]
every_method = pytest.mark.parametrize("method", FIELD_METHODS, ids=lambda m: m.name)

# A body with a torque that turns its axis upwards; y = (quaternion (4,), rates (3,)).
BODY = Product((UnitQuaternion(), Euclidean(3)))
INERTIA = (1.0, 2.0, 2.5)
UP = (0.0, 0.0, 1.0)


def torque_field(stiffness, t, y):
    q, w = y
    J, up = jnp.array(INERTIA, w.dtype), jnp.array(UP, w.dtype)
    body_up = quaternion.to_matrix(q).T @ up
    return w, (jnp.cross(J * w, w) + stiffness * jnp.cos(t) * jnp.cross(up, body_up)) / J


def body_start(dtype=jnp.float64):
    q = np.array([0.8, 0.3, -0.4, 0.2])
    return jnp.array(q / np.linalg.norm(q), dtype), jnp.array([0.5, -0.8, 0.6], dtype)


def run(method, manifold, field, y, h, n=10):
    return jax.lax.fori_loop(
        0, n, lambda i, y: single_step(method, manifold, field, i * h, y, h), y
    )


# What a method is.


@every_method
def test_methods_are_leafless_hashable_and_equal(method):
    again = type(method)()
    assert method == again and hash(method) == hash(again)
    assert jax.tree.leaves(method) == []
    assert method.name == type(method).__name__ and by_name(method.name) == method
    assert f"Order {method.order}," in type(method).__doc__


def test_methods_of_different_tableaux_differ():
    assert integrators.RKMK3() != integrators.RKMK4()
    one, two = RungeKuttaMuntheKaas(tableaux.RK3), RungeKuttaMuntheKaas(tableaux.RK4)
    assert one != two and one == RungeKuttaMuntheKaas(tableaux.RK3)
    assert integrators.RKMK4(brackets=2) not in (integrators.RKMK4(), integrators.RKMK4(brackets=1))
    assert (one.order, two.order) == (3, 4)


def test_by_name_suggests():
    with pytest.raises(
        ValueError, match=r"unknown method 'RKMK44'; did you mean RKMK4.* known: .*CG2"
    ):
        by_name("RKMK44")
    with pytest.raises(ValueError, match="did you mean SemiImplicitEuler"):
        by_name("semi_implicit_euler")
    with pytest.raises(ValueError, match=r"unknown method 'zzz'; known: "):
        by_name("zzz")


# The formulas, where they are known otherwise.


@pytest.mark.parametrize("method", RUNGE_KUTTA, ids=lambda m: m.name)
def test_on_a_vector_space_it_is_runge_kutta(method):
    tableau = method.tableau

    def f(t, x):
        return np.array([x[1] * np.cos(t), t - x[0] * x[1]])

    t, h, x = 0.3, 0.2, np.array([0.7, -0.4])
    k = []
    for row, c in zip(tableau.a, tableau.c, strict=True):
        k.append(
            f(t + c * h, x + h * sum((a * v for a, v in zip(row, k, strict=True)), np.zeros(2)))
        )
    wanted = x + h * sum(b * v for b, v in zip(tableau.b, k, strict=True))

    def field(t, y):
        return jnp.stack((y[1] * jnp.cos(t), t - y[0] * y[1]))

    np.testing.assert_allclose(
        single_step(method, Euclidean(2), field, t, jnp.array(x), h), wanted, rtol=0, atol=1e-15
    )


def test_semi_implicit_euler_uses_the_new_velocity():
    y = (jnp.array([1.0]), jnp.array([2.0]))
    q, v = single_step(
        integrators.SemiImplicitEuler(),
        Product((Euclidean(1), Euclidean(1))),
        lambda t, y: (y[1], t - 3 * y[0]),
        1.0,
        y,
        0.1,
    )
    np.testing.assert_allclose((v[0], q[0]), (1.8, 1.18), atol=1e-15)


def test_cg2_is_cf2():
    y, h = body_start(), 0.1
    field = functools.partial(torque_field, 2.0)
    one, two = (single_step(by_name(n), BODY, field, 0.2, y, h) for n in ("CG2", "CF2"))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def matrix_torque_field(stiffness, t, y):
    return torque_field(stiffness, t, (quaternion.from_matrix(y[0]), y[1]))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SemiImplicitEuler", "CG3", "CF4", "RKMK4", "GaussLegendre4"])
def test_stays_on_the_group_and_does_not_depend_on_how_it_is_written(name):
    method = by_name(name)

    def end(y, manifold, field):
        field = functools.partial(field, 2.0)
        return jax.jit(lambda y: run(method, manifold, field, y, 0.1, 60))(y)

    q, w = body_start()
    R = quaternion.to_matrix(q)
    matrices = Product((SO3(), Euclidean(3)))
    q, _ = end((q, w), BODY, torque_field)
    R, _ = end((R, w), matrices, matrix_torque_field)
    assert abs(float(jnp.linalg.norm(q)) - 1.0) < 1e-13
    assert float(jnp.abs(R.T @ R - jnp.eye(3)).max()) < 1e-12
    np.testing.assert_allclose(quaternion.to_matrix(q), R, atol=1e-11)


@pytest.mark.slow
def test_flat_products_agree_with_tuples():
    flat = FlatProduct((UnitQuaternion(), Euclidean(3)))
    y, h = body_start(), 0.1
    field = functools.partial(torque_field, 2.0)

    def flat_field(t, y):
        return jnp.concatenate(field(t, (y[:4], y[4:])))

    truncated = integrators.RKMK4(brackets=2)
    for method in (*map(by_name, ("CG3", "CF3", "RKMK3", "GaussLegendre4")), truncated):
        wanted = jnp.concatenate(single_step(method, BODY, field, 0.2, y, h))
        np.testing.assert_allclose(
            single_step(method, flat, flat_field, 0.2, jnp.concatenate(y), h), wanted, atol=1e-15
        )


def test_semi_implicit_euler_refuses_other_manifolds():
    step = functools.partial(single_step, integrators.SemiImplicitEuler())
    q, w = body_start()
    for manifold in (
        UnitQuaternion(),
        Product((UnitQuaternion(), UnitQuaternion())),
        Product((UnitQuaternion(), Euclidean(3), Euclidean(3))),
        Product((UnitQuaternion(), FlatProduct((Euclidean(3), UnitQuaternion())))),
    ):
        with pytest.raises(TypeError, match=r"needs the manifold Product\(\(Q, E\)\)"):
            step(manifold, lambda t, y: y, 0.0, (q, w), 0.1)
    with pytest.raises(TypeError, match="must look alike"):
        step(BODY, lambda t, y: (y[0], y[1]), 0.0, (q, w), 0.1)
    nested = Product((Product((SO3(),)), Product((FlatProduct((Euclidean(3),)),))))
    (R,), (w,) = step(nested, lambda t, y: (y[1], y[1]), 0.0, ((jnp.eye(3),), (w,)), 0.1)
    assert R.shape == (3, 3) and w.shape == (3,)


# Precision and transformations.


@every_method
def test_keeps_the_precision_of_y(method):
    field, y = functools.partial(torque_field, 2.0), body_start(jnp.float32)
    for h in (0.1, jnp.float64(0.1)):
        out = jax.eval_shape(lambda y, h: run(method, BODY, field, y, h), y, h)
        assert [(a.shape, a.dtype) for a in out] == [((4,), jnp.float32), ((3,), jnp.float32)]


def test_single_precision_is_close_to_double():
    field = functools.partial(torque_field, 2.0)
    y32, y64 = (
        single_step(by_name("RKMK2"), BODY, field, 0.0, body_start(d), 0.1)
        for d in (jnp.float32, jnp.float64)
    )
    for a, b in zip(y32, y64, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_vmap_over_points_steps_and_parameters():
    n = 5
    y = jax.tree.map(lambda a: jnp.tile(a, (n, 1)), body_start())
    y = (y[0], y[1] * jnp.linspace(-1.0, 1.0, n)[:, None])
    h, stiffness = jnp.linspace(0.01, 0.3, n), jnp.linspace(0.0, 4.0, n)
    method = by_name("CF2")

    @jax.jit
    def step(y, h, stiffness):
        return single_step(method, BODY, functools.partial(torque_field, stiffness), 0.0, y, h)

    together = jax.vmap(step)(y, h, stiffness)
    for i in range(n):
        alone = step((y[0][i], y[1][i]), h[i], stiffness[i])
        for a, b in zip(together, alone, strict=True):
            np.testing.assert_allclose(a[i], b, atol=1e-14)


def test_methods_pass_through_jit():
    traces = []

    @eqx.filter_jit
    def step(method, y):
        traces.append(method.name)
        return single_step(method, Euclidean(2), lambda t, y: jnp.sin(y), 0.0, y, 0.1)

    y = jnp.array([0.4, 1.0])
    a, b, c = step(by_name("CG2"), y), step(integrators.CG2(), y), step(integrators.CG3(), y)
    assert traces == ["CG2", "CG3"]
    assert jnp.array_equal(a, b) and not jnp.array_equal(a, c)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SemiImplicitEuler", "CG2", "CF3", "RKMK3"])
def test_gradients_through_ten_steps(name):
    method = by_name(name)
    q0, w0 = body_start()

    @jax.jit
    def end(x, w0):
        """A number from ten steps; x is (change of y0 (6,), step, stiffness)."""
        y = BODY.retract((q0, w0), (x[:3], x[3:6]))
        y = run(method, BODY, functools.partial(torque_field, x[7]), y, x[6])
        return y[0] @ jnp.array([0.3, -1.0, 0.5, 0.8]) + y[1] @ jnp.array([0.2, 0.4, -0.6])

    x, d = jnp.array([0.0] * 6 + [0.07, 1.7]), 1e-4
    start, step, stiffness = np.array([0.4, -0.2, 0.9, 0.3, -0.5, 0.7, 0, 0]), *np.eye(8)[6:]
    for w in (w0, 0.0 * w0):  # moving, and at rest
        reverse = jax.jit(jax.grad(end))(x, w)
        _, forward = jax.jvp(lambda x, w=w: end(x, w), (x,), (jnp.ones(8),))
        np.testing.assert_allclose(forward, reverse.sum(), rtol=0, atol=1e-12)
        for e in (start, step, stiffness):
            near, far = (end(x + s * d * e, w) - end(x - s * d * e, w) for s in (1, 2))
            wanted = (8 * near - far) / (12 * d)
            assert abs(wanted) > 1e-3
            np.testing.assert_allclose(reverse @ e, wanted, rtol=0, atol=1e-9)


def test_gradients_through_a_compiled_run():
    method, y = by_name("SemiImplicitEuler"), body_start()

    def end(h):
        q, w = run(method, BODY, functools.partial(torque_field, 2.0), y, h)
        return q[0] + w[1]

    d = 1e-5
    ends = [jax.jit(end)(0.07 + s * d) for s in (-1, 1)]
    reverse = jax.jit(jax.grad(end))(0.07)
    _, forward = jax.jit(lambda h: jax.jvp(end, (h,), (1.0,)))(0.07)
    np.testing.assert_allclose(reverse, (ends[1] - ends[0]) / (2 * d), atol=1e-7)
    np.testing.assert_allclose(forward, reverse, atol=1e-13)

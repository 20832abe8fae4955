"""Log-Cholesky numbers against Pinocchio and mpmath; physical consistency for all numbers."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from difflie.parameters import (
    InertiaRatios,
    LogCholesky,
    SecondMoments,
    WithinEllipsoid,
    from_log_cholesky,
    log_cholesky,
    pseudo_inertia,
)

ELLIPSOID = WithinEllipsoid((0.1, 0.3, 0.2), center=(0.05, -0.1, 0.2), rotation=(0.3, 2.0, -1.0))
RNG = np.random.default_rng(0)
few = settings(max_examples=60, deadline=None)
numbers = arrays(float, 10, elements=st.floats(-3, 3))

made = jax.jit(from_log_cholesky)
back = jax.jit(log_cholesky)


def consistent(mass, com, inertia):
    a, b, c = np.linalg.eigvalsh(inertia)
    return mass > 0 and a > 0 and a + b > c


def test_pinocchio():
    pin = pytest.importorskip("pinocchio")
    for theta in RNG.normal(size=(20, 10)):
        theirs = pin.LogCholeskyParameters(theta)
        mass, com, inertia = made(theta)
        body = theirs.toInertia()
        np.testing.assert_allclose(mass, body.mass, rtol=1e-13)
        np.testing.assert_allclose(com, body.lever, rtol=1e-13)
        np.testing.assert_allclose(inertia, body.inertia, rtol=1e-12, atol=1e-12 * np.max(inertia))
        matrix = theirs.toPseudoInertia().toMatrix()
        found = pseudo_inertia(mass, com, inertia)
        np.testing.assert_allclose(found, matrix, rtol=1e-12, atol=1e-13 * np.max(matrix))


def test_the_factor_of_the_paper():
    alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 = theta = RNG.normal(size=10)
    with mpmath.workdps(40):
        e = mpmath.exp
        rows = [[e(d1), s12, s13, t1], [0, e(d2), s23, t2], [0, 0, e(d3), t3], [0, 0, 0, 1]]
        u = e(alpha) * mpmath.matrix(rows)
        expected = np.array((u * u.T).tolist(), float)
    np.testing.assert_allclose(pseudo_inertia(*made(theta)), expected, rtol=1e-13, atol=1e-14)


def test_points_of_mass():
    x, m = RNG.normal(size=(7, 3)), RNG.uniform(0.1, 1, 7)
    com = m @ x / m.sum()
    r = x - com
    inertia = np.einsum("i,ijk->jk", m, (r**2).sum(1)[:, None, None] * np.eye(3)) - (m * r.T) @ r
    padded = np.column_stack((x, np.ones(7)))
    expected = (m * padded.T) @ padded
    np.testing.assert_allclose(pseudo_inertia(m.sum(), com, inertia), expected, atol=1e-14)


@few
@given(numbers)
def test_every_number_is_a_body_and_back(theta):
    mass, com, inertia = made(theta)
    moments = np.trace(inertia) / 2 * np.eye(3) - inertia
    spread = np.linalg.cond(moments)
    np.testing.assert_allclose(back(mass, com, inertia), theta, atol=1e-13 + 1e-15 * spread)
    if spread < 1e12:
        assert consistent(mass, com, inertia)


def test_batches():
    theta = RNG.normal(size=(4, 5, 10))
    body = made(theta)
    assert [a.shape for a in body] == [(4, 5), (4, 5, 3), (4, 5, 3, 3)]
    np.testing.assert_allclose(back(*body), theta, atol=1e-12)
    assert pseudo_inertia(*body).shape == (4, 5, 4, 4)


@pytest.mark.slow
@pytest.mark.parametrize("transform", [LogCholesky(), ELLIPSOID, SecondMoments()])
@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_derivatives(transform, scale):
    size = 6 if isinstance(transform, SecondMoments) else 10
    x, start = scale * RNG.normal(size=size), jnp.zeros((3, 3) if size == 6 else 10)
    value = lambda x: transform.value(x, start)  # noqa: E731
    forward, reverse = jax.jit(lambda x: (jax.jacfwd(value)(x), jax.jacrev(value)(x)))(x)
    np.testing.assert_allclose(forward, reverse, atol=1e-13)
    compiled, h = jax.jit(jax.vmap(value)), 1e-5
    above, below = compiled(x + h * np.eye(size)), compiled(x - h * np.eye(size))
    differences = np.moveaxis(np.asarray(above - below), 0, -1) / (2 * h)
    np.testing.assert_allclose(forward, differences, rtol=1e-8, atol=1e-8)
    inverse = jax.jit(jax.jacfwd(lambda v: transform.inverse(v, start)))(value(x))
    both = np.tensordot(inverse, forward, axes=np.ndim(value(x)))
    np.testing.assert_allclose(both, np.eye(size), atol=1e-11)


@pytest.mark.slow
def test_ratios_of_an_inertia():
    """The same shape at any scale, back to the numbers, named by the entries over the first."""
    ratios, whole = InertiaRatios(), SecondMoments()
    start = whole.value(RNG.normal(size=6), jnp.zeros((3, 3)))
    for x in RNG.normal(size=(5, 5)):
        made = ratios.value(x, start)
        assert consistent(1.0, None, made)
        np.testing.assert_allclose(made[0, 0], start[0, 0], rtol=1e-14)
        np.testing.assert_allclose(ratios.inverse(7 * made, start), x, atol=1e-10)
        entries = ratios.components(made, start)
        np.testing.assert_allclose(
            entries, np.asarray(made)[(0, 0, 1, 1, 2), (1, 2, 1, 2, 2)] / made[0, 0]
        )
        np.testing.assert_allclose(
            ratios.of_components(entries, start), made, rtol=1e-14, atol=1e-15
        )
    forward, reverse = (d(lambda x: ratios.value(x, start))(x) for d in (jax.jacfwd, jax.jacrev))
    above, below = (
        jax.vmap(lambda x: ratios.value(x, start))(x + h * np.eye(5)) for h in (1e-5, -1e-5)
    )
    differences = np.moveaxis(np.asarray(above - below), 0, -1) / 2e-5
    np.testing.assert_allclose(forward, reverse, atol=1e-13)
    np.testing.assert_allclose(forward, differences, rtol=1e-7, atol=1e-8)
    single = ratios.value(x.astype("float32"), start.astype("float32"))
    assert single.dtype == "float32"
    assert ratios.labels("inertia", (3, 3))[2] == "I_yy/I_xx"
    assert ratios.suits("inertia", (3, 3)) and not ratios.suits("mass", ())
    assert "not physically consistent" in ratios.fault(np.diag((1.0, 1.0, 3.0)), np.eye(3))


@pytest.mark.slow("transform0")
@pytest.mark.parametrize("transform", [LogCholesky(), ELLIPSOID])
def test_single_precision(transform):
    x, start = RNG.normal(size=10), jnp.zeros(10)
    single = transform.value(x.astype("float32"), start.astype("float32"))
    assert single.dtype == "float32"
    exact = transform.value(x, start)
    assert np.max(np.abs(single - exact)) < 1e-6 * np.max(np.abs(exact))
    again = transform.inverse(single, start.astype("float32"))
    assert again.dtype == "float32"
    np.testing.assert_allclose(again, x, atol=2e-4)


def outside(value):
    """tr(J Q), with Q as Wensing, Kim and Slotine 2018 have it."""
    mass, com, i = value[0], value[1:4], value[4:]
    inertia = np.array([[i[0], i[1], i[2]], [i[1], i[3], i[4]], [i[2], i[4], i[5]]])
    w = np.asarray(ELLIPSOID.rotation)
    angle = np.linalg.norm(w)
    x, y, z = w / angle
    hat = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    turn = np.eye(3) + np.sin(angle) * hat + (1 - np.cos(angle)) * hat @ hat
    inverse = turn @ np.diag(1 / ELLIPSOID.semi_axes**2) @ turn.T
    c = ELLIPSOID.center
    q = np.block([[-inverse, (inverse @ c)[:, None]], [c @ inverse, 1 - c @ inverse @ c]])
    return np.trace(np.asarray(pseudo_inertia(mass, com, inertia)) @ q), (mass, com, inertia)


bounded = jax.jit(lambda x: ELLIPSOID.value(x, jnp.zeros(10)))
unbounded = jax.jit(lambda v: ELLIPSOID.inverse(v, jnp.zeros(10)))


@few
@given(numbers)
def test_every_number_is_a_body_in_the_ellipsoid(x):
    value = np.asarray(bounded(x))
    trace, body = outside(value)
    w = np.concatenate((np.exp(x[1:4]), x[4:]))
    np.testing.assert_allclose(trace, value[0] / (1 + w @ w), rtol=1e-9)
    assert np.isfinite(trace) and trace > 0
    spread = np.linalg.cond(np.trace(body[2]) / 2 * np.eye(3) - body[2])
    assert spread > 1e12 or consistent(*body)
    np.testing.assert_allclose(unbounded(value), x, atol=1e-12 + 1e-13 * spread)


def test_bodies_in_the_ellipsoid_have_numbers_and_others_none():
    y = RNG.normal(size=(6, 3))
    y *= 0.95 / np.linalg.norm(y, axis=1)[:, None]
    matrix = np.asarray(ELLIPSOID._frame(np.dtype(float))[1])
    for stretch, fits in ((1.0, True), (1.2, False)):
        x, m = ELLIPSOID.center + stretch * y @ matrix.T, np.full(6, 0.5)
        com = m @ x / 3
        r = x - com
        inertia = np.sum(m * (r**2).sum(1)) * np.eye(3) - (m * r.T) @ r
        value = np.concatenate(([3.0], com, inertia[np.triu_indices(3)]))
        assert (ELLIPSOID.fault(value, value) == "") == fits
        if fits:
            np.testing.assert_allclose(bounded(unbounded(value)), value, atol=1e-12)
        else:
            assert "larger by more than the factor 1.14" in ELLIPSOID.fault(value, value)


def test_what_no_body_has():
    rod, plate = np.diag([1.0, 1.0, 0.0]), np.diag([1.0, 1.0, 2.0])
    for inertia in (rod, plate, np.diag([1.0, 1.0, 2.5])):
        fault = SecondMoments().fault(inertia, inertia)
        assert "not physically consistent" in fault
        added = float(fault.split("add ")[1].split(" kg")[0])
        assert SecondMoments().fault(inertia + added * np.eye(3), inertia) == ""
        assert np.all(np.isfinite(SecondMoments().inverse(inertia + added * np.eye(3), inertia)))
    assert "the mass 0 kg" in LogCholesky().fault(np.zeros(10), np.zeros(10))
    assert "give it one" in SecondMoments().fault(np.zeros((3, 3)), np.zeros((3, 3)))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"semi_axes": (1, 2)}, "semi_axes"),
        ({"semi_axes": (1, 2, 0)}, "must be positive"),
        ({"semi_axes": (1, 2, 3), "center": (0, 0, np.inf)}, "center"),
    ],
)
def test_no_ellipsoid(fields, message):
    with pytest.raises(ValueError, match=message):
        WithinEllipsoid(**fields)

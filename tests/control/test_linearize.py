"""Linear models of a step: differences, a linear machine, derivatives, errors."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from pendulums import pendulum

import difflie as dl

FREE = dl.chain(
    [
        dl.Body(name="hull", joint=dl.Free(), mass=2.0, inertia=np.diag((0.1, 0.2, 0.25))),
        dl.Body(
            name="arm",
            joint=dl.Revolute(axis=(0.0, 1.0, 0.0), damping=0.3),
            mass=1.0,
            com=(0.2, 0.0, 0.1),
            inertia=0.01 * np.eye(3),
        ),
    ]
)
TOP = dl.chain(
    [
        dl.Body(
            name="top",
            joint=dl.Spherical(),
            mass=1.5,
            com=(0.1, -0.05, 0.2),
            inertia=np.diag((0.3, 0.4, 0.5)),
        )
    ]
)
PENDULUM = pendulum(damping=0.1)
NEUTRAL = FREE.neutral()
SPUN = dl.integrate(FREE, NEUTRAL, jnp.linspace(-1.0, 1.5, 7))
MOVING = jnp.linspace(1.0, -0.8, 7)


@functools.partial(jax.jit, static_argnames="method")
def moved(system, q, v, control, base, change, method):
    """The end of a step from a changed start, as a tangent at base, and whether it is solved."""
    dq, dv, du = jnp.split(change, (system.nv, 2 * system.nv))
    start = dl.integrate(system, q, dq), v + dv
    q1, v1, solved = dl.step(system, *start, 0.02, control=control + du, method=method)
    return jnp.concatenate((dl.difference(system, base, q1), v1)), solved


def check_differences(system, q, v, control, method="RKMK4"):
    found = np.hstack(dl.linearize(system, q, v, 0.02, control=control, method=method))
    assert found.shape == (2 * system.nv, 2 * system.nv + system.nu)
    base, _, _ = dl.step(system, q, v, 0.02, control=control, method=method)
    for column, e in zip(found.T, 1e-5 * np.eye(found.shape[1]), strict=True):
        (there, ahead), (back, behind) = (
            moved(system, q, v, control, base, s * e, method) for s in (1, -1)
        )
        assert ahead and behind
        np.testing.assert_allclose(column, (there - back) / 2e-5, atol=1e-7)


SLOW = pytest.mark.slow


@pytest.mark.slow("zero rotation-RKMK4", "zero rotation-SemiImplicitEuler", "turned-RKMK4")
@pytest.mark.thorough("zero rotation-VariationalMidpoint")
@pytest.mark.parametrize(
    "method", ["RKMK4", "SemiImplicitEuler", pytest.param("VariationalMidpoint", marks=SLOW)]
)
@pytest.mark.parametrize("q", [NEUTRAL, SPUN], ids=["zero rotation", "turned"])
def test_every_column_against_differences(method, q):
    """Of a free body with a joint: attitudes count as tangents."""
    check_differences(FREE, q, MOVING, np.linspace(0.5, 2.0, 7), method=method)


@SLOW
def test_a_ball_joint_that_a_rod_holds():
    """Also across the directions that keep the rod's length, in which a step projects."""
    rod = dl.Frame(None, (0.1, 0.9, 1.3)), dl.Frame("top", (0.2, 0.1, 0.0)), 1.5
    held = dl.constrain(TOP, dl.constraints.Distance(*rod))
    q, v = dl.assemble(held, jnp.array([0.5, 0.5, -0.5, 0.5]), jnp.array([1.0, -0.5, 0.3]))
    check_differences(held, q, v, np.array([0.1, 0.2, 0.3]), method="SemiImplicitEuler")


@SLOW
@pytest.mark.parametrize("method", ["RKMK4"])
def test_closed_loops(method):
    leg = dl.load("configs/fourbar_leg.urdf", loops="configs/fourbar_leg.loops.toml")
    q, v = dl.assemble(leg, jnp.array([-0.3, 0.8, 0.1, -0.6]))
    check_differences(leg, q, v, np.array([3.0, -1.0, 0.0, 0.0]), method=method)


@pytest.mark.slow
def test_implicit_methods():
    """Whose equations are solved in every step."""
    for method in ("GaussLegendre4", "VariationalMidpoint"):
        q, v, u = np.array([0.3, -0.1]), np.array([1.0, 2.0]), np.array([1.0, -2.0])
        check_differences(sliders(), q, v, u, method=method)


@pytest.mark.slow
def test_commands_are_those_of_actuators():
    name = FREE.joint_names[1]
    servos = dl.attach(FREE, dl.PositionServo(name, kp=5.0, kd=0.1))
    check_differences(servos, SPUN, MOVING, np.array([0.3]))


def sliders():
    """Two masses in a row, on springs, with damping: a linear machine."""

    def mass(name, stiffness):
        joint = dl.Prismatic(axis=(1.0, 0.0, 0.0), stiffness=stiffness, damping=0.4)
        return dl.Body(name=name, joint=joint, mass=2.0)

    return dl.chain([mass("first", 30.0), mass("second", 20.0)])


def test_a_linear_machine_has_the_matrix_exponential():
    """Of its equations of first order, the command included; the state does not matter."""
    system, dt = sliders(), 0.05
    M = np.asarray(dl.mass_matrix(system, jnp.zeros(2)))
    K, D = np.diag((30.0, 20.0)), np.diag((0.4, 0.4))
    field = np.zeros((6, 6))
    field[:2, 2:4] = np.eye(2)
    field[2:4] = np.linalg.solve(M, np.hstack((-K, -D, np.eye(2))))
    exact = scipy.linalg.expm(dt * field)[:4]
    given = {"method": "RKMK8", "control": [1.0, -2.0]}
    found = dl.linearize(system, [0.3, -0.1], [1.0, 2.0], dt, **given)
    np.testing.assert_allclose(np.hstack(found), exact, atol=1e-11)


@pytest.mark.slow
def test_knots_are_linearised_one_by_one():
    """With leading axes, in a jax.vmap, and with one command for all."""
    q, v = jnp.stack((NEUTRAL, SPUN)), jnp.stack((MOVING, 0 * MOVING))
    u, t = jnp.stack((MOVING, -MOVING)), jnp.array([0.0, 0.1])
    many = dl.linearize(FREE, q, v, 0.02, control=u, t=t)
    batch = jax.vmap(lambda *knot: dl.linearize(FREE, *knot[:2], 0.02, control=knot[2]))(q, v, u)
    one = dl.linearize(FREE, q[1], v[1], 0.02, control=u[1])
    same = dl.linearize(FREE, q, v, 0.02, control=u[1])
    for a, b, c, d in zip(many, batch, one, same, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-13)
        np.testing.assert_allclose(a[1], c, atol=1e-13)
        np.testing.assert_allclose(d[1], c, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("system", [PENDULUM, TOP], ids=["hinge", "ball"])
def test_derivatives_in_both_modes(system):
    """Of A and B, so second derivatives of the step, against differences."""
    nv = system.nv

    def model(x):
        q = dl.integrate(system, system.neutral(), jnp.zeros(nv).at[0].set(x[0]))
        v = jnp.array([1.0, 2.0, -1.0])[:nv] * x[1]
        found = jnp.hstack(dl.linearize(system, q, v, x[2], method="SemiImplicitEuler"))
        return jnp.sum(jnp.cos(jnp.arange(found.size)) * found.ravel())

    x = jnp.array([0.2, 0.9, 0.02])
    value = jax.jit(model)
    forward, reverse = jax.jacfwd(model)(x), jax.grad(model)(x)
    difference = [(value(x + e) - value(x - e)) / 2e-5 for e in 1e-5 * np.eye(3)]
    np.testing.assert_allclose(forward, difference, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(reverse, forward, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_single_precision():
    exact = dl.linearize(FREE, SPUN, MOVING, 0.02)
    q, v = SPUN.astype("float32"), MOVING.astype("float32")
    for a, b in zip(dl.linearize(FREE.astype("float32"), q, v, 0.02), exact, strict=True):
        assert a.dtype == "float32"
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_a_step_that_is_not_solved_has_no_linear_model():
    assert np.isnan(dl.linearize(FREE, SPUN, 1e200 * MOVING, 0.02).A).all()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"q": [1.0]}, ValueError, r"q has shape \(1,\), needed is \(8,\)"),
        ({"q": np.stack((NEUTRAL, SPUN))}, ValueError, r"v has shape \(7,\), needed is \(2, 7\)"),
        ({"q": 2 * NEUTRAL}, ValueError, "quaternion"),
        ({"dt": 0.0}, ValueError, "linearize: dt is 0.0; it must be positive"),
        ({"t": [0.0, 1.0]}, ValueError, r"t has shape \(2,\), needed is \(\)"),
        ({"control": lambda t, q, v: v}, TypeError, "control is a function; give the command"),
        ({"control": [1.0]}, ValueError, r"control has shape \(1,\), needed is \(7,\)"),
    ],
)
def test_bad_input_is_one_clear_error(change, error, words):
    given = {"q": NEUTRAL, "v": MOVING, "dt": 0.02} | change
    with pytest.raises(error, match=words):
        dl.linearize(FREE, **given)


def test_actuators_with_a_memory_are_refused():
    late = dl.attach(FREE, dl.Drive(FREE.joint_names[1], delay=0.1))
    with pytest.raises(ValueError, match="has a memory"):
        dl.linearize(late, NEUTRAL, MOVING, 0.02)

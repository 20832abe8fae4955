"""Free bodies under methods of first order: momentum, energy, order, derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import integrators
from difflie.constraints import Proportional, SphereOnPlane, SphericalConstraint
from difflie.dynamics.free_flight import carried
from difflie.system.kinematic_tree import Tree

METHODS = ["SemiImplicitEuler", "Moreau", "ConvexContact"]
STILL = jnp.zeros(3)


def arm(name, side, axis, parent="hub"):
    inertia = np.diag([0.001, 0.004, 0.004])
    at, com = (side * 0.2, 0, 0), (side * 0.15, 0, 0)
    joint = dl.Revolute(axis=axis)
    return dl.Body(
        name=name, parent=parent, joint=joint, position=at, mass=0.5, com=com, inertia=inertia
    )


HUB = dl.Body(name="hub", joint=dl.Free(), mass=2.0, inertia=np.diag([0.02, 0.03, 0.04]))
PLATE = dl.Body(
    name="plate",
    joint=dl.Free(),
    position=(1.0, 0.2, 0.0),
    rotation=dl.so3.exp(jnp.array([0.3, -0.4, 0.5])),
    mass=0.7,
    com=(0.02, -0.01, 0.03),
    inertia=np.diag([0.002, 0.003, 0.0042]),
)
ARMS = (arm("a", 1, (0, 1.0, 0)), arm("b", -1, (0, 0, 1.0)))
TREE = dl.tree([HUB, *ARMS])
# Two free bodies, one of them with arms, beside a pendulum that is fixed.
MANY = dl.tree([arm("fixed", 1, (0, 1.0, 0), parent=None), PLATE, HUB, *ARMS])
BALL = dl.tree([dl.Body(name="ball", joint=dl.Free(), mass=0.4, inertia=0.004 * np.eye(3))])

TREE_SPEED = [9.0, -6, 12, 0.5, 0, 0.2, 3, -2]
MANY_SPEED = [1.0, 11.0, -17, 23, 0.4, -0.8, 0.3, *TREE_SPEED]


def moved(system, v, h, time, method, **given):
    """The motion (101 rows) from the neutral configuration."""
    steps = round(time / h)
    every = max(1, steps // 100)
    given = {"save_every": every, "steps": every * (steps // every), **given}
    run = dl.simulate(system, system.neutral(), v, dt=h, method=method, **given)
    assert run.result.ok
    return run


def momenta(system, run):
    """The momentum (rows, 6) less that of gravity, about the world's origin."""
    return np.array(jax.vmap(lambda q, v: dl.momentum(system, q, v))(run.q, run.v))


@pytest.mark.slow("10.0-*", "500.0-ConvexContact", "500.0-Moreau")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("spin", [10.0, 500.0])
def test_a_spinning_ball_flies_straight_on(method, spin):
    """Body-fixed velocities, stepped explicitly, grow; 500 rad/s turns by half a radian a step."""
    ball = BALL.replace(gravity=STILL)
    run = moved(ball, jnp.array([0, spin, 0, 1.0, 0, 0]), 1e-3, 5.0, method)
    np.testing.assert_allclose(np.linalg.norm(run.v[:, 3:], axis=1), 1, rtol=1e-11)
    np.testing.assert_allclose(run.q[-1, 4:], [run.t[-1], 0, 0], rtol=0, atol=1e-10)


@pytest.mark.slow("*-Moreau", "*-ConvexContact", "0.001-SemiImplicitEuler")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("h", [1e-3, 2e-2])
def test_momentum_in_free_flight(method, h):
    """Of several bodies and trees, off their centres of mass, turning by 0.6 rad a step."""
    system = MANY.replace(gravity=STILL, armature=MANY.joints.armature.at[-2:].set(0.01))
    run = moved(system, jnp.array(MANY_SPEED), h, 2.0, method)
    free = system.replace(mass=system.bodies.mass.at[0].set(0.0))
    free = free.replace(inertia=free.bodies.inertia.at[0].set(1e-12 * np.eye(3)))
    found = momenta(free, run)
    np.testing.assert_allclose(found, np.broadcast_to(found[0], found.shape), rtol=0, atol=2e-11)


@pytest.mark.slow
def test_momentum_in_single_precision():
    """f32 keeps momentum to its own rounding."""
    system = TREE.replace(gravity=STILL).astype(jnp.float32)
    run = moved(system, jnp.array(TREE_SPEED, jnp.float32), 2e-3, 2.0, "SemiImplicitEuler")
    found = momenta(system, run)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.broadcast_to(found[0], found.shape), rtol=0, atol=3e-4)


@pytest.mark.slow("ConvexContact", "Moreau")
@pytest.mark.parametrize("method", METHODS)
def test_energy_in_free_flight(method):
    """A free body's energy is bounded by its momentum: it stays within 15 percent for 20 s."""
    plate = dl.tree([PLATE]).replace(gravity=STILL)
    run = moved(plate, jnp.array(MANY_SPEED[1:7]), 5e-3, 20.0, method)
    energy = np.array(jax.vmap(lambda q, v: sum(dl.energy(plate, q, v)))(run.q, run.v))
    assert np.all(energy < 1.001 * energy[0]) and np.all(energy > 0.85 * energy[0])


@pytest.mark.slow("ConvexContact", "Moreau")
@pytest.mark.parametrize("method", METHODS)
def test_spin_of_what_falls_or_flies_fast(method):
    """Neither gravity nor the velocity of the centre of mass turns a body off its centre."""
    plate, spin = dl.tree([PLATE]), [3.0, -2, 4]
    still = moved(plate.replace(gravity=STILL), jnp.array([*spin, 0, 0, 0]), 2e-3, 1.0, method)
    fast = moved(plate, jnp.array([*spin, 1000.0, 2, 3]), 2e-3, 1.0, method)
    np.testing.assert_allclose(fast.q[:, :4], still.q[:, :4], rtol=0, atol=1e-9)
    found = momenta(plate, fast)[:, 3:]
    gained = 0.7 * np.outer(fast.t, plate.gravity)
    np.testing.assert_allclose(found - found[0], gained, rtol=0, atol=1e-9)


@pytest.mark.slow("Moreau", "ConvexContact")
@pytest.mark.parametrize("method", METHODS)
def test_a_ball_joint_keeps_angular_momentum_about_its_centre(method):
    """Of a body on a ball joint with an arm; under gravity, its vertical component."""
    body = dl.Body(
        name="hub",
        joint=dl.Spherical(),
        position=(0.1, 0.2, 0.3),
        mass=2.0,
        com=(0.0, 0.1, 0.0),
        inertia=np.diag([0.02, 0.03, 0.04]),
    )
    system = dl.tree([body, ARMS[0]])
    centre, v = np.array([0.1, 0.2, 0.3]), jnp.array([9.0, -6, 12, 3])
    for gravity, rows in ((STILL, slice(3)), (system.gravity, slice(2, 3))):
        run = moved(system.replace(gravity=gravity), v, 5e-3, 1.0, method)
        found = momenta(system, run)
        about = (found[:, :3] - np.cross(centre, found[:, 3:]))[:, rows]
        np.testing.assert_allclose(about, np.broadcast_to(about[0], about.shape), atol=1e-11)


def pulled(t, q, v):
    """Wrenches on hub and arms, one of them moving with the motion."""
    return jnp.stack((0.3 * v[:6], jnp.array([0.1, -0.2, 0.1, 1.0, 2, -1]), jnp.zeros(6)))


@pytest.mark.slow
@pytest.mark.thorough("loop", "ball")
@pytest.mark.parametrize("kind", ["tree", "wrenches", "loop", "ball"])
def test_first_order_with_everything_that_acts(kind):
    """Errors against RKMK4 halve with the step, under torques, wrenches, loops and gravity."""
    system, v, given = TREE, jnp.array([1.0, -2, 3, 0.5, 0, 0.2, 1, -2]), {}
    given["control"] = lambda t, q, v: jnp.zeros(8).at[6:].set(jnp.array([0.3, -0.2]))
    if kind == "wrenches":
        given["wrench"] = pulled
    if kind == "loop":
        system = dl.constrain(system, Proportional(["a", "b"], [1.0, -0.5]))
        v = v.at[6:].set(jnp.array([1.0, 2.0]))
    if kind == "ball":
        hub = dl.Body(
            name="hub",
            joint=dl.Spherical(),
            mass=2.0,
            com=(0.0, 0.1, 0.0),
            inertia=np.diag([0.02, 0.03, 0.04]),
        )
        system, v, given = dl.tree([hub, *ARMS]), jnp.array([1.0, -2, 3, 1, -2]), {}
    right = moved(system, v, 5e-4, 0.2, "RKMK4", **given).q[-1]
    # In the loop errors of the second order are as large as those of the first.
    most = 4.3 if kind == "loop" else 2.3
    for method in METHODS:
        errors = [moved(system, v, h, 0.2, method, **given).q[-1] - right for h in (2e-3, 1e-3)]
        first, second = (float(jnp.max(jnp.abs(e))) for e in errors)
        assert 1.7 < first / second < most and second < 0.01, (method, errors)


@pytest.mark.slow
def test_a_floating_loop_keeps_its_momentum():
    """Projection onto constraints turns bases, too: their velocities are carried along."""
    link = dl.Body(name="link", joint=dl.Free(), mass=0.5, inertia=np.diag([0.001, 0.004, 0.003]))
    system = dl.tree([HUB, link]).replace(gravity=STILL)
    ends = dl.Frame("hub", (0.2, 0, 0)), dl.Frame("link", (-0.2, 0, 0))
    system = dl.constrain(system, SphericalConstraint(*ends))
    q = system.neutral().at[11].set(0.4)
    start = dl.assemble(system, q, jnp.array([2.0, -1, 3, 0.1, 0.2, 0.3, 4, 5, 6, 0, 0, 0]))
    run = dl.simulate(system, *start, dt=2e-3, steps=500, method="SemiImplicitEuler")
    assert run.result.ok
    found = momenta(system, run)
    np.testing.assert_allclose(found, np.broadcast_to(found[0], found.shape), rtol=0, atol=1e-10)


@pytest.mark.slow
def test_a_ball_rolls_on():
    """A rolling ball keeps its speed: friction does no work."""
    ball = dl.tree([dl.Body(name="b", joint=dl.Free(), mass=0.4, inertia=4e-4 * np.eye(3))])
    contact = SphereOnPlane(dl.Frame("b"), dl.Frame(), radius=0.05, friction=0.5, restitution=0.0)
    ball = dl.constrain(ball, contact)
    start, v = ball.neutral().at[6].set(0.05), jnp.array([0, 40.0, 0, 2.0, 0, 0])
    run = dl.simulate(ball, start, v, dt=1e-3, steps=300, method="Moreau", save_every=30)
    np.testing.assert_allclose(np.linalg.norm(run.v[:, 3:], axis=1), 2.0, rtol=1e-9)


@pytest.mark.slow
def test_the_body_fixed_scheme_is_still_there():
    """v' = v + h a and q' = q exp(h v'), as crocoddyl steps a free body."""
    q, v, h = TREE.neutral(), jnp.array(TREE_SPEED), 1e-2
    end = dl.step(TREE, q, v, h, method="BodyFixedEuler")
    rates = v + h * dl.forward_dynamics(TREE, q, v, jnp.zeros(8))
    np.testing.assert_allclose(end.v, rates, rtol=0, atol=1e-13)
    np.testing.assert_allclose(end.q, dl.integrate(TREE, q, h * rates), rtol=0, atol=1e-14)


def test_a_fixed_base_is_stepped_as_by_the_body_fixed_scheme():
    """Where there is no free body the two methods are one, to the last bit."""
    system = dl.tree([arm("a", 1, (0, 1.0, 0), parent=None), arm("b", 1, (1.0, 0, 0), parent="a")])
    runs = [
        dl.simulate(system, [0.1, 0.2], [1.0, 2.0], dt=1e-2, steps=20, method=m).q
        for m in ("SemiImplicitEuler", integrators.BodyFixedEuler())
    ]
    np.testing.assert_array_equal(*runs)


@pytest.mark.slow("0.0-f64")
@pytest.mark.thorough("*-f32")
@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32], ids=["f64", "f32"])
@pytest.mark.parametrize("speed", [0.0, 1.0])
def test_derivatives_of_a_step(speed, dtype):
    """Both modes agree, and with differences, by state and numbers, at rest and turning."""
    system = TREE.astype(dtype)
    v = speed * jnp.array([1.0, -2, 3, 0.5, 0, 0.2, 1, -2], dtype)

    def end(x):
        changed = system.replace(mass=system.bodies.mass * (1 + x[0]))
        step = dl.step(changed, system.neutral(), v + x[1:], 0.05, method="SemiImplicitEuler")
        return jnp.concatenate((step.q, step.v))

    x = jnp.zeros(9, dtype)
    forward, reverse = jax.jacfwd(end)(x), jax.jacrev(end)(x)
    tolerance = 1e-12 if dtype == jnp.float64 else 2e-5
    np.testing.assert_allclose(forward, reverse, rtol=0, atol=tolerance * 10)
    assert np.all(np.isfinite(forward))
    if dtype == jnp.float64:
        e = 1e-5 * np.eye(9)
        differences = jnp.stack([(end(x + d) - end(x - d)) / 2e-5 for d in e], axis=1)
        np.testing.assert_allclose(forward, differences, rtol=0, atol=1e-8)


def test_carrying_goes_back_and_forth():
    """Momentum carried to another configuration and back is the velocity that it was."""
    tree, v = Tree.of(MANY), jnp.array(MANY_SPEED)
    q = MANY.neutral()
    end = dl.integrate(MANY, q, 0.3 * v)
    there = carried(tree, q, v, end)
    np.testing.assert_allclose(carried(tree, end, there, q), v, rtol=0, atol=1e-12)
